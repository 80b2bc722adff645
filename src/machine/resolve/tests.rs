//! Events as users write them, on machines of every sort.

use super::*;
use crate::hardware::CoreKind;
use crate::machine::fixture::FixtureMachine;

const XEON: &str = "
sys/bus/event_source/devices/cpu/type: 4
sys/bus/event_source/devices/cpu/format/event: config:0-7
sys/bus/event_source/devices/cpu/format/umask: config:8-15
sys/bus/event_source/devices/cpu/format/edge: config:18
sys/bus/event_source/devices/cpu/format/inv: config:23
sys/bus/event_source/devices/cpu/format/cmask: config:24-31
sys/bus/event_source/devices/cpu/format/ldlat: config1:0-15
sys/bus/event_source/devices/cpu/events/mem-loads: event=0xcd,umask=0x1,ldlat=3
sys/bus/event_source/devices/cpu/events/cpu-cycles: event=0x3c
sys/bus/event_source/devices/power/type: 9
sys/bus/event_source/devices/power/cpumask: 0,8
sys/bus/event_source/devices/power/format/event: config:0-7
sys/bus/event_source/devices/power/events/energy-pkg: event=0x02
sys/bus/event_source/devices/power/events/energy-pkg.scale: 2.3283064365386962890625e-10
sys/bus/event_source/devices/power/events/energy-pkg.unit: Joules
sys/bus/event_source/devices/uncore_imc_{0-1}/type: {12,13}
sys/bus/event_source/devices/uncore_imc_{0-1}/cpumask: 0,8
sys/bus/event_source/devices/uncore_imc_{0-1}/format/event: config:0-7
sys/kernel/tracing/events/sched/sched_switch/id: 316
sys/kernel/tracing/events/sched/sched_wakeup/id: 319
";

const HYBRID: &str = "
sys/bus/event_source/devices/cpu_core/type: 4
sys/bus/event_source/devices/cpu_core/cpus: 0-7
sys/bus/event_source/devices/cpu_core/format/event: config:0-7
sys/bus/event_source/devices/cpu_atom/type: 10
sys/bus/event_source/devices/cpu_atom/cpus: 8-11
sys/bus/event_source/devices/cpu_atom/format/event: config:0-7
";

fn one(manifest: &str, event: &str) -> EventSpec {
    let machine = FixtureMachine::new(manifest);
    let specs = resolve_event(&Roots::under(machine.path()), event).expect("resolved");
    assert_eq!(specs.len(), 1, "{event} is one event");
    specs.into_iter().next().expect("one")
}

fn fault(manifest: &str, event: &str) -> String {
    let machine = FixtureMachine::new(manifest);
    resolve_events(&Roots::under(machine.path()), event).expect_err("refused").to_string()
}

#[test]
fn generic_events_need_no_pmu() {
    let cycles = one("", "cycles:u");
    assert_eq!((cycles.perf_type, cycles.config), (0, 0));
    assert!(cycles.modifiers.exclude_kernel);
    assert_eq!(cycles.name, "cycles:u");
    let clock = one(XEON, "cpu-clock/freq=1000/");
    assert_eq!((clock.perf_type, clock.config, clock.frequency), (1, 0, Some(1000)));
    assert_eq!((one(XEON, "LLC-load-misses").perf_type, one(XEON, "LLC-load-misses").config), (3, 0x10002));
}

#[test]
fn terms_go_where_the_format_says() {
    let stalls = one(XEON, "cpu/event=0xa2,umask=0x4,cmask=1,inv,name=stalls,period=2000003/upp");
    assert_eq!((stalls.perf_type, stalls.config), (4, 0x0180_04a2));
    assert_eq!((stalls.name.as_str(), stalls.period), ("stalls", Some(2_000_003)));
    assert_eq!(stalls.modifiers.precise, 2);
    assert_eq!(stalls.encoding(), "cpu/config=0x18004a2/");
}

#[test]
fn a_pmus_own_events_and_what_overrides_them() {
    assert_eq!(one(XEON, "mem-loads").config1, 3);
    let loads = one(XEON, "cpu/mem-loads,ldlat=30/P");
    assert_eq!((loads.config, loads.config1), (0x1cd, 30));
    assert!(loads.modifiers.most_precise);
    let cycles = one(XEON, "cpu/cpu-cycles/");
    assert_eq!((cycles.perf_type, cycles.config), (4, 0x3c));
    assert_eq!(one(XEON, "cpu/cycles/").perf_type, 0, "the generic event");
    assert_eq!(one(XEON, "cpu/r04a2/").config, 0x04a2);
}

#[test]
fn energy_brings_scale_unit_and_cpus() {
    for event in ["power/energy-pkg/", "energy-pkg"] {
        let energy = one(XEON, event);
        assert_eq!((energy.perf_type, energy.config), (9, 2));
        assert_eq!(energy.scale, 2f64.powi(-32));
        assert_eq!(energy.unit.as_deref(), Some("Joules"));
        assert_eq!(energy.cpus.as_deref(), Some(&[0, 8][..]));
    }
}

