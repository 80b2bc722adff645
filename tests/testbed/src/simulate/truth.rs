//! What a simulation knows and a profiler has to find out.

use super::scenario::Scenario;
use super::schedule::Segment;
use eprof::units::{Joules, Nanoseconds, Timestamp};

/// The true energies of a simulation. Domains are in the order of the recording: those of package 0,
/// then those of package 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// Energy domains of one package.
    pub domains_per_package: usize,
    /// What the recorded program's functions did, in the order of [`Scenario::functions`].
    pub functions: Vec<FunctionTruth>,
    /// Energy whatever runs, by domain.
    pub static_energy: Vec<Joules>,
    /// Dynamic energy of tasks that are not recorded, by domain.
    pub others: Vec<Joules>,
    /// Dynamic energy by CPU, each with the domains of its package.
    pub by_cpu: Vec<Vec<Joules>>,
    /// Energy since the start by domain: points in order of time, one for each move of the counters.
    pub energy: Vec<Vec<(Timestamp, Joules)>>,
    /// Length of the recording.
    pub duration: Nanoseconds,
}

/// What one function of the recorded program did.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionTruth {
    /// Its name.
    pub name: String,
    /// Dynamic energy by domain.
    pub joules: Vec<Joules>,
    /// CPU time.
    pub cpu_time: Nanoseconds,
}

impl Truth {
    /// Nothing has happened yet.
    pub(super) fn new(scenario: &Scenario) -> Self {
        let domains_per_package = scenario.domains.len();
        let none = vec![Joules::ZERO; domains_per_package * scenario.packages as usize];
        Self {
            domains_per_package,
            functions: scenario
                .functions
                .iter()
                .map(|function| FunctionTruth {
                    name: function.name.clone(),
                    joules: none.clone(),
                    cpu_time: Nanoseconds::ZERO,
                })
                .collect(),
            static_energy: Vec::new(),
            others: none,
            by_cpu: vec![vec![Joules::ZERO; domains_per_package]; scenario.cpus() as usize],
            energy: Vec::new(),
            duration: scenario.duration,
        }
    }

    /// A CPU of `package` did this.
    pub(super) fn add(&mut self, scenario: &Scenario, cpu: usize, recorded: bool, segment: &Segment) {
        let span = Nanoseconds::from_nanos(segment.end - segment.start);
        let package = cpu / scenario.cores_per_package as usize;
        let first = package * self.domains_per_package;
        for (domain, watts) in scenario.functions[segment.function].watts.iter().enumerate() {
            let joules = Joules::from_joules(watts * segment.power * span.as_secs_f64());
            self.by_cpu[cpu][domain] += joules;
            if recorded {
                self.functions[segment.function].joules[first + domain] += joules;
            } else {
                self.others[first + domain] += joules;
            }
        }
        if recorded {
            self.functions[segment.function].cpu_time += span;
        }
    }

    /// All energy of a domain: static, others', and that of the functions.
    pub fn total(&self, domain: usize) -> Joules {
        let functions: Joules = self.functions.iter().map(|function| function.joules[domain]).sum();
        self.static_energy[domain] + self.others[domain] + functions
    }

    /// The energy of a domain from the start to `time`: exact where the counter moved, linear between.
    pub fn energy_at(&self, domain: usize, time: Timestamp) -> Joules {
        let curve = &self.energy[domain];
        let after = curve.partition_point(|(point, _)| *point < time);
        match (after.checked_sub(1).map(|before| curve[before]), curve.get(after).copied()) {
            (None, None) => Joules::ZERO,
            (None, Some((_, energy))) | (Some((_, energy)), None) => energy,
            (Some((t0, e0)), Some((t1, e1))) => {
                let share = time.since(t0).as_nanos() as f64 / t1.since(t0).as_nanos() as f64;
                e0 + (e1 - e0) * share
            }
        }
    }
}
