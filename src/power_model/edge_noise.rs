//! Errors of successive intervals that share their edges.
//!
//! Meters move in steps and samples stand for many events: at a given moment, both are known only
//! roughly. Such an error is in the interval before that moment and, with the other sign, in the one
//! after it. Least squares that took intervals for independent would throw away what they know together:
//! of a hundred intervals in a row, the sum is wrong by two edges, not by two hundred. So the errors are
//! taken for the sum of two independent parts,
//!
//! `error(k) = within(k) + edge(k) - edge(k - 1)`,
//!
//! of which the first grows with an interval's length, a moving average of order one on a random walk
//! (Box and Jenkins, *Time Series Analysis*, chapter 4, call it the process (0, 1, 1)). Its covariance has
//! three diagonals; its Cholesky factor, which has two, makes rows whose errors are independent.

use super::intervals::Interval;

/// Makes the errors of intervals independent and equally large.
#[derive(Debug, Clone)]
pub(super) struct Whitening {
    /// Of the Cholesky factor of the covariance.
    diagonal: Vec<f64>,
    /// Left of the diagonal.
    beside: Vec<f64>,
    within: f64,
}

/// Shares of the edges that are tried: ever closer to intervals that are exact but for their edges.
const SHARES: [f64; 12] = [0.0, 0.2, 0.4, 0.6, 0.75, 0.87, 0.94, 0.97, 0.985, 0.995, 0.998, 0.9995];

impl Whitening {
    /// For errors of which each edge has the variance `share` and the time between two edges, in an
    /// interval of the mean length, `1 - share`. A `share` below one.
    fn new(rows: &[Interval], share: f64) -> Self {
        let mean = rows.iter().map(|row| row.seconds).sum::<f64>() / rows.len().max(1) as f64;
        let mut whitening = Self {
            diagonal: Vec::with_capacity(rows.len()),
            beside: Vec::with_capacity(rows.len()),
            within: 1.0 - share,
        };
        let mut above: f64 = 0.0;
        for row in rows {
            let variance = (1.0 - share) * row.seconds / mean + 2.0 * share;
            let beside = if row.follows && above > 0.0 { -share / above } else { 0.0 };
            above = (variance - beside * beside).max(f64::MIN_POSITIVE).sqrt();
            whitening.diagonal.push(above);
            whitening.beside.push(beside);
        }
        whitening
    }

    /// The variance of what lies between the edges of an interval of the mean length, where a turned error's is 1.
    pub fn within(&self) -> f64 {
        self.within
    }

    /// From intervals that are independent to intervals that are exact but for their edges: what fits best is
    /// to be found out by [`Whitening::unlikeliness`].
    pub fn candidates(rows: &[Interval]) -> impl Iterator<Item = Self> {
        SHARES.into_iter().map(|share| Self::new(rows, share))
    }

    /// The negative logarithm of the likelihood of these turned errors, up to a constant, with the deviation
    /// that makes it least. It goes by their sizes and not by squares, so that a few wild ones do not decide.
    pub fn unlikeliness(&self, white: &[f64]) -> f64 {
        let size = white.iter().map(|error| error.abs()).sum::<f64>() / white.len().max(1) as f64;
        size.max(f64::MIN_POSITIVE).ln() * white.len() as f64
            + self.diagonal.iter().map(|value| value.ln()).sum::<f64>()
    }

    /// Turns a column of values, one for each interval.
    pub fn apply(&self, column: &mut [f64]) {
        let mut before = 0.0;
        for ((value, diagonal), beside) in column.iter_mut().zip(&self.diagonal).zip(&self.beside) {
            *value = (*value - beside * before) / diagonal;
            before = *value;
        }
    }

