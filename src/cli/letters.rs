//! The letters that a terminal has: where the locale has none but ASCII's, eprof's own signs are written in those.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal, Write};

/// Which letters are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letters {
    /// All that there are.
    All,
    /// For eprof's own signs those of ASCII: `+-` for `±`. Names keep their letters, whatever these are: it is a file, or a pipe.
    AsciiSigns,
    /// Nothing else, as a terminal would take other bytes for letters of its own, or for commands (`Û` of UTF-8 has a byte that
    /// begins one): `?` stands for each letter of a name that is not of ASCII.
    Ascii,
}

impl Letters {
    /// Those for a stream, by the variables of the locale in their order. Without any of them the locale is C; as other tools do,
    /// files and pipes have all letters then.
    pub fn of(stream: &impl IsTerminal) -> Self {
        let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        Self::of_locale(set, stream.is_terminal())
    }

    fn of_locale(set: impl Fn(&str) -> Option<String>, is_terminal: bool) -> Self {
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
        let locale = locale.map(|locale| locale.to_ascii_lowercase());
        let is_of_all = |locale: String| locale.contains("utf-8") || locale.contains("utf8");
        match locale.map_or(!is_terminal, is_of_all) {
            true => Self::All,
            false if is_terminal => Self::Ascii,
            false => Self::AsciiSigns,
        }
    }

    /// A text in these letters.
    pub fn of_text(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::All => text.into(),
            Self::AsciiSigns => in_ascii(text).into(),
            Self::Ascii => {
                in_ascii(text).chars().map(|letter| if letter.is_ascii() { letter } else { '?' }).collect()
            }
        }
    }

    /// What writes a text in these letters.
    pub fn writer<'a>(self, out: impl Write + 'a) -> Box<dyn Write + 'a> {
        match self {
            Self::All => Box::new(out),
            Self::AsciiSigns | Self::Ascii => Box::new(InLetters::new(self, out)),
        }
    }
}

/// A text with eprof's own signs in ASCII's letters. What takes two letters there takes the second of two blanks before it, so
/// that columns stay where they are.
fn in_ascii(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '±' => {
                if written.ends_with("  ") {
                    written.pop();
                }
                written.push_str("+-");
            }
            // At the end of what is cut there is room for one letter.
            '…' if letters.peek().is_some_and(|next| *next == ' ') => written.push_str("..."),
            '…' => written.push('~'),
            'µ' | 'μ' => written.push('u'),
            '│' => written.push('|'),
            '─' | '−' => written.push('-'),
            '⋮' => written.push(':'),
            '↳' => written.push('>'),
            '█' | '▉' | '▊' | '▋' | '▌' => written.push('#'),
            '▍' | '▎' | '▏' => written.push('.'),
            _ => written.push(letter),
        }
    }
    written
}

/// Writes a text in some letters, line by line.
struct InLetters<W: Write> {
    letters: Letters,
    out: W,
    line: Vec<u8>,
}

impl<W: Write> InLetters<W> {
    fn new(letters: Letters, out: W) -> Self {
        Self { letters, out, line: Vec::new() }
    }

    fn write_out(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        match std::str::from_utf8(&line) {
            Ok(text) => self.out.write_all(self.letters.of_text(text).as_bytes()),
            Err(_) if self.letters == Letters::Ascii => self.out.write_all(
                &line.into_iter().map(|byte| if byte.is_ascii() { byte } else { b'?' }).collect::<Vec<_>>(),
            ),
            Err(_) => self.out.write_all(&line),
        }
    }
}

impl<W: Write> Write for InLetters<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if self.line.ends_with(b"\n") {
                self.write_out()?;
            }
        }
        Ok(bytes.len())
    }

    /// A line that has not ended may go on in the middle of a letter, and waits for the next flush.
    fn flush(&mut self) -> io::Result<()> {
        if std::str::from_utf8(&self.line).is_ok() {
            self.write_out()?;
        }
        self.out.flush()
    }
}

/// Standard output for text, in the letters that it has.
pub fn stdout() -> Box<dyn Write> {
    let out = io::stdout();
    Letters::of(&out).writer(out.lock())
}

/// Standard output of what may be for programs, who must find names as they are: only text for people has the letters of the locale.
pub fn stdout_for(is_text: bool) -> Box<dyn Write> {
    if is_text { stdout() } else { Box::new(io::stdout().lock()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_tells_the_locale() {
        let of = |set: &[(&str, &str)], is_terminal| {
            let value = |name: &str| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            Letters::of_locale(value, is_terminal)
        };
        for (is_terminal, ascii) in [(false, Letters::AsciiSigns), (true, Letters::Ascii)] {
            assert_eq!(of(&[("LANG", "de_DE.UTF-8")], is_terminal), Letters::All);
            assert_eq!(of(&[("LANG", "C")], is_terminal), ascii);
            assert_eq!(of(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")], is_terminal), ascii);
            assert_eq!(
                of(&[("LC_CTYPE", "C.utf8"), ("LANG", "de_DE.ISO-8859-1")], is_terminal),
                Letters::All
            );
        }
        assert_eq!((of(&[], false), of(&[], true)), (Letters::All, Letters::Ascii));
    }

    #[test]
    fn columns_stay_where_they_are() {
        assert_eq!(in_ascii("joules      ±   share"), "joules     +-   share");
        assert_eq!(in_ascii(" 0.396 │ main"), " 0.396 | main");
        assert_eq!(in_ascii("typical watts, ± 60 %"), "typical watts, +- 60 %");
        assert_eq!(
            in_ascii("… 7 more; Vec<u8, all…>  12 µJ größer"),
            "... 7 more; Vec<u8, all~>  12 uJ größer"
        );
    }

    #[test]
    fn a_terminal_without_other_letters_gets_none_of_names_either() {
        // Of UTF-8's bytes for the second letter one is a command of terminals with 8 bits.
        let name = "größer \u{db}[2J";
        assert_eq!(Letters::Ascii.of_text(name), "gr??er ?[2J");
        assert_eq!(Letters::AsciiSigns.of_text(name), name);
        let mut out = InLetters::new(Letters::Ascii, Vec::new());
        // Bytes that are no text at all.
        out.write_all(b"caf\xe9 \x9b2J\n").expect("a vector takes all");
        assert_eq!(out.out, b"caf? ?2J\n");
    }

    #[test]
    fn letters_that_come_in_pieces_are_whole() {
        let mut out = InLetters::new(Letters::AsciiSigns, Vec::new());
        for byte in "a ± b\n±".bytes() {
            out.write_all(&[byte]).expect("a vector takes all");
        }
        out.flush().expect("a vector takes all");
        assert_eq!(out.out, b"a +- b\n+-");
    }
}
