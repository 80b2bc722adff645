//! No meter: joules from CPU time and assumed watts, labelled as an estimate.

use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

use super::assumed_watts::AssumedWatts;
use super::domain::{self, Place};
use super::finding::{Candidate, Finding, Needs, Search, Site};
use super::rejected::Rejected;
use super::source::Source;
use super::watch::Observation;
use super::{CounterReading, EnergyMeter, Pace};
use crate::hardware::{DomainInfo, DomainKind, MachineInfo, Method, TYPICAL_WATTS_ERROR};
use crate::machine::cpu_lines::CpuLines;
use crate::machine::roots::Roots;
use crate::machine::topology::CpuGroups;
use crate::units::{Joules, Nanoseconds, Watts};

/// Ticks per second of `/proc/stat`, USER_HZ: 100 on every architecture that Linux still runs on.
const TICKS_PER_SECOND: u64 = 100;

/// Estimates by package: idle watts all the time, and the rest as the package's CPUs are busy.
pub(super) struct Estimate {
    stat: CpuLines,
    domains: Vec<DomainInfo>,
    parts: Vec<Part>,
    started: Instant,
    busy: BusyTime,
}

struct Part {
    cpus: Vec<u32>,
    idle: Watts,
    /// What one busy CPU adds.
    per_busy_cpu: Watts,
}

/// How long each CPU was busy. The kernel counts in steps of a tick, and no CPU is busy for longer than time has passed:
/// what a step has too much is given to the time after it. Else a short recording would have more watts than the machine.
#[derive(Default)]
struct BusyTime {
    until: Nanoseconds,
    cpus: BTreeMap<u32, BusyCpu>,
}

struct BusyCpu {
    /// Ticks when it was seen first.
    start: u64,
    given: Nanoseconds,
}

impl BusyTime {
    /// The ticks of each CPU so long after the start.
    fn advance(&mut self, elapsed: Nanoseconds, ticks: &BTreeMap<u32, u64>) {
        let passed = elapsed.as_nanos().saturating_sub(self.until.as_nanos());
        self.until = elapsed;
        for (cpu, &ticks) in ticks {
            let cpu = self.cpus.entry(*cpu).or_insert(BusyCpu { start: ticks, given: Nanoseconds::ZERO });
            let counted = ticks.saturating_sub(cpu.start).saturating_mul(1_000_000_000 / TICKS_PER_SECOND);
            let due = counted.saturating_sub(cpu.given.as_nanos());
            cpu.given += Nanoseconds::from_nanos(due.min(passed));
        }
    }

    /// Of these CPUs together, never less than before.
    fn of(&self, cpus: &[u32]) -> Nanoseconds {
        cpus.iter().filter_map(|cpu| self.cpus.get(cpu)).map(|cpu| cpu.given).sum()
    }
}

impl Estimate {
    /// Starts to estimate.
    ///
    /// # Errors
    /// If `/proc/stat` cannot be read.
    pub fn start(roots: &Roots, machine: &MachineInfo, watts: AssumedWatts) -> io::Result<Self> {
        let mut stat = CpuLines::open(&roots.procfs.join("stat"))?;
        let mut busy = BusyTime::default();
        busy.advance(Nanoseconds::ZERO, &parse_busy_ticks(stat.read()?));
        let share = 1.0 / machine.cpus.len().max(1) as f64;
        let (mut domains, mut parts) = (Vec::new(), Vec::new());
        for package in machine.packages() {
            let cpus = machine.package_cpus(package);
            let idle = watts.idle * (share * cpus.len() as f64);
            let per_busy_cpu = (watts.busy - watts.idle) * share;
            domains.push(DomainInfo {
                method: Method::Estimated,
                static_power: Some(idle),
                resolution: Some(per_busy_cpu * Nanoseconds::from_nanos(1_000_000_000 / TICKS_PER_SECOND)),
                refresh: Some(Nanoseconds::from_nanos(1_000_000_000 / TICKS_PER_SECOND)),
                ..domain::describe(
                    machine,
                    DomainKind::Package,
                    Place::package(package),
                    &Source::Estimate.to_string(),
                )
            });
            parts.push(Part { cpus, idle, per_busy_cpu });
        }
        Ok(Self { stat, domains, parts, started: Instant::now(), busy })
    }
}

