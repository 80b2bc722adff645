//! How unsure what was lost makes the shares of what was seen.
//!
//! A stretch of lost records hides what ran in it, of which its neighbours tell something. Let a row have a part `p` of all
//! samples, and neighbouring samples agree in being of it with a correlation `x`, farther ones with `x^distance` (an
//! autoregressive process). Of a stretch of `n` samples of one stream the row then has, by the best linear guess,
//! `p + w (before - p) + w (after - p)` with `w = m / (1 + x^(n+1))`, `m = x (1 - x^n) / (n (1 - x))`, where `before` and
//! `after` are 1 where the samples at its ends are of the row and else 0. The guess is off by a variance of
//! `p (1 - p) (g - 2 m w)`, where `g = ((1 + x) / (1 - x) - 2 x (1 - x^n) / (n (1 - x)^2)) / n` is the variance of the mean
//! of such a process. Where nothing changes for longer than a stretch, `w` is a half and the variance nothing.

use rustc_hash::FxHashMap;

use crate::units::Timestamp;

/// Records that were lost together: of one CPU, between two records of it that were kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostStretch {
    /// From here.
    pub start: Timestamp,
    /// To here.
    pub end: Timestamp,
    /// So many, of all events.
    pub records: u64,
}

/// In what pieces records were lost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LostStretches {
    sums: ByLength,
    /// CPUs that lost records at once, on average over what was lost.
    at_once: f64,
}

impl LostStretches {
    /// Of these stretches, in any order.
    pub fn of(stretches: &[LostStretch]) -> Self {
        let mut sums = ByLength::default();
        for stretch in stretches {
            sums.add(stretch.records);
        }
        Self { sums, at_once: at_once(stretches) }
    }

    /// The variance of what was lost of a row against its part `part` of what was seen, as a share of all that was lost,
    /// squared. `agreement` is the correlation of one sample with the next in being of the row, `across` that of samples
    /// of two CPUs at one time; `ends` tells what ran at the ends of stretches as far as it is known.
    pub(super) fn variance(&self, ends: &Ends, row: usize, part: f64, agreement: f64, across: f64) -> f64 {
        let all: f64 = self.sums.by_length.iter().map(|length| length.records).sum();
        if all <= 0.0 {
            return 0.0;
        }
        let (mut difference, mut rest) = (0.0, 0.0);
        for (length, (sum, seen)) in self.sums.by_length.iter().zip(&ends.sums.by_length).enumerate() {
            if sum.squares <= 0.0 {
                continue;
            }
            let hidden = Hidden::of(sum.cubes / sum.squares * ends.of_stream, agreement);
            let at_ends = ends.of_rows.get(&(row as u32, length as u8)).copied().unwrap_or(0.0);
            difference += hidden.told_by_an_end * (at_ends - 2.0 * part * seen.records);
            rest += seen.squares * hidden.told_by_none + (sum.squares - seen.squares).max(0.0) * hidden.alone;
        }
        rest *= part * (1.0 - part) * (1.0 + across * (self.at_once - 1.0).max(0.0));
        ((difference * difference + rest) / (all * all)).min(1.0)
    }
}

/// Sums over stretches, by the power of two below their records.
#[derive(Debug, Clone, Default, PartialEq)]
struct ByLength {
    by_length: [Sums; LENGTHS],
}

/// Sums of the records of stretches, their squares, and their cubes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sums {
    records: f64,
    squares: f64,
    cubes: f64,
}

/// Powers of two below 2^32 records.
const LENGTHS: usize = 32;

impl ByLength {
    /// Adds a stretch; the place of its length.
    fn add(&mut self, records: u64) -> usize {
        let records = records.max(1);
        let place = (records.ilog2() as usize).min(LENGTHS - 1);
        let (sums, records) = (&mut self.by_length[place], records as f64);
        sums.records += records;
        sums.squares += records.powi(2);
        sums.cubes += records.powi(3);
        place
    }
}

/// What ran just before and just after stretches of lost records.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Ends {
    /// Of the records of a CPU, those of the stream that has most.
    pub of_stream: f64,
    sums: ByLength,
    /// By row and place of the length: records of the stretches that it stands before, and of those that it stands after.
    of_rows: FxHashMap<(u32, u8), f64>,
}

impl Ends {
    /// A stretch of so many records with what is at its ends, as far as that has a row.
    pub fn add(&mut self, records: u64, ends: [Option<u32>; 2]) {
        let place = self.sums.add(records);
        for row in ends.into_iter().flatten() {
            *self.of_rows.entry((row, place as u8)).or_default() += records.max(1) as f64;
        }
    }
}

/// What is known of a stretch: the weight of each of its ends in the best guess, the variance that is left, and the variance
/// where nothing is known of its ends; the latter two over `p (1 - p)`.
#[derive(Debug, Clone, Copy)]
struct Hidden {
    told_by_an_end: f64,
    told_by_none: f64,
    alone: f64,
}

impl Hidden {
    fn of(samples: f64, agreement: f64) -> Self {
        let x = agreement.clamp(0.0, 1.0);
        let changes = 1.0 - x;
        // Differences of nearly equal numbers: to first order there is this much of them.
        let expected = samples * changes;
        if expected < 1e-3 {
            return Self { told_by_an_end: 0.5, told_by_none: expected / 6.0, alone: 1.0 - expected / 3.0 };
        }
        let to_end = x.powf(samples);
        let alone = ((1.0 + x) / changes - 2.0 * x * (1.0 - to_end) / (expected * changes)) / samples;
        let with_an_end = x * (1.0 - to_end) / expected;
        let told_by_an_end = with_an_end / (1.0 + to_end * x);
        Self { told_by_an_end, told_by_none: (alone - 2.0 * with_an_end * told_by_an_end).max(0.0), alone }
    }
}

