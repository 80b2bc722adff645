//! What real machines do that no linear model of events says: power that data decides, cores that change their frequency,
//! threads that share a core, static power that warms up, idle states.
//!
//! Each effect is a function of time and of the scenario's seed alone, so that meters, counters and the truth see the same.

use eprof::numerics::random::Random;
use eprof::units::Nanoseconds;

use super::scenario::Scenario;
use super::schedule::Segment;

/// What happens beside the functions. Nothing, by default: power follows from the function that runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effects {
    /// The same code draws more or less.
    pub data: Option<DataDependence>,
    /// Cores or packages change their frequency.
    pub frequency: Option<Frequencies>,
    /// CPUs 2k and 2k + 1 are threads of one core.
    pub siblings: Option<Siblings>,
    /// Static power grows while the machine warms up.
    pub warming: Option<Warming>,
    /// The program waits, and the package sleeps.
    pub pauses: Option<Pauses>,
    /// Functions wait part of the time.
    pub waits: Option<Waits>,
}

/// Dynamic power of a CPU, times 1 - `swing` to 1 + `swing`, drawn anew every `hold`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataDependence {
    /// Share of the power.
    pub swing: f64,
    /// Time between two draws.
    pub hold: Nanoseconds,
}

/// Each core, or each package as a whole, draws one of these steps every `hold`.
#[derive(Debug, Clone, PartialEq)]
pub struct Frequencies {
    /// What is drawn from, all as likely.
    pub steps: Vec<FrequencyStep>,
    /// Time between two draws.
    pub hold: Nanoseconds,
    /// All cores of a package together.
    pub by_package: bool,
}

/// Frequency and voltage, as shares of those at which the functions' rates and watts hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FrequencyStep {
    /// Share of the frequency.
    pub frequency: f64,
    /// Share of the voltage.
    pub voltage: f64,
}

impl FrequencyStep {
    /// Dynamic power: C f V^2.
    fn power(self) -> f64 {
        self.frequency * self.voltage * self.voltage
    }
}

/// What each of two threads keeps while the other one runs: of its speed and of its power.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Siblings {
    /// Share of the events per second.
    pub speed: f64,
    /// Share of the watts.
    pub power: f64,
}

/// Static power rises by the share `more`, most of it within `over`: 1 - exp(-t / over) of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Warming {
    /// Share of static power that is added in the end.
    pub more: f64,
    /// Time constant.
    pub over: Nanoseconds,
}

/// In `share` of all stretches of `hold` nothing runs, and static power is `asleep` of what it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pauses {
    /// Share of the stretches.
    pub share: f64,
    /// Time between two draws.
    pub hold: Nanoseconds,
    /// Share of static power that is left in a pause.
    pub asleep: f64,
}

/// A function runs on a CPU for a part of each stretch of `hold` only, and does in it all that it does: events and watts of
/// a scenario hold for the whole stretch.
#[derive(Debug, Clone, PartialEq)]
pub struct Waits {
    /// The share of the time in which a function runs, above 0, in the order of the scenario's functions.
    pub busy: Vec<f64>,
    /// Time between two starts.
    pub hold: Nanoseconds,
}

/// Static power moves in steps of this length.
const STATIC_STEP: u64 = 20_000_000;

/// A number from 0 to 1 for one slot of time of one thing.
fn drawn(scenario: &Scenario, what: u64, thing: u64, slot: u64) -> f64 {
    Random::seeded(scenario.seed).part(what).part(thing).part(slot).uniform()
}

impl Effects {
    /// Whether a pause goes on.
    fn is_paused(&self, scenario: &Scenario, time: u64) -> bool {
        self.pauses.is_some_and(|pauses| drawn(scenario, 70, 0, time / pauses.hold.as_nanos()) < pauses.share)
    }

    /// Static power at a time, as a share of the domain's.
    pub(super) fn static_share(&self, scenario: &Scenario, time: u64) -> f64 {
        let warm = self.warming.map_or(1.0, |warming| {
            1.0 + warming.more * (1.0 - (-(time as f64) / warming.over.as_nanos() as f64).exp())
        });
        let asleep = self.pauses.map_or(1.0, |pauses| pauses.asleep);
        if self.is_paused(scenario, time) { warm * asleep } else { warm }
    }

    /// When static power changes between two times, and the shares from then on.
    pub(super) fn static_steps(&self, scenario: &Scenario, from: u64, to: u64) -> Vec<(u64, f64)> {
        if self.warming.is_none() && self.pauses.is_none() {
            return Vec::new();
        }
        let step = self.pauses.map_or(STATIC_STEP, |pauses| pauses.hold.as_nanos().min(STATIC_STEP));
        let times = (from.div_ceil(step)..).map(|number| number * step).take_while(|time| *time < to);
        times.map(|time| (time, self.static_share(scenario, time))).collect()
    }