#[test]
fn raw_codes_take_the_core_pmus_type() {
    assert_eq!((one(XEON, "r04a2:k").perf_type, one(XEON, "r04a2:k").config), (4, 0x04a2));
    let arm = "sys/bus/event_source/devices/armv8_pmuv3_0/type: 8\nsys/bus/event_source/devices/armv8_pmuv3_0/cpus: 0-3";
    let raw = one(arm, "r11");
    assert_eq!((raw.perf_type, raw.pmu.as_str()), (8, "armv8_pmuv3_0"));
}

#[test]
fn one_event_per_kind_of_core() {
    let machine = FixtureMachine::new(HYBRID);
    let roots = Roots::under(machine.path());
    let cycles = resolve_event(&roots, "cycles").expect("resolved");
    let told: Vec<_> = cycles.iter().map(|spec| (spec.name.as_str(), spec.config, spec.core_kind)).collect();
    assert_eq!(
        told,
        [
            ("cpu_core/cycles/", 4 << 32, CoreKind::Performance),
            ("cpu_atom/cycles/", 10 << 32, CoreKind::Efficiency)
        ]
    );
    assert_eq!(cycles[1].cpus.as_deref(), Some(&[8, 9, 10, 11][..]));
    let atom = resolve_event(&roots, "cpu_atom/cycles/u").expect("resolved");
    assert_eq!((atom.len(), atom[0].perf_type, atom[0].config), (1, 0, 10 << 32));
    let raw = resolve_event(&roots, "r3c").expect("resolved");
    assert_eq!(raw.iter().map(|spec| spec.perf_type).collect::<Vec<_>>(), [4, 10]);
}

#[test]
fn arms_pmus_are_told_apart_by_their_cpus() {
    let machine = FixtureMachine::new(
        "sys/bus/event_source/devices/armv8_cortex_{a53,a72}/type: {8,9}\n\
         sys/bus/event_source/devices/armv8_cortex_{a53,a72}/cpus: {0,4}-{3,5}",
    );
    let cycles = resolve_event(&Roots::under(machine.path()), "cycles").expect("resolved");
    let told: Vec<_> = cycles.iter().map(|spec| (spec.config, spec.cpus.clone(), spec.core_kind)).collect();
    assert_eq!(
        told,
        [(0, Some(vec![4, 5]), CoreKind::Performance), (0, Some(vec![0, 1, 2, 3]), CoreKind::Efficiency)]
    );
}

#[test]
fn a_pmu_in_several_instances() {
    let machine = FixtureMachine::new(XEON);
    let specs = resolve_event(&Roots::under(machine.path()), "uncore_imc/event=0x4/").expect("resolved");
    assert_eq!(specs.iter().map(|spec| spec.perf_type).collect::<Vec<_>>(), [12, 13]);
    assert_eq!(specs[1].name, "uncore_imc_1/event=0x4/");
}

#[test]
fn tracepoints_by_their_number() {
    let switch = one(XEON, "sched:sched_switch:u");
    assert_eq!((switch.perf_type, switch.config), (2, 316));
    assert!(fault(XEON, "sched:sched_swich").contains("'sched:sched_switch'"));
    assert!(fault(XEON, "sched:sched.switch").contains("letters"));
    assert!(fault("sys/kernel/", "sched:sched_switch").contains("mount -t tracefs"));
}

#[test]
fn lists_of_events() {
    let machine = FixtureMachine::new(XEON);
    let roots = Roots::under(machine.path());
    let specs = resolve_events(&roots, "cycles,cpu/event=0xa2,umask=0x1/,faults").expect("resolved");
    assert_eq!(specs.iter().map(|spec| spec.config).collect::<Vec<_>>(), [0, 0x1a2, 2]);
    assert!(resolve_events(&roots, " , ").is_err());
}

#[test]
fn faults_say_what_is_wrong_and_what_is_near() {
    assert!(fault(XEON, "cylces").contains("did you mean 'cycles'?"));
    assert!(fault(XEON, "cpu/umsk=1/").contains("no term 'umsk'"));
    assert!(fault(XEON, "cpu/umask=0x100/").contains("at most 0xff"));
    assert!(fault(XEON, "cpu/event=zwei/").contains("takes a number"));
    assert!(fault(XEON, "cycles/period=0/").contains("'0' is no value"));
    assert!(fault(XEON, "cycles/period=5,freq=5/").contains("either a period or a frequency"));
    assert!(fault(XEON, "cycles:uS").contains("'S' is no modifier"));
    assert!(fault(HYBRID, "cpu/event=1/").contains("'cpu_core', 'cpu_atom'"));
    assert!(fault(XEON, "cpu/event=0xa2,call-graph=fp/").contains("--call-graph"));
}
