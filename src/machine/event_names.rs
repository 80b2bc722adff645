//! The names that perf and its users give to the kernel's generic events (`perf_event.h`).

/// `attr.type` of the kernel's own kinds of event.
pub mod perf_type {
    /// Generic hardware events.
    pub const HARDWARE: u32 = 0;
    /// Events of the kernel itself.
    pub const SOFTWARE: u32 = 1;
    /// Tracepoints.
    pub const TRACEPOINT: u32 = 2;
    /// Generic cache events.
    pub const HW_CACHE: u32 = 3;
    /// Events by the code that the core PMU's manual gives.
    pub const RAW: u32 = 4;
}

/// PERF_COUNT_HW_*: names, the usual one first, in the order of their numbers.
const HARDWARE: [&[&str]; 10] = [
    &["cycles", "cpu-cycles"],
    &["instructions"],
    &["cache-references"],
    &["cache-misses"],
    &["branches", "branch-instructions"],
    &["branch-misses"],
    &["bus-cycles"],
    &["stalled-cycles-frontend", "idle-cycles-frontend"],
    &["stalled-cycles-backend", "idle-cycles-backend"],
    &["ref-cycles"],
];

/// PERF_COUNT_SW_*.
const SOFTWARE: [&[&str]; 12] = [
    &["cpu-clock"],
    &["task-clock"],
    &["page-faults", "faults"],
    &["context-switches", "cs"],
    &["cpu-migrations", "migrations"],
    &["minor-faults"],
    &["major-faults"],
    &["alignment-faults"],
    &["emulation-faults"],
    &["dummy"],
    &["bpf-output"],
    &["cgroup-switches"],
];

/// PERF_COUNT_HW_CACHE_*, and which operations make sense (bits: load 1, store 2, prefetch 4).
const CACHES: [(&[&str], u8); 7] = [
    (&["l1-dcache", "l1-d", "l1d", "l1-data"], 7),
    (&["l1-icache", "l1-i", "l1i", "l1-instruction"], 5),
    (&["llc", "l2"], 7),
    (&["dtlb", "d-tlb", "data-tlb"], 7),
    (&["itlb", "i-tlb", "instruction-tlb"], 1),
    (&["branch", "branches", "bpu", "btb", "bpc"], 1),
    (&["node"], 7),
];
const OPERATIONS: [&[&str]; 3] = [
    &["loads", "load", "read"],
    &["stores", "store", "write"],
    &["prefetches", "prefetch", "speculative-read", "speculative-load"],
];
const RESULTS: [&[&str]; 2] = [&["refs", "reference", "ops", "access"], &["misses", "miss"]];

fn number_of(tables: &[&[&str]], name: &str) -> Option<u64> {
    tables.iter().position(|names| names.contains(&name)).map(|at| at as u64)
}

/// `attr.config` of a generic hardware event.
pub fn hardware(name: &str) -> Option<u64> {
    number_of(&HARDWARE, name)
}

/// `attr.config` of a software event.
pub fn software(name: &str) -> Option<u64> {
    number_of(&SOFTWARE, name)
}

/// `attr.config` of a generic cache event such as `L1-dcache-load-misses`: the cache, then operation
/// and result in any order; loads and accesses if not said.
pub fn cache(name: &str) -> Option<u64> {
    let name = name.to_ascii_lowercase();
    let (at, rest, operations) = CACHES.iter().enumerate().find_map(|(at, (names, operations))| {
        let mut longest_first = names.to_vec();
        longest_first.sort_by_key(|name| std::cmp::Reverse(name.len()));
        let rest = longest_first.iter().find_map(|have| {
            name.strip_prefix(have).filter(|rest| rest.is_empty() || rest.starts_with('-'))
        })?;
        Some((at as u64, rest, *operations))
    })?;
    let (mut operation, mut result) = (None, None);
    let mut rest = rest;
    while let Some(words) = rest.strip_prefix('-') {
        rest = take_word(&OPERATIONS, words, &mut operation)
            .or_else(|| take_word(&RESULTS, words, &mut result))?;
    }
    // A bare `branches` or `l2` is more likely something else.
    if !rest.is_empty() || (operation.is_none() && result.is_none()) {
        return None;
    }
    let operation = operation.unwrap_or(0);
    (operations & 1 << operation != 0).then_some(at | operation << 8 | result.unwrap_or(0) << 16)
}

/// Takes one of the table's words off the front, once.
fn take_word<'a>(tables: &[&[&str]], text: &'a str, found: &mut Option<u64>) -> Option<&'a str> {
    if found.is_some() {
        return None;
    }
    tables.iter().enumerate().find_map(|(at, words)| {
        let rest = words.iter().find_map(|word| {
            text.strip_prefix(word).filter(|rest| rest.is_empty() || rest.starts_with('-'))
        })?;
        *found = Some(at as u64);
        Some(rest)
    })
}

/// All names of generic events, for suggestions.
pub fn all() -> impl Iterator<Item = String> {
    let generic =
        HARDWARE.iter().chain(&SOFTWARE).flat_map(|names| names.iter()).map(|name| (*name).to_owned());
    let shown = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];
    let caches = shown.into_iter().zip(CACHES).flat_map(|(shown, (_, operations))| {
        let possible = OPERATIONS.iter().enumerate().filter(move |(at, _)| operations & 1 << at != 0);
        possible.flat_map(move |(_, words)| {
            let singular = words.get(1).copied().unwrap_or_default();
            let plural = words.first().copied().unwrap_or_default();
            [format!("{shown}-{plural}"), format!("{shown}-{singular}-misses")]
        })
    });
    generic.chain(caches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_kernels_header() {
        assert_eq!(hardware("cycles"), Some(0));
        assert_eq!(hardware("branch-instructions"), Some(4));
        assert_eq!(hardware("ref-cycles"), Some(9));
        assert_eq!(software("cs"), Some(3));
        assert_eq!(software("bpf-output"), Some(10));
        assert_eq!(hardware("cs"), None);
    }

    #[test]
    fn cache_events_as_perf_lists_them() {
        assert_eq!(cache("L1-dcache-loads"), Some(0));
        assert_eq!(cache("L1-dcache-load-misses"), Some(0x10000));
        assert_eq!(cache("L1-icache-load-misses"), Some(0x10001));
        assert_eq!(cache("LLC-stores"), Some(0x102));
        assert_eq!(cache("LLC-prefetch-misses"), Some(0x10202));
        assert_eq!(cache("dTLB-store-misses"), Some(0x10103));
        assert_eq!(cache("iTLB-loads"), Some(4));
        assert_eq!(cache("branch-load-misses"), Some(0x10005));
        assert_eq!(cache("node-misses"), Some(0x10006));
    }

    #[test]
    fn what_is_no_cache_event() {
        for name in [
            "L1-dcache",
            "branches",
            "iTLB-stores",
            "LLC-loads-loads",
            "LLC-foo",
            "l1dx-loads",
            "L1-icache-stores",
        ] {
            assert_eq!(cache(name), None, "{name}");
        }
    }

    #[test]
    fn every_listed_name_is_known() {
        for name in all() {
            assert!(hardware(&name).or(software(&name)).or(cache(&name)).is_some(), "{name}");
        }
    }
}
