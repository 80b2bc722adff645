//! Which events stand for stalls, L2 requests and memory traffic on which microarchitecture.
//!
//! Encodings are facts of the vendors' event tables: Intel's perfmon repository
//! (<https://github.com/intel/perfmon>) and the kernel's `tools/perf/pmu-events/arch`, for AMD also the
//! Processor Programming References. Cycles, instructions and, on Intel, misses of the last cache
//! are the kernel's generic events and not listed.

use crate::hardware::CoreKind;

/// An event by the terms of its vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    /// The vendor's name.
    pub name: &'static str,
    /// Event select.
    pub event: u16,
    /// Unit mask.
    pub umask: u8,
    /// Counter mask: count cycles with at least so many.
    pub cmask: u8,
    /// What differs from the event that the paper's model uses; empty if nothing does.
    pub note: &'static str,
}

/// The model's events of one kind of core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreEvents {
    /// Stalls for want of resources.
    pub resource: Encoding,
    /// Requests to the second-level cache.
    pub l2: Encoding,
    /// Traffic with memory, where the generic event `cache-misses` does not tell it.
    pub memory: Option<Encoding>,
}

const fn encoding(name: &'static str, event: u16, umask: u8, cmask: u8, note: &'static str) -> Encoding {
    Encoding { name, event, umask, cmask, note }
}

const RS_FULL: Encoding = encoding("RESOURCE_STALLS.RS", 0xa2, 0x04, 0, "");
const RESOURCE_ANY: Encoding = encoding(
    "RESOURCE_STALLS.ANY",
    0xa2,
    0x01,
    0,
    "cycles stalled for any resource; RESOURCE_STALLS.RS ended with Broadwell",
);
const STALLS_TOTAL: Encoding = encoding(
    "CYCLE_ACTIVITY.STALLS_TOTAL",
    0xa3,
    0x04,
    4,
    "cycles in which nothing executed; RESOURCE_STALLS.RS and .ANY do not exist here",
);
const ALL_PREFETCHES: Encoding = encoding("L2_TRANS.ALL_PF", 0xf0, 0x08, 0, "");
const ALL_REFERENCES: Encoding = encoding(
    "L2_RQSTS.REFERENCES",
    0x24,
    0xff,
    0,
    "all requests to L2; L2_TRANS.ALL_PF ended with Broadwell",
);
/// The sum of ALL_DEMAND_DATA_RD (0xe1), ALL_RFO (0xe2) and ALL_CODE_RD (0xe4), as one unit mask.
const DEMAND_REFERENCES: Encoding = encoding(
    "L2_RQSTS.DATA_RD+RFO+CODE_RD",
    0x24,
    0xe7,
    0,
    "demand requests to L2, three events in one; no total is documented here",
);
const SLOTS_ON_SMALL_CORES: &str =
    "issue slots lost to the back end, not cycles; small cores have no RESOURCE_STALLS";
const BACKEND_BOUND: Encoding = encoding("TOPDOWN_BE_BOUND.ALL", 0x74, 0x00, 0, SLOTS_ON_SMALL_CORES);
const BACKEND_BOUND_SKYMONT: Encoding = encoding("TOPDOWN_BE_BOUND.ALL", 0xa4, 0x02, 0, SLOTS_ON_SMALL_CORES);
const ALL_REQUESTS_OF_SMALL_CORES: &str = "all requests to L2; small cores have no L2_TRANS";

const fn intel(resource: Encoding, l2: Encoding) -> CoreEvents {
    CoreEvents { resource, l2, memory: None }
}

const PAPER: CoreEvents = intel(RS_FULL, ALL_PREFETCHES);
const SKYLAKE: CoreEvents = intel(RESOURCE_ANY, ALL_REFERENCES);
const SINCE_ICE_LAKE: CoreEvents = intel(STALLS_TOTAL, ALL_REFERENCES);
const ICE_LAKE_SP: CoreEvents = intel(STALLS_TOTAL, DEMAND_REFERENCES);
const GRACEMONT: CoreEvents =
    intel(BACKEND_BOUND, encoding("L2_REQUEST.ALL", 0x24, 0x00, 0, ALL_REQUESTS_OF_SMALL_CORES));
/// No total is documented: hits (0x02) and misses (0x01), as one unit mask.
const CRESTMONT: CoreEvents =
    intel(BACKEND_BOUND, encoding("L2_REQUEST.HIT+MISS", 0x24, 0x03, 0, ALL_REQUESTS_OF_SMALL_CORES));
const SKYMONT: CoreEvents =
    intel(BACKEND_BOUND_SKYMONT, encoding("L2_REQUEST.ALL", 0x24, 0x07, 0, ALL_REQUESTS_OF_SMALL_CORES));

const TOKEN_STALLS: &str =
    "cycles in which dispatch waited for any token; AMD has no reservation-station event";
const L2_WITHOUT_PREFETCH: Encoding = encoding(
    "l2_request_g1.all_no_prefetch",
    0x60,
    0xf9,
    0,
    "all requests to L2 but its own prefetches; L2_TRANS is Intel's",
);
const DRAM_FILLS_NOTE: &str = "fills of L1 from memory; the generic cache-misses counts misses of L2 here";
const DEMAND_DRAM_FILLS: Encoding = encoding("ls_refills_from_sys.dram", 0x43, 0x48, 0, DRAM_FILLS_NOTE);
const ANY_DRAM_FILLS: Encoding =
    encoding("ls_any_fills_from_sys.dram_io_all", 0x44, 0x48, 0, DRAM_FILLS_NOTE);
