//! How wrong a model is for what it has not seen.

use std::fmt;

use super::dataset::Dataset;
use super::error::ModelError;
use crate::numerics::folds::{Fold, Part, spans};

/// Which rows are held back from training, in turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Protocol {
    /// Each workload in turn: the error for programs that were not measured.
    LeaveOneWorkloadOut,
    /// Each of so many spans of the data in turn.
    Blocks(usize),
    /// The last rows, after training with this share of the first.
    Forward(f64),
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeaveOneWorkloadOut => write!(f, "each workload left out in turn, trained with the others"),
            Self::Blocks(count) => {
                write!(f, "each of {count} equal spans left out in turn, trained with the others")
            }
            Self::Forward(share) => {
                write!(f, "trained with the first {:.0} % of the rows, tested on the rest", share * 100.0)
            }
        }
    }
}

impl Protocol {
    /// The rows to hold out in turn, with a name for each part.
    ///
    /// # Errors
    /// [`ModelError::TooFewWorkloads`], [`ModelError::TooManySpans`] or [`ModelError::NothingLeft`] if nothing would be left.
    pub fn parts(self, data: &Dataset) -> Result<Vec<(String, Part)>, ModelError> {
        let rows = data.len();
        let by_rows = |part: Part| {
            let (start, end) = (part.first().copied().unwrap_or(0), part.last().map_or(0, |last| last + 1));
            (format!("rows {start}..{end}"), part)
        };
        match self {
            Self::LeaveOneWorkloadOut => {
                let parts = data.by_workload();
                if parts.len() < 2 {
                    return Err(ModelError::TooFewWorkloads { have: parts.len(), need: 2 });
                }
                let name = |part: &Part| data.workloads()[data.workload_of(part[0])].clone();
                Ok(parts.into_iter().map(|part| (name(&part), part)).collect())
            }
            Self::Blocks(count) => {
                let count = count.max(2);
                if rows < 2 * count {
                    return Err(ModelError::TooManySpans { rows, spans: count });
                }
                Ok(spans(rows, count).into_iter().map(by_rows).collect())
            }
            Self::Forward(share) => {
                let start = (rows as f64 * share.clamp(0.0, 1.0)) as usize;
                if start < 2 || start >= rows {
                    return Err(ModelError::NothingLeft { rows, percent: 100.0 * share });
                }
                Ok(vec![by_rows((start..rows).collect())])
            }
        }
    }
}

/// The errors of one held-back part.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldErrors {
    /// Its workload or its rows.
    pub name: String,
    /// Number of rows.
    pub rows: usize,
    /// Mean of |estimate - measured| / measured.
    pub mean: f64,
    /// The largest of them.
    pub worst: f64,
    /// Mean of (estimate - measured) / measured: what does not average out.
    pub bias: f64,
}

/// The outcome of a validation.
#[derive(Debug, Clone, PartialEq)]
pub struct Validation {
    /// One entry per held-back part.
    pub folds: Vec<FoldErrors>,
}

impl Validation {
    /// Mean relative error, each part counted once.
    pub fn mean_over_folds(&self) -> f64 {
        self.folds.iter().map(|fold| fold.mean).sum::<f64>() / self.folds.len() as f64
    }

    /// The middle part's mean relative error: one part that nothing else tells of does not decide it.
    pub fn median_over_folds(&self) -> f64 {
        let mut means: Vec<f64> = self.folds.iter().map(|fold| fold.mean).collect();
        means.sort_unstable_by(f64::total_cmp);
        let middle = means.len() / 2;
        if means.len() % 2 == 1 { means[middle] } else { (means[middle - 1] + means[middle]) / 2.0 }
    }

    /// The part that is furthest off.
    pub fn worst_fold(&self) -> &FoldErrors {
        self.folds.iter().max_by(|a, b| a.mean.total_cmp(&b.mean)).expect("a protocol has parts")
    }

    /// Mean relative error, each row counted once.
    pub fn mean_over_rows(&self) -> f64 {
        let rows: usize = self.folds.iter().map(|fold| fold.rows).sum();
        self.folds.iter().map(|fold| fold.mean * fold.rows as f64).sum::<f64>() / rows as f64
    }
}

