//! Texts of the environment.

/// A text from outside: without blanks around it, and no longer than any name of this kind is.
pub(super) fn text(value: &str) -> Option<String> {
    const LONGEST: usize = 256;
    let value = value.trim();
    (!value.is_empty()).then(|| value.chars().take(LONGEST).collect())
}
