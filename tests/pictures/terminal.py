#!/usr/bin/env python3
"""A picture (SVG) of what a terminal shows: standard input is what `tmux capture-pane -e -p` prints of it.

    tmux capture-pane -e -p | tests/pictures/terminal.py TITLE > FILE

Colors are those that a dark terminal usually has. Every run of cells of one style is one piece of text that is stretched to
its cells, so that the picture does not depend on the font of whoever looks at it.
"""
import re
import sys
import unicodedata
from html import escape

CELL, LINE, MARGIN = 8, 18, 12
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
FOREGROUND, BACKGROUND = "#d0d0d0", "#16181d"
SIXTEEN = ("#2e3436 #ef5350 #8bc34a #ffc107 #64a8ff #ce7bd0 #4dd0e1 #d0d0d0 "
           "#7a8088 #ff7a75 #aed581 #ffd54f #90c2ff #e1a3e3 #80deea #ffffff").split()
SEQUENCE = re.compile(r"\x1b\[([0-9;:]*)([A-Za-z])|\x1b[()][A-Z0-9]|[\x0e\x0f]")


def of_256(number):
    if number < 16:
        return SIXTEEN[number]
    if number >= 232:
        return "#" + 3 * f"{8 + 10 * (number - 232):02x}"
    level = lambda part: 0 if part == 0 else 55 + 40 * part
    number -= 16
    return "#%02x%02x%02x" % tuple(level(part) for part in (number // 36, number // 6 % 6, number % 6))


class Style:
    def __init__(self):
        self.color, self.ground, self.bold, self.dim, self.reverse, self.line = None, None, False, False, False, False

    def change(self, numbers):
        """Takes the numbers of one `SGR` sequence."""
        numbers = [int(number or 0) for number in re.split("[;:]", numbers)]
        while numbers:
            number = numbers.pop(0)
            if number == 0:
                self.__init__()
            elif number in (1, 2, 4, 7):
                setattr(self, {1: "bold", 2: "dim", 4: "line", 7: "reverse"}[number], True)
            elif number == 22:
                self.bold = self.dim = False
            elif number in (24, 27):
                setattr(self, {24: "line", 27: "reverse"}[number], False)
            elif number in (38, 48):
                which = "color" if number == 38 else "ground"
                if numbers.pop(0) == 5:
                    setattr(self, which, of_256(numbers.pop(0)))
                else:
                    setattr(self, which, "#%02x%02x%02x" % tuple(numbers[:3]))
                    del numbers[:3]
            elif number in (39, 49):
                setattr(self, "color" if number == 39 else "ground", None)
            elif 30 <= number <= 37 or 90 <= number <= 97:
                self.color = SIXTEEN[number - 30 if number < 40 else number - 82]
            elif 40 <= number <= 47 or 100 <= number <= 107:
                self.ground = SIXTEEN[number - 40 if number < 50 else number - 92]

    def drawn(self):
        """Color, background, and whether it is bold, dim and underlined."""
        color, ground = self.color or FOREGROUND, self.ground
        if self.reverse:
            color, ground = ground or BACKGROUND, color
        return color, ground, self.bold, self.dim, self.line


def width(letter):
    return 0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def runs(line, style):
    """Pieces of a line of one style: text, first cell, number of cells, style."""
    at, end, found = 0, 0, []

    def put(text):
        nonlocal at
        for piece in re.findall(r" +|[^ ]+(?: [^ ]+)*", text):
            cells = sum(map(width, piece))
            found.append((piece, at, cells, style.drawn()))
            at += cells

    for sequence in SEQUENCE.finditer(line):
        put(line[end:sequence.start()])
        end = sequence.end()
        if sequence.group(2) == "m":
            style.change(sequence.group(1))
    put(line[end:])
    return found


def main():
    title = sys.argv[1] if len(sys.argv) > 1 else "terminal"
    style = Style()
    lines = [runs(line, style) for line in sys.stdin.read().rstrip("\n").split("\n")]
    columns = max((at + cells for line in lines for _, at, cells, _ in line), default=0)
    across, down = columns * CELL + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across} {down}" width="{across}" height="{down}" role="img" '
          f'font-family="{escape(FONT)}" font-size="13" xml:space="preserve">')
    print(f'<title>{escape(title)}</title>\n<rect width="100%" height="100%" rx="6" fill="{BACKGROUND}"/>')
    for number, line in enumerate(lines):
        top = MARGIN + number * LINE
        for text, at, cells, (color, ground, bold, dim, underlined) in line:
            left, long = MARGIN + at * CELL, cells * CELL
            if ground:
                print(f'<rect x="{left}" y="{top}" width="{long}" height="{LINE}" fill="{ground}"/>')
            if text.strip():
                how = (' font-weight="bold"' if bold else "") + (' opacity="0.65"' if dim else "")
                how += ' text-decoration="underline"' if underlined else ""
                print(f'<text x="{left}" y="{top + 13}" fill="{color}" textLength="{long}" '
                      f'lengthAdjust="spacingAndGlyphs"{how}>{escape(text)}</text>')
    print("</svg>")


main()
