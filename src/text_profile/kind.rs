//! Which tool's text it is, by its content.

use super::error::TextError;
use super::text::TextKind;
use super::{collapsed, perf_script, simpleperf};

/// So much of a text tells what it is.
pub(super) const BEGINNING: usize = 1 << 16;
/// So many lines must look like collapsed stacks.
const LOOKED_AT: usize = 100;
/// So many letters of a line are shown.
const LONGEST_SHOWN: usize = 60;
/// One of so many may be something else: it is left out, and told by its number.
const STRANGE_OF: usize = 10;

/// The kind of text that begins like this.
pub(super) fn of(beginning: &[u8]) -> Option<TextKind> {
    if beginning.contains(&0) {
        return None;
    }
    let text = String::from_utf8_lossy(beginning);
    let mut lines: Vec<&str> = text.lines().collect();
    // The last one may be cut off.
    if beginning.len() >= BEGINNING {
        lines.pop();
    }
    lines.retain(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let (first, second) = (*lines.first()?, lines.get(1).copied());
    if simpleperf::begins(first) {
        return Some(TextKind::Simpleperf);
    }
    if perf_script::begins(first, second) {
        return Some(TextKind::PerfScript);
    }
    let looked_at = &lines[..lines.len().min(LOOKED_AT)];
    let strange = looked_at.iter().filter(|line| collapsed::parse(line).is_none()).count();
    let is_collapsed = collapsed::parse(first).is_some() && strange * STRANGE_OF <= looked_at.len();
    is_collapsed.then_some(TextKind::Collapsed)
}

/// Why what begins like this is of no kind.
pub(super) fn why_none(beginning: &[u8]) -> TextError {
    // A character that the end of the beginning cuts off is no error.
    let is_utf8 = std::str::from_utf8(beginning).map_or_else(|error| error.error_len().is_none(), |_| true);
    match beginning {
        [] => TextError::Empty,
        _ if is_utf8 && !beginning.contains(&0) => no_stack(beginning).unwrap_or(TextError::Unknown),
        _ => TextError::Binary,
    }
}

/// Which line is no collapsed stack, of a text whose first line is one.
fn no_stack(beginning: &[u8]) -> Option<TextError> {
    let text = String::from_utf8_lossy(beginning);
    let is_content = |(_, line): &(u64, &str)| !line.trim().is_empty() && !line.starts_with('#');
    let mut lines = (1..).zip(text.lines()).filter(is_content);
    let is_stack = |line: &str| collapsed::parse(line).is_some();
    lines.next().filter(|(_, first)| is_stack(first))?;
    let (line, text) = lines.find(|(_, line)| !is_stack(line))?;
    Some(TextError::NoStack { line, text: text.chars().take(LONGEST_SHOWN).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_known_by_its_first_lines() {
        let kind = |text: &str| of(text.as_bytes());
        assert_eq!(kind("main;work 12\nmain 3\n"), Some(TextKind::Collapsed));
        assert_eq!(kind("# a comment\n\napp 1 2.5: cycles:\n\t12 f (/x)\n"), Some(TextKind::PerfScript));
        assert_eq!(kind("app 19983 cycles:\n12 f (/x)\n"), Some(TextKind::PerfScript));
        assert_eq!(kind("app  7 [001] 2.5:  10 cycles:u:  12 f (/x)\n"), Some(TextKind::PerfScript));
        assert_eq!(kind("sample:\n  event_type: cpu-cycles\n"), Some(TextKind::Simpleperf));
        for text in ["", "y\ny\ny\n", "a,b\n1,2\n", "main;work 12\nnonsense\n", "a 1\n\0", "# only\n", "{}"] {
            assert_eq!(kind(text), None, "{text:?}");
        }
    }

    #[test]
    fn why_something_is_no_profile() {
        assert!(matches!(why_none(b""), TextError::Empty));
        let said = why_none(b"# made by hand\nmain;work 12\n\nnonsense\n").to_string();
        assert!(
            said.starts_with("it looks like collapsed stacks, but line 4 is none: \"nonsense\""),
            "{said}"
        );
        let most = "main;work 12\n".repeat(9);
        assert_eq!(of(format!("{most}nonsense\n").as_bytes()), Some(TextKind::Collapsed), "one of ten");
        assert_eq!(of(format!("nonsense\n{most}").as_bytes()), None, "what begins with something else is it");
        assert!(matches!(why_none("Liebes Tagebuch: schön".as_bytes()), TextError::Unknown));
        assert!(
            matches!(why_none("ö".as_bytes().split_at(1).0), TextError::Unknown),
            "the rest was not looked at"
        );
        assert!(matches!(why_none(b"\x7fELF\x02\0"), TextError::Binary));
        assert!(matches!(why_none(b"caf\xe9 au lait"), TextError::Binary));
    }
}