/// Of how many CPUs records are lost at a time, on average over what was lost.
fn at_once(stretches: &[LostStretch]) -> f64 {
    let mut edges: Vec<(Timestamp, i32)> =
        stretches.iter().flat_map(|stretch| [(stretch.start, 1), (stretch.end, -1)]).collect();
    edges.sort_unstable();
    let (mut count, mut since) = (0, Timestamp::default());
    let (mut lost, mut squares) = (0.0, 0.0);
    for (time, change) in edges {
        let seconds = time.since(since).as_secs_f64();
        lost += seconds * f64::from(count);
        squares += seconds * f64::from(count).powi(2);
        (count, since) = (count + change, time);
    }
    if lost > 0.0 { squares / lost } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(start: u64, end: u64, records: u64) -> LostStretch {
        let (start, end) = (Timestamp::from_nanos(start), Timestamp::from_nanos(end));
        LostStretch { start, end, records }
    }

    fn one_stream() -> Ends {
        Ends { of_stream: 1.0, ..Ends::default() }
    }

    /// Over `p (1 - p)` of a row of half of all samples.
    fn variance(stretches: &[LostStretch], ends: &Ends, agreement: f64, across: f64) -> f64 {
        LostStretches::of(stretches).variance(ends, 0, 0.5, agreement, across) / 0.25
    }

    #[test]
    fn one_stretch_of_which_nothing_is_known_hides_all() {
        let lost = [stretch(0, 1000, 600)];
        assert!((variance(&lost, &one_stream(), 1.0, 0.0) - 1.0).abs() < 1e-9);
        // Samples by chance: 1 / 600.
        assert!((variance(&lost, &one_stream(), 0.0, 0.0) * 600.0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn four_stretches_one_after_another_hide_a_quarter() {
        let stretches: Vec<LostStretch> = (0..4).map(|at| stretch(at * 1000, at * 1000 + 500, 10)).collect();
        assert!((variance(&stretches, &one_stream(), 1.0, 1.0) - 0.25).abs() < 1e-9);
        // On four CPUs at once, which all do the same, they are as one.
        let stretches = [stretch(0, 500, 10); 4];
        assert!((variance(&stretches, &one_stream(), 1.0, 0.0) - 0.25).abs() < 1e-9);
        assert!((variance(&stretches, &one_stream(), 1.0, 1.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_stands_at_both_ends_was_there_in_between() {
        let stretches: Vec<LostStretch> = (0..4).map(|at| stretch(at * 1000, at * 1000 + 500, 10)).collect();
        let ends = |of_row: usize| {
            let mut ends = one_stream();
            (0..4).for_each(|at| ends.add(10, [(at < of_row).then_some(0); 2]));
            ends
        };
        // Two of the four are the row's, as half of all is; where all are, twice as much of it was lost.
        assert!(variance(&stretches, &ends(2), 1.0, 0.0) < 1e-9);
        assert!((variance(&stretches, &ends(4), 1.0, 0.0) - 1.0).abs() < 1e-9);
        // Ends say nothing of code that changes from sample to sample.
        assert!((variance(&stretches, &ends(4), 0.0, 0.0) - 0.025).abs() < 1e-9);
    }

    #[test]
    fn a_guess_is_as_good_as_covariances_say() {
        for (samples, x) in [(2, 0.5), (7, 0.9), (40, 0.99), (300, 0.3), (200, 0.999_999)] {
            // The two ends are samples 0 and n + 1.
            let covariance = |one: i32, other: i32| f64::powi(x, (one - other).abs());
            let mean = |of: &dyn Fn(i32) -> f64| (1..=samples).map(of).sum::<f64>() / f64::from(samples);
            let alone = mean(&|one| mean(&|other| covariance(one, other)));
            let with_end = mean(&|one| covariance(one, 0));
            let of_ends = covariance(0, samples + 1);
            let weight = with_end / (1.0 + of_ends);
            let found = Hidden::of(f64::from(samples), x);
            assert!((found.alone / alone - 1.0).abs() < 1e-6, "{samples} {x}: {found:?} for {alone}");
            assert!(
                (found.told_by_an_end / weight - 1.0).abs() < 1e-3,
                "{samples} {x}: {found:?} for {weight}"
            );
            let rest = alone - 2.0 * weight * with_end;
            assert!(
                (found.told_by_none - rest).abs() < 1e-6 + 1e-2 * rest,
                "{samples} {x}: {found:?} for {rest}"
            );
        }
    }

    #[test]
    fn nothing_lost_hides_nothing() {
        assert_eq!(variance(&[], &one_stream(), 1.0, 1.0), 0.0);
    }

    #[test]
    fn lengths_have_their_powers_of_two_and_the_last_one_all_that_are_longer() {
        let mut sums = ByLength::default();
        let places = [0, 1, 2, 3, 4, u64::from(u32::MAX), 1 << 32, u64::MAX].map(|records| sums.add(records));
        assert_eq!(places, [0, 0, 1, 1, 2, 31, 31, 31]);
        // Two and three records.
        assert_eq!(sums.by_length[1], Sums { records: 5.0, squares: 13.0, cubes: 35.0 });
    }
}
