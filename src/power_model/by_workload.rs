//! Standard errors of coefficients where rows belong together.
//!
//! Rows of one workload are off in the same direction, so a thousand of them tell hardly more of a coefficient than
//! ten: by the scatter of rows alone, errors come out smaller than they are by whole factors. Here each workload
//! counts once. A coefficient's error is the jackknife's (M. H. Quenouille, "Notes on bias in estimation",
//! Biometrika 43, 1956; for groups of rows in regression the estimator CR3 of R. M. Bell and D. F. McCaffrey, "Bias
//! reduction in standard errors for linear regression with multi-stage samples", Survey Methodology 28, 2002): by how
//! much it moves when one workload after the other is left out.
//!
//! Some combinations of coefficients are told by one workload alone: without it there is nothing to fit, and it fits
//! there whatever it measured. What is wrong of those is taken from how wrong the others are when left out.
//!
//! Without a workload, a coefficient that is held at zero by its sign may be free, or another be held: then the fit is made anew,
//! for what the others move by is more than their own columns tell. Not so where nothing but that workload tells one that gets
//! free from the others, as idling alone tells power at rest from that of cycles, which all else has.

use nalgebra::{DMatrix, DVector};

use crate::numerics::folds::Part;
use crate::numerics::robust::deviation;

/// Fewer workloads say nothing of how workloads differ.
pub(super) const FEWEST_WORKLOADS: usize = 3;

/// A workload with more than this share of what is known of a direction is the only one that knows it.
const ALONE: f64 = 0.95;

/// Standard errors of the coefficients of a least squares fit of the target on the columns of a design, whose first
/// rows are data, divided into workloads, and the rest a prior's. `residuals` are the rows' target minus fit. `moved_without` tells
/// by how much the coefficients move without a workload where other ones are held at zero there, and `None` where the same are.
///
/// `None` with fewer than three workloads, or if the columns cannot be told apart.
pub(super) fn standard_errors(
    design: &DMatrix<f64>,
    target: &[f64],
    residuals: &[f64],
    workloads: &[Part],
    moved_without: impl Fn(&[usize]) -> Option<Vec<f64>>,
) -> Option<Vec<f64>> {
    if workloads.len() < FEWEST_WORKLOADS {
        return None;
    }
    let root = root_of_inverse(&design.tr_mul(design))?;
    let left_out: Vec<LeftOut> =
        workloads.iter().map(|rows| LeftOut::new(design, target, residuals, rows, &root)).collect();
    let mut shares: Vec<f64> =
        left_out.iter().filter(|one| one.alone.is_none()).map(|one| one.share.abs()).collect();
    if shares.is_empty() {
        shares = left_out.iter().map(|one| one.share.abs()).collect();
    }
    let typical = deviation(&mut shares)?;
    let jackknife = (workloads.len() - 1) as f64 / workloads.len() as f64;
    let mut variances = DVector::zeros(design.ncols());
    for (one, rows) in left_out.iter().zip(workloads) {
        // What one workload alone tells is anything without it.
        let anew = one.alone.is_none().then(|| moved_without(rows)).flatten();
        let moved = anew.map_or_else(|| &root * &one.shift, DVector::from_vec);
        variances += moved.map(|moved| jackknife * moved * moved);
        if let Some(alone) = &one.alone {
            variances += (&root * alone).map(|moved| (typical * moved).powi(2));
        }
    }
    Some(variances.iter().map(|variance: &f64| variance.sqrt()).collect())
}

/// Whether some combination of a design's coefficients is told by these rows alone, or by none: without them it is anything.
pub(super) fn is_told_by_them_alone(design: &DMatrix<f64>, rows: &[usize]) -> bool {
    let Some(root) = root_of_inverse(&design.tr_mul(design)) else { return true };
    let own = design.select_rows(rows) * root;
    own.tr_mul(&own).symmetric_eigenvalues().iter().any(|share| *share > ALONE)
}

