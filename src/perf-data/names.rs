//! Names of events that the recording does not name, as perf users know them.

use rustc_hash::FxHashMap;

use crate::attr::{EventAttr, flag};
use crate::format::event_type;

const HARDWARE: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];
const SOFTWARE: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];
const CACHES: [&str; 7] = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];
const CACHE_OPERATIONS: [[&str; 2]; 3] =
    [["loads", "load-misses"], ["stores", "store-misses"], ["prefetches", "prefetch-misses"]];

/// The name of an event by its encoding: `cycles:u`, `LLC-load-misses`, `raw 0x1c2`.
///
/// `pmus` are the numbers and names of the machine's PMUs, `tracepoint` finds the name of a
/// tracepoint's number.
pub(crate) fn derived_name(
    attr: &EventAttr,
    pmus: &FxHashMap<u32, &str>,
    tracepoint: impl Fn(u64) -> Option<String>,
) -> String {
    let config = attr.config as usize;
    let generic = match attr.kind {
        // On hybrid machines the upper half says which kind of core.
        event_type::HARDWARE => HARDWARE.get(attr.config as u32 as usize).map(|name| name.to_string()),
        event_type::SOFTWARE => SOFTWARE.get(config).map(|name| name.to_string()),
        event_type::HW_CACHE => cache_name(attr.config),
        event_type::TRACEPOINT => tracepoint(attr.config),
        event_type::RAW => Some(format!("raw 0x{:x}", attr.config)),
        event_type::BREAKPOINT => Some(breakpoint_name(attr)),
        _ => None,
    };
    let mut name = generic.unwrap_or_else(|| match pmus.get(&attr.kind) {
        Some(pmu) => format!("{pmu}/config=0x{:x}/", attr.config),
        None => format!("unknown type {} config 0x{:x}", attr.kind, attr.config),
    });
    add_modifiers(&mut name, attr);
    name
}

fn cache_name(config: u64) -> Option<String> {
    let cache = CACHES.get((config & 0xff) as usize)?;
    let operation = CACHE_OPERATIONS.get((config >> 8 & 0xff) as usize)?;
    let operation = operation.get((config >> 16 & 0xff) as usize)?;
    Some(format!("{cache}-{operation}"))
}

fn breakpoint_name(attr: &EventAttr) -> String {
    let mut name = format!("mem:0x{:x}:", attr.config1);
    let letters = [(1, 'r'), (2, 'w'), (4, 'x')];
    name.extend(letters.iter().filter(|(bit, _)| attr.breakpoint_type & bit != 0).map(|(_, letter)| letter));
    name
}

/// `:u` only in programs, `:k` only in the kernel, `:p` precise, and so on.
fn add_modifiers(name: &mut String, attr: &EventAttr) {
    let mut modifiers = String::new();
    let levels = [(flag::EXCLUDE_KERNEL, 'k'), (flag::EXCLUDE_USER, 'u'), (flag::EXCLUDE_HV, 'h')];
    let some_excluded = levels.iter().any(|&(excluded, _)| attr.has(excluded));
    if some_excluded {
        modifiers
            .extend(levels.iter().filter(|&&(excluded, _)| !attr.has(excluded)).map(|(_, letter)| letter));
    }
    modifiers.extend((0..attr.precise_ip()).map(|_| 'p'));
    // perf leaves guests out by itself only where no other modifier was given, and names what is left
    // where that is not so.
    let guests_excluded_too = some_excluded || attr.precise_ip() > 0;
    if attr.has(flag::EXCLUDE_HOST) || attr.has(flag::EXCLUDE_GUEST) == guests_excluded_too {
        let sides = [(flag::EXCLUDE_HOST, 'H'), (flag::EXCLUDE_GUEST, 'G')];
        modifiers
            .extend(sides.iter().filter(|&&(excluded, _)| !attr.has(excluded)).map(|(_, letter)| letter));
    }
    if !modifiers.is_empty() {
        name.push(':');
        name.push_str(&modifiers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(kind: u32, config: u64, flags: u64) -> String {
        let attr = EventAttr { kind, config, flags, ..EventAttr::default() };
        derived_name(&attr, &FxHashMap::from_iter([(9, "uncore_imc")]), |id| {
            (id == 316).then(|| "sched:sched_switch".to_owned())
        })
    }

    #[test]
    fn events_are_named_as_perf_names_them() {
        let host = flag::EXCLUDE_GUEST;
        assert_eq!(name(0, 0, flag::EXCLUDE_KERNEL | flag::EXCLUDE_HV), "cycles:u");
        assert_eq!(name(1, 0, host), "cpu-clock");
        assert_eq!(name(3, 0x1_0002, host), "LLC-load-misses");
        assert_eq!(name(2, 316, host), "sched:sched_switch");
        assert_eq!(name(4, 0x1c2, host), "raw 0x1c2");
        assert_eq!(name(9, 0x304, host), "uncore_imc/config=0x304/");
        // As perf 6.1 prints a precise event of a piped recording without names.
        assert_eq!(name(0, 1, host | 2 << flag::PRECISE_IP_SHIFT), "instructions:ppH");
    }

    #[test]
    fn unknown_events_keep_their_numbers() {
        assert_eq!(name(0, 77, flag::EXCLUDE_GUEST), "unknown type 0 config 0x4d");
        assert_eq!(name(3, 0xff, flag::EXCLUDE_GUEST), "unknown type 3 config 0xff");
    }
}
