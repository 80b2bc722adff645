//! How inferno writes the frames of a picture.

use memchr::{memchr, memmem};

/// What a frame is and its rectangle, as texts of the picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DrawnFrame<'s> {
    /// Its name, escaped.
    pub name: &'s str,
    /// A whole number, with commas, and what of.
    pub count: &'s str,
    pub unit: &'s str,
    /// What follows that in brackets: its share above all.
    pub behind: &'s str,
    /// Between the title and the rectangle.
    pub space: &'s str,
    /// Attributes of the rectangle, of which `y` is one.
    pub place: &'s str,
    pub y: &'s str,
    pub fill: &'s str,
    pub left: &'s str,
    /// From there to the label.
    pub text: &'s str,
    /// Its name, escaped, or what of it there is room for.
    pub label: &'s str,
}

/// What stands between frames, each with the frame behind it; the last has none.
pub(super) fn frames(svg: &str) -> impl Iterator<Item = (&str, Option<DrawnFrame<'_>>)> {
    let mut rest = Some(svg);
    std::iter::from_fn(move || {
        let all = rest.take()?;
        let mut from = 0;
        while let Some(found) = memmem::find(&all.as_bytes()[from..], BEGIN.as_bytes()) {
            let at = from + found;
            let mut frame = Text(&all[at..]);
            if let Some(drawn) = frame.frame() {
                rest = Some(frame.0);
                return Some((&all[..at], Some(drawn)));
            }
            from = at + BEGIN.len();
        }
        Some((all, None))
    })
}

const BEGIN: &str = "<title>";

/// A picture in pieces of about so many bytes, each of which but the first begins where a frame may.
pub(super) fn pieces(svg: &str, bytes: usize) -> Vec<&str> {
    let mut pieces = Vec::with_capacity(svg.len() / bytes + 1);
    let mut rest = svg;
    while let Some(behind) = rest.as_bytes().get(bytes..)
        && let Some(found) = memmem::find(behind, BEGIN.as_bytes())
    {
        let (piece, others) = rest.split_at(bytes + found);
        pieces.push(piece);
        rest = others;
    }
    pieces.push(rest);
    pieces
}

/// What is still to be read.
struct Text<'s>(&'s str);

impl<'s> Text<'s> {
    fn frame(&mut self) -> Option<DrawnFrame<'s>> {
        self.tag(BEGIN)?;
        let title = self.until(b'<')?;
        self.tag("</title>")?;
        // What is in the last brackets; names may have some, too.
        let (name, inner) = title.strip_suffix(')')?.rsplit_once(" (")?;
        let (count, inner) = inner.split_once(' ')?;
        let (unit, behind) = inner.split_once(", ")?;
        let is_count = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
        if !is_count || unit.is_empty() || unit.contains([' ', ',', '(', ')']) || behind.contains(['(', ')'])
        {
            return None;
        }
        let space = self.space();
        self.tag("<rect ")?;
        let begin = self.0;
        self.tag("x=\"")?;
        self.until(b'"')?;
        self.tag("\" y=\"")?;
        let y = self.number()?;
        self.tag("\" width=\"")?;
        self.until(b'"')?;
        self.tag("\" height=\"")?;
        self.until(b'"')?;
        self.tag("\"")?;
        let place = self.since(begin);
        self.tag(" fill=\"")?;
        let fill = self.until(b'"')?;
        self.tag("\" fg:x=\"")?;
        let left = self.number()?;
        self.tag("\"")?;
        let begin = self.0;
        self.until(b'>')?;
        self.tag(">")?;
        self.space();
        self.tag("<text ")?;
        self.until(b'>')?;
        self.tag(">")?;
        let text = self.since(begin);
        let label = self.until(b'<')?;
        self.tag("</text>")?;
        Some(DrawnFrame { name, count, unit, behind, space, place, y, fill, left, text, label })
    }

    fn tag(&mut self, tag: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(tag)?;
        Some(())
    }

    /// Up to where this begins.
    fn until(&mut self, end: u8) -> Option<&'s str> {
        let (before, behind) = self.0.split_at(memchr(end, self.0.as_bytes())?);
        self.0 = behind;
        Some(before)
    }

    fn number(&mut self) -> Option<&'s str> {
        let digits = self.until(b'"')?;
        (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
    }

    fn space(&mut self) -> &'s str {
        let begin = self.0;
        self.0 = begin.trim_start();
        self.since(begin)
    }

    /// What was read since `begin` was what was still to be read.
    fn since(&self, begin: &'s str) -> &'s str {
        &begin[..begin.len() - self.0.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(title: &str) -> String {
        format!(
            "<title>{title}</title><rect x=\"1%\" y=\"33\" width=\"2%\" height=\"15\" fill=\"red\" fg:x=\"40\" fg:w=\"7\"/><text x=\"1.2%\" y=\"43.5\">main..</text>"
        )
    }

    #[test]
    fn a_frame_is_taken_apart_and_nothing_is_lost_between() {
        let svg =
            format!("<svg><title>no frame</title>{} x {}</svg>", drawn("f(a) (1,234 µJ, 3.1%)"), drawn("g"));
        let found: Vec<_> = frames(&svg).collect();
        let [(before, Some(frame)), (behind, None)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(*before, "<svg><title>no frame</title>");
        assert_eq!(*behind, format!(" x {}</svg>", drawn("g")));
        let expected = DrawnFrame {
            name: "f(a)",
            count: "1,234",
            unit: "µJ",
            behind: "3.1%",
            space: "",
            place: "x=\"1%\" y=\"33\" width=\"2%\" height=\"15\"",
            y: "33",
            fill: "red",
            left: "40",
            text: " fg:w=\"7\"/><text x=\"1.2%\" y=\"43.5\">",
            label: "main..",
        };
        assert_eq!(*frame, expected);
    }

    #[test]
    fn pieces_begin_where_frames_do() {
        let frames_of = |svg: &str| frames(svg).filter_map(|(_, frame)| frame).count();
        let svg = format!("<svg>ä<title>no frame</title>{}", drawn("g (3 J, 1%)").repeat(20));
        for bytes in [1, 2, 6, 7, 100, 1000, svg.len() - 1, svg.len(), 2 * svg.len()] {
            let pieces = pieces(&svg, bytes);
            assert_eq!(pieces.concat(), svg, "{bytes}");
            assert!(pieces[1..].iter().all(|piece| piece.starts_with(BEGIN)));
            assert!(pieces.len() <= svg.len() / bytes + 1 && (bytes > 7 || pieces.len() > 20), "{bytes}");
            assert_eq!(pieces.iter().map(|piece| frames_of(piece)).sum::<usize>(), 20, "{bytes}");
        }
        assert_eq!(pieces("", 1), [""]);
    }

    #[test]
    fn other_titles_are_no_frames() {
        for title in [
            "f",
            "f (3)",
            "f (3 J)",
            "f (x J, 1%)",
            "f ( J, 1%)",
            "f (3 a(b, 1%)",
            "f (3 J, 1% (2))",
            "f(3 J, 1%)",
        ] {
            let svg = drawn(title);
            assert_eq!(frames(&svg).collect::<Vec<_>>(), [(svg.as_str(), None)], "{title}");
        }
        let whole = drawn("f (3 J, 1%)");
        for end in 0..whole.len() {
            assert_eq!(frames(&whole[..end]).count(), 1, "{}", &whole[..end]);
        }
        assert_eq!(frames(&whole).count(), 2);
    }
}
