//! The choice on machines of every sort.

use super::*;
use crate::machine::fixture::FixtureMachine;
use crate::machine::topology;

const INTEL_FORMAT: &str = "
sys/devices/system/cpu/online: 0-3
sys/bus/event_source/devices/cpu/type: 4
sys/bus/event_source/devices/cpu/format/event: config:0-7
sys/bus/event_source/devices/cpu/format/umask: config:8-15
sys/bus/event_source/devices/cpu/format/cmask: config:24-31
";

fn x86(vendor: &str, family: u32, model: u32, flags: &str) -> String {
    format!(
        "proc/cpuinfo <<end\nvendor_id : {vendor}\ncpu family : {family}\nmodel : {model}\nflags : lm {flags}\nend\n"
    )
}

fn chosen(manifest: &str) -> ModelEvents {
    let machine = FixtureMachine::new(manifest);
    let roots = Roots::under(machine.path());
    let info = topology::detect(&roots).expect("described");
    choose_model_events(&roots, &info)
}

fn told(events: &ModelEvents) -> Vec<(Role, &str, u32, u64)> {
    events.events.iter().map(|e| (e.role, e.spec.name.as_str(), e.spec.perf_type, e.spec.config)).collect()
}

#[test]
fn sandy_bridge_has_the_papers_own_events() {
    let events = chosen(
        &(INTEL_FORMAT.to_owned() + &x86("GenuineIntel", 6, 45, "") + "proc/sys/kernel/nmi_watchdog: 1"),
    );
    assert_eq!(
        told(&events),
        [
            (Role::Clk, "cycles", 0, 0),
            (Role::Inst, "instructions", 0, 1),
            (Role::Resource, "RESOURCE_STALLS.RS", 4, 0x04a2),
            (Role::L2, "L2_TRANS.ALL_PF", 4, 0x08f0),
            (Role::LlcMiss, "cache-misses", 0, 3),
        ]
    );
    assert!(events.notes.is_empty(), "{:?}", events.notes);
    let counters = &events.counters[0];
    assert_eq!((counters.general, counters.has_fixed, counters.watchdog), (4, true, true));
}

#[test]
fn a_counter_mask_and_a_note_since_ice_lake() {
    let events = chosen(&(INTEL_FORMAT.to_owned() + &x86("GenuineIntel", 6, 143, "")));
    let stalls = &events.events[2];
    assert_eq!((stalls.spec.name.as_str(), stalls.spec.config), ("CYCLE_ACTIVITY.STALLS_TOTAL", 0x0400_04a3));
    assert!(events.notes.iter().any(|note| note.contains("nothing executed")), "{:?}", events.notes);
}

const AMD_FORMAT: &str = "
sys/devices/system/cpu/online: 0-3
sys/bus/event_source/devices/cpu/type: 4
sys/bus/event_source/devices/cpu/format/event: config:0-7,32-35
sys/bus/event_source/devices/cpu/format/umask: config:8-15
";

#[test]
fn zen4_fits_five_events_and_the_watchdog() {
    let zen4 = AMD_FORMAT.to_owned() + &x86("AuthenticAMD", 25, 17, "perfctr_core");
    let events = chosen(&(zen4 + "proc/sys/kernel/nmi_watchdog: 1"));
    let told = told(&events);
    assert_eq!(told.len(), 5);
    assert_eq!(told[2], (Role::Resource, "de_no_dispatch_per_slot.backend_stalls", 4, 0x1_0000_1ea0));
    assert_eq!(told[4], (Role::LlcMiss, "ls_any_fills_from_sys.dram_io_all", 4, 0x4844));
}

#[test]
fn what_does_not_fit_is_left_out_from_the_end() {
    // A hypervisor that shows four counters, one of which the watchdog holds.
    let small = AMD_FORMAT.to_owned() + &x86("AuthenticAMD", 25, 1, "hypervisor");
    let events = chosen(&(small + "proc/sys/kernel/nmi_watchdog: 1"));
    assert_eq!(
        told(&events).iter().map(|(role, ..)| *role).collect::<Vec<_>>(),
        [Role::Clk, Role::Inst, Role::Resource]
    );
    let left_out: Vec<&String> = events.notes.iter().filter(|note| note.contains("left out")).collect();
    assert_eq!(left_out.len(), 2, "{:?}", events.notes);
    assert!(left_out[0].contains("watchdog"), "{}", left_out[0]);
}