/// The estimate, by the user's watts or by typical ones.
pub(super) fn find(site: &Site<'_>) -> Search {
    let (assumed, reason) = match site.options.watts {
        Some(watts) => (watts, "as told by --watts"),
        None => AssumedWatts::typical(site.machine),
    };
    match Estimate::start(site.roots, site.machine, assumed) {
        Ok(mut estimate) => {
            let error = if site.options.watts.is_some() { 0.0 } else { TYPICAL_WATTS_ERROR };
            estimate.domains.iter_mut().for_each(|domain| domain.watts_error = Some(error));
            Search {
                warnings: vec![format!(
                    "no energy meter for the CPUs: joules are estimated from CPU time, {} idle to {} busy ({reason})",
                    assumed.idle, assumed.busy
                )],
                ..Search::of(estimate, Vec::new())
            }
        }
        Err(error) => {
            let why = format!("{} cannot be read: {error}", site.roots.procfs.join("stat").display());
            Search::rejecting(Rejected::new(Source::Estimate, why))
        }
    }
}

impl Finding for Estimate {
    fn source(&self) -> Source {
        Source::Estimate
    }

    fn domains(&self) -> &[DomainInfo] {
        &self.domains
    }

    fn needs(&self) -> Needs {
        Needs::IsOpen
    }

    fn open(self: Box<Self>, _rejected: &mut Vec<Rejected>) -> Option<Box<dyn Candidate>> {
        Some(self)
    }
}

impl EnergyMeter for Estimate {
    fn domains(&self) -> &[DomainInfo] {
        &self.domains
    }

    fn read(&mut self, readings: &mut Vec<Option<CounterReading>>) -> io::Result<()> {
        let ticks = parse_busy_ticks(self.stat.read()?);
        let elapsed = Nanoseconds::from_nanos(self.started.elapsed().as_nanos() as u64);
        self.busy.advance(elapsed, &ticks);
        readings.clear();
        readings.extend(self.parts.iter().map(|part| {
            let busy = self.busy.of(&part.cpus);
            Some(CounterReading { energy: energy(part, elapsed, busy), raw: busy.as_nanos() })
        }));
        Ok(())
    }

    fn pace(&self) -> Pace {
        Pace { shortest: Nanoseconds::from_millis(10), longest: Nanoseconds::from_millis(60_000) }
    }
}

fn energy(part: &Part, elapsed: Nanoseconds, busy: Nanoseconds) -> Joules {
    part.idle * elapsed + part.per_busy_cpu * busy
}

impl Candidate for Estimate {
    fn source(&self) -> Source {
        Source::Estimate
    }

    fn retain(&mut self, keep: &mut dyn FnMut(&DomainInfo) -> bool) {
        let kept: Vec<bool> = self.domains.iter().map(&mut *keep).collect();
        let mut of_domains = kept.iter();
        self.domains.retain(|_| of_domains.next().copied().unwrap_or(true));
        let mut of_parts = kept.iter();
        self.parts.retain(|_| of_parts.next().copied().unwrap_or(true));
    }

    fn domains_mut(&mut self) -> &mut [DomainInfo] {
        &mut self.domains
    }

    fn learn(&mut self, _domain: usize, _seen: &Observation) {}

    fn is_proven(&self) -> bool {
        true
    }

    fn counts_since_boot(&self) -> bool {
        false
    }
}

