//! Samples that stand for what their CPU counted while none came.
//!
//! An interrupt that comes late finds the code that was running meanwhile: whatever could have taken its place would have been
//! interrupted, too. So what a counter has more than samples is that of the samples at the ends of long gaps, as far as these
//! gaps can hold it. A gap tells of missing samples only if its CPU ran all the while. Where it slept, gaps could hold more than
//! is missing: the more they could, the less they tell, and the rest is taken to be like all samples around.

use crate::units::Timestamp;

use super::missing::Missing;

/// A sample that came so late that whole periods may be missing before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LateSample {
    pub event: u32,
    pub cpu: u32,
    /// When the event's sample before it came on that CPU.
    pub since: Timestamp,
    pub time: Timestamp,
    /// What it stands for by its period.
    pub count: u64,
}

/// What a late sample stands for beyond its period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MadeUp {
    pub late: LateSample,
    pub count: u64,
}

/// A gap of so many usual ones may hide a period: of code in which the event is as rare, two are a gap without.
const LONG: f64 = 2.0;
/// The usual gap is that of about so many samples.
const USUAL: f64 = 64.0;

/// Finds late samples of one event on one CPU.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gaps {
    last: Option<Timestamp>,
    /// Nanoseconds from one sample to the next, as of late.
    usual: f64,
}

impl Gaps {
    /// A sample: since when there was none, if that is long.
    pub fn sample(&mut self, time: Timestamp) -> Option<Timestamp> {
        let last = self.last.replace(time)?;
        let gap = time.since(last).as_nanos() as f64;
        let is_long = self.usual > 0.0 && gap > LONG * self.usual;
        // A gap that is wild counts as a long one.
        let usual = if is_long { LONG * self.usual } else { gap };
        self.usual += if self.usual > 0.0 { (usual - self.usual) / USUAL } else { usual };
        is_long.then_some(last)
    }

    /// The next gap says nothing.
    pub fn forget(&mut self) {
        self.last = None;
    }
}

/// Gives late samples, in the order of time, what is missing around them, and takes it away there.
pub(crate) fn make_up(missing: &mut [Missing], late: &[LateSample]) -> Vec<MadeUp> {
    let mut all: Vec<MadeUp> = late.iter().map(|late| MadeUp { late: *late, count: 0 }).collect();
    for missing in missing.iter_mut() {
        let seconds = |from: Timestamp, to: Timestamp| to.since(from).as_nanos() as f64;
        let pace = (missing.count + missing.sampled) as f64 / seconds(missing.start, missing.end).max(1.0);
        let first = late.partition_point(|late| late.time <= missing.start);
        let reach = |late: &LateSample| {
            let overlap = seconds(late.since.max(missing.start), late.time.min(missing.end));
            let own = if late.time <= missing.end { late.count as f64 } else { 0.0 };
            (pace * overlap - own).max(0.0)
        };
        let is_around = |late: &&LateSample| late.since < missing.end;
        let around: Vec<f64> = late[first..].iter().take_while(is_around).map(reach).collect();
        let room: f64 = around.iter().sum();
        if room <= 0.0 {
            continue;
        }
        let count = missing.count as f64;
        let of_late = count * (count / room).min(1.0);
        // As the differences of one growing sum, so that no event is lost by rounding.
        let (mut sum, mut given) = (0.0, 0);
        for (made_up, room_of_one) in all[first..].iter_mut().zip(&around) {
            sum += of_late * room_of_one / room;
            made_up.count += sum.round() as u64 - given;
            given = sum.round() as u64;
        }
        missing.count -= given.min(missing.count);
    }
    all.retain(|made_up| made_up.count > 0);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    fn late(since: u64, time: u64) -> LateSample {
        LateSample { event: 0, cpu: 3, since: at(since), time: at(time), count: 100 }
    }

    fn missing(start: u64, end: u64, count: u64, sampled: u64) -> Missing {
        Missing { event: 0, cpu: 3, start: at(start), end: at(end), count, sampled }
    }

    /// What each late sample is given, and what is left.
    fn given(missing: &[Missing], late: &[LateSample]) -> (Vec<(Timestamp, u64)>, Vec<u64>) {
        let mut missing = missing.to_vec();
        let made_up = make_up(&mut missing, late);
        let given = made_up.iter().map(|made_up| (made_up.late.time, made_up.count)).collect();
        (given, missing.iter().map(|missing| missing.count).collect())
    }

    #[test]
    fn a_gap_is_long_beside_those_before_it() {
        let mut gaps = Gaps::default();
        let mut time = 0;
        let mut found = |gap: u64| {
            time += gap;
            gaps.sample(at(time)).map(|since| time - since.as_nanos() / 1_000_000)
        };
        assert_eq!([1, 10, 10, 20, 21, 10].map(&mut found), [None, None, None, None, Some(21), None]);
        gaps.forget();
        assert_eq!(gaps.sample(at(10_000)), None, "nothing is known of what it has before it");
        assert!(gaps.sample(at(10_030)).is_some());
    }

    #[test]
    fn a_wild_gap_counts_as_twice_the_usual_one() {
        let long_after = |gap: u64| {
            let mut gaps = Gaps::default();
            let mut time = 0;
            // In microseconds. Of about sixty-four gaps one is of 20 ms: 10.156 ms are usual then.
            [0, 10_000, 10_000, 10_000_000, gap].map(|gap| {
                time += gap;
                gaps.sample(Timestamp::from_nanos(time * 1000)).is_some()
            })
        };
        assert_eq!(long_after(20_300), [false, false, false, true, false]);
        assert_eq!(long_after(20_325), [false, false, false, true, true]);
    }

    #[test]
    fn what_is_missing_is_that_of_the_sample_at_the_end_of_the_gap() {
        // A period of 100 every 10 ms; of 1000 ms 300 are without a sample, but the one at their end.
        let (given, left) = given(&[missing(0, 1000, 2900, 7100)], &[late(400, 700)]);
        assert_eq!((given, left), (vec![(at(700), 2900)], vec![0]));
    }

    #[test]
    fn gaps_share_what_is_missing_as_they_are_long() {
        // 290 and 90 of 380 periods' worth.
        let (given, left) = given(&[missing(0, 1000, 3800, 6200)], &[late(100, 400), late(800, 900)]);
        assert_eq!(given, [(at(400), 2900), (at(900), 900)]);
        assert_eq!(left, [0]);
    }

    #[test]
    fn a_gap_over_readings_takes_from_both_sides() {
        let stretches = [missing(0, 100, 500, 500), missing(100, 200, 400, 600)];
        let (given, left) = given(&stretches, &[late(50, 150)]);
        // Beyond the period that the sample stands for itself, 500 and 400 fit into it.
        assert_eq!((given, left), (vec![(at(150), 900)], vec![0, 0]));
    }

    #[test]
    fn gaps_in_which_a_cpu_slept_tell_little() {
        // Gaps could hold ten times as much: a tenth is theirs, and the rest all samples'.
        let (given, left) = given(&[missing(0, 1000, 100, 1900)], &[late(0, 550)]);
        assert_eq!((given, left), (vec![(at(550), 10)], vec![90]));
    }
}
