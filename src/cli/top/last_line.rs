//! The last line of a program's output, as text.

use eprof::label::Label;

/// Longer lines are seen by their beginning.
const MOST_BYTES: usize = 1024;

/// The last line that has any text.
#[derive(Default)]
pub struct LastLine {
    whole: Vec<u8>,
    /// The line that has not ended yet.
    begun: Vec<u8>,
}

impl LastLine {
    /// What was written next.
    pub fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            // Progress is written over and over into one line.
            if matches!(byte, b'\n' | b'\r') {
                if has_text(&self.begun) {
                    std::mem::swap(&mut self.whole, &mut self.begun);
                }
                self.begun.clear();
            } else if self.begun.len() < MOST_BYTES {
                self.begun.push(byte);
            }
        }
    }

    /// The line, without what steers a terminal; `None` if there is none.
    pub fn text(&self) -> Option<Label> {
        let line = if has_text(&self.begun) { &self.begun } else { &self.whole };
        let text = without_escapes(&String::from_utf8_lossy(line));
        let words: Vec<&str> = text.split_whitespace().collect();
        (!words.is_empty()).then(|| Label::new(&words.join(" ")))
    }
}

fn has_text(line: &[u8]) -> bool {
    without_escapes(&String::from_utf8_lossy(line)).contains(|letter: char| !letter.is_whitespace())
}

/// Without the sequences of ECMA-48 that color text and move the cursor, and without other control characters but tabs.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            plain.extend((letter == '\t' || !letter.is_control()).then_some(letter));
            continue;
        }
        match letters.next() {
            // A control sequence ends with a letter of these.
            Some('[') => while letters.next().is_some_and(|letter| !('@'..='~').contains(&letter)) {},
            // A command, such as a window's title, ends with BEL or with ESC and a backslash.
            Some(']') => while letters.next().is_some_and(|letter| letter != '\u{7}' && letter != '\\') {},
            // A character set has one letter more.
            Some('(' | ')') => {
                letters.next();
            }
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(written: &[&str]) -> Option<String> {
        let mut line = LastLine::default();
        written.iter().for_each(|text| line.add(text.as_bytes()));
        line.text().map(|text| text.as_str().to_owned())
    }

    #[test]
    fn the_last_line_with_text_is_told() {
        assert_eq!(last(&[]), None);
        assert_eq!(last(&["\n\n \n"]), None);
        assert_eq!(last(&["one\ntwo\n", "\n"]).as_deref(), Some("two"));
        assert_eq!(last(&["one\ntw", "o"]).as_deref(), Some("two"), "a line that has not ended");
        assert_eq!(last(&["10 %\r", "20 %\r"]).as_deref(), Some("20 %"), "progress");
        assert_eq!(last(&["\x1b[1;31merror\x1b[0m:\tx\x1b[K\n\x1b[0m"]).as_deref(), Some("error: x"));
        assert_eq!(last(&["\x1b]0;title\x07text \x1b(Bmore\x08\n"]).as_deref(), Some("text more"));
        let long = "x".repeat(10_000);
        assert_eq!(last(&[&long]).map(|text| text.len()), Some(MOST_BYTES));
    }
}
