//! One row of a text, cut into its cells.

use memchr::memchr3;

use super::quotes::quoted;
use super::separator::Separator;
use super::words;

/// Hands the cells of the row that begins at `start` to `cell`, without quotes and outer blanks. Returns
/// where the next line begins.
pub(super) fn read(text: &str, start: usize, separator: Separator, mut cell: impl FnMut(&str)) -> usize {
    let split: fn(&str) -> Vec<&str> = match separator {
        Separator::Character(character) => return delimited(text, start, character as u8, cell),
        Separator::Blanks => words::joined,
        Separator::Words => words::single,
        Separator::Gaps => words::wide_apart,
    };
    let end = line_end(text, start);
    for word in split(&text[start..end]) {
        match word.starts_with('"').then(|| quoted(word, 0)).flatten() {
            Some((inside, behind)) if behind == word.len() => cell(inside.trim()),
            _ => cell(word),
        }
    }
    behind_line_end(text, end)
}

/// Where the line ends, before what ends it.
pub(super) fn line_end(text: &str, start: usize) -> usize {
    memchr::memchr2(b'\n', b'\r', &text.as_bytes()[start..]).map_or(text.len(), |length| start + length)
}

/// Where the next line begins.
pub(super) fn behind_line_end(text: &str, end: usize) -> usize {
    match &text.as_bytes()[end..] {
        [b'\r', b'\n', ..] => end + 2,
        [b'\r' | b'\n', ..] => end + 1,
        _ => end,
    }
}

fn delimited(text: &str, start: usize, separator: u8, mut cell: impl FnMut(&str)) -> usize {
    let bytes = text.as_bytes();
    let end_of_cell = |from: usize| {
        memchr3(separator, b'\n', b'\r', &bytes[from..]).map_or(bytes.len(), |length| from + length)
    };
    let mut at = start;
    loop {
        let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t') && **byte != separator;
        let first = at + bytes[at..].iter().take_while(is_blank).count();
        let quoted = (bytes.get(first) == Some(&b'"')).then(|| quoted(text, first)).flatten();
        match quoted {
            Some((inside, behind)) => {
                at = end_of_cell(behind);
                match text[behind..at].trim() {
                    "" => cell(inside.trim()),
                    // Another quote: several words in quotes, and the quotes belong to the text.
                    rest if rest.contains('"') => cell(text[first..at].trim()),
                    rest => cell(&format!("{} {rest}", inside.trim())),
                }
            }
            None => {
                let end = end_of_cell(at);
                cell(text[at..end].trim());
                at = end;
            }
        }
        if bytes.get(at) != Some(&separator) {
            return behind_line_end(text, at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cells(text: &str, separator: char) -> (Vec<String>, &str) {
        let mut cells = Vec::new();
        let next = read(text, 0, Separator::Character(separator), |cell| cells.push(cell.to_owned()));
        (cells, &text[next..])
    }

    #[test]
    fn cells_and_where_the_next_line_begins() {
        let of = |text: &'static str, separator: char| {
            let (cells, rest) = cells(text, separator);
            (cells.join("|"), rest)
        };
        assert_eq!(of("a, b ,,c\nd", ','), ("a|b||c".into(), "d"));
        assert_eq!(of("a;b;\r\nd", ';'), ("a|b|".into(), "d"));
        assert_eq!(of("a\tb\rd", '\t'), ("a|b".into(), "d"));
        assert_eq!(of("\"a, b\", \"say \"\"so\"\"\",c\n", ','), ("a, b|say \"so\"|c".into(), ""));
        assert_eq!(of("\"two\nlines\",b\nc", ','), ("two\nlines|b".into(), "c"));
        assert_eq!(of("\"12\" W,\"\",\"\"\"\"\n", ','), ("12 W||\"".into(), ""));
        // A quote that is not closed, or within a cell, is a character.
        assert_eq!(of("\"a,b\nc", ','), ("\"a|b".into(), "c"));
        assert_eq!(of("5\" disk,b\nc", ','), ("5\" disk|b".into(), "c"));
        // Several words in quotes are not one cell in quotes, and may be cut by the separator.
        assert_eq!(of("\"a\" \"f(x, y)\" b\nc", ','), ("\"a\" \"f(x|y)\" b".into(), "c"));
        assert_eq!(of("", ','), (String::new(), ""));
    }

    proptest! {
        #[test]
        fn cells_written_in_quotes_read_back(texts in prop::collection::vec("[a-z0-9,;\"\n ]{0,8}", 1..5)) {
            let quoted: Vec<String> = texts.iter().map(|text| format!("\"{}\"", text.replace('"', "\"\""))).collect();
            for separator in [',', ';', '\t', '|'] {
                let line = quoted.join(&separator.to_string()) + "\nnext";
                let (found, rest) = cells(&line, separator);
                let expected: Vec<&str> = texts.iter().map(|text| text.trim()).collect();
                prop_assert_eq!(&found, &expected);
                prop_assert_eq!(rest, "next");
            }
        }

        #[test]
        fn any_text_is_read_to_its_end(text in "[a-z0-9,;\"\n\r\t |é-]{0,60}") {
            for separator in Separator::ALL {
                let mut at = 0;
                while at < text.len() {
                    let next = read(&text, at, separator, |_| {});
                    prop_assert!(next > at);
                    at = next;
                }
            }
        }
    }
}