    /// What an error of variance one at each edge makes of the variance of each turned value.
    pub fn edge_variances(&self, rows: &[Interval]) -> Vec<f64> {
        let mut variances: Vec<f64> = Vec::with_capacity(rows.len());
        // Of the value before, and its covariance with the error of the edge that both share.
        let (mut before, mut shared) = (0.0, 0.0);
        for ((row, diagonal), beside) in rows.iter().zip(&self.diagonal).zip(&self.beside) {
            let common = if row.follows { beside * beside * before + 2.0 * beside * shared } else { 0.0 };
            before = (2.0 + common).max(0.0) / (diagonal * diagonal);
            shared = 1.0 / diagonal;
            variances.push(before);
        }
        variances
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::random::Random;

    fn rows(count: usize, gap_at: usize) -> Vec<Interval> {
        let row = |at: usize| Interval {
            busy: 0.0,
            guessed: 0.0,
            static_term: 0,
            follows: at > 0 && at != gap_at,
            seconds: 0.1,
            joules: 0.0,
            counts: Vec::new(),
        };
        (0..count).map(row).collect()
    }

    /// Errors of these deviations within intervals and at edges.
    fn errors(rows: &[Interval], within: f64, edges: f64) -> Vec<f64> {
        let mut random = Random::seeded(0);
        let mut before = 0.0;
        let error = |row: &Interval| {
            if !row.follows {
                before = edges * random.symmetric();
            }
            let edge = edges * random.symmetric();
            let error = within * random.symmetric() + edge - before;
            before = edge;
            error
        };
        rows.iter().map(error).collect()
    }

    fn variance(values: &[f64]) -> f64 {
        values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64
    }

    #[test]
    fn whitened_errors_are_independent() {
        let rows = rows(4000, 1234);
        for (within, edges) in [(1.0, 0.0), (1.0, 1.0), (0.1, 1.0), (0.01, 1.0)] {
            let mut white = errors(&rows, within, edges);
            let raw: f64 = white.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>()
                / (variance(&white) * white.len() as f64);
            let turned = |whitening: &Whitening| {
                let mut white = white.clone();
                whitening.apply(&mut white);
                white
            };
            let unlikely = |whitening: &Whitening| whitening.unlikeliness(&turned(whitening));
            let best = Whitening::candidates(&rows).min_by(|a, b| unlikely(a).total_cmp(&unlikely(b)));
            white = turned(&best.expect("candidates"));
            let correlation: f64 = white.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>()
                / (variance(&white) * white.len() as f64);
            assert!(correlation.abs() < 0.1, "{within} {edges}: {correlation}");
            assert!(edges == 0.0 || raw < -0.2, "{within} {edges}: {raw}");
        }
    }

    #[test]
    fn the_sum_of_a_row_is_known_by_its_two_ends() {
        // A constant is what errors are seen against; its information is the sum of its squares.
        let rows = rows(1000, 0);
        let information = |share: f64| {
            let mut constant = vec![1.0; rows.len()];
            Whitening::new(&rows, share).apply(&mut constant);
            constant.iter().map(|value| value * value).sum::<f64>()
        };
        // Independent intervals of the same variance, 2: 500. With edges alone the slope of a line through
        // 1001 points is known by the sum of their squared distances from the middle.
        assert!((information(0.0) - 1000.0).abs() < 1e-9);
        let line: f64 = (0..=1000).map(|at| (f64::from(at) - 500.0).powi(2)).sum();
        assert!((information(1.0 - 1e-12) / line - 1.0).abs() < 1e-3);
    }

    #[test]
    fn noise_of_edges_is_followed_through() {
        let rows = rows(3000, 700);
        for share in [0.0, 0.5, 0.97] {
            let whitening = Whitening::new(&rows, share);
            let mut white = errors(&rows, 0.0, 1.0);
            whitening.apply(&mut white);
            // The errors are uniform in -1 to 1, of variance a third.
            let expected: f64 = whitening.edge_variances(&rows).iter().sum::<f64>() / 3.0;
            let found: f64 = white.iter().map(|value| value * value).sum();
            assert!((found / expected - 1.0).abs() < 0.1, "{share}: {found} {expected}");
        }
    }

    /// Turned errors are independent: the factors, multiplied, are the covariance of neighbours, whose edge they share.
    #[test]
    fn the_factors_are_those_of_the_covariance() {
        let lengths = [0.1, 0.3, 0.2, 0.2, 0.2];
        let mut rows = rows(lengths.len(), 3);
        rows.iter_mut().zip(lengths).for_each(|(row, seconds)| row.seconds = seconds);
        for (share, whitening) in SHARES.into_iter().zip(Whitening::candidates(&rows)) {
            assert_eq!(whitening.within(), 1.0 - share);
            for (at, row) in rows.iter().enumerate() {
                let (own, beside) = (whitening.diagonal[at], whitening.beside[at]);
                // 0.2 s are the mean length.
                let variance = (1.0 - share) * row.seconds / 0.2 + 2.0 * share;
                assert!((own * own + beside * beside - variance).abs() < 1e-12, "{share} {at}");
                let with_last = if at == 0 { 0.0 } else { beside * whitening.diagonal[at - 1] };
                let expected = if row.follows { -share } else { 0.0 };
                assert!((with_last - expected).abs() < 1e-12, "{share} {at}: {with_last}");
            }
            // What is turned solves the factors for the errors.
            let errors = [1.0, -2.0, 0.5, 3.0, -1.0];
            let mut turned = errors;
            whitening.apply(&mut turned);
            for at in 0..errors.len() {
                let before = if at == 0 { 0.0 } else { whitening.beside[at] * turned[at - 1] };
                assert!((whitening.diagonal[at] * turned[at] + before - errors[at]).abs() < 1e-12);
            }
            let size = turned.iter().map(|error| error.abs()).sum::<f64>() / 5.0;
            let expected = 5.0 * size.ln() + whitening.diagonal.iter().map(|own| own.ln()).sum::<f64>();
            assert!((whitening.unlikeliness(&turned) - expected).abs() < 1e-12);
        }
    }
}
