//! The recording in stretches of time: as many as a picture shows, however many buckets there are.

use crate::profile::Profile;
use crate::units::{Joules, Nanoseconds, Timestamp};

/// Stretches of time at most: a power track has as many points, and in each stretch each stack of a thread is one
/// sample.
const MOST_STRETCHES: u64 = 4_000;

/// A stretch of time, as nanoseconds since the recording's start.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    pub start: u64,
    pub end: u64,
    /// Energy that was measured in it, by domain.
    pub measured: Vec<Joules>,
}

/// The stretches of a recording, in order.
pub struct Timeline {
    start: Timestamp,
    stretches: Vec<Stretch>,
    duration: u64,
}

impl Timeline {
    /// Of a profile's slices: without any there are no stretches.
    pub fn new(profile: &Profile) -> Self {
        let shortest = profile.duration.as_nanos() / MOST_STRETCHES;
        let since_start = |time: Timestamp| time.since(profile.start).as_nanos();
        let mut stretches: Vec<Stretch> = Vec::new();
        for slice in &profile.slices {
            let end = since_start(slice.end);
            match stretches.last_mut().filter(|last| last.end - last.start < shortest) {
                Some(last) => {
                    last.end = end.max(last.end);
                    last.measured.iter_mut().zip(&slice.measured).for_each(|(sum, joules)| *sum += *joules);
                }
                None => {
                    let start = stretches.last().map_or_else(|| since_start(slice.start), |last| last.end);
                    stretches.push(Stretch { start, end: end.max(start), measured: slice.measured.clone() });
                }
            }
        }
        let duration = profile.duration.as_nanos().max(stretches.last().map_or(0, |last| last.end));
        Self { start: profile.start, stretches, duration }
    }

    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// The index of the stretch in which a time lies.
    pub fn index_of(&self, time: Timestamp) -> Option<usize> {
        let time = time.since(self.start).as_nanos();
        self.stretches.partition_point(|stretch| stretch.start <= time).checked_sub(1)
    }

    /// All of the recording.
    pub fn duration(&self) -> Nanoseconds {
        Nanoseconds::from_nanos(self.duration)
    }
}

/// Milliseconds, as the format has all times.
pub fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Balance, TimeSlice};

    #[test]
    fn many_slices_are_few_stretches_with_all_their_joules() {
        let start = Timestamp::from_nanos(5_000);
        let at = |index: u64| start + Nanoseconds::from_nanos(index * 1_000);
        let slice = |index| TimeSlice {
            start: at(index),
            end: at(index + 1),
            measured: vec![Joules::from_joules(1.0), Joules::from_joules(0.5)],
            modelled: Joules::ZERO,
            balance: Balance::default(),
            by_cell: Vec::new(),
        };
        let slices: Vec<TimeSlice> = (0..50_000).map(slice).collect();
        let profile = Profile { start, duration: Nanoseconds::from_millis(50), slices, ..Profile::default() };
        let timeline = Timeline::new(&profile);
        let stretches = timeline.stretches();
        assert!((1_000..=4_001).contains(&stretches.len()), "{}", stretches.len());
        let sum =
            |domain: usize| stretches.iter().map(|stretch| stretch.measured[domain].as_joules()).sum::<f64>();
        assert_eq!((sum(0), sum(1)), (50_000.0, 25_000.0));
        assert!(stretches.windows(2).all(|pair| pair[0].end == pair[1].start), "without gaps");
        for index in [0, 1, 777, 49_999] {
            let found = timeline.index_of(at(index)).map(|found| &stretches[found]).expect("a stretch");
            assert!(found.start <= index * 1_000 && index * 1_000 < found.end, "{index}: {found:?}");
        }
    }

    #[test]
    fn without_slices_there_is_only_a_duration() {
        let profile = Profile { duration: Nanoseconds::from_millis(7), ..Profile::default() };
        let timeline = Timeline::new(&profile);
        assert!(timeline.stretches().is_empty() && timeline.index_of(profile.start).is_none());
        assert_eq!(timeline.duration(), Nanoseconds::from_millis(7));
    }
}
