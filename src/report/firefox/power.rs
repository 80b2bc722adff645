//! Power tracks: a counter for each domain.

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

/// The counters of all domains, below a process.
pub fn counters(profile: &Profile, timeline: &Timeline, pid: &str, thread: usize) -> Vec<Counter> {
    let counter = |(index, domain): (usize, &DomainEnergy)| {
        let mut samples = CounterSamples::default();
        let mut rest = domain.balance.measured;
        if let [first, .., last] = timeline.stretches() {
            samples.push(first.start, Joules::ZERO);
            for stretch in timeline.stretches() {
                let energy = stretch.measured.get(index).copied().unwrap_or(Joules::ZERO);
                rest -= energy;
                samples.push(stretch.end, energy);
            }
            // What was measured beside all buckets.
            if rest.abs() > domain.balance.measured.abs() * 1e-9 {
                samples.push(last.end, rest);
            }
        } else {
            // When it was spent is not known, or of no more than one bucket.
            let (points, end) = (FEWEST_POINTS - 1, timeline.duration().as_nanos());
            samples.push(0, Joules::ZERO);
            for point in 1..=points {
                samples.push(end * point / points, rest / points as f64);
            }
        }
        let name = Label::new(&domain.info.name);
        let (mark, how) = match domain.info.method {
            Method::Measured => ("", "measured"),
            Method::Estimated => (" (estimated)", "ESTIMATED, not measured"),
        };
        let part_of = domain.info.parent.as_deref().map(Label::new);
        let part_of = part_of.map(|parent| format!(", a part of {parent}")).unwrap_or_default();
        Counter {
            name: format!("Power: {name}{mark}"),
            category: "power",
            description: format!("Energy of {name}{part_of}, {how} by {}", Label::new(&domain.info.source)),
            pid: pid.to_owned(),
            main_thread_index: thread,
            samples,
        }
    };
    profile.domains.iter().enumerate().map(counter).collect()
}