const ALL_REQUESTS_NOT_PREFETCHES_ALONE: &str =
    "all requests to L2, not prefetches alone; L2_TRANS is Intel's";
const BACKEND_SLOTS: Encoding = encoding(
    "de_no_dispatch_per_slot.backend_stalls",
    0x1a0,
    0x1e,
    0,
    "dispatch slots lost to the back end, not cycles",
);
const ALL_TOKENS_ZEN1: Encoding = encoding("de_dis_dispatch_token_stalls0.any", 0xaf, 0x7f, 0, TOKEN_STALLS);
const ALL_TOKENS_ZEN2: Encoding = encoding("de_dis_dispatch_token_stalls1.any", 0xae, 0xff, 0, TOKEN_STALLS);

const ZEN1: CoreEvents = CoreEvents { resource: ALL_TOKENS_ZEN1, l2: L2_WITHOUT_PREFETCH, memory: None };
const ZEN2: CoreEvents =
    CoreEvents { resource: ALL_TOKENS_ZEN2, l2: L2_WITHOUT_PREFETCH, memory: Some(DEMAND_DRAM_FILLS) };
const ZEN3: CoreEvents =
    CoreEvents { resource: ALL_TOKENS_ZEN2, l2: L2_WITHOUT_PREFETCH, memory: Some(ANY_DRAM_FILLS) };
const ZEN4: CoreEvents = CoreEvents {
    resource: BACKEND_SLOTS,
    l2: encoding("l2_request_g1.all", 0x60, 0xff, 0, ALL_REQUESTS_NOT_PREFETCHES_ALONE),
    memory: Some(ANY_DRAM_FILLS),
};
const ZEN5: CoreEvents = CoreEvents {
    l2: encoding("l2_request_g1.all", 0x60, 0xf7, 0, ALL_REQUESTS_NOT_PREFETCHES_ALONE),
    ..ZEN4
};

/// The events of a microarchitecture's cores of one kind; `None` if it is not known.
pub fn core_events(microarchitecture: &str, kind: CoreKind) -> Option<CoreEvents> {
    use CoreKind::{Efficiency, Performance};
    Some(match (microarchitecture, kind) {
        ("sandybridge" | "sandybridge-ep" | "ivybridge" | "ivybridge-ep", _) => PAPER,
        ("haswell" | "haswell-ep" | "broadwell" | "broadwell-ep", _) => PAPER,
        ("skylake" | "skylake-sp" | "cascadelake-sp", _) => SKYLAKE,
        ("icelake-sp", _) => ICE_LAKE_SP,
        ("icelake" | "tigerlake" | "sapphirerapids" | "emeraldrapids" | "graniterapids", _) => SINCE_ICE_LAKE,
        ("alderlake" | "meteorlake" | "arrowlake" | "lunarlake", Performance) => SINCE_ICE_LAKE,
        ("alderlake", Efficiency) | ("gracemont", _) => GRACEMONT,
        ("meteorlake", Efficiency) | ("sierraforest" | "crestmont", _) => CRESTMONT,
        ("arrowlake" | "lunarlake", Efficiency) => SKYMONT,
        ("zen1", _) => ZEN1,
        ("zen2", _) => ZEN2,
        ("zen3", _) => ZEN3,
        ("zen4", _) => ZEN4,
        ("zen5", _) => ZEN5,
        _ => return None,
    })
}

/// Arm's architectural events (Arm ARM, D13.11), best first, by their names in sysfs, where the kernel
/// lists those that the core has.
pub mod arm {
    /// Stalls of the back end.
    pub const RESOURCE: [&str; 2] = ["stall_backend", "stall"];
    /// Accesses of the second-level cache; with them write-backs from the first.
    pub const L2: [&str; 2] = ["l2d_cache", "l2d_cache_refill"];
    /// Misses of the last cache that the core knows of.
    pub const MEMORY: [&str; 3] = ["ll_cache_miss_rd", "l3d_cache_refill", "l2d_cache_refill"];
}

/// General counters of a core's PMU for one hardware thread; fixed ones count only cycles,
/// instructions and reference cycles.
///
/// Intel SDM vol. 3B, 20.2 (counters halved by SMT up to Cascade Lake) and the perfmon tables' counter
/// lists; AMD PPR, "core performance event-select" (6 with the flag `perfctr_core`, else 4). Others have
/// six in most implementations (Arm TRMs).
pub fn general_counters(microarchitecture: Option<&str>, kind: CoreKind, is_x86: bool) -> usize {
    match microarchitecture.unwrap_or_default() {
        "silvermont" => 2,
        "goldmont" | "goldmont-plus" | "tremont" | "nehalem" | "westmere" => 4,
        name if name.starts_with("zen") => 6,
        "icelake" | "icelake-sp" | "tigerlake" | "sapphirerapids" | "emeraldrapids" | "graniterapids" => 8,
        "meteorlake" | "arrowlake" | "lunarlake" | "sierraforest" => 8,
        "alderlake" if kind == CoreKind::Performance => 8,
        "alderlake" | "gracemont" => 6,
        _ if is_x86 => 4,
        _ => 6,
    }
}

#[cfg(test)]
mod tests;
