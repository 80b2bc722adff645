//! Power tracks: a counter for each domain.

use std::ops::Range;

use serde::Serialize;

use super::timeline::{Timeline, millis};
use crate::hardware::Method;
use crate::label::Label;
use crate::profile::{DomainEnergy, Profile};
use crate::units::Joules;

/// Picowatt-hours per joule: the unit of counters of the category `power`.
const PWH_PER_JOULE: f64 = 1e12 / 3600.0;

/// Tracks of fewer points are not shown.
const FEWEST_POINTS: u64 = 3;

/// The energy of a domain over time.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counter {
    name: String,
    /// Counters of this category are drawn as watts.
    category: &'static str,
    description: String,
    /// The track stands below this process.
    pid: String,
    main_thread_index: usize,
    samples: CounterSamples,
}

/// Energy between each time and the one before.
#[derive(Serialize, Default)]
struct CounterSamples {
    length: usize,
    time: Vec<f64>,
    count: Vec<f64>,
}

impl CounterSamples {
    fn push(&mut self, nanos: u64, energy: Joules) {
        self.time.push(millis(nanos));
        self.count.push(energy.as_joules() * PWH_PER_JOULE);
        self.length += 1;
    }
}

/// Whose process the tracks of a machine stand below.
pub struct Place {
    pub pid: String,
    /// The process's first thread.
    pub thread: usize,
}

/// The counters of all domains, of several machines of each by itself; `place_of` tells the places of machines.
pub fn counters(profile: &Profile, timeline: &Timeline, place_of: impl Fn(u32) -> Place) -> Vec<Counter> {
    let of_domain = |index: usize, slices: &Range<usize>| -> Joules {
        profile.slices[slices.clone()].iter().filter_map(|slice| slice.measured.get(index)).sum()
    };
    if profile.machines.len() < 2 {
        let place = place_of(0);
        let counter = |(index, domain): (usize, &DomainEnergy)| {
            let measured = domain.balance.measured;
            counter(domain, &place, "", of_time(timeline, measured, |slices| of_domain(index, slices)))
        };
        return profile.domains.iter().enumerate().map(counter).collect();
    }
    let mut counters = Vec::new();
    for (number, machine) in (0..).zip(&profile.machines) {
        let (place, name) = (place_of(number), format!(" of {}", Label::new(&machine.name)));
        for ((domain, balance), in_slices) in
            profile.domains.iter().zip(&machine.balances).zip(&machine.in_slices)
        {
            let Some(balance) = balance else { continue };
            let energy =
                |slices: &Range<usize>| in_slices.get(slices.clone()).unwrap_or_default().iter().sum();
            counters.push(counter(domain, &place, &name, of_time(timeline, balance.measured, energy)));
        }
    }
    counters
}

/// Energy over time: what `energy` says of the slices of each stretch, and the rest of `measured`.
fn of_time(
    timeline: &Timeline,
    measured: Joules,
    energy: impl Fn(&Range<usize>) -> Joules,
) -> CounterSamples {
    let mut samples = CounterSamples::default();
    let [first, .., last] = timeline.stretches() else {
        // When it was spent is not known, or of no more than one bucket.
        let (points, end) = (FEWEST_POINTS - 1, timeline.duration().as_nanos());
        samples.push(0, Joules::ZERO);
        for point in 1..=points {
            samples.push(end * point / points, measured / points as f64);
        }
        return samples;
    };
    let mut rest = measured;
    let mut before = None;
    samples.push(first.start, Joules::ZERO);
    for stretch in timeline.stretches() {
        if before.is_some_and(|end| end < stretch.start) {
            // Nobody recorded in between.
            samples.push(stretch.start, Joules::ZERO);
        }
        let energy = energy(&stretch.slices);
        rest -= energy;
        samples.push(stretch.end, energy);
        before = Some(stretch.end);
    }
    // What was measured beside all buckets.
    if rest.abs() > measured.abs() * 1e-9 {
        samples.push(last.end, rest);
    }
    samples
}

fn counter(domain: &DomainEnergy, place: &Place, of_machine: &str, samples: CounterSamples) -> Counter {
    let name = Label::new(&domain.info.name);
    let (mark, how) = match domain.info.method {
        Method::Measured => ("", "measured"),
        Method::Estimated => (" (estimated)", "ESTIMATED, not measured"),
    };
    let part_of = domain.info.parent.as_deref().map(Label::new);
    let part_of = part_of.map(|parent| format!(", a part of {parent}")).unwrap_or_default();
    Counter {
        name: format!("Power: {name}{of_machine}{mark}"),
        category: "power",
        description: format!(
            "Energy of {name}{of_machine}{part_of}, {how} by {}",
            Label::new(&domain.info.source)
        ),
        pid: place.pid.clone(),
        main_thread_index: place.thread,
        samples,
    }
}
