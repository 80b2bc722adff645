//! Cells in quotes.

use std::borrow::Cow;

use memchr::memchr;

/// What is between the quote at `start` and the one that closes it, and where the text goes on behind it.
/// Two quotes stand for one. `None` if it is not closed: then it is a character like others.
pub(super) fn quoted(text: &str, start: usize) -> Option<(Cow<'_, str>, usize)> {
    let from = start + 1;
    let mut inside = Cow::Borrowed("");
    let mut at = from;
    loop {
        let quote = at + memchr(b'"', &text.as_bytes()[at..])?;
        if text.as_bytes().get(quote + 1) != Some(&b'"') {
            return Some(if inside.is_empty() {
                (Cow::Borrowed(&text[from..quote]), quote + 1)
            } else {
                inside.to_mut().push_str(&text[at..quote]);
                (inside, quote + 1)
            });
        }
        inside.to_mut().push_str(&text[at..=quote]);
        at = quote + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_closed_or_none() {
        let found = |text: &'static str| {
            quoted(text, 0).map(|(inside, behind)| (inside.into_owned(), &text[behind..]))
        };
        assert_eq!(found("\"a, b\",c"), Some(("a, b".into(), ",c")));
        assert_eq!(found("\"\""), Some((String::new(), "")));
        assert_eq!(found("\"say \"\"so\"\"\" x"), Some(("say \"so\"".into(), " x")));
        assert_eq!(found("\"\"\"\"x"), Some(("\"".into(), "x")));
        assert_eq!((found("\"open"), found("\"open \"\""), found("\"")), (None, None, None));
    }
}
