//! What a meter that moves regularly shows of work: late, smeared, and perhaps at a few moments only.

use rustc_hash::FxHashMap;

use super::meter_clock::Clock;
use super::queue::{Outstanding, Queue};

/// Parts of a refresh in which work is told apart.
pub(super) const PARTS: usize = 100;
/// Owners that have watts of their own: those that were busy longest,
const MOST_COLUMNS: usize = 16;
/// and for at least this part of all work. Less is not seen beside the rest.
const LEAST_BUSY: f64 = 0.005;

/// How much a meter may smear, in refreshes: the time in which all but 1/e of a change is seen. An H100's is 0.15.
pub(super) const SMEARS: [f64; 7] = [0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5];
/// What changes within this part of a refresh is fast: a meter may show more or less of it, earlier or later.
const FAST: usize = PARTS / 2;
/// By this part of a refresh fast changes may be shown later, or any number of times it.
const LATER: usize = PARTS / 8;

/// Which owners have watts of their own.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    of: FxHashMap<u32, usize>,
    /// How many there are. The last one is of all that have none of their own.
    pub count: usize,
    /// Owners in the last one.
    in_last: usize,
}

impl Columns {
    pub fn by_time(owners: &[Vec<(u32, f64)>]) -> Self {
        let mut totals: FxHashMap<u32, f64> = FxHashMap::default();
        for (owner, seconds) in owners.iter().flatten() {
            *totals.entry(*owner).or_default() += seconds;
        }
        let all: f64 = totals.values().sum();
        let mut owners: Vec<(u32, f64)> = totals.into_iter().filter(|(_, seconds)| *seconds > 0.0).collect();
        owners.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let own = owners.partition_point(|(_, seconds)| *seconds >= LEAST_BUSY * all).min(MOST_COLUMNS);
        let count = if own < owners.len() { (own + 1).min(MOST_COLUMNS) } else { own };
        let in_last = owners.len() + 1 - count.max(1);
        let of =
            owners.iter().enumerate().map(|(number, (owner, _))| (*owner, number.min(count - 1))).collect();
        Self { of, count, in_last }
    }

    pub fn of(&self, owner: u32) -> usize {
        self.of.get(&owner).copied().unwrap_or(self.count.saturating_sub(1))
    }

    /// Does the owner have watts together with others?
    pub fn is_shared(&self, owner: u32) -> bool {
        self.in_last > 1 && self.of(owner) + 1 == self.count
    }
}

/// Seconds that each column was busy for until each of many times, [`PARTS`] to a refresh.
pub(super) struct Busy {
    first: f64,
    width: f64,
    /// By time and column.
    until: Vec<f64>,
    pub columns: usize,
}

/// Seconds of each column that a meter shows at each of many times as what is new since a refresh before: first of what
/// changes slowly, then of what changes fast, then of what changed fast a little before.
pub(super) struct Shown {
    first: f64,
    width: f64,
    /// By time and column.
    new: Vec<f64>,
    columns: usize,
    /// By how much what is shown is later than it was, on average.
    late: f64,
}

/// Columns of work for each that has watts.
pub(super) const KINDS: usize = 3;

impl Busy {
    /// Of the time in which a meter moved, until so many seconds after the first reading.
    pub fn of(clock: Clock, last: f64, launches: &[Outstanding]) -> (Self, Columns) {
        let width = clock.period / PARTS as f64;
        // Before the first move and after the last one as much as a meter may be late.
        let margin = 3.0 * clock.period;
        let mut queue = Queue::new(launches);
        let seconds = |bin: usize| {
            let at = |bin: usize| clock.after(bin as f64 * width - margin);
            let (weights, _) = queue.advance(at(bin), at(bin + 1));
            weights.into_iter().map(|(owner, nanos)| (owner, nanos * 1e-9)).collect()
        };
        let bins = ((last + 2.0 * margin) / width).ceil() as usize;
        let owners: Vec<Vec<(u32, f64)>> = (0..bins).map(seconds).collect();
        let columns = Columns::by_time(&owners);
        let mut now = vec![0.0; columns.count];
        let mut until = now.clone();
        for bin in owners {
            for (owner, seconds) in bin {
                now[columns.of(owner)] += seconds;
            }
            until.extend_from_slice(&now);
        }
        (Self { first: -margin, width, until, columns: columns.count }, columns)
    }

    /// Was anything done between two times?
    pub fn is_busy(&self, from: f64, to: f64) -> bool {
        let until = |seconds: f64| {
            let times = self.until.len() / self.columns;
            let place = ((seconds - self.first) / self.width).round().clamp(0.0, times as f64 - 1.0);
            self.until[place as usize * self.columns..][..self.columns].iter().sum::<f64>()
        };
        until(to) - until(from) > 0.1 * self.width
    }

