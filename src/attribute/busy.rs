//! How much others ran, where only the program itself is sampled.

use std::collections::VecDeque;

use crate::units::{Nanoseconds, Timestamp};

/// CPU time of everything, of the recorded program and of the recorder, over time.
///
/// `/proc/stat` counts in ticks of some milliseconds; the program's time is the recorder's exact count
/// where it has one, and else comes from its samples: the difference of the two is noisy and in a short
/// interval often negative. So others are charged by
/// the *running maximum* of the cumulative difference: noise cancels instead of adding up, and what
/// was once charged is never taken back.
#[derive(Debug, Clone, Default)]
pub struct OtherTime {
    first: Option<Moment>,
    points: VecDeque<Point>,
    own: f64,
    charged: f64,
    /// Nanoseconds of the recorder so far.
    recorder: f64,
}

#[derive(Debug, Clone, Copy)]
struct Point {
    time: Timestamp,
    busy: Nanoseconds,
    /// Nanoseconds so far.
    recorder: f64,
    /// The program's own time, if it was counted.
    own: Option<Nanoseconds>,
}

/// What all readings say of one moment, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Moment {
    busy: f64,
    recorder: f64,
    own: Option<f64>,
}

impl Moment {
    fn of(point: &Point) -> Self {
        Self {
            busy: point.busy.as_nanos() as f64,
            recorder: point.recorder,
            own: point.own.map(|own| own.as_nanos() as f64),
        }
    }
}

impl OtherTime {
    /// Adds a reading: CPU time that these CPUs were busy, cumulative, and nanoseconds that the recorder ran on them
    /// since the last one.
    pub fn push(&mut self, time: Timestamp, busy: Nanoseconds, recorder: f64) {
        self.recorder += recorder;
        if self.points.back().is_none_or(|last| last.time < time) {
            let recorder = self.recorder;
            self.points.push_back(Point { time, busy, recorder, own: None });
        }
    }

    /// Adds to the reading of this time the program's own CPU time on these CPUs, cumulative.
    pub fn push_own(&mut self, time: Timestamp, own: Nanoseconds) {
        if let Some(last) = self.points.back_mut().filter(|last| last.time == time) {
            last.own = Some(own);
        }
    }

    /// Time of the last reading.
    pub fn last(&self) -> Option<Timestamp> {
        self.points.back().map(|point| point.time)
    }

    /// CPU nanoseconds of others and of the recorder in the interval from `start` to `end`, in which
    /// the program's samples stand for `own` CPU nanoseconds.
    pub fn charge(&mut self, start: Timestamp, end: Timestamp, own: f64) -> (f64, f64) {
        if self.points.len() < 2 {
            return (0.0, 0.0);
        }
        self.own += own;
        // What ran before the first bucket was charged to nobody, and is none of it.
        let first = self.first.unwrap_or_else(|| self.at(start));
        self.first = Some(first);
        let now = self.at(end);
        let recorder = now.recorder - self.at(start).recorder;
        let counted = now.own.zip(first.own).map(|(now, first)| now - first);
        let own = counted.unwrap_or(self.own);
        let others = now.busy - first.busy - own - (now.recorder - first.recorder);
        let new = (others - self.charged).max(0.0);
        self.charged += new;
        self.forget_before(start);
        (new, recorder)
    }

