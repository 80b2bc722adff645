//! Energy counters that move about every millisecond, and someone who reads them.

use super::emit::at;
use super::scenario::Scenario;
use super::schedule::Segment;
use eprof::numerics::random::Random;
use eprof::recording::energy::EnergyReading;
use eprof::units::{Joules, Nanoseconds, Timestamp};

/// How exact the time of a reading is.
const UNCERTAINTY: u64 = 2_000;

/// The counters of all packages.
pub struct Meters<'s> {
    scenario: &'s Scenario,
    packages: Vec<Package>,
    /// Time of the next reading of all packages.
    next_reading: u64,
    random: Random,
}

struct Package {
    /// Power now, by domain, without static power; and as the meters see it.
    watts: Vec<f64>,
    metered: Vec<f64>,
    /// Static power now, as a share of the domains'.
    static_share: f64,
    /// True energy, by domain; how much of it is static; and as the meters see it.
    energy: Vec<f64>,
    static_energy: Vec<f64>,
    seen: Vec<f64>,
    /// What the counters show: energy in steps as of the last move.
    shown: Vec<u64>,
    /// The first reading, which counts as zero.
    first: Option<Vec<u64>>,
    /// Up to when `energy` is right.
    now: u64,
    /// True energy at each move, by domain.
    curves: Vec<Vec<(Timestamp, Joules)>>,
    /// Number of moves so far, and the time of the next.
    moves: u64,
    next_move: u64,
}

/// What changes the power of a package.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// A function begins, or ends, so many times.
    Function(usize, f64),
    /// Static power is this share of what it was at first, from now on.
    Static(f64),
}

/// Adds `times` what is in `more`.
fn add(to: &mut [f64], more: &[f64], times: f64) {
    for (to, more) in to.iter_mut().zip(more) {
        *to += times * more;
    }
}

/// A reading of one domain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// Nanoseconds since the start.
    pub time: u64,
    /// Index of the domain in the recording.
    pub domain: usize,
    /// What is written.
    pub reading: EnergyReading,
}

impl<'s> Meters<'s> {
    /// Counters at zero, at the start.
    pub fn new(scenario: &'s Scenario, random: Random) -> Self {
        let domains = scenario.domains.len();
        let package = |_| Package {
            watts: vec![0.0; domains],
            metered: vec![0.0; domains],
            static_share: scenario.effects.static_share(scenario, 0),
            energy: vec![0.0; domains],
            static_energy: vec![0.0; domains],
            seen: vec![0.0; domains],
            shown: vec![0; domains],
            first: None,
            curves: vec![Vec::new(); domains],
            now: 0,
            moves: 0,
            next_move: 0,
        };
        Self { scenario, packages: (0..scenario.packages).map(package).collect(), next_reading: 0, random }
    }

    /// Moves on from `from` to `to` while the CPUs do what their segments say; returns the readings taken, in order.
    /// The last reading is taken exactly at the end of the recording.
    pub fn advance(&mut self, by_cpu: &[Vec<Segment>], from: u64, to: u64) -> Vec<Reading> {
        let changes = self.changes(by_cpu, from, to);
        let mut readings = Vec::new();
        let mut applied = vec![0; self.packages.len()];
        let end = self.scenario.duration.as_nanos();
        while self.next_reading < to || (to == end && self.next_reading == end) {
            let time = self.next_reading;
            for package in 0..self.packages.len() {
                self.advance_package(package, time, &changes[package], &mut applied[package]);
                self.read(package, time, &mut readings);
            }
            let later = self.scenario.meter.interval_jitter.as_nanos() as f64 * self.random.uniform();
            let next = time + self.scenario.meter.interval.as_nanos() + later as u64;
            self.next_reading = if time < end { next.min(end) } else { u64::MAX };
        }
        for package in 0..self.packages.len() {
            self.advance_package(package, to, &changes[package], &mut applied[package]);
        }
        readings
    }

