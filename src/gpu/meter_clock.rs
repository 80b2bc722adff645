//! When a meter moves that moves by itself, regularly: found from the readings between which it moved.
//!
//! A reading that shows more than the one before tells that the meter moved in between, and readings alike that it did
//! not. Of all periods and phases those are left that agree with this, which says far more than a line through
//! the times at which moves were *seen*: polls that come twice in a refresh drift through it, so that these times drift
//! with them, and the line's period is wrong by some tenths of a percent. Over a minute that is several refreshes.

use crate::units::{Nanoseconds, Timestamp};

/// A change of the meter as it was seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sighting {
    /// The reading that showed what was there before for the first time.
    pub since: Timestamp,
    /// The last one that showed it.
    pub unchanged: Timestamp,
    /// The first one that showed more.
    pub seen: Timestamp,
}

/// A meter's moves: at a phase, and every period from there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    origin: Timestamp,
    /// Seconds after the origin.
    phase: f64,
    /// Seconds.
    pub period: f64,
}

/// Parts of a period by which phases are tried.
const PHASES: usize = 100;
/// What lies nearer to a move than half of such a part may lie on either side of it, where no clock agrees otherwise.
const NEAR: f64 = 0.5 / PHASES as f64;
/// The refresh that is expected may be off by this part.
const OFF: f64 = 0.1;
/// As many sightings are looked at first; then twice as many each time, with the periods that were left.
const FIRST: usize = 16;
/// More than this part of the sightings that disagree, and one, and it is no clock.
const DISAGREE: f64 = 0.2;
/// As many clocks are returned at most.
const MOST: usize = 9;

impl Clock {
    /// Clocks that agree with what was seen, by their periods; none if the meter does not move regularly.
    pub fn all_of(sightings: &[Sighting], refresh: Nanoseconds) -> Vec<Self> {
        let strictly = Self::all_within(sightings, refresh, 0.0);
        // Among few moves, chance finds a clock that need not be exact.
        let is_seen = sightings.len() > PHASES;
        if strictly.is_empty() && is_seen { Self::all_within(sightings, refresh, NEAR) } else { strictly }
    }

    /// The same, where what lies nearer to a move than a part of a period may lie on either side of it.
    fn all_within(sightings: &[Sighting], refresh: Nanoseconds, near: f64) -> Vec<Self> {
        let expected = refresh.as_secs_f64();
        let Some(origin) = sightings.first().map(|first| first.since) else { return Vec::new() };
        if expected <= 0.0 {
            return Vec::new();
        }
        let seconds = |at: Timestamp| at.since(origin).as_secs_f64();
        let all: Vec<[f64; 3]> =
            sightings.iter().map(|at| [seconds(at.since), seconds(at.unchanged), seconds(at.seen)]).collect();
        let (mut low, mut high) = (expected * (1.0 - OFF), expected * (1.0 + OFF));
        let mut count = FIRST.min(all.len());
        loop {
            let moves = (all[count - 1][2] / expected).max(1.0);
            let step = expected / (PHASES as f64 * moves);
            let tried = ((high - low) / step).ceil() as usize;
            let mut periods: Vec<f64> = (0..=tried).map(|number| low + step * number as f64).collect();
            // What is expected may well be true to the last digit.
            periods.push(expected);
            periods.sort_unstable_by(f64::total_cmp);
            let clocks: Vec<(Self, f64)> = periods
                .into_iter()
                .map(|period| Self::at_period(origin, period, &all[..count], near))
                .collect();
            let least = clocks.iter().map(|(_, off)| *off).fold(f64::INFINITY, f64::min);
            if least > 1.0 + DISAGREE * count as f64 {
                return Vec::new();
            }
            // Moves jitter, and so do readings: what disagrees hardly more may as well be true.
            let enough = least + 1.0;
            let left: Vec<Self> =
                clocks.into_iter().filter(|(_, off)| *off <= enough).map(|(clock, _)| clock).collect();
            if count == all.len() {
                let each = left.len().div_ceil(MOST).max(1);
                let chosen =
                    |(number, clock): &(usize, Self)| number % each == each / 2 || clock.period == expected;
                return left.into_iter().enumerate().filter(chosen).map(|(_, clock)| clock).collect();
            }
            (low, high) = (left[0].period - step, left[left.len() - 1].period + step);
            count = (count * 2).min(all.len());
        }
    }

    /// The clock of a period that agrees best, and how many sightings it does not agree with.
    fn at_period(origin: Timestamp, period: f64, sightings: &[[f64; 3]], near: f64) -> (Self, f64) {
        let disagreeing = |phase: f64| {
            let number = |time: f64, near: f64| ((time - phase) / period + near).floor();
            let wrong = |[since, unchanged, seen]: &[f64; 3]| {
                let unchanged = number(*unchanged, -near);
                usize::from(number(*since, near) < unchanged) + usize::from(number(*seen, near) <= unchanged)
            };
            sightings.iter().map(wrong).sum::<usize>()
        };
        let phase = |number: usize| period * number as f64 / PHASES as f64;
        let off: Vec<usize> = (0..PHASES).map(|number| disagreeing(phase(number))).collect();
        let least = off.iter().copied().min().unwrap_or(0);
        // The middle of those that agree, round the circle.
        let (mut sine, mut cosine) = (0.0, 0.0);
        for number in (0..PHASES).filter(|number| off[*number] == least) {
            let angle = std::f64::consts::TAU * number as f64 / PHASES as f64;
            (sine, cosine) = (sine + angle.sin(), cosine + angle.cos());
        }
        let phase = f64::atan2(sine, cosine) / std::f64::consts::TAU * period;
        (Self { origin, phase, period }, least as f64)
    }

