//! How inferno writes the frames of a picture.

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
        while let Some(found) = all[from..].find(BEGIN) {
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

/// What is still to be read.
struct Text<'s>(&'s str);

impl<'s> Text<'s> {
    fn frame(&mut self) -> Option<DrawnFrame<'s>> {
        self.tag(BEGIN)?;
        let title = self.until("<")?;
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
        self.until("\"")?;
        self.tag("\" y=\"")?;
        let y = self.number()?;
        self.tag("\" width=\"")?;
        self.until("\"")?;
        self.tag("\" height=\"")?;
        self.until("\"")?;
        self.tag("\"")?;
        let place = self.since(begin);
        self.tag(" fill=\"")?;
        let fill = self.until("\"")?;
        self.tag("\" fg:x=\"")?;
        let left = self.number()?;
        self.tag("\"")?;
        let begin = self.0;
        self.until(">")?;
        self.tag(">")?;
        self.space();
        self.tag("<text ")?;
        self.until(">")?;
        self.tag(">")?;
        let text = self.since(begin);
        let label = self.until("<")?;
        self.tag("</text>")?;
        Some(DrawnFrame { name, count, unit, behind, space, place, y, fill, left, text, label })
    }

    fn tag(&mut self, tag: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(tag)?;
        Some(())
    }

    /// Up to where this begins.
    fn until(&mut self, end: &str) -> Option<&'s str> {
        let (before, _) = self.0.split_once(end)?;
        self.0 = &self.0[before.len()..];
        Some(before)
    }

    fn number(&mut self) -> Option<&'s str> {
        let digits = self.until("\"")?;
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