    /// The true energy of every domain of the recording, as curves, and how much of it is static.
    pub fn into_true_energy(self) -> (Vec<Vec<(Timestamp, Joules)>>, Vec<Joules>) {
        let (mut curves, mut of_static) = (Vec::new(), Vec::new());
        for mut package in self.packages {
            package.note(package.now);
            curves.append(&mut package.curves);
            of_static.extend(package.static_energy.into_iter().map(Joules::from_joules));
        }
        (curves, of_static)
    }

    /// When power changes, by package.
    fn changes(&self, by_cpu: &[Vec<Segment>], from: u64, to: u64) -> Vec<Vec<(u64, Change)>> {
        let steps = self.scenario.effects.static_steps(self.scenario, from, to);
        let steps: Vec<_> = steps.into_iter().map(|(time, share)| (time, Change::Static(share))).collect();
        let mut changes = vec![steps; self.packages.len()];
        for (cpu, segments) in by_cpu.iter().enumerate() {
            let package = cpu / self.scenario.cores_per_package as usize;
            for segment in segments {
                let of = |sign: f64| Change::Function(segment.function, sign * segment.power);
                changes[package].push((segment.start, of(1.0)));
                changes[package].push((segment.end, of(-1.0)));
            }
        }
        for changes in &mut changes {
            changes.sort_by_key(|(time, ..)| *time);
        }
        changes
    }

    fn advance_package(&mut self, package: usize, to: u64, changes: &[(u64, Change)], applied: &mut usize) {
        let meter = &self.scenario.meter;
        let state = &mut self.packages[package];
        loop {
            let change = changes.get(*applied).map_or(u64::MAX, |(time, ..)| *time);
            let next = change.min(state.next_move);
            if next > to {
                break;
            }
            state.integrate(self.scenario, next);
            if next == change {
                match changes[*applied].1 {
                    Change::Static(share) => state.static_share = share,
                    Change::Function(function, times) => {
                        let function = &self.scenario.functions[function];
                        add(&mut state.watts, &function.watts, times);
                        add(&mut state.metered, function.metered(), times);
                    }
                }
                *applied += 1;
            } else {
                let is_missed = meter.missed_moves > 0.0 && self.random.uniform() < meter.missed_moves;
                for (shown, energy) in state.shown.iter_mut().zip(&state.seen).filter(|_| !is_missed) {
                    *shown = (energy / meter.resolution.as_joules()) as u64;
                }
                state.note(next);
                state.moves += 1;
                let regular = (state.moves * meter.refresh.as_nanos()) as f64;
                let jitter = meter.refresh_jitter.as_nanos() as f64 * self.random.symmetric();
                state.next_move = ((regular + jitter).max(0.0) as u64).max(next + 1);
            }
        }
        state.integrate(self.scenario, to);
    }

    fn read(&mut self, package: usize, time: u64, readings: &mut Vec<Reading>) {
        let state = &mut self.packages[package];
        let shown = state.shown.clone();
        let first = state.first.get_or_insert_with(|| shown.clone());
        for (domain, (shown, first)) in shown.iter().zip(first.iter()).enumerate() {
            let steps = (shown - first) as f64;
            readings.push(Reading {
                time,
                domain: package * self.scenario.domains.len() + domain,
                reading: EnergyReading {
                    energy: Joules::from_joules(steps * self.scenario.meter.resolution.as_joules()),
                    raw: *shown,
                    uncertainty: Nanoseconds::from_nanos(UNCERTAINTY),
                },
            });
        }
    }
}

impl Package {
    fn integrate(&mut self, scenario: &Scenario, to: u64) {
        let seconds = to.saturating_sub(self.now) as f64 * 1e-9;
        for (index, domain) in scenario.domains.iter().enumerate() {
            let of_static = domain.static_power.as_watts() * self.static_share * seconds;
            self.static_energy[index] += of_static;
            self.energy[index] += of_static + self.watts[index] * seconds;
            self.seen[index] += of_static + self.metered[index] * seconds;
        }
        self.now = self.now.max(to);
    }

    /// Adds a point to the curves.
    fn note(&mut self, time: u64) {
        for (curve, energy) in self.curves.iter_mut().zip(&self.energy) {
            curve.push((at(time), Joules::from_joules(*energy)));
        }
    }
}