    /// What a meter shows of it that smears it so.
    pub fn shown(&self, smear: f64) -> Shown {
        let columns = self.columns;
        let keep = if smear > 0.0 { (-1.0 / (smear * PARTS as f64)).exp() } else { 0.0 };
        let mut smeared = self.until.clone();
        for at in columns..smeared.len() {
            smeared[at] = keep * smeared[at - columns] + (1.0 - keep) * self.until[at];
        }
        let times = smeared.len() / columns;
        let new: Vec<f64> = (0..smeared.len())
            .map(|at| smeared[at] - at.checked_sub(PARTS * columns).map_or(0.0, |before| smeared[before]))
            .collect();
        // The mean of what is new around a time, by the sums until then.
        let mut sums = vec![0.0; new.len() + columns];
        for at in 0..new.len() {
            sums[at + columns] = sums[at] + new[at];
        }
        let slow = |time: usize, column: usize| {
            let (from, to) = (time.saturating_sub(FAST / 2), (time + FAST / 2 + 1).min(times));
            (sums[to * columns + column] - sums[from * columns + column]) / (to - from) as f64
        };
        let fast = |time: usize, column: usize| new[time * columns + column] - slow(time, column);
        let mut all = Vec::with_capacity(KINDS * new.len());
        for time in 0..times {
            all.extend((0..columns).map(|column| slow(time, column)));
            all.extend((0..columns).map(|column| fast(time, column)));
            all.extend((0..columns).map(|column| fast(time.saturating_sub(LATER), column)));
        }
        let late = smear * self.width * PARTS as f64;
        Shown { first: self.first, width: self.width, new: all, columns: KINDS * columns, late }
    }
}

impl Shown {
    /// Adds what a move shows that is, on average, as late as to be of this time.
    pub fn add(&self, time: f64, to: &mut [f64]) {
        let last = self.new.len() / self.columns - 1;
        let place = ((time + self.late - self.first) / self.width).clamp(0.0, last as f64);
        let bin = (place as usize).min(last - 1);
        let part = place - bin as f64;
        let (now, next) = self.new[bin * self.columns..].split_at(self.columns);
        for ((to, now), next) in to.iter_mut().zip(now).zip(next) {
            *to += now + part * (next - now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_time(seconds: &[f64]) -> Columns {
        // In two bins: what counts is the sum.
        let half = |at: usize| (at as u32, seconds[at] / 2.0);
        let bin: Vec<(u32, f64)> = (0..seconds.len()).map(half).collect();
        Columns::by_time(&[bin.clone(), bin])
    }

    #[test]
    fn owners_with_little_work_have_watts_together() {
        let columns = by_time(&[0.001, 3.0, 0.002, 5.0, 0.0]);
        assert_eq!(columns.count, 3);
        assert_eq!([3, 1, 2, 0].map(|owner| columns.of(owner)), [0, 1, 2, 2]);
        assert_eq!([3, 1, 2, 0].map(|owner| columns.is_shared(owner)), [false, false, true, true]);
        assert_eq!(columns.of(4), 2, "one that never worked");
        let alone = by_time(&[3.0, 0.001]);
        assert_eq!((alone.count, alone.of(1), alone.is_shared(1)), (2, 1, false), "the last is of one owner");
        let all = by_time(&[1.0; 20]);
        assert_eq!((all.count, all.of(14), all.of(15), all.of(19)), (MOST_COLUMNS, 14, 15, 15));
        assert!(!all.is_shared(14) && all.is_shared(15) && all.is_shared(19));
    }

    #[test]
    fn work_is_seen_in_the_time_in_which_it_was_done() {
        // A tenth of a second each: nothing, work of both columns, of the second, nothing.
        let until = vec![0.0, 0.0, 0.0, 0.0, 0.05, 0.05, 0.05, 0.15, 0.05, 0.15];
        let busy = Busy { first: -0.1, width: 0.1, until, columns: 2 };
        let is_busy =
            |times: &[(f64, f64)]| times.iter().map(|of| busy.is_busy(of.0, of.1)).collect::<Vec<_>>();
        assert_eq!(is_busy(&[(-0.1, 0.0), (0.0, 0.1), (0.1, 0.2), (0.2, 0.3)]), [false, true, true, false]);
        // Beyond the ends nothing was done.
        assert_eq!(is_busy(&[(-9.0, 0.0), (0.2, 9.0), (-9.0, 9.0), (0.1, 9.0)]), [false, false, true, true]);
    }
}
