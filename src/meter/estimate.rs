//! No meter: joules from CPU time and assumed watts, labelled as an estimate.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use super::domain::{self, Place};
use super::source::{Candidate, Source};
use super::watch::Observation;
use super::{CounterReading, EnergyMeter, Pace};
use crate::hardware::{CoreKind, CpuInfo, DomainInfo, DomainKind, MachineInfo, Method};
use crate::machine::roots::Roots;
use crate::machine::topology::{CpuGroups, is_x86};
use crate::units::{Joules, Nanoseconds, Watts};

/// Ticks per second of `/proc/stat`, USER_HZ: 100 on every architecture that Linux still runs on.
const TICKS_PER_SECOND: u64 = 100;

/// What all CPUs together are assumed to take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AssumedWatts {
    /// With every CPU idle.
    pub idle: Watts,
    /// With every CPU busy.
    pub busy: Watts,
}

impl AssumedWatts {
    /// Reads the user's `IDLE:BUSY`, in watts for the whole machine.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = || {
            format!("'{text}' is not IDLE:BUSY, the machine's watts when idle and when busy, such as 20:95")
        };
        let (idle, busy) = text.split_once(':').ok_or_else(form)?;
        let watts = |text: &str| {
            let watts: f64 = text.trim().parse().map_err(|_| form())?;
            if watts.is_finite() && watts >= 0.0 { Ok(watts) } else { Err(form()) }
        };
        let (idle, busy) = (watts(idle)?, watts(busy)?);
        if busy < idle || busy == 0.0 {
            return Err(format!("'{text}': a busy machine cannot take less than an idle one, nor nothing"));
        }
        Ok(Self { idle: Watts::from_watts(idle), busy: Watts::from_watts(busy) })
    }

    /// Watts typical of such a machine, and where they come from.
    pub fn typical(machine: &MachineInfo) -> (Self, &'static str) {
        let mut total = Self { idle: Watts::ZERO, busy: Watts::ZERO };
        let mut reason = "";
        for core in machine.first_of_each_core() {
            let class = Class::of(machine, core);
            let threads =
                machine.cpus.iter().filter(|cpu| (cpu.package, cpu.core) == (core.package, core.core));
            let (idle, busy) = class.watts(threads.count());
            total.idle += Watts::from_watts(idle);
            total.busy += Watts::from_watts(busy);
            if reason.is_empty() {
                reason = class.reason();
            }
        }
        (total, reason)
    }
}

/// Kinds of core that differ in what they take by more than the guess is good for anyway.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    X86,
    X86Small,
    ArmServer,
    ArmBoard,
}

impl Class {
    fn of(machine: &MachineInfo, core: CpuInfo) -> Self {
        let name = machine.microarchitecture.as_deref().unwrap_or_default();
        let is_server = name.starts_with("neoverse") || name.starts_with("ampere") || name == "thunderx2";
        if is_x86(machine) {
            if core.kind == CoreKind::Efficiency { Self::X86Small } else { Self::X86 }
        } else if is_server {
            Self::ArmServer
        } else {
            Self::ArmBoard
        }
    }

    /// Idle and busy watts of a core with its share of the package.
    fn watts(self, threads: usize) -> (f64, f64) {
        match self {
            // Per hardware thread 0.74 W idle and 3.5 W busy.
            Self::X86 => (0.74 * threads as f64, 3.5 * threads as f64),
            Self::X86Small => (0.5, 2.5),
            Self::ArmServer => (0.7, 2.6),
            Self::ArmBoard => (0.68, 1.6),
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::X86 => {
                "0.74 W idle and 3.5 W busy per hardware thread, the averages that the Cloud Carbon Footprint \
                 methodology takes from the SPECpower results of servers of 2012 to 2020"
            }
            Self::X86Small => "0.5 W idle and 2.5 W busy per small core, a quarter of a 10 W module of four",
            Self::ArmServer => "0.7 W idle and 2.6 W busy per core, from an 80-core Ampere Altra's 210 W",
            Self::ArmBoard => {
                "0.68 W idle and 1.6 W busy per core, from a Raspberry Pi 4's 2.7 W idle and 6.4 W with four busy cores"
            }
        }
    }
}

/// Estimates by package: idle watts all the time, and the rest as the package's CPUs are busy.
pub(super) struct Estimate {
    stat: PathBuf,
    domains: Vec<DomainInfo>,
    parts: Vec<Part>,
    started: Instant,
    busy_at_start: BTreeMap<u32, u64>,
}

struct Part {
    cpus: Vec<u32>,
    idle: Watts,
    /// What one busy CPU adds.
    per_busy_cpu: Watts,
    highest: Joules,
}

impl Estimate {
    /// Starts to estimate.
    ///
    /// # Errors
    /// If `/proc/stat` cannot be read.
    pub fn start(roots: &Roots, machine: &MachineInfo, watts: AssumedWatts) -> io::Result<Self> {
        let stat = roots.procfs.join("stat");
        let busy_at_start = parse_busy_ticks(&fs::read_to_string(&stat)?);
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
            parts.push(Part { cpus, idle, per_busy_cpu, highest: Joules::ZERO });
        }
        Ok(Self { stat, domains, parts, started: Instant::now(), busy_at_start })
    }
}