    /// The number of the move that was seen between two readings: the one nearest to their middle.
    pub fn number(&self, unchanged: Timestamp, seen: Timestamp) -> f64 {
        let seen = self.seconds(seen);
        let since = self.seconds(unchanged).max(seen - self.period);
        ((f64::midpoint(since, seen) - self.phase) / self.period).round()
    }

    /// When that move is.
    pub fn time(&self, number: f64) -> f64 {
        self.phase + self.period * number
    }

    /// Seconds since the first reading.
    pub fn seconds(&self, at: Timestamp) -> f64 {
        (at.as_nanos() as f64 - self.origin.as_nanos() as f64) * 1e-9
    }

    /// So many seconds after the first reading.
    pub fn after(&self, seconds: f64) -> Timestamp {
        let nanos = (seconds * 1e9).round() as i64;
        Timestamp::from_nanos(self.origin.as_nanos().saturating_add_signed(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::random::Random;

    fn at(seconds: f64) -> Timestamp {
        Timestamp::from_nanos((7e9 + seconds * 1e9) as u64)
    }

    /// A meter that moves at 0.037 s and each `period` from there, read every `poll` and a little later.
    fn sightings(period: f64, poll: f64, length: f64, jitter: f64) -> Vec<Sighting> {
        let mut random = Random::seeded(3);
        let (mut sightings, mut since, mut before): (Vec<Sighting>, f64, Option<(f64, f64)>) =
            (Vec::new(), 0.0, None);
        let mut time = 0.001;
        while time < length {
            let shown = ((time + jitter * random.symmetric() - 0.037) / period).floor();
            if let Some((unchanged, old)) = before {
                if shown > old {
                    sightings.push(Sighting { since: at(since), unchanged: at(unchanged), seen: at(time) });
                    since = time;
                }
            } else {
                since = time;
            }
            before = Some((time, before.map_or(shown, |(_, old)| shown.max(old))));
            time += poll * (1.0 + 0.02 * random.uniform());
        }
        sightings
    }

    /// Twice in a refresh: the line through what was seen would have a period 1 % too long, that of the polls.
    #[test]
    fn a_period_is_found_from_polls_that_drift_through_it() {
        for (poll, jitter) in [(0.05, 0.0), (0.05, 0.001), (0.0095, 0.001), (0.031, 0.002)] {
            let sightings = sightings(0.100_2, poll, 20.0, jitter);
            let clocks = Clock::all_of(&sightings, Nanoseconds::from_millis(100));
            assert!(!clocks.is_empty(), "polls of {poll} s");
            // Over all of it a clock may run away by a poll, and by a step in which it is looked for at each end.
            let most = (poll + 2.0 * jitter + 0.1 / 100.0 * 2.0) / 20.0;
            for clock in &clocks {
                let off = (clock.period / 0.100_2 - 1.0).abs();
                assert!(off < most, "polls of {poll} s: {}, {off} of at most {most}", clock.period);
            }
            // Each move is put where one is, to the part of a poll.
            let middle = clocks[clocks.len() / 2];
            for sighting in &sightings {
                let number = middle.number(sighting.unchanged, sighting.seen);
                let time = middle.after(middle.time(number)).since(at(0.0)).as_secs_f64();
                let off = ((time - 0.037) / 0.100_2).round() * 0.100_2 + 0.037 - time;
                assert!(off.abs() < 0.6 * poll + 2.0 * jitter, "polls of {poll} s: off by {off} s");
            }
        }
    }

    /// Where polls and moves have a common measure, a reading may fall on a move again and again.
    #[test]
    fn a_reading_on_a_move_is_on_either_side_of_it() {
        let readings: Vec<f64> = (0..2000).map(|number| 0.001 + 0.003 * f64::from(number)).collect();
        let moved = |time: f64| (time / 0.02).floor();
        let (mut sightings, mut since) = (Vec::new(), readings[0]);
        for pair in readings.windows(2) {
            if moved(pair[1]) > moved(pair[0]) {
                sightings.push(Sighting { since: at(since), unchanged: at(pair[0]), seen: at(pair[1]) });
                since = pair[1];
            }
        }
        let clocks = Clock::all_of(&sightings, Nanoseconds::from_millis(21));
        assert!(!clocks.is_empty(), "a reading each 60 ms falls on a move");
        for clock in clocks {
            assert!((clock.period / 0.02 - 1.0).abs() < 1e-4, "{}", clock.period);
        }
    }

    #[test]
    fn what_moves_as_it_likes_is_no_clock() {
        let mut random = Random::seeded(9);
        let mut time = 0.0;
        let sightings: Vec<Sighting> = (0..60)
            .map(|_| {
                let since = time;
                time += 0.02 + 0.2 * random.uniform();
                Sighting { since: at(since), unchanged: at(time - 0.004), seen: at(time) }
            })
            .collect();
        assert!(Clock::all_of(&sightings, Nanoseconds::from_millis(100)).is_empty());
        assert!(Clock::all_of(&[], Nanoseconds::from_millis(100)).is_empty());
    }
}