/// What happens to a fit without one workload, in coordinates in which all coefficients are known alike.
struct LeftOut {
    /// By how much the coefficients move, as far as the other workloads tell them.
    shift: DVector<f64>,
    /// By how much those that only this workload tells would move if its power were all of it more.
    alone: Option<DVector<f64>>,
    /// How far its power lies above what the others say of it, as a share.
    share: f64,
}

impl LeftOut {
    fn new(
        design: &DMatrix<f64>,
        target: &[f64],
        residuals: &[f64],
        rows: &[usize],
        root: &DMatrix<f64>,
    ) -> Self {
        let own = design.select_rows(rows) * root;
        let of_rows =
            |values: &[f64]| DVector::from_iterator(rows.len(), rows.iter().map(|&row| values[row]));
        let (own_target, own_residuals) = (of_rows(target), of_rows(residuals));
        let (moment, of_target) = (own.tr_mul(&own_residuals), own.tr_mul(&own_target));
        let known = own.tr_mul(&own).symmetric_eigen();
        let mut shift = DVector::zeros(root.ncols());
        let mut alone: Option<DVector<f64>> = None;
        for (share, direction) in known.eigenvalues.iter().zip(known.eigenvectors.column_iter()) {
            if *share > ALONE {
                let part = direction * direction.dot(&of_target);
                alone = Some(alone.map_or(part.clone(), |sum| sum + part));
            } else {
                shift += direction * (direction.dot(&moment) / (1.0 - share));
            }
        }
        let above = (&own_residuals + &own * &shift).sum();
        Self { shift, alone, share: above / own_target.sum() }
    }
}

