//! A text line by line, and how many lines were not understood.

use std::io::{BufRead, Read};

use super::error::TextError;

/// The longest line: a call path of 100,000 frames with long names has less.
const LONGEST: usize = 64 << 20;

/// The lines of a text.
pub(super) struct Lines<R> {
    text: R,
    line: Vec<u8>,
    number: u64,
    strange: u64,
    first_strange: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(text: R) -> Self {
        Self { text, line: Vec::new(), number: 0, strange: 0, first_strange: 0 }
    }

    /// The next line without its end.
    pub(super) fn next(&mut self) -> Result<Option<String>, TextError> {
        self.line.clear();
        let read = self.text.by_ref().take(LONGEST as u64).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if read == LONGEST && self.line.last() != Some(&b'\n') {
            return Err(TextError::LongLine { line: self.number, most: LONGEST });
        }
        let text = self.line.trim_ascii_end();
        Ok(Some(String::from_utf8_lossy(text).into_owned()))
    }

    /// The line at hand means nothing.
    pub(super) fn is_strange(&mut self) {
        self.strange += 1;
        if self.first_strange == 0 {
            self.first_strange = self.number;
        }
    }

    /// What the reader must know of the lines that meant nothing.
    pub(super) fn warning(&self) -> Option<String> {
        let Self { strange, first_strange, .. } = self;
        match strange {
            0 => None,
            1 => Some(format!("a line was not understood and is left out: line {first_strange}")),
            _ => Some(format!(
                "{strange} lines were not understood and are left out; the first is line {first_strange}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_without_their_ends_and_whatever_their_bytes() {
        let mut lines = Lines::new(&b"a b \r\n\n\xff\tc"[..]);
        let mut all = Vec::new();
        while let Some(line) = lines.next().expect("readable") {
            all.push(line);
        }
        assert_eq!(all, ["a b", "", "\u{fffd}\tc"]);
        assert_eq!(lines.warning(), None);
        lines.is_strange();
        assert!(lines.warning().expect("one").ends_with("line 3"));
    }
}
