//! How much others ran, where only the program itself is sampled.

use crate::units::{Nanoseconds, Timestamp};

/// CPU time of everything, of the recorded program and of the recorder, over time.
///
/// `/proc/stat` counts in ticks of some milliseconds, the program's time comes from its samples: the
/// difference of the two is noisy and in a short interval often negative. So others are charged by
/// the *running maximum* of the cumulative difference: noise cancels instead of adding up, and what
/// was once charged is never taken back.
#[derive(Debug, Clone, Default)]
pub struct OtherTime {
    points: Vec<Point>,
    used: usize,
    own: f64,
    charged: f64,
}

#[derive(Debug, Clone, Copy)]
struct Point {
    time: Timestamp,
    busy: Nanoseconds,
    recorder: Nanoseconds,
}

impl OtherTime {
    /// Adds a reading: CPU time that these CPUs were busy, and the recorder's own, both cumulative.
    pub fn push(&mut self, time: Timestamp, busy: Nanoseconds, recorder: Nanoseconds) {
        if self.points.last().is_none_or(|last| last.time < time) {
            self.points.push(Point { time, busy, recorder });
        }
    }

    /// Time of the last reading.
    pub fn last(&self) -> Option<Timestamp> {
        self.points.last().map(|point| point.time)
    }

    /// CPU nanoseconds of others and of the recorder in the interval from `start` to `end`, in which
    /// the program itself ran `own` CPU nanoseconds.
    pub fn charge(&mut self, start: Timestamp, end: Timestamp, own: f64) -> (f64, f64) {
        if self.points.len() < 2 {
            return (0.0, 0.0);
        }
        self.own += own;
        let first = self.points[0];
        let (busy, recorder_now) = self.at(end);
        let (_, recorder_before) = self.at(start);
        let recorder = recorder_now - recorder_before;
        let total_recorder = recorder_now - first.recorder.as_nanos() as f64;
        let others = busy - first.busy.as_nanos() as f64 - self.own - total_recorder;
        let new = (others - self.charged).max(0.0);
        self.charged += new;
        self.forget_before(start);
        (new, recorder)
    }

    fn at(&self, time: Timestamp) -> (f64, f64) {
        let as_pair = |point: &Point| (point.busy.as_nanos() as f64, point.recorder.as_nanos() as f64);
        let next = self.used + self.points[self.used..].partition_point(|point| point.time < time);
        match (next.checked_sub(1).map(|index| &self.points[index]), self.points.get(next)) {
            (None, None) => (0.0, 0.0),
            (Some(point), None) | (None, Some(point)) => as_pair(point),
            (Some(before), Some(after)) => {
                let span = after.time.since(before.time).as_nanos() as f64;
                let share = time.since(before.time).as_nanos() as f64 / span;
                let ((b0, r0), (b1, r1)) = (as_pair(before), as_pair(after));
                (b0 + (b1 - b0) * share, r0 + (r1 - r0) * share)
            }
        }
    }

    fn forget_before(&mut self, time: Timestamp) {
        while self.used + 1 < self.points.len() && self.points[self.used + 1].time <= time {
            self.used += 1;
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
    fn the_rest_of_the_busy_time_is_others() {
        let mut time = OtherTime::default();
        time.push(at(0), Nanoseconds::from_millis(1000), Nanoseconds::ZERO);
        time.push(at(100), Nanoseconds::from_millis(1150), Nanoseconds::from_millis(10));
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
        (0..=100).for_each(|i| time.push(at(i * 7), ticks(i * 7), Nanoseconds::ZERO));
        let charged: f64 = (0..100).map(|i| time.charge(at(i * 7), at(i * 7 + 7), 7.0 * MS).0).sum();
        assert!(charged <= 10.0 * MS, "{charged}");
    }

    #[test]
    fn without_readings_nobody_is_charged() {
        assert_eq!(OtherTime::default().charge(at(0), at(1), 0.0), (0.0, 0.0));
    }
}
