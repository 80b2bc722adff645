//! Whether a recording contradicts what a calibration says of its coefficients.
//!
//! A calibration says how well it knows each coefficient: on a machine that its events describe, to some thousandths. The code
//! of a recording may be unlike that of the calibration, and what an event costs in it some hundredths off. How much is
//! unknown, and if all recordings were believed to be like the worst, each would move coefficients by what its own noise
//! amounts to: by more than they are off. But a recording tells whether it is one of those. What rows differ by from what is
//! believed has the variance of the rows' noise, and that of the beliefs' errors beside it, so that each size of the latter
//! has a likelihood (an empirical prior: Carlin and Louis, *Bayes and Empirical Bayes Methods for Data Analysis*, 2000,
//! chapter 3). Coefficients are taken to be as far off as is likeliest, and not at all where that is not likelier by more
//! than chance.

use nalgebra::{DMatrix, DVector};

/// Shares of what coefficients may be off by at most that are tried.
const SHARES: [f64; 4] = [0.125, 0.25, 0.5, 1.0];
/// A likelihood is greater by chance up to a factor whose logarithm is this: half of the quantile of 90 % of chi squared with
/// one degree of freedom, which with a variance that cannot be below zero is exceeded by chance in 5 % of all cases.
const BY_CHANCE: f64 = 1.353;

/// What rows say of the differences of coefficients from what is believed of them.
pub(super) struct Evidence {
    /// Sums of products of columns, over the variance of the rows' noise.
    pub information: DMatrix<f64>,
    /// Products of columns with what rows differ by from what is believed, over the same variance.
    pub score: DVector<f64>,
    /// Variance of the score that comes of what is not known of the noise of counts.
    pub unsure: DVector<f64>,
}

impl Evidence {
    /// By which share of `more` the errors of beliefs, standard errors `errors`, are to be taken larger.
    pub fn share(&self, errors: &[f64], more: &[f64]) -> f64 {
        let likelihood = |share: f64| {
            let variances =
                errors.iter().zip(more).map(|(error, more)| error.powi(2) + (share * more).powi(2));
            self.log_likelihood(&variances.collect::<Vec<f64>>())
        };
        let Some(as_believed) = likelihood(0.0) else { return 1.0 };
        let tried = SHARES.iter().filter_map(|&share| Some((share, likelihood(share)?)));
        let likeliest = tried.max_by(|one, other| one.1.total_cmp(&other.1));
        likeliest
            .filter(|(_, likelihood)| *likelihood > as_believed + BY_CHANCE)
            .map_or(0.0, |(share, _)| share)
    }

