//! Regular expressions that people type, and what is wrong with one.

use std::fmt;

use regex::Regex;
use regex_syntax::Error as SyntaxError;

/// Why a text is no regular expression: in one line, with the place of the mistake. It does not repeat the text, which
/// stands beside it wherever it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    /// What is wrong: `unclosed group`.
    what: String,
    /// Where: letters before it, counted from 0, and what stands there; nothing stands at the end.
    place: Option<(usize, String)>,
}

impl std::error::Error for PatternError {}

impl fmt::Display for PatternError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "no regular expression: {}", self.what)?;
        match &self.place {
            None => Ok(()),
            Some((_, here)) if here.is_empty() => write!(out, ", at its end"),
            Some((before, here)) => {
                write!(out, ", at letter {}, `{here}`", before + 1)?;
                // A sign that was meant as such is the mistake that is made most.
                let sign = here.chars().next().filter(|sign| "()[]{}*+?|".contains(*sign));
                sign.map_or(Ok(()), |sign| write!(out, "; the sign itself is `\\{sign}`"))
            }
        }
    }
}

/// The regular expression that a text is.
///
/// # Errors
/// If it is none, or one that takes too much memory.
pub fn pattern(text: &str) -> Result<Regex, PatternError> {
    Regex::new(text).map_err(|error| fault(text, &error))
}

/// What is wrong with a text of which the parser says so.
pub fn fault(text: &str, error: &regex::Error) -> PatternError {
    if let regex::Error::CompiledTooBig(most) = error {
        return PatternError { what: format!("it takes more than {most} bytes of memory"), place: None };
    }
    let found = match regex_syntax::parse(text) {
        Err(SyntaxError::Parse(error)) => Some((error.kind().to_string(), *error.span())),
        Err(SyntaxError::Translate(error)) => Some((error.kind().to_string(), *error.span())),
        _ => None,
    };
    let Some((what, span)) = found else {
        let said = error.to_string();
        let last = said.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        return PatternError { what: last, place: None };
    };
    // Where something is not closed, the parser tells all that is not; how it begins is enough.
    let [start, end] = [span.start.offset, span.end.offset].map(|at| at.min(text.len()));
    let here: String = text.get(start..).unwrap_or_default().chars().take(MOST_LETTERS).collect();
    let length = text.get(start..end).map_or(1, |part| part.chars().count()).max(1);
    let here: String = here.chars().take(length).collect();
    let before = text.get(..start).map_or(0, |before| before.chars().count());
    PatternError { what, place: Some((before, here)) }
}

/// So many letters of the mistake are shown.
const MOST_LETTERS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_told_in_one_line_with_its_place() {
        let said = |text: &str| pattern(text).expect_err("it is none").to_string();
        assert_eq!(
            said("sort("),
            "no regular expression: unclosed group, at letter 5, `(`; the sign itself is `\\(`"
        );
        assert_eq!(
            said("größe)"),
            "no regular expression: unopened group, at letter 6, `)`; the sign itself is `\\)`"
        );
        assert_eq!(
            said("*foo"),
            "no regular expression: repetition operator missing expression, at letter 1, `*`; the sign itself is `\\*`"
        );
        assert_eq!(
            said("a[z-b]"),
            "no regular expression: invalid character class range, the start must be <= the end, at letter 3, `z-b`"
        );
        assert_eq!(
            said("a\\"),
            "no regular expression: incomplete escape sequence, reached end of pattern \
             prematurely, at letter 2, `\\`"
        );
        assert_eq!(
            said("a\\p{Nowhere}"),
            "no regular expression: Unicode property not found, at letter 2, `\\p{Nowhere}`"
        );
        for wrong in ["(?P<n", "a{2,1}", "x\ny(", "[[:nope", "(?z)", "\\8"] {
            let said = said(wrong);
            assert!(said.lines().count() == 1 && said.contains(", at "), "{wrong:?}: {said}");
        }
        let huge = said(&"(a{1000}){1000}".repeat(3));
        assert!(huge.contains("bytes of memory") || huge.contains("too"), "{huge}");
        assert!(pattern("^so(rt|lve)").is_ok());
    }
}