/// Trains with what each fold leaves and tests on what it holds back. `train` gets the training rows only.
///
/// # Errors
/// Those of [`Protocol::parts`] and of `train`.
pub fn validate<Model>(
    data: &Dataset,
    protocol: Protocol,
    mut train: impl FnMut(&Dataset) -> Result<Model, ModelError>,
    watts: impl Fn(&Model, &[f64]) -> f64,
) -> Result<Validation, ModelError> {
    let mut folds = Vec::new();
    for (name, part) in protocol.parts(data)? {
        let Fold { held_out, kept } = Fold::holding_out(&part, data.len());
        let model = train(&data.only(&kept))?;
        let errors = held_out.iter().map(|&row| watts(&model, data.rates(row)) / data.watts(row) - 1.0);
        let (mut rows, mut sum, mut bias, mut worst) = (0, 0.0, 0.0, 0.0f64);
        for error in errors {
            rows += 1;
            sum += error.abs();
            bias += error;
            worst = worst.max(error.abs());
        }
        folds.push(FoldErrors { name, rows, mean: sum / rows as f64, worst, bias: bias / rows as f64 });
    }
    Ok(Validation { folds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power_model::dataset::Observation;

    #[test]
    fn one_part_that_nothing_tells_of_does_not_decide_the_median() {
        let fold = |name: &str, mean: f64| FoldErrors {
            name: name.to_owned(),
            rows: 1,
            mean,
            worst: mean,
            bias: mean,
        };
        let mut validation = Validation { folds: vec![fold("a", 0.02), fold("b", 4.0), fold("c", 0.01)] };
        assert_eq!((validation.median_over_folds(), &*validation.worst_fold().name), (0.02, "b"));
        validation.folds.push(fold("d", 0.04));
        assert_eq!(validation.median_over_folds(), 0.03);
    }
    /// Rows of 10, 20, 30, ... W, the first of one workload, the rest of two in turn.
    fn rows(count: usize) -> Dataset {
        let mut data = Dataset::new(vec!["a".into()]);
        for row in 0..count {
            let workload = ["first", "odd", "even"][if row == 0 { 0 } else { 1 + row % 2 }];
            let watts = 10.0 * (row + 1) as f64;
            assert!(data.push(Observation { rates: &[row as f64], watts, workload, frequency: None }));
        }
        data
    }

    #[test]
    fn every_row_is_held_out_once() {
        let of = |protocol: Protocol, count| protocol.parts(&rows(count));
        let named = |parts: Result<Vec<(String, Part)>, ModelError>| {
            parts
                .expect("enough rows")
                .into_iter()
                .map(|(name, part)| format!("{name}: {part:?}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            named(of(Protocol::LeaveOneWorkloadOut, 5)),
            ["first: [0]", "even: [1, 3]", "odd: [2, 4]"]
        );
        assert_eq!(named(of(Protocol::Blocks(2), 5)), ["rows 0..2: [0, 1]", "rows 2..5: [2, 3, 4]"]);
        assert_eq!(of(Protocol::Blocks(0), 5), of(Protocol::Blocks(2), 5), "one part would leave nothing");
        assert_eq!(named(of(Protocol::Forward(0.4), 5)), ["rows 2..5: [2, 3, 4]"]);
        assert_eq!(named(of(Protocol::Forward(0.99), 5)), ["rows 4..5: [4]"]);
        for (protocol, count, error) in [
            (Protocol::LeaveOneWorkloadOut, 1, ModelError::TooFewWorkloads { have: 1, need: 2 }),
            (Protocol::Blocks(3), 5, ModelError::TooManySpans { rows: 5, spans: 3 }),
            (Protocol::Forward(0.39), 5, ModelError::NothingLeft { rows: 5, percent: 100.0 * 0.39 }),
            (Protocol::Forward(1.0), 5, ModelError::NothingLeft { rows: 5, percent: 100.0 }),
            (Protocol::Forward(-1.0), 5, ModelError::NothingLeft { rows: 5, percent: -100.0 }),
        ] {
            assert_eq!(of(protocol, count), Err(error), "{protocol}");
        }
        assert_eq!(of(Protocol::LeaveOneWorkloadOut, 2).map(|parts| parts.len()), Ok(2));
        assert_eq!(of(Protocol::Blocks(3), 6).map(|parts| parts.len()), Ok(3));
    }

    #[test]
    fn errors_by_hand() {
        // Of 10 to 60 W, a model that says the mean of what it was trained with: 50 W of the last three, and 20 W.
        let mean =
            |data: &Dataset| Ok((0..data.len()).map(|row| data.watts(row)).sum::<f64>() / data.len() as f64);
        let found =
            validate(&rows(6), Protocol::Blocks(2), mean, |mean: &f64, _| *mean).expect("enough rows");
        let errors = [[4.0, 1.5, 2.0 / 3.0], [-0.5, -0.6, -2.0 / 3.0]];
        for (fold, errors) in found.folds.iter().zip(errors) {
            let sum: f64 = errors.iter().sum();
            let worst = errors.iter().fold(0.0, |worst: f64, error| worst.max(error.abs()));
            assert_eq!(fold.rows, 3);
            assert!((fold.mean - sum.abs() / 3.0).abs() < 1e-12, "{fold:?}");
            assert!((fold.bias - sum / 3.0).abs() < 1e-12 && (fold.worst - worst).abs() < 1e-12, "{fold:?}");
        }
        assert_eq!(found.folds[1].name, "rows 3..6");
        let uneven = Validation {
            folds: vec![
                FoldErrors { rows: 1, mean: 0.5, ..found.folds[0].clone() },
                FoldErrors { rows: 3, mean: 0.1, ..found.folds[0].clone() },
            ],
        };
        assert!((uneven.mean_over_folds() - 0.3).abs() < 1e-12);
        assert!((uneven.mean_over_rows() - 0.2).abs() < 1e-12);
        assert!(Protocol::Forward(0.25).to_string().contains("the first 25 % of the rows"));
    }
}