impl EnergyMeter for Estimate {
    fn domains(&self) -> &[DomainInfo] {
        &self.domains
    }

    fn read(&mut self, readings: &mut Vec<Option<CounterReading>>) -> io::Result<()> {
        let busy = parse_busy_ticks(&fs::read_to_string(&self.stat)?);
        let elapsed = Nanoseconds::from_nanos(self.started.elapsed().as_nanos() as u64);
        readings.clear();
        for part in &mut self.parts {
            let ticks = |cpu: &u32| {
                let start = self.busy_at_start.get(cpu).or(busy.get(cpu)).copied().unwrap_or(0);
                busy.get(cpu).copied().unwrap_or(start).saturating_sub(start)
            };
            let ticks: u64 = part.cpus.iter().map(ticks).sum();
            let energy = energy(part, elapsed, ticks);
            // A CPU that goes offline takes its ticks along; energy that was spent stays spent.
            part.highest = part.highest.max(energy);
            readings.push(Some(CounterReading { energy: part.highest, raw: ticks }));
        }
        Ok(())
    }

    fn pace(&self) -> Pace {
        Pace { shortest: Nanoseconds::from_millis(10), longest: Nanoseconds::from_millis(60_000) }
    }
}

fn energy(part: &Part, elapsed: Nanoseconds, busy_ticks: u64) -> Joules {
    let busy = Nanoseconds::from_nanos(busy_ticks.saturating_mul(1_000_000_000 / TICKS_PER_SECOND));
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
    use crate::machine::fixture::FixtureMachine;

    fn machine(arch: &str, cpus: u32) -> MachineInfo {
        let cpu = |n| CpuInfo { cpu: n, core: n / 2, die: 0, package: 0, kind: CoreKind::Performance };
        MachineInfo { arch: arch.to_owned(), cpus: (0..cpus).map(cpu).collect(), ..MachineInfo::default() }
    }

    #[test]
    fn busy_ticks_by_hand() {
        let stat = "cpu  9 9 9 9\ncpu0 100 1 20 5000 30 4 5 600 0 0\ncpu1 1 1 1\nintr 5\n";
        assert_eq!(parse_busy_ticks(stat), BTreeMap::from([(0, 130), (1, 3)]));
    }

    #[test]
    fn watts_from_the_user() {
        let watts = AssumedWatts::parse("10:95.5").expect("valid");
        assert_eq!((watts.idle, watts.busy), (Watts::from_watts(10.0), Watts::from_watts(95.5)));
        for text in ["10", "a:b", "20:10", "-1:5", "0:0", "nan:5", "5:inf"] {
            assert!(AssumedWatts::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn typical_watts_grow_with_the_machine() {
        let (four, reason) = AssumedWatts::typical(&machine("x86_64", 4));
        assert!((four.idle.as_watts() - 2.96).abs() < 1e-9 && (four.busy.as_watts() - 14.0).abs() < 1e-9);
        assert!(reason.contains("SPECpower"));
        let (board, _) = AssumedWatts::typical(&MachineInfo {
            microarchitecture: Some("cortex-a72".to_owned()),
            cpus: (0..4)
                .map(|n| CpuInfo { cpu: n, core: n, die: 0, package: 0, kind: CoreKind::Performance })
                .collect(),
            ..machine("aarch64", 0)
        });
        assert!((board.idle.as_watts() - 2.72).abs() < 1e-9 && (board.busy.as_watts() - 6.4).abs() < 1e-9);
    }

    #[test]
    fn idle_all_the_time_and_busy_as_the_cpus_are() {
        let part = Part {
            cpus: vec![0, 1],
            idle: Watts::from_watts(10.0),
            per_busy_cpu: Watts::from_watts(20.0),
            highest: Joules::ZERO,
        };
        // Two seconds, in which one CPU was busy for one: 20 J and 20 J.
        let joules = energy(&part, Nanoseconds::from_millis(2000), 100);
        assert!((joules.as_joules() - 40.0).abs() < 1e-9);
    }

    #[test]
    fn an_estimate_says_so_and_never_decreases() {
        let files = FixtureMachine::new("proc/stat <<end\ncpu0 100 0 0 0 0 0 0 0 0 0\nend");
        let watts = AssumedWatts::parse("0:50").expect("valid");
        let mut meter =
            Estimate::start(&Roots::under(files.path()), &machine("x86_64", 2), watts).expect("started");
        assert_eq!(meter.domains()[0].method, Method::Estimated);
        let mut joules = |ticks: u32| {
            files.write("proc/stat", &format!("cpu0 {ticks} 0 0 0 0 0 0 0 0 0\n"));
            let mut readings = Vec::new();
            meter.read(&mut readings).expect("readable");
            readings[0].expect("a reading").energy.as_joules()
        };
        assert!((joules(300) - 50.0).abs() < 1e-9, "two seconds of one CPU of two");
        assert!((joules(200) - 50.0).abs() < 1e-9);
    }
}
