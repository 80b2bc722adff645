//! The recording in stretches of time: as many as a picture shows, however many buckets there are. Of several recordings they
//! stand where the clock on the wall had them: gaps in which nobody recorded are there, and empty.

use std::ops::Range;

use crate::profile::{Gap, Profile};
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
    /// The profile's slices that it is made of.
    pub slices: Range<usize>,
}

/// The stretches of a recording, in order.
pub struct Timeline {
    start: Timestamp,
    gaps: Vec<Gap>,
    stretches: Vec<Stretch>,
    duration: u64,
}

impl Timeline {
    /// Of a profile's slices: without any there are no stretches.
    pub fn new(profile: &Profile) -> Self {
        let shortest = profile.duration.as_nanos() / MOST_STRETCHES;
        let left_out: u64 = profile.gaps.iter().map(|gap| gap.length.as_nanos()).sum();
        let mut timeline =
            Self { start: profile.start, gaps: profile.gaps.clone(), stretches: Vec::new(), duration: 0 };
        let mut gaps_before = 0;
        for (index, slice) in profile.slices.iter().enumerate() {
            let (start, before) = timeline.place(slice.start);
            // No slice lies on both sides of a gap.
            let end = start + slice.end.since(slice.start).as_nanos();
            let is_behind_gap = std::mem::replace(&mut gaps_before, before) != before;
            let last = timeline.stretches.last_mut().filter(|_| !is_behind_gap);
            match last {
                Some(last) if last.end - last.start < shortest => {
                    last.end = end.max(last.end);
                    last.slices.end = index + 1;
                    last.measured.iter_mut().zip(&slice.measured).for_each(|(sum, joules)| *sum += *joules);
                }
                last => {
                    let start = last.map_or(start, |last| last.end);
                    timeline.stretches.push(Stretch {
                        start,
                        end: end.max(start),
                        measured: slice.measured.clone(),
                        slices: index..index + 1,
                    });
                }
            }
        }
        let end = timeline.stretches.last().map_or(0, |last| last.end);
        timeline.duration = profile.duration.as_nanos().saturating_add(left_out).max(end);
        timeline
    }

    /// How long after the start something was that began at a time of the profile's slices, and how many gaps lie before.
    fn place(&self, time: Timestamp) -> (u64, usize) {
        let of_slices = time.since(self.start);
        let before = self.gaps.partition_point(|gap| gap.after <= of_slices);
        let left_out: u64 = self.gaps[..before].iter().map(|gap| gap.length.as_nanos()).sum();
        (of_slices.as_nanos().saturating_add(left_out), before)
    }

    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// Nanoseconds from the start to a time.
    pub fn time_of(&self, time: Timestamp) -> u64 {
        self.place(time).0
    }

    /// The index of the stretch in which a time lies.
    pub fn index_of(&self, time: Timestamp) -> Option<usize> {
        let (time, _) = self.place(time);
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
    fn gaps_are_there_and_empty() {
        let start = Timestamp::from_nanos(5_000);
        let at = |nanos: u64| start + Nanoseconds::from_nanos(nanos);
        let slice = |from, to| TimeSlice {
            start: at(from),
            end: at(to),
            measured: vec![Joules::from_joules(1.0)],
            modelled: Joules::ZERO,
            balance: Balance::default(),
            by_cell: Vec::new(),
        };
        let gap = |after, length| Gap {
            after: Nanoseconds::from_nanos(after),
            length: Nanoseconds::from_nanos(length),
        };
        // Two recordings of 20 ns, then one of 10 ns, between them 100 and 1,000 ns.
        let slices = vec![slice(0, 10), slice(10, 20), slice(20, 40), slice(40, 50)];
        let (duration, gaps) = (Nanoseconds::from_nanos(50), vec![gap(20, 100), gap(40, 1_000)]);
        let timeline = Timeline::new(&Profile { start, duration, slices, gaps, ..Profile::default() });
        let found: Vec<(u64, u64)> =
            timeline.stretches().iter().map(|stretch| (stretch.start, stretch.end)).collect();
        assert_eq!(found, [(0, 10), (10, 20), (120, 140), (1_140, 1_150)]);
        assert_eq!([0, 19, 20, 39, 40].map(|nanos| timeline.index_of(at(nanos))), [0, 1, 2, 2, 3].map(Some));
        assert_eq!(timeline.duration().as_nanos(), 1_150);
    }

    #[test]
    fn without_slices_there_is_only_a_duration() {
        let profile = Profile { duration: Nanoseconds::from_millis(7), ..Profile::default() };
        let timeline = Timeline::new(&profile);
        assert!(timeline.stretches().is_empty() && timeline.index_of(profile.start).is_none());
        assert_eq!(timeline.duration(), Nanoseconds::from_millis(7));
    }
}
