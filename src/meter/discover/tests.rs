//! The choice among sources, on scripted observations and on trees of files.

use std::io;

use super::*;
use crate::hardware::MachineInfo;
use crate::machine::fixture::FixtureMachine;
use crate::meter::CounterReading;
use crate::meter::domain::{self, Place};
use crate::units::{Joules, Nanoseconds};

struct Scripted(Source, Vec<DomainInfo>);

impl EnergyMeter for Scripted {
    fn domains(&self) -> &[DomainInfo] {
        &self.1
    }
    fn read(&mut self, _readings: &mut Vec<Option<CounterReading>>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Candidate for Scripted {
    fn source(&self) -> Source {
        self.0
    }
    fn retain(&mut self, keep: &mut dyn FnMut(&DomainInfo) -> bool) {
        self.1.retain(|domain| keep(domain));
    }
    fn domains_mut(&mut self) -> &mut [DomainInfo] {
        &mut self.1
    }
    fn learn(&mut self, _domain: usize, _seen: &Observation) {}
    fn counts_since_boot(&self) -> bool {
        self.0 == Source::Powercap
    }
}

fn meter(source: Source, kinds: &[DomainKind]) -> Box<dyn Candidate> {
    let place = |kind| if kind == DomainKind::Platform { Place::MACHINE } else { Place::package(0) };
    let machine = MachineInfo::default();
    let domains =
        kinds.iter().map(|&kind| domain::describe(&machine, kind, place(kind), &source.to_string()));
    Box::new(Scripted(source, domains.collect()))
}

/// Ten moves a millisecond apart to this energy.
fn moved(joules: f64) -> Observation {
    Observation {
        moves: 10,
        energy: Joules::from_joules(joules),
        span: Nanoseconds::from_millis(10),
        refresh: Some(Nanoseconds::from_millis(1)),
        step: Some(2),
        last_raw: Some(5),
    }
}

fn rests(raw: u64) -> Observation {
    Observation { last_raw: Some(raw), span: Nanoseconds::from_millis(50), ..Observation::default() }
}

fn chosen(
    candidates: Vec<Box<dyn Candidate>>,
    observations: Vec<Vec<Observation>>,
) -> (Vec<String>, Vec<String>, Vec<String>) {
    let mut choice = Choice::default();
    choice.take(candidates, observations);
    let domains =
        choice.meters.iter().flat_map(|meter| meter.domains()).map(|d| format!("{} {}", d.source, d.name));
    (domains.collect(), choice.rejected.iter().map(Rejected::to_string).collect(), choice.warnings)
}

#[test]
fn the_best_source_of_each_domain_is_kept() {
    let candidates = vec![
        meter(Source::PowerPmu, &[DomainKind::Package, DomainKind::Cores]),
        meter(Source::Powercap, &[DomainKind::Package, DomainKind::Dram]),
    ];
    let (domains, rejected, warnings) =
        chosen(candidates, vec![vec![moved(1.0), moved(0.5)], vec![moved(1.1), moved(0.2)]]);
    assert_eq!(domains, ["power PMU package-0", "power PMU package-0-cores", "powercap dram-0"]);
    assert_eq!(rejected, ["powercap package-0: the power PMU tells the same"]);
    assert!(warnings.is_empty(), "10 % apart is within one move of ten on either side");
}

#[test]
fn a_resting_counter_gives_way_to_the_next_source() {
    let candidates = vec![
        meter(Source::PowerPmu, &[DomainKind::Package]),
        meter(Source::Powercap, &[DomainKind::Package]),
    ];
    let (domains, rejected, _) = chosen(candidates, vec![vec![rests(0)], vec![moved(1.0)]]);
    assert_eq!(domains, ["powercap package-0"]);
    assert_eq!(rejected, ["power PMU package-0: it did not move in 50.00 ms"]);
}

#[test]
fn parts_that_may_sleep_are_not_taken_for_absent() {
    let kinds = [DomainKind::Package, DomainKind::Uncore, DomainKind::Cores];
    let candidates = vec![meter(Source::Powercap, &kinds)];
    let (domains, rejected, _) = chosen(candidates, vec![vec![moved(1.0), rests(77), rests(0)]]);
    assert_eq!(domains, ["powercap package-0", "powercap package-0-uncore"]);
    assert_eq!(rejected, ["powercap package-0-cores: it has stood at zero since the machine was started"]);
}

#[test]
fn sources_that_disagree_are_told() {
    let candidates = vec![
        meter(Source::PowerPmu, &[DomainKind::Package]),
        meter(Source::Powercap, &[DomainKind::Package]),
    ];
    let (_, _, warnings) = chosen(candidates, vec![vec![moved(1.0)], vec![moved(2.0)]]);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("50 % apart"), "{}", warnings[0]);
}

#[test]
fn a_platform_below_its_packages_is_not_wired() {
    let kinds = [DomainKind::Package, DomainKind::Platform];
    let of =
        |platform| chosen(vec![meter(Source::PowerPmu, &kinds)], vec![vec![moved(10.0), moved(platform)]]);
    assert_eq!(of(12.0).0, ["power PMU package-0", "power PMU psys"]);
    let (domains, rejected, _) = of(3.0);
    assert_eq!(domains, ["power PMU package-0"]);
    assert_eq!(rejected, ["power PMU psys: it told 300.0 W where the packages inside it told 1000.0 W"]);
}

const SERVER: &str = "
sys/devices/system/cpu/online: 0-3
sys/devices/system/cpu/cpu{0-3}/topology/physical_package_id: {0,0,1,1}
sys/devices/system/cpu/cpu{0-3}/topology/core_id: {0,1}
proc/sys/kernel/perf_event_paranoid: 2
proc/stat: cpu0 1 1 1 1
proc/cpuinfo <<end
vendor_id : GenuineIntel
cpu family : 6
model : 143
flags : lm
end
sys/bus/event_source/devices/power/type: 30
sys/bus/event_source/devices/power/cpumask: 0,2
sys/bus/event_source/devices/power/format/event: config:0-7
sys/bus/event_source/devices/power/events/energy-{pkg,ram,psys}: event=0x0{2,3,5}
sys/bus/event_source/devices/power/events/energy-{pkg,ram,psys}.scale: 2.3283064365386962890625e-10
sys/bus/event_source/devices/power/events/energy-{pkg,ram,psys}.unit: Joules
sys/class/powercap/intel-rapl:{0-1}/name: package-{0-1}
sys/class/powercap/intel-rapl:{0-1}/energy_uj [0400]: 17
";

fn discovered(manifest: &str, user: u32) -> Discovery {
    let status = format!("proc/self/status <<end\nUid: {user} {user} {user} {user}\nCapEff: {}\nend\n", {
        if user == 0 { "000001ffffffffff" } else { "0" }
    });
    let machine = FixtureMachine::new(&format!("{manifest}{status}"));
    discover(&Roots::under(machine.path()), &MeterOptions::default()).expect("discovered")
}

#[test]
fn root_reads_the_power_pmu_of_both_packages() {
    let discovery = discovered(SERVER, 0);
    let tree: Vec<(&str, Option<&str>)> =
        discovery.domains.iter().map(|domain| (domain.name.as_str(), domain.parent.as_deref())).collect();
    assert!(discovery.measures_cpus());
    assert!(discovery.rejected.iter().any(|rejected| rejected.what.as_deref() == Some("energy-psys")));
    assert_eq!(
        tree,
        [
            ("package-0", Some("psys")),
            ("package-1", Some("psys")),
            ("dram-0", Some("psys")),
            ("dram-1", Some("psys")),
            ("psys", None),
        ]
    );
}

#[test]
fn a_plain_user_gets_an_estimate_and_the_repairs() {
    let discovery = discovered(SERVER, 1000);
    assert!(!discovery.measures_cpus());
    let methods: Vec<(&str, Method)> =
        discovery.domains.iter().map(|domain| (domain.name.as_str(), domain.method)).collect();
    assert_eq!(methods, [("package-0", Method::Estimated), ("package-1", Method::Estimated)]);
    let repairs: Vec<&str> =
        discovery.rejected.iter().filter_map(|rejected| rejected.repair.as_deref()).collect();
    assert!(repairs[0].contains("setcap cap_perfmon=ep"), "{repairs:?}");
    assert!(repairs[1].contains("chgrp"), "{repairs:?}");
    assert!(discovery.warnings[0].contains("estimated from CPU time"));
}

#[test]
fn only_the_sources_asked_for() {
    let machine = FixtureMachine::new(&format!("{SERVER}proc/self/status: Uid:\t0\t0\t0\t0"));
    let options = MeterOptions { only: Some(vec![Source::Powercap]), ..MeterOptions::default() };
    let discovery = discover(&Roots::under(machine.path()), &options).expect("discovered");
    assert!(discovery.domains.iter().all(|domain| domain.source == "powercap"));
}

#[test]
fn what_was_asked_for_and_is_not_there_is_said() {
    let machine = FixtureMachine::new(&format!("{SERVER}proc/self/status: Uid:\t1000\t1000\t1000\t1000"));
    let only = vec![Source::Powercap, Source::Battery];
    let options = MeterOptions { only: Some(only), ..MeterOptions::default() };
    let discovery = discover(&Roots::under(machine.path()), &options).expect("discovered");
    let [powercap, battery] = &discovery.unmet[..] else { panic!("{:?}", discovery.unmet) };
    assert!(powercap.starts_with("powercap: ") && powercap.contains("by root only"), "{powercap}");
    assert_eq!(battery, "battery: this machine has no such meter");
    let refused = discovery.check().expect_err("nothing is read").to_string();
    assert!(refused.contains("sudo chgrp") && refused.contains("eprof doctor"), "{refused}");
    // Nobody asked: nothing is missed.
    let unasked = discovered(SERVER, 1000);
    assert!(unasked.unmet.is_empty());
    unasked.check().expect("what nobody asked for is not missed");
}

#[test]
fn why_a_counter_that_rests_is_none() {
    let at_rest = |kind, seen: &Observation, since_boot, any_core_moves| {
        let place = Place { package: Some(0), die: None, core: Some(0) };
        let domain = domain::describe(&MachineInfo::default(), kind, place, "test");
        at_rest(&domain, seen, since_boot, any_core_moves).unwrap_or_default()
    };
    let unread = Observation::default();
    assert_eq!(at_rest(DomainKind::Package, &unread, false, false), "it could not be read");
    assert_eq!(at_rest(DomainKind::Package, &moved(1.0), true, false), "");
    // A core asleep beside others that move, and what may be switched off since the start.
    for (kind, raw, since_boot, any_core_moves, is_absent) in [
        (DomainKind::Core, 5, false, true, false),
        (DomainKind::Core, 5, false, false, true),
        (DomainKind::Core, 0, true, true, true),
        (DomainKind::Uncore, 5, true, false, false),
        (DomainKind::Gpu, 5, true, false, false),
        (DomainKind::Uncore, 5, false, true, true),
        (DomainKind::Package, 5, true, true, true),
        (DomainKind::Package, 0, false, true, true),
    ] {
        let why = at_rest(kind, &rests(raw), since_boot, any_core_moves);
        assert_eq!(!why.is_empty(), is_absent, "{kind:?} {raw} {since_boot} {any_core_moves}: {why}");
        assert_eq!(why.contains("stood at zero"), raw == 0 && since_boot);
    }
}

/// Ten moves of each counter: two that agree to 5 % and a tenth of either may be of the same thing.
#[test]
fn sources_may_differ_by_their_steps() {
    let warning = |other: f64| {
        let (one, other) = (moved(10.0), moved(other));
        disagreement("package-0", (Source::PowerPmu, &one), (Source::Msr, &other))
    };
    assert!(warning(7.51).is_none() && warning(7.49).is_some());
    assert!(warning(13.3).is_none() && warning(13.4).is_some());
    let told = warning(2.5).expect("far apart");
    assert!(told.contains("power PMU told 1000.0 W") && told.contains("75 % apart"), "{told}");
}

#[test]
fn a_platform_may_seem_below_its_packages_by_what_steps_hide() {
    let kinds = [DomainKind::Package, DomainKind::Platform];
    let is_kept = |platform: f64| {
        chosen(vec![meter(Source::PowerPmu, &kinds)], vec![vec![moved(10.0), moved(platform)]]).0.len() == 2
    };
    assert!(is_kept(7.51) && !is_kept(7.49));
}

/// What measures the CPUs decides which warnings and repairs are of use.
#[test]
fn what_is_left_to_say_in_the_end() {
    let finish = |source: Source, kind: DomainKind, asked: &[Source]| {
        let mut choice = Choice::default();
        choice.take(vec![meter(source, &[kind])], vec![vec![moved(1.0)]]);
        choice.rejected.push(Rejected::new(Source::Msr, "closed").with_repair("open it"));
        choice.finish(asked)
    };
    let by_pmu = finish(Source::PowerPmu, DomainKind::Package, &[]);
    assert!(by_pmu.measures_cpus() && by_pmu.warnings.is_empty() && by_pmu.rejected[0].repair.is_none());
    assert_eq!((by_pmu.meters.len(), by_pmu.domains.len()), (1, 1));
    let by_battery = finish(Source::Battery, DomainKind::Battery, &[]);
    assert_eq!(by_battery.warnings.len(), 1, "{:?}", by_battery.warnings);
    assert_eq!(by_battery.rejected[0].repair.as_deref(), Some("open it"));
    // Who asked for it is told why it is not there, and for what is there nothing.
    let asked =
        finish(Source::PowerPmu, DomainKind::Package, &[Source::PowerPmu, Source::Msr, Source::Hwmon]);
    assert_eq!(asked.unmet.len(), 2, "{:?}", asked.unmet);
    assert!(
        asked.unmet[0].contains("closed") && asked.unmet[1].contains("no such meter"),
        "{:?}",
        asked.unmet
    );
    assert!(asked.check().is_ok(), "something is measured");
}

#[test]
fn registers_are_read_where_the_kernel_offers_no_counters_of_them() {
    let is_msr = |source: &String| *source == Source::Msr.to_string();
    let asks = |discovery: &Discovery| {
        let rejected = discovery.rejected.iter().map(|rejected| &rejected.source);
        rejected.chain(discovery.domains.iter().map(|domain| &domain.source)).any(is_msr)
    };
    let offers = |line: &&str| line.contains("devices/power") || line.contains("powercap");
    let without: String =
        SERVER.lines().filter(|line| !offers(line)).map(|line| format!("{line}\n")).collect();
    // Even where this user may not read them: the same counters are closed then, too.
    assert!(!asks(&discovered(SERVER, 1000)) && asks(&discovered(&without, 1000)));
}
