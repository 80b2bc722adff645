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