    /// What CPUs really do of what they were scheduled to.
    pub(super) fn apply(&self, scenario: &Scenario, mut by_cpu: Vec<Vec<Segment>>) -> Vec<Vec<Segment>> {
        if let Some(pauses) = self.pauses {
            for segments in &mut by_cpu {
                *segments = split(segments, pauses.hold.as_nanos());
                segments.retain(|segment| !self.is_paused(scenario, segment.start));
            }
        }
        if let Some(waits) = &self.waits {
            by_cpu.iter_mut().for_each(|segments| *segments = waiting(segments, waits));
        }
        for (cpu, segments) in by_cpu.iter_mut().enumerate() {
            if let Some(data) = self.data {
                let hold = data.hold.as_nanos();
                *segments = split(segments, hold);
                for segment in segments.iter_mut() {
                    let drawn = drawn(scenario, 71, cpu as u64, segment.start / hold);
                    segment.power *= 1.0 + data.swing * (2.0 * drawn - 1.0);
                }
            }
            if let Some(frequency) = &self.frequency {
                let hold = frequency.hold.as_nanos();
                let thing =
                    if frequency.by_package { cpu / scenario.cores_per_package as usize } else { cpu };
                *segments = split(segments, hold);
                for segment in segments.iter_mut() {
                    let drawn = drawn(scenario, 72, thing as u64, segment.start / hold);
                    let step = frequency.steps[(drawn * frequency.steps.len() as f64) as usize];
                    segment.speed *= step.frequency;
                    segment.power *= step.power();
                }
            }
        }
        if let Some(siblings) = self.siblings {
            for pair in by_cpu.chunks_mut(2) {
                let [one, other] = pair else { continue };
                let shared = (beside(one, other, siblings), beside(other, one, siblings));
                (*one, *other) = shared;
            }
        }
        by_cpu
    }
}

/// Cuts segments at multiples of `hold`.
fn split(segments: &[Segment], hold: u64) -> Vec<Segment> {
    let mut parts = Vec::with_capacity(segments.len());
    for segment in segments {
        let mut rest = *segment;
        while rest.start < rest.end {
            let end = rest.end.min((rest.start / hold + 1) * hold);
            parts.push(Segment { end, ..rest });
            rest.start = end;
        }
    }
    parts
}

/// The segments of functions that wait, faster in the part of each that they run in.
fn waiting(segments: &[Segment], waits: &Waits) -> Vec<Segment> {
    let run = |part: Segment| {
        let busy = waits.busy[part.function].min(1.0);
        let length = ((part.end - part.start) as f64 * busy).ceil().max(1.0);
        let faster = (part.end - part.start) as f64 / length;
        Segment {
            end: part.start + length as u64,
            speed: part.speed * faster,
            power: part.power * faster,
            ..part
        }
    };
    split(segments, waits.hold.as_nanos()).into_iter().map(run).collect()
}

/// The segments of one thread of a core, slower where the other runs.
fn beside(one: &[Segment], other: &[Segment], siblings: Siblings) -> Vec<Segment> {
    let mut parts = Vec::with_capacity(one.len());
    let mut others = other.iter().peekable();
    for segment in one {
        let mut rest = *segment;
        while rest.start < rest.end {
            while others.next_if(|other| other.end <= rest.start).is_some() {}
            let (end, together) = match others.peek() {
                Some(other) if other.start <= rest.start => (rest.end.min(other.end), true),
                Some(other) => (rest.end.min(other.start), false),
                None => (rest.end, false),
            };
            let mut part = Segment { end, ..rest };
            if together {
                part.speed *= siblings.speed;
                part.power *= siblings.power;
            }
            parts.push(part);
            rest.start = end;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_does_as_much_in_less_time() {
        let waits = Waits { busy: vec![1.0, 0.25], hold: Nanoseconds::from_nanos(1000) };
        let segment = |function| Segment { start: 500, end: 4500, task: 0, function, speed: 1.0, power: 2.0 };
        let sum = |segments: &[Segment], of: fn(&Segment) -> f64| {
            segments.iter().map(|part| of(part) * (part.end - part.start) as f64).sum::<f64>()
        };
        for (function, busy) in [(0, 1.0), (1, 0.25)] {
            let parts = waiting(&[segment(function)], &waits);
            assert_eq!(
                parts.iter().map(|part| part.start).collect::<Vec<_>>(),
                [500, 1000, 2000, 3000, 4000]
            );
            assert!((sum(&parts, |_| 1.0) - 4000.0 * busy).abs() < 1e-9);
            assert!((sum(&parts, |part| part.speed) - 4000.0).abs() < 1e-9);
            assert!((sum(&parts, |part| part.power) - 8000.0).abs() < 1e-9);
        }
    }
}
