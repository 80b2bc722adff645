//! Lines whose cells stand between blanks.

use super::marks::Marks;
use super::number::{Number, is_missing};
use super::quotes::quoted;
use super::unit::{Quantity, known};

/// Words of a line, where a clock belongs to the date before it, and a unit and what is in brackets to
/// the word before.
pub(super) fn joined(line: &str) -> Vec<&str> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for (from, to) in word_spans(line) {
        let word = &line[from..to];
        let before = spans.last().map(|(from, to)| &line[*from..*to]);
        match spans.last_mut() {
            Some(last) if before.is_some_and(|before| continues(before, word)) => last.1 = to,
            _ => spans.push((from, to)),
        }
    }
    spans.into_iter().map(|(from, to)| &line[from..to]).collect()
}

/// Words of a line, each alone.
pub(super) fn single(line: &str) -> Vec<&str> {
    word_spans(line).into_iter().map(|(from, to)| &line[from..to]).collect()
}

/// What stands between two blanks or more, or tabs: single blanks are within cells.
pub(super) fn wide_apart(line: &str) -> Vec<&str> {
    let mut cells: Vec<&str> = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let end = rest.find("  ").unwrap_or(rest.len()).min(rest.find('\t').unwrap_or(rest.len()));
        cells.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    cells
}

fn continues(before: &str, word: &str) -> bool {
    let is_date = before.contains(['/', '-']) && !before.contains(':') && word.contains(':');
    let is_unit = known(word).is_some_and(|unit| {
        matches!(unit.quantity, Quantity::Power | Quantity::Energy | Quantity::Time | Quantity::Frequency)
    });
    let has_unit = is_unit && Number::read_plain(before, Marks::UNTOLD).is_some();
    is_date || has_unit || (word.starts_with(['[', '(']) && !is_missing(word))
}

/// Where words begin and end. One that begins with a quote ends with one, if the line has it.
fn word_spans(line: &str) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    let mut start = 0;
    while let Some(skip) = line[start..].find(|c: char| !c.is_whitespace()) {
        let from = start + skip;
        let rest = &line[from..];
        let to_blank = || rest.find(char::is_whitespace).unwrap_or(rest.len());
        let length = quoted_length(rest).or_else(|| missing_length(rest)).unwrap_or_else(to_blank);
        start = from + length;
        spans.push((from, start));
    }
    spans
}

/// Length of a quoted word with its quotes, if one begins here and nothing but a blank follows it.
fn quoted_length(text: &str) -> Option<usize> {
    let (_, length) = text.starts_with('"').then(|| quoted(text, 0))??;
    text[length..].chars().next().is_none_or(char::is_whitespace).then_some(length)
}

/// Length of `[Not Supported]` and the like, which are one word though there is a blank in them.
fn missing_length(text: &str) -> Option<usize> {
    let close = match text.chars().next()? {
        '[' => ']',
        '<' => '>',
        _ => return None,
    };
    let length = text.find(close)? + 1;
    is_missing(&text[..length]).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_units_and_brackets_belong_to_what_is_before() {
        assert_eq!(joined("2023-07-30 17:29:56.100 30 W"), ["2023-07-30 17:29:56.100", "30 W"]);
        assert_eq!(joined(" time [s]  power (mW) "), ["time [s]", "power (mW)"]);
        assert_eq!(joined("1 500 ms 2 kJ"), ["1", "500 ms", "2 kJ"]);
        assert_eq!(joined("4 C 10 30"), ["4", "C", "10", "30"]);
        assert_eq!(single("time [s]  power"), ["time", "[s]", "power"]);
        assert_eq!(single("\"my kernel\" 1 5\" \"open"), ["\"my kernel\"", "1", "5\"", "\"open"]);
        assert_eq!(single("\"say \"\"so\"\" loud\" 1"), ["\"say \"\"so\"\" loud\"", "1"]);
        assert_eq!(wide_apart("  core clock   power draw\t x  "), ["core clock", "power draw", "x"]);
        assert_eq!(
            joined("30 [N/A] <not counted> [Not Supported] 31 W"),
            ["30", "[N/A]", "<not counted>", "[Not Supported]", "31 W"]
        );
        assert!(joined("").is_empty() && single(" ").is_empty() && wide_apart("").is_empty());
    }
}
