//! How far the joules of a cell may be from the truth because only every so-many-th event was seen.

use super::quantum::{Charge, Quantum};

/// Watches, for each event on each CPU, where one sample after another falls.
///
/// Samples come at equal counts, so the number of them in a cell is only unsure where the counter goes from
/// one cell to another: half the squared difference of successive samples, `½ Σ (yᵢ − yᵢ₋₁)²`, estimates
/// the variance of a systematic sample (Wolter, *Introduction to Variance Estimation*, 2nd ed., section 8.2).
/// Where cells alternate faster than samples come that is the binomial variance `n p (1 − p)`. Where both
/// last for many samples, the change lies anywhere between two of these, and each cell's count is off by a
/// number uniform in ±½, of variance 1/12.
#[derive(Debug, Default)]
pub(super) struct SamplingError {
    /// By event and CPU.
    streams: Vec<Vec<Option<Box<Stream>>>>,
}

#[derive(Debug)]
struct Stream {
    /// The cell before the last change, and how many samples it had without a break.
    before: Option<(Charge, u32)>,
    /// The cell now.
    now: Charge,
    samples: u32,
    /// Squared joules of the sample after the change, by domain.
    squares: Vec<f64>,
}

/// Share of a squared quantum that a change adds to the variance of either cell, by the number of samples in
/// a row of the shorter visit: from a half, where it may be an accident, to a twelfth, where it is none. The
/// steps between cost cells that alternate at random 6 % of their standard error at most (with p = 1/2).
const SHARES: [f64; 4] = [0.5, 0.3, 0.15, 1.0 / 12.0];
/// Damaged files name wild CPUs; kernels end at 8192.
const MOST_CPUS: usize = 1 << 16;

impl SamplingError {
    /// The next sample of its event on its CPU, and its joules by domain. Adds to `variances`, which has a
    /// row of domains for each cell.
    pub fn add(&mut self, quantum: &Quantum, joules: &[f64], variances: &mut [f64]) {
        let (event, slot) = (quantum.event as usize, quantum.cpu.map_or(0, |cpu| cpu as usize + 1));
        if slot > MOST_CPUS {
            return;
        }
        if self.streams.len() <= event {
            self.streams.resize_with(event + 1, Vec::new);
        }
        let streams = &mut self.streams[event];
        if streams.len() <= slot {
            streams.resize_with(slot + 1, || None);
        }
        match &mut streams[slot] {
            Some(stream) if stream.now == quantum.charge => stream.samples = stream.samples.saturating_add(1),
            Some(stream) => {
                stream.settle(variances);
                stream.before = Some((stream.now, stream.samples));
                (stream.now, stream.samples) = (quantum.charge, 1);
                stream.squares.iter_mut().zip(joules).for_each(|(square, joules)| *square = joules * joules);
            }
            empty => {
                *empty = Some(Box::new(Stream {
                    before: None,
                    now: quantum.charge,
                    samples: 1,
                    squares: joules.iter().map(|joules| joules * joules).collect(),
                }));
            }
        }
    }

    /// No more samples come.
    pub fn finish(&mut self, variances: &mut [f64]) {
        self.streams.iter().flatten().flatten().for_each(|stream| stream.settle(variances));
    }
}

impl Stream {
    /// Adds the variance of the last change, now that it is known how long its both sides lasted. Where
    /// nothing came before, the counter began anywhere.
    fn settle(&self, variances: &mut [f64]) {
        let shorter = self.before.map_or(self.samples, |(_, samples)| samples.min(self.samples));
        let share = SHARES[(shorter.max(1) as usize - 1).min(SHARES.len() - 1)];
        for charge in [Some(self.now), self.before.map(|(charge, _)| charge)].into_iter().flatten() {
            let Charge::Cell(cell) = charge else { continue };
            let row = variances.iter_mut().skip(cell as usize * self.squares.len());
            row.zip(&self.squares).for_each(|(variance, square)| *variance += share * square);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Nanoseconds, Timestamp};

    /// Variances of two cells after these samples of 2 J.
    fn variances(cells: impl IntoIterator<Item = u32>) -> Vec<f64> {
        let (mut error, mut variances) = (SamplingError::default(), vec![0.0; 2]);
        for cell in cells {
            let quantum = Quantum {
                start: Timestamp::default(),
                end: Timestamp::default(),
                cpu: Some(3),
                event: 1,
                count: 1,
                running: Nanoseconds::ZERO,
                charge: Charge::Cell(cell),
            };
            error.add(&quantum, &[2.0], &mut variances);
        }
        error.finish(&mut variances);
        variances
    }

    #[test]
    fn one_cell_alone_is_unsure_at_its_start_only() {
        assert_eq!(variances([0; 100]), [4.0 / 12.0, 0.0]);
    }

    #[test]
    fn long_visits_are_unsure_at_their_ends_only() {
        let variances = variances([0; 50].into_iter().chain([1; 50]).chain([0; 50]));
        let expected = [4.0 * 3.0 / 12.0, 4.0 * 2.0 / 12.0];
        assert!(variances.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12));
    }

    #[test]
    fn a_cell_seen_now_and_then_has_the_variance_of_its_count() {
        // Every tenth sample: ten of them, each a visit of its own.
        let variances = variances((0..100).map(|sample| u32::from(sample % 10 == 5)));
        assert_eq!(variances[1], 10.0 * 4.0);
    }
}