#[test]
fn each_kind_of_core_has_its_own_events() {
    let hybrid = "
sys/devices/system/cpu/online: 0-3
sys/bus/event_source/devices/cpu_{core,atom}/type: {4,10}
sys/bus/event_source/devices/cpu_{core,atom}/cpus: {0,2}-{1,3}
sys/bus/event_source/devices/cpu_{core,atom}/format/event: config:0-7
sys/bus/event_source/devices/cpu_{core,atom}/format/umask: config:8-15
sys/bus/event_source/devices/cpu_{core,atom}/format/cmask: config:24-31
";
    let events = chosen(&(hybrid.to_owned() + &x86("GenuineIntel", 6, 0x97, "")));
    assert_eq!(events.events.len(), 10);
    let small: Vec<(&str, u32, u64)> = events
        .events
        .iter()
        .filter(|event| event.core_kind() == CoreKind::Efficiency)
        .map(|event| (event.spec.name.as_str(), event.spec.perf_type, event.spec.config))
        .collect();
    assert_eq!(
        small,
        [
            ("cpu_atom/cycles/", 0, 10 << 32),
            ("cpu_atom/instructions/", 0, 10 << 32 | 1),
            ("TOPDOWN_BE_BOUND.ALL", 10, 0x74),
            ("L2_REQUEST.ALL", 10, 0x24),
            ("cpu_atom/cache-misses/", 0, 10 << 32 | 3),
        ]
    );
    assert!(events.events.iter().all(|event| event.spec.cpus.as_ref().is_some_and(|cpus| cpus.len() == 2)));
}

#[test]
fn arm_by_what_the_core_lists() {
    let arm = "
sys/devices/system/cpu/online: 0-3
proc/sys/kernel/arch: aarch64
sys/bus/event_source/devices/armv8_pmuv3_0/type: 8
sys/bus/event_source/devices/armv8_pmuv3_0/cpus: 0-3
sys/bus/event_source/devices/armv8_pmuv3_0/format/event: config:0-15
sys/bus/event_source/devices/armv8_pmuv3_0/events/{l2d_cache,l2d_cache_refill}: event=0x00{16,17}
";
    let events = chosen(arm);
    assert_eq!(
        told(&events)[2..],
        [(Role::L2, "l2d_cache", 8, 0x16), (Role::LlcMiss, "l2d_cache_refill", 8, 0x17)]
    );
    assert!(events.notes[0].contains("none of stall_backend"), "{:?}", events.notes);
    let neoverse = chosen(&format!(
        "{arm}sys/bus/event_source/devices/armv8_pmuv3_0/events/{{stall_backend,ll_cache_miss_rd}}: event=0x00{{24,37}}"
    ));
    let roles: Vec<(Role, u64)> =
        neoverse.events.iter().map(|event| (event.role, event.spec.config)).collect();
    assert_eq!(roles[2..], [(Role::Resource, 0x24), (Role::L2, 0x16), (Role::LlcMiss, 0x37)]);
}

#[test]
fn large_and_small_arm_cores() {
    let pmus: String = [
        ("a53", 8, "0-3", "{l2d_cache,l2d_cache_refill}: event=0x00{16,17}"),
        ("a72", 9, "4-5", "l2d_cache_refill: event=0x0017"),
    ]
    .map(|(core, kind, cpus, events)| {
        let pmu = format!("sys/bus/event_source/devices/armv8_cortex_{core}");
        format!(
            "{pmu}/type: {kind}\n{pmu}/cpus: {cpus}\n{pmu}/format/event: config:0-15\n{pmu}/events/{events}\n"
        )
    })
    .concat();
    let events =
        chosen(&format!("sys/devices/system/cpu/online: 0-5\nproc/sys/kernel/arch: aarch64\n{pmus}"));
    assert_eq!(
        told(&events),
        [
            (Role::Clk, "armv8_cortex_a72/cycles/", 0, 0),
            (Role::Inst, "armv8_cortex_a72/instructions/", 0, 1),
            (Role::LlcMiss, "armv8_cortex_a72/l2d_cache_refill/", 9, 0x17),
            (Role::Clk, "armv8_cortex_a53/cycles/", 0, 0),
            (Role::Inst, "armv8_cortex_a53/instructions/", 0, 1),
            (Role::L2, "armv8_cortex_a53/l2d_cache/", 8, 0x16),
            (Role::LlcMiss, "armv8_cortex_a53/l2d_cache_refill/", 8, 0x17),
        ]
    );
    assert!(
        events.notes.iter().any(|note| note.contains("stands for llc-miss already")),
        "{:?}",
        events.notes
    );
}

#[test]
fn an_unknown_cpu_has_generic_events() {
    let events = chosen(&(INTEL_FORMAT.to_owned() + &x86("CentaurHauls", 7, 59, "")));
    assert_eq!(
        told(&events).iter().map(|(_, name, ..)| *name).collect::<Vec<_>>(),
        ["cycles", "instructions", "cache-references", "cache-misses"]
    );
}

#[test]
fn no_pmu_at_all() {
    let events = chosen("sys/devices/system/cpu/online: 0");
    assert_eq!(told(&events), [(Role::Clk, "cpu-clock", 1, 0)]);
    assert!(events.notes[0].contains("CPU time stands for cycles"));
}
