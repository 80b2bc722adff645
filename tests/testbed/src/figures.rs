//! All numbers of a result as text that is the same wherever it is calculated, to be kept beside a test.
//!
//! A net below the laws: where a calculation has a hundred steps, a wrong one shows in some digit of what comes out, and in
//! no sentence about the whole. A test that keeps such numbers also says how near they are to what is true.

/// A text with its fractions rounded to six digits: the last ones differ between processors and libraries of mathematics.
/// Whole numbers stay; what is smaller than 1e-9 is nothing.
pub fn rounded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_in_word = false;
    while let Some(first) = rest.chars().next() {
        let length = if is_in_word || !first.is_ascii_digit() { 0 } else { number(rest) };
        if length > 0 {
            let (digits, after) = rest.split_at(length);
            match digits.parse::<f64>() {
                Ok(value) if digits.contains(['.', 'e']) => out.push_str(&to_six_digits(value)),
                _ => out.push_str(digits),
            }
            rest = after;
            is_in_word = true;
        } else {
            out.push(first);
            is_in_word = first.is_alphanumeric() || first == '_';
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// How long the number is that a text begins with.
fn number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = digits(end + 1);
    }
    if bytes.get(end) == Some(&b'e') {
        let from = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        if bytes.get(from).is_some_and(u8::is_ascii_digit) {
            end = digits(from);
        }
    }
    end
}

fn to_six_digits(value: f64) -> String {
    if value < 1e-9 {
        return "0".to_owned();
    }
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    if (1e-4..1e7).contains(&rounded) { format!("{rounded}") } else { format!("{rounded:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_rounded_and_the_rest_is_as_it_was() {
        assert_eq!(rounded("a1.23456789 -1.23456789"), "a1.23456789 -1.23457");
        assert_eq!(rounded("[12, 1234567890, 1e-17, 2.5e-7]"), "[12, 1234567890, 0, 2.5e-7]");
        assert_eq!(rounded("f64_3.0 3.0 s, x: 99999.96"), "f64_3.0 3 s, x: 100000");
        assert_eq!(rounded("1..2 ± 0.1"), "1..2 ± 0.1");
    }
}
