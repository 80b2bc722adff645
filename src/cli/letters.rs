//! The letters that a terminal has: where the locale has none but ASCII's, eprof's own signs are written in those.

use std::env;
use std::io::{self, IsTerminal, Write};

/// Which letters are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letters {
    /// All that there are.
    All,
    /// For eprof's own signs those of ASCII: `+-` for `±`.
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
        if locale.map_or(!is_terminal, is_of_all) { Self::All } else { Self::Ascii }
    }
}

/// A text with eprof's own signs in ASCII's letters. What takes two letters there takes the second of two blanks before it, so
/// that columns stay where they are. Names keep their letters, whatever these are.
pub fn in_ascii(text: &str) -> String {
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

/// Writes eprof's own signs in ASCII's letters, line by line.
pub struct InAscii<W: Write> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> InAscii<W> {
    /// What is written comes out of `out`.
    pub fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }

    fn write_out(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        match std::str::from_utf8(&line) {
            Ok(text) => self.out.write_all(in_ascii(text).as_bytes()),
            Err(_) => self.out.write_all(&line),
        }
    }
}

impl<W: Write> Write for InAscii<W> {
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
    match Letters::of(&out) {
        Letters::All => Box::new(out.lock()),
        Letters::Ascii => Box::new(InAscii::new(out.lock())),
    }
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
        for is_terminal in [false, true] {
            assert_eq!(of(&[("LANG", "de_DE.UTF-8")], is_terminal), Letters::All);
            assert_eq!(of(&[("LANG", "C")], is_terminal), Letters::Ascii);
            assert_eq!(of(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")], is_terminal), Letters::Ascii);
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
    fn letters_that_come_in_pieces_are_whole() {
        let mut out = InAscii::new(Vec::new());
        for byte in "a ± b\n±".bytes() {
            out.write_all(&[byte]).expect("a vector takes all");
        }
        out.flush().expect("a vector takes all");
        assert_eq!(out.out, b"a +- b\n+-");
    }
}
