//! The kernel's lists of CPUs: `0-3,8,10-11`.

use std::fmt::Write;

/// No kernel is built for more CPUs; a list that says otherwise is damaged.
const HIGHEST_CPU: u32 = 65_535;

/// Reads a list as in `/sys/devices/system/cpu/online`: CPUs ascending, each once. `None` if it is
/// malformed or names a CPU beyond any that Linux can have.
pub fn parse(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last > HIGHEST_CPU {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// Writes CPUs the way the kernel does, runs as `first-last`.
pub fn format(cpus: &[u32]) -> String {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus.dedup();
    let mut text = String::new();
    for run in cpus.chunk_by(|a, b| a + 1 == *b) {
        let separator = if text.is_empty() { "" } else { "," };
        let _ = match run {
            [only] => write!(text, "{separator}{only}"),
            [first, .., last] => write!(text, "{separator}{first}-{last}"),
            [] => Ok(()),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_and_runs() {
        assert_eq!(parse("0-2,8,10-11\n"), Some(vec![0, 1, 2, 8, 10, 11]));
        assert_eq!(parse(""), Some(vec![]));
        assert_eq!(parse("3,1,1-2"), Some(vec![1, 2, 3]));
    }

    #[test]
    fn damaged_lists_are_refused() {
        for text in ["x", "3-1", "0-4294967295", "1-2-3", "-1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn written_and_read_again(cpus in proptest::collection::btree_set(0u32..300, 0..60)) {
            let cpus: Vec<u32> = cpus.into_iter().collect();
            prop_assert_eq!(parse(&format(&cpus)), Some(cpus));
        }
    }
}
