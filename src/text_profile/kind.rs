//! Which tool's text it is, by its content.

use super::text::TextKind;
use super::{collapsed, perf_script, simpleperf};

/// So much of a text tells what it is.
pub(super) const BEGINNING: usize = 1 << 16;
/// So many lines must look like collapsed stacks.
const LOOKED_AT: usize = 100;

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
    looked_at.iter().all(|line| collapsed::parse(line).is_some()).then_some(TextKind::Collapsed)
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
}
