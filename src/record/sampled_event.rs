//! An event to sample, and how often.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use perf_data::format::event_type;

use crate::hardware::{CoreKind, DomainKind, Role};
use crate::machine::EventSpec;
use crate::record::options::SamplingRate;
use crate::record::uprobe::Uprobe;
use crate::recording::metadata::EventInfo;

/// An event to sample, and its place in the power model.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledEvent {
    /// What is counted.
    pub spec: EventSpec,
    /// How often a sample is taken.
    pub interval: SampleInterval,
    /// Role in the power model, if it has one.
    pub role: Option<Role>,
    /// Model joules per event, by domain kind.
    pub joules_per_event: BTreeMap<DomainKind, f64>,
    /// Where in a program's code it happens, of an event that a probe there makes.
    pub probe: Option<Uprobe>,
}

/// The distance between two samples of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleInterval {
    /// A number of events.
    Period(u64),
    /// As many events as keep to this many samples a second.
    Frequency(u64),
}

/// Nanoseconds of CPU time between two samples of a clock: about a thousand samples a second, but far enough from a
/// millisecond that sampling does not stay in step with the scheduler's ticks or with a program that works in whole
/// milliseconds: each sample comes 3 microseconds earlier in them than the one before, and after a third of a second at the
/// same place. Of a whole CPU, samples in step with the ticks at which threads take turns had single processes 14 % wrong
/// (seen). A period and not a frequency, because the kernel counts nanoseconds exactly.
const CLOCK_PERIOD: u64 = 996_979;
/// Samples a second of an event of which nothing more is known.
const DEFAULT_FREQUENCY: u64 = 999;
/// `config` of cpu-clock and task-clock.
const CPU_CLOCK: u64 = 0;
const TASK_CLOCK: u64 = 1;
/// `config` of the event that never happens.
const DUMMY: u64 = 9;

impl SampledEvent {
    /// An event that is sampled as its own terms say, or else the rate, or else as suits it.
    pub fn new(spec: EventSpec, role: Option<Role>, rate: SamplingRate) -> Self {
        let own = spec.period.map(SampleInterval::Period).or(spec.frequency.map(SampleInterval::Frequency));
        let interval = own.unwrap_or(match rate {
            SamplingRate::Frequency(frequency) => SampleInterval::Frequency(frequency),
            SamplingRate::Period(period) => SampleInterval::Period(period),
            SamplingRate::Default if is_clock(&spec) => SampleInterval::Period(CLOCK_PERIOD),
            SamplingRate::Thinned(times) if is_clock(&spec) => SampleInterval::Period(thinned_clock(times)),
            SamplingRate::Default | SamplingRate::Thinned(_) if spec.perf_type == event_type::TRACEPOINT => {
                SampleInterval::Period(1)
            }
            SamplingRate::Default => SampleInterval::Frequency(DEFAULT_FREQUENCY),
            SamplingRate::Thinned(times) => {
                SampleInterval::Frequency((DEFAULT_FREQUENCY / u64::from(times.get())).max(1))
            }
        });
        // Without hardware events CPU time stands for the cycles of the power model.
        let role = role.or(is_clock(&spec).then_some(Role::Clk));
        Self { spec, interval, role, joules_per_event: BTreeMap::new(), probe: None }
    }

    /// Its place in the power model, if its period follows from that: neither the event nor the recording
    /// was given an interval of its own.
    fn modelled(&self, rate: SamplingRate) -> Option<(Role, CoreKind)> {
        let is_free = matches!(rate, SamplingRate::Default | SamplingRate::Thinned(_))
            && self.spec.period.is_none()
            && self.spec.frequency.is_none();
        Some((self.role?, self.spec.core_kind)).filter(|_| is_free && !self.is_clock())
    }

    /// Counts time, not something that happens.
    pub fn is_clock(&self) -> bool {
        is_clock(&self.spec)
    }

    /// Counts nothing, and is there to tell of tasks and mappings.
    pub fn never_happens(&self) -> bool {
        is_dummy(self.spec.perf_type, self.spec.config)
    }

    /// Takes no samples of the idle task.
    pub fn leave_out_idle(&mut self) {
        self.spec.modifiers.exclude_idle = true;
    }

    /// What the recording says of it.
    pub fn info(&self) -> EventInfo {
        EventInfo {
            name: self.spec.name.clone(),
            role: self.role,
            encoding: self.spec.encoding(),
            joules_per_event: self.joules_per_event.clone(),
            core_kind: self.spec.core_kind,
        }
    }
}

/// Whether this is the kernel's software event that never happens.
pub fn is_dummy(perf_type: u32, config: u64) -> bool {
    perf_type == event_type::SOFTWARE && config == DUMMY
}