    /// The recorder's share of the time that these CPUs were busy in the interval, 0 to 1. Nothing before it is asked for any more.
    pub fn recorders_share(&mut self, start: Timestamp, end: Timestamp) -> f64 {
        let (before, after) = (self.at(start), self.at(end));
        self.forget_before(start);
        let (busy, recorder) = (after.busy - before.busy, after.recorder - before.recorder);
        if busy > 0.0 { (recorder / busy).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// What the readings around a moment say of it; behind the last one, as where a recorder was killed, it went on as it was.
    fn at(&self, time: Timestamp) -> Moment {
        let next = self.points.partition_point(|point| point.time < time);
        let point = |back: usize| self.points.get(next.checked_sub(back)?);
        match (point(2), point(1), self.points.get(next)) {
            (_, None, None) => Moment::default(),
            (_, None, Some(point)) | (None, Some(point), None) => Moment::of(point),
            (_, Some(before), Some(after)) | (Some(before), Some(after), None) => {
                let span = after.time.since(before.time).as_nanos() as f64;
                let share = time.since(before.time).as_nanos() as f64 / span;
                let (before, after) = (Moment::of(before), Moment::of(after));
                let between = |before: f64, after: f64| before + (after - before) * share;
                Moment {
                    busy: between(before.busy, after.busy),
                    recorder: between(before.recorder, after.recorder),
                    own: before.own.zip(after.own).map(|(before, after)| between(before, after)),
                }
            }
        }
    }

    /// Whether there was one reading alone: nobody knows what others ran.
    pub fn is_of_one_reading(&self) -> bool {
        self.points.len() == 1
    }

    fn forget_before(&mut self, time: Timestamp) {
        // Two must be left, for the difference.
        while self.points.len() > 2 && self.points[1].time <= time {
            self.points.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn of_two_readings_of_one_time_the_first_counts() {
        let mut time = OtherTime::default();
        time.push(at(0), Nanoseconds::from_millis(0), 0.0);
        time.push(at(10), Nanoseconds::from_millis(10), 0.0);
        time.push(at(10), Nanoseconds::from_millis(99), 0.0);
        time.push(at(20), Nanoseconds::from_millis(12), 0.0);
        assert_eq!(time.points.len(), 3);
        assert_eq!(time.charge(at(0), at(10), 4.0 * MS), (6.0 * MS, 0.0));
        assert_eq!(time.charge(at(10), at(15), 0.0), (1.0 * MS, 0.0));
    }

    #[test]
    fn the_past_is_forgotten_but_for_two_readings() {
        let mut time = OtherTime::default();
        (0..10).for_each(|i| time.push(at(i * 10), Nanoseconds::from_millis(i * 10), 1.0 * MS));
        assert_eq!(time.charge(at(0), at(5), 0.0), (4.5 * MS, 0.5 * MS));
        // Since 50 ms a reading at or before is needed, and one behind.
        assert_eq!(time.charge(at(50), at(60), 0.0), (49.5 * MS, 1.0 * MS));
        assert_eq!(time.points.iter().map(|point| point.time).next(), Some(at(50)));
        time.charge(at(500), at(600), 0.0);
        assert_eq!((time.points.len(), time.last()), (2, Some(at(90))));
        // Own time that is told for another time than the last reading's is nobody's.
        time.push_own(at(80), Nanoseconds::from_millis(7));
        assert!(time.points.iter().all(|point| point.own.is_none()));
    }

    #[test]
    fn the_rest_of_the_busy_time_is_others() {
        let mut time = OtherTime::default();
        time.push(at(0), Nanoseconds::from_millis(1000), 0.0);
        time.push(at(100), Nanoseconds::from_millis(1150), 10.0 * MS);
        let (others, recorder) = time.charge(at(0), at(50), 40.0 * MS);
        // Busy 75 ms, of which the program had 40 and the recorder 5.
        assert!((others - 30.0 * MS).abs() < 1.0, "{others}");
        assert!((recorder - 5.0 * MS).abs() < 1.0, "{recorder}");
    }

    #[test]
    fn noise_around_zero_does_not_add_up() {
        // The program has the CPU alone; /proc/stat moves in ticks of 10 ms.
        let mut time = OtherTime::default();
        let ticks = |millis: u64| Nanoseconds::from_millis(millis / 10 * 10);
        (0..=100).for_each(|i| time.push(at(i * 7), ticks(i * 7), 0.0));
        let charged: f64 = (0..100).map(|i| time.charge(at(i * 7), at(i * 7 + 7), 7.0 * MS).0).sum();
        assert!(charged <= 10.0 * MS, "{charged}");
    }

    #[test]
    fn what_was_counted_of_the_program_is_believed_more_than_its_samples() {
        // Two programs share a CPU. The samples stand for a fifth less than the recorded one really had.
        let mut time = OtherTime::default();
        for i in 0..=10 {
            time.push(at(i * 100), Nanoseconds::from_millis(5000 + i * 100), 0.0);
            time.push_own(at(i * 100), Nanoseconds::from_millis(i * 50));
        }
        let others: f64 = (0..10).map(|i| time.charge(at(i * 100), at(i * 100 + 100), 40.0 * MS).0).sum();
        assert!((others - 500.0 * MS).abs() < 1.0, "{others}");
    }

    #[test]
    fn at_a_reading_the_stretch_before_it_tells() {
        // Of the third reading it was not counted how long the program ran.
        let mut time = OtherTime::default();
        for (millis, own) in [(0, Some(0)), (10, Some(5)), (20, None)] {
            time.push(at(millis), Nanoseconds::from_millis(millis), 0.0);
            own.into_iter().for_each(|own| time.push_own(at(millis), Nanoseconds::from_millis(own)));
        }
        assert_eq!(time.charge(at(0), at(10), 3.0 * MS), (5.0 * MS, 0.0));
    }

    #[test]
    fn behind_the_last_reading_it_goes_on_as_it_was() {
        // Two CPUs, one the program's, the other somebody's. The recorder was killed 100 ms behind its last reading.
        for is_counted in [true, false] {
            let mut time = OtherTime::default();
            for i in 0..=3 {
                time.push(at(i * 100), Nanoseconds::from_millis(700 + i * 200), 0.0);
                if is_counted {
                    time.push_own(at(i * 100), Nanoseconds::from_millis(i * 100));
                }
            }
            let others: f64 = (0..4).map(|i| time.charge(at(i * 100), at(i * 100 + 100), 100.0 * MS).0).sum();
            assert!((others - 400.0 * MS).abs() < 1.0, "{others}");
        }
    }

    #[test]
    fn without_readings_nobody_is_charged() {
        assert_eq!(OtherTime::default().charge(at(0), at(1), 0.0), (0.0, 0.0));
    }
}