    /// Logarithm of the likelihood of the score where beliefs have errors of these variances, up to a constant. `None` where
    /// it cannot be told.
    fn log_likelihood(&self, variances: &[f64]) -> Option<f64> {
        /// What columns have in common to the last digits cannot be told apart, whatever is believed.
        const RIDGE: f64 = 1e-12;
        let size = self.score.len();
        // Columns of length one: coefficients differ by twenty orders of magnitude.
        let scale = |at: usize| self.information[(at, at)].max(0.0).sqrt();
        let used: Vec<usize> = (0..size).filter(|&at| scale(at) > 0.0 && variances[at].is_finite()).collect();
        let scaled = |a: usize, b: usize| self.information[(a, b)] / scale(a) / scale(b);
        let between = DMatrix::from_fn(used.len(), used.len(), |a, b| scaled(used[a], used[b]));
        let beliefs = DVector::from_fn(used.len(), |at, _| variances[used[at]] * scale(used[at]).powi(2));
        let unsure =
            DVector::from_fn(used.len(), |at, _| self.unsure[used[at]] / scale(used[at]).powi(2) + RIDGE);
        let covariance = &between * DMatrix::from_diagonal(&beliefs) * &between
            + &between
            + DMatrix::from_diagonal(&unsure);
        let score = DVector::from_fn(used.len(), |at, _| self.score[used[at]] / scale(used[at]));
        let factor = covariance.cholesky()?;
        let log_determinant: f64 = 2.0 * factor.l().diagonal().iter().map(|value| value.ln()).sum::<f64>();
        let square = score.dot(&factor.solve(&score));
        Some(-0.5 * (log_determinant + square))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::random::Random;

    /// One coefficient, told by the rows to half of a unit; it is believed exactly, and may be off by 1.5 units in other code.
    fn share(difference: f64, unsure: f64) -> f64 {
        let evidence = Evidence {
            information: DMatrix::from_element(1, 1, 4.0),
            score: DVector::from_element(1, 4.0 * difference),
            unsure: DVector::from_element(1, unsure),
        };
        evidence.share(&[0.0], &[1.5])
    }

    #[test]
    fn one_coefficient_by_hand() {
        // In standard errors of the rows it differs by z. Variances are 1 as believed, 3.25 and 10 where it may be off by a half
        // or all of 1.5 units: logarithms of likelihoods are -(ln v + z² / v) / 2.
        // 2.3: -2.645, -1.403, -1.416.
        assert_eq!(share(1.15, 0.0), 0.0);
        // 2.4: -2.88, -1.476, -1.439.
        assert_eq!(share(1.2, 0.0), 1.0);
        // 3: -4.5, -1.974, -1.601; with 3 more of what noise is unsure by: variances of 4, 6.25 and 13, -1.818 to -1.629.
        assert_eq!((share(1.5, 0.0), share(-1.5, 0.0), share(1.5, 12.0)), (1.0, 1.0, 0.0));
        assert_eq!(share(0.0, 0.0), 0.0);
    }

    /// Two coefficients that rows tell together better than apart.
    fn of_two(differences: [f64; 2]) -> Evidence {
        let information = DMatrix::from_row_slice(2, 2, &[4.0, 3.0, 3.0, 9.0]);
        let score = &information * DVector::from_row_slice(&differences);
        Evidence { information, score, unsure: DVector::zeros(2) }
    }

    #[test]
    fn two_coefficients_have_the_likelihood_of_their_covariance() {
        let evidence = of_two([0.7, -0.4]);
        let log_of = |variances: [f64; 2]| {
            // What rows say of a coefficient has their covariance and that of the belief; products of columns turn it.
            let inverse = evidence.information.clone().try_inverse().expect("regular");
            let all = inverse + DMatrix::from_diagonal(&DVector::from_row_slice(&variances));
            let differences = DVector::from_row_slice(&[0.7, -0.4]);
            let square = differences.dot(&(all.clone().try_inverse().expect("regular") * &differences));
            -0.5 * (all.determinant().ln() + square)
        };
        let found = |variances: [f64; 2]| evidence.log_likelihood(&variances).expect("regular");
        let (one, other) = ([0.0, 0.01], [0.5, 2.0]);
        assert!((found(one) - found(other) - (log_of(one) - log_of(other))).abs() < 1e-9);
        // A column without rows, and one that is known of nothing, change nothing.
        let wider = Evidence {
            information: evidence.information.clone().resize(3, 3, 0.0),
            score: evidence.score.clone().resize_vertically(3, 0.0),
            unsure: DVector::zeros(3),
        };
        let of_wider = wider.log_likelihood(&[0.5, 2.0, 7.0]).expect("regular");
        assert!((of_wider - found(other)).abs() < 1e-9);
    }

    /// Coefficients that are off as believed are left alone in 19 of 20 recordings; such that are off by as much as they may be
    /// in other code, seldom.
    #[test]
    fn what_is_off_by_chance_is_told_from_what_is_off_by_code() {
        let mut random = Random::seeded(3);
        let mut normal = || (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0;
        let mut contradicted = |off: f64| {
            let of_one = |_| {
                // What rows say is off by their noise: the score is that of unit noise turned by the root of the information.
                let mut evidence = of_two([off * normal(), off * normal()]);
                let root = evidence.information.clone().cholesky().expect("positive").l();
                evidence.score += root * DVector::from_row_slice(&[normal(), normal()]);
                evidence.share(&[0.1, 0.1], &[2.0, 2.0]) > 0.0
            };
            (0..1000).map(of_one).filter(|contradicted| *contradicted).count()
        };
        let (as_believed, of_other_code) = (contradicted(0.1), contradicted(2.0));
        assert!((10..=60).contains(&as_believed), "{as_believed}");
        assert!(of_other_code > 800, "{of_other_code}");
    }
}