/// The symmetric root of the inverse of a matrix of squares; `None` if it has none.
fn root_of_inverse(gram: &DMatrix<f64>) -> Option<DMatrix<f64>> {
    let parts = gram.clone().symmetric_eigen();
    let roots = parts.eigenvalues.map(|value| if value > 0.0 { value.sqrt().recip() } else { f64::NAN });
    let root = &parts.eigenvectors * DMatrix::from_diagonal(&roots) * parts.eigenvectors.transpose();
    root.iter().all(|value| value.is_finite()).then_some(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::folds::spans;
    use crate::numerics::least_squares::LeastSquares;
    use crate::numerics::random::Random;
    use crate::numerics::student::t_quantile;

    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0
    }

    fn errors(design: &DMatrix<f64>, target: &[f64], workloads: &[Part]) -> (Vec<f64>, Vec<f64>) {
        let fit = LeastSquares::fit(design, target).expect("of full rank");
        let errors = standard_errors(design, target, fit.residuals(), workloads, |_| None);
        let errors = errors.expect("workloads enough");
        (fit.coefficients().to_vec(), errors)
    }

    /// The short cut is leaving out and fitting again.
    #[test]
    fn it_is_the_jackknife() {
        let mut random = Random::seeded(3);
        let design = DMatrix::from_fn(40, 3, |_, at| if at == 0 { 1.0 } else { random.uniform() });
        let target: Vec<f64> = (0..40).map(|_| 5.0 + random.uniform()).collect();
        let workloads = spans(40, 8);
        let (whole, errors) = errors(&design, &target, &workloads);
        let mut squares = [0.0; 3];
        for rows in &workloads {
            let kept: Vec<usize> = (0..40).filter(|row| !rows.contains(row)).collect();
            let part: Vec<f64> = kept.iter().map(|&row| target[row]).collect();
            let fit = LeastSquares::fit(&design.select_rows(&kept), &part).expect("of full rank");
            for (square, (a, b)) in squares.iter_mut().zip(fit.coefficients().iter().zip(&whole)) {
                *square += 7.0 / 8.0 * (a - b) * (a - b);
            }
        }
        for (error, square) in errors.iter().zip(squares) {
            assert!((error / square.sqrt() - 1.0).abs() < 1e-9, "{error} {square}");
        }
    }

    /// Ten workloads of 30 rows, each off by some watts of its own, and a second column that differs between
    /// workloads: rows alone would hold the truth in less than half of the trials.
    #[test]
    fn intervals_hold_what_they_say() {
        const WORKLOADS: usize = 10;
        let mut random = Random::seeded(7);
        let (mut held, mut held_by_rows, trials) = (0, 0, 400);
        let quantile = t_quantile(0.95, WORKLOADS - 1).expect("valid");
        for _ in 0..trials {
            let levels: Vec<f64> = (0..WORKLOADS).map(|_| random.uniform()).collect();
            let off: Vec<f64> = (0..WORKLOADS).map(|_| normal(&mut random)).collect();
            let value = |row: usize, random: &mut Random| levels[row / 30] + 0.1 * random.uniform();
            let column: Vec<f64> = (0..300).map(|row| value(row, &mut random)).collect();
            let design = DMatrix::from_fn(300, 2, |row, at| if at == 0 { 1.0 } else { column[row] });
            let target: Vec<f64> = (0..300)
                .map(|row| 50.0 + 20.0 * column[row] + off[row / 30] + 0.3 * normal(&mut random))
                .collect();
            let (found, errors) = errors(&design, &target, &spans(300, WORKLOADS));
            held += u32::from((found[1] - 20.0).abs() < quantile * errors[1]);
            let fit = LeastSquares::fit(&design, &target).expect("of full rank");
            let by_rows = fit.standard_errors(fit.residual_variance().expect("rows enough"));
            held_by_rows += u32::from((found[1] - 20.0).abs() < 1.97 * by_rows[1]);
        }
        let share = |held: u32| f64::from(held) / f64::from(trials);
        println!("held: by workloads {:.3}, by rows {:.3}", share(held), share(held_by_rows));
        assert!((0.92..=0.99).contains(&share(held)), "{}", share(held));
        assert!(share(held_by_rows) < 0.6, "{}", share(held_by_rows));
    }

    /// One workload alone has the second event. Its coefficient is as wrong as that workload's power may be.
    #[test]
    fn what_one_workload_alone_tells_is_not_certain() {
        let mut random = Random::seeded(11);
        let (mut held, trials) = (0, 400);
        for _ in 0..trials {
            let off: Vec<f64> = (0..8).map(|_| 1.0 + 0.03 * normal(&mut random)).collect();
            let design = DMatrix::from_fn(80, 3, |row, at| match at {
                0 => 1.0,
                1 => (row % 5) as f64,
                _ => {
                    if row / 10 == 7 {
                        1.0 + (row % 3) as f64
                    } else {
                        0.001
                    }
                }
            });
            let target: Vec<f64> = (0..80)
                .map(|row| {
                    (30.0 + 2.0 * design[(row, 1)] + 10.0 * design[(row, 2)])
                        * (off[row / 10] + 0.002 * normal(&mut random))
                })
                .collect();
            let (found, errors) = errors(&design, &target, &spans(80, 8));
            held += u32::from((found[2] - 10.0).abs() < 2.36 * errors[2]);
        }
        let share = f64::from(held) / f64::from(trials);
        println!("held {share:.3}");
        assert!((0.88..=1.0).contains(&share), "{share}");
    }

    /// Rows of a workload that alone tells the first two coefficients, beside two of others that tell the third.
    #[test]
    fn all_that_one_workload_tells_alone_moves_with_its_power() {
        let rows = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]];
        let design = DMatrix::from_fn(4, 3, |row, column| rows[row][column]);
        let root = root_of_inverse(&design.tr_mul(&design)).expect("regular");
        let left_out = LeftOut::new(&design, &[3.0, 4.0, 5.0, 5.0], &[0.0; 4], &[0, 1], &root);
        let alone = left_out.alone.expect("nothing else tells the first two");
        assert!((alone - DVector::from_vec(vec![3.0, 4.0, 0.0])).amax() < 1e-12);
        assert!(left_out.shift.amax() < 1e-12);
        let of_others = LeftOut::new(&design, &[3.0, 4.0, 5.0, 5.0], &[0.0; 4], &[3], &root);
        assert_eq!(of_others.alone, None);
    }
}