/// A clock's period that is so many times as long. A multiple of [`CLOCK_PERIOD`] would come to the same place between two ticks for
/// seconds: the golden section of a millisecond puts each sample far from the ones before, whatever the ticks are.
fn thinned_clock(times: NonZeroU32) -> u64 {
    match times.get() {
        1 => CLOCK_PERIOD,
        times => u64::from(times) * 1_000_000 - 381_966,
    }
}

fn is_clock(spec: &EventSpec) -> bool {
    spec.perf_type == event_type::SOFTWARE && matches!(spec.config, CPU_CLOCK | TASK_CLOCK)
}

/// Gives the power model's events the periods that `of` tells for their roles and kinds of core; intervals
/// that somebody asked for stay.
pub fn set_periods(
    events: &mut [SampledEvent],
    rate: SamplingRate,
    of: impl FnOnce(&[(Role, CoreKind)]) -> Vec<u64>,
) {
    let modelled: Vec<(Role, CoreKind)> = events.iter().filter_map(|event| event.modelled(rate)).collect();
    let free = events.iter_mut().filter(|event| event.modelled(rate).is_some());
    let times = match rate {
        SamplingRate::Thinned(times) => u64::from(times.get()),
        _ => 1,
    };
    for (event, period) in free.zip(of(&modelled)) {
        // Odd, as it was, so that sampling does not fall into step with loops of even length.
        let thinned = if times == 1 { period } else { period.saturating_mul(times) | 1 };
        event.interval = SampleInterval::Period(thinned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Roots, resolve_events};

    #[test]
    fn the_models_events_have_periods_of_their_own() {
        let spec = || resolve_events(&Roots::default(), "cycles").expect("known").remove(0);
        let of_role = |role, rate| {
            let mut events = [SampledEvent::new(spec(), role, rate)];
            set_periods(&mut events, rate, |modelled| vec![77; modelled.len()]);
            events[0].interval
        };
        assert_eq!(of_role(Some(Role::Clk), SamplingRate::Default), SampleInterval::Period(77));
        assert_eq!(of_role(None, SamplingRate::Default), SampleInterval::Frequency(999));
        assert_eq!(of_role(Some(Role::Clk), SamplingRate::Frequency(99)), SampleInterval::Frequency(99));
        assert_eq!(of_role(Some(Role::Clk), SamplingRate::Period(5)), SampleInterval::Period(5));
        // So many times as rarely, and still odd.
        let thinned = |times| SamplingRate::Thinned(NonZeroU32::new(times).expect("not zero"));
        assert_eq!(of_role(Some(Role::Clk), thinned(4)), SampleInterval::Period(309));
        assert_eq!(of_role(Some(Role::Clk), thinned(1)), SampleInterval::Period(77));
        assert_eq!(of_role(None, thinned(4)), SampleInterval::Frequency(249));
    }

    /// A thinned clock comes at all places of the time between two ticks, and between every other, in as many seconds as it has a thousand
    /// samples.
    #[test]
    fn a_thinned_clock_does_not_stay_in_step_with_ticks_either() {
        let clock = || resolve_events(&Roots::default(), "cpu-clock").expect("known").remove(0);
        for times in 2..=20 {
            let rate = SamplingRate::Thinned(NonZeroU32::new(times).expect("not zero"));
            let SampleInterval::Period(period) = SampledEvent::new(clock(), None, rate).interval else {
                panic!("a clock has a period");
            };
            let longer = period as f64 / CLOCK_PERIOD as f64;
            assert!((longer - f64::from(times)).abs() < 0.4, "{times}: {longer}");
            for stretch in [100, 250, 300, 1000]
                .map(|hertz| 1_000_000_000 / hertz)
                .into_iter()
                .flat_map(|tick| [tick, 2 * tick])
            {
                let samples = u64::from(times) * 1_000_000_000 / period;
                let mut places: Vec<u64> = (0..samples).map(|at| at * period % stretch).collect();
                places.sort_unstable();
                places.push(places[0] + stretch);
                let widest = places.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
                assert!(widest < stretch / 100, "{times}: {widest} of {stretch} ns without a sample");
            }
        }
    }

    /// In a second, samples of a CPU's clock come at all places of the time between two ticks of the scheduler.
    #[test]
    fn samples_of_a_clock_do_not_stay_in_step_with_ticks() {
        for hertz in [100, 250, 300, 1000] {
            let tick = 1_000_000_000 / hertz;
            let places = |period: u64| {
                let mut places: Vec<u64> = (0..1_000_000_000 / period).map(|at| at * period % tick).collect();
                places.sort_unstable();
                places.push(places[0] + tick);
                places
            };
            let widest = |period| places(period).windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
            assert!(
                widest(CLOCK_PERIOD) < tick / 200,
                "{hertz}: {} ns without a sample",
                widest(CLOCK_PERIOD)
            );
            assert!(
                widest(999_983) > tick / 20,
                "{hertz}: as those of a period that is too near a millisecond"
            );
        }
    }
}