/// Per CPU, the ticks it was not idle: user, nice, system, irq and softirq. Time stolen by a
/// hypervisor was spent by others; a guest's time is already within user.
fn parse_busy_ticks(stat: &str) -> BTreeMap<u32, u64> {
    stat.lines()
        .filter_map(|line| {
            let mut fields = line.strip_prefix("cpu")?.split(' ');
            let cpu = fields.next()?.parse().ok()?;
            let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
            let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
            Some((cpu, [0, 1, 2, 5, 6].map(at).into_iter().fold(0, u64::saturating_add)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::{CoreKind, CpuInfo};
    use crate::machine::fixture::FixtureMachine;

    fn machine(arch: &str, cpus: u32) -> MachineInfo {
        let cpu = |n| CpuInfo { cpu: n, core: n / 2, die: 0, package: 0, kind: CoreKind::Performance };
        MachineInfo { arch: arch.to_owned(), cpus: (0..cpus).map(cpu).collect(), ..MachineInfo::default() }
    }

    #[test]
    fn domains_that_are_not_kept_take_their_parts_along() {
        let files = FixtureMachine::new("proc/stat <<end\ncpu0 100 0 0 0 0 0 0 0 0 0\nend");
        let mut two = machine("x86_64", 4);
        two.cpus.iter_mut().skip(2).for_each(|cpu| cpu.package = 1);
        let watts = AssumedWatts::parse("10:50").expect("valid");
        let mut meter = Estimate::start(&Roots::under(files.path()), &two, watts).expect("started");
        assert_eq!((meter.domains.len(), meter.parts.len()), (2, 2));
        let second = meter.domains[1].name.clone();
        meter.retain(&mut |domain| domain.name == second);
        assert_eq!((meter.domains.len(), &meter.parts[0].cpus), (1, &vec![2, 3]));
        assert!(!meter.counts_since_boot() && meter.is_proven());
        assert_eq!(EnergyMeter::pace(&meter).shortest, Nanoseconds::from_millis(10));
    }

    #[test]
    fn busy_ticks_by_hand() {
        let stat = "cpu  9 9 9 9\ncpu0 100 1 20 5000 30 4 5 600 0 0\ncpu1 1 1 1\nintr 5\n";
        assert_eq!(parse_busy_ticks(stat), BTreeMap::from([(0, 130), (1, 3)]));
    }

    #[test]
    fn idle_all_the_time_and_busy_as_the_cpus_are() {
        let part =
            Part { cpus: vec![0, 1], idle: Watts::from_watts(10.0), per_busy_cpu: Watts::from_watts(20.0) };
        // Two seconds, in which one CPU was busy for one: 20 J and 20 J.
        let joules = energy(&part, Nanoseconds::from_millis(2000), Nanoseconds::from_millis(1000));
        assert!((joules.as_joules() - 40.0).abs() < 1e-9);
    }

    #[test]
    fn no_cpu_is_busy_for_longer_than_time_has_passed() {
        let mut busy = BusyTime::default();
        let mut at = |millis: u64, ticks: &[(u32, u64)]| {
            busy.advance(Nanoseconds::from_millis(millis), &ticks.iter().copied().collect());
            busy.of(&[0, 1]).as_nanos() / 1_000_000
        };
        assert_eq!(at(0, &[(0, 70), (1, 500)]), 0);
        // A tick of 10 ms comes after 4 ms: 4 ms now, and the rest when there is time for it.
        assert_eq!(at(4, &[(0, 71), (1, 500)]), 4);
        assert_eq!(at(6, &[(0, 71), (1, 500)]), 6);
        assert_eq!(at(100, &[(0, 71), (1, 500)]), 10, "it was idle since");
        assert_eq!(at(110, &[(0, 72), (1, 501)]), 30);
        // A CPU that goes offline takes its ticks along; what was spent stays spent. One that comes begins anew.
        assert_eq!(at(200, &[(1, 3)]), 30);
        assert_eq!(at(300, &[(0, 1), (1, 502)]), 40);
    }

    #[test]
    fn an_estimate_says_so_and_never_decreases() {
        let files = FixtureMachine::new("proc/stat <<end\ncpu0 100 0 0 0 0 0 0 0 0 0\nend");
        let watts = AssumedWatts::parse("0:50").expect("valid");
        let mut meter =
            Estimate::start(&Roots::under(files.path()), &machine("x86_64", 2), watts).expect("started");
        assert_eq!(EnergyMeter::domains(&meter)[0].method, Method::Estimated);
        // The meter has been open for as long as the CPUs were busy.
        meter.started -= std::time::Duration::from_secs(2);
        let mut joules = |ticks: u32| {
            files.write("proc/stat", &format!("cpu0 {ticks} 0 0 0 0 0 0 0 0 0\n"));
            let mut readings = Vec::new();
            meter.read(&mut readings).expect("readable");
            readings[0].expect("a reading").energy.as_joules()
        };
        assert!((joules(300) - 50.0).abs() < 1e-9, "two seconds of one CPU of two");
        assert!((joules(200) - 50.0).abs() < 1e-9);
    }
    /// 10 W idle and 50 W busy, of a machine of four CPUs of which three are in the first package.
    #[test]
    fn packages_share_the_watts_by_their_cpus() {
        let files = FixtureMachine::new("proc/stat <<end\ncpu0 100 0 0 0 0 0 0 0 0 0\nend");
        let mut two = machine("x86_64", 4);
        two.cpus.iter_mut().skip(3).for_each(|cpu| cpu.package = 1);
        let watts = AssumedWatts::parse("10:50").expect("valid");
        let meter = Estimate::start(&Roots::under(files.path()), &two, watts).expect("started");
        let told: Vec<_> = meter
            .domains
            .iter()
            .map(|domain| (domain.static_power, domain.resolution, domain.refresh, domain.package))
            .collect();
        let refresh = Some(Nanoseconds::from_millis(10));
        // A busy CPU adds 10 W, of which a tick is 0.1 J.
        let of = |idle, package| {
            (Some(Watts::from_watts(idle)), Some(Joules::from_joules(0.1)), refresh, Some(package))
        };
        assert_eq!(told, [of(7.5, 0), of(2.5, 1)]);
        let parts: Vec<_> =
            meter.parts.iter().map(|part| (part.cpus.as_slice(), part.idle, part.per_busy_cpu)).collect();
        let busy = Watts::from_watts(10.0);
        assert_eq!(
            parts,
            [(&[0, 1, 2][..], Watts::from_watts(7.5), busy), (&[3][..], Watts::from_watts(2.5), busy)]
        );
    }
}
