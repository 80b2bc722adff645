//! Fits of power on standardised terms.

use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::form::{Form, Prepared};
use super::table::Table;
use crate::numerics::quantiles;
use crate::numerics::ridge::{Penalised, Ridge, with_constant};
use crate::numerics::robust::{deviation, huber_weight};

/// How coefficients are found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Least squares with a penalty on large coefficients; zero is plain least squares.
    Ridge(f64),
    /// The same, but rows far off the fit count less (Huber's weights).
    Robust(f64),
    /// Penalised least squares in which no unit's work may lower the power, and no idling may raise it.
    NonNegative(f64),
    /// No coefficient: the one power that is off by the least share on average, whatever happens.
    Level,
    /// Weighted means of similar rows: kernel ridge regression with a Gaussian of this length (in
    /// standard deviations per root of the number of terms) and this noise, beside a linear part.
    Similar {
        /// Length over which rows are similar.
        length: f64,
        /// Variance of the noise as a share of that of the power.
        noise: f64,
    },
}

/// What a fit makes small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// Errors in watts.
    Watts,
    /// Errors as shares of the power; effects still add.
    Shares,
    /// Errors of the power's logarithm: shares too, and effects multiply.
    Log,
}

/// All that a fit is made of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// Terms.
    pub form: Form,
    /// Errors.
    pub response: Response,
    /// Coefficients.
    pub method: Method,
}

/// Why a file holds no model.
#[derive(Debug, Error)]
pub enum StoredModelError {
    /// It is no JSON, or not that of a model.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Its parts do not belong to each other.
    #[error("its terms, coefficients and limits do not fit together")]
    Inconsistent,
}

/// A fitted model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// What it is made of.
    pub recipe: Recipe,
    /// The terms.
    pub prepared: Prepared,
    fitted: Fitted,
    /// Lowest and highest power of the training rows; predictions stay within half and twice.
    range: (f64, f64),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Fitted {
    Linear { constant: f64, coefficients: Vec<f64> },
    Similar { points: Vec<Vec<f64>>, weights: Vec<f64>, mean: f64, length: f64 },
}

impl Model {
    /// Fits a recipe to a table. `None` if the rows do not determine it.
    pub fn fit(recipe: Recipe, table: &Table) -> Option<Self> {
        if table.rows.is_empty() {
            return None;
        }
        let (prepared, rows) = Prepared::learn(recipe.form, table);
        let y = recipe.response.of(&table.power);
        let weights = recipe.response.weights(&table.power);
        let fitted = match recipe.method {
            Method::Similar { length, noise } => {
                let mean = y.mean();
                let matrix = similarity(&rows, length, noise);
                let centered = y.map(|value| value - mean);
                let weights = matrix.cholesky()?.solve(&centered);
                Fitted::Similar { points: rows, weights: weights.iter().copied().collect(), mean, length }
            }
            linear => {
                let (design, weights) = (with_constant(&rows), weights.as_deref());
                let x: Vec<f64> = match linear {
                    Method::NonNegative(ridge) => {
                        Penalised::new(&design, &y, weights, ridge).solve_signed(&prepared.signs(), None)?
                    }
                    Method::Robust(ridge) => robust(&design, &y, weights, ridge)?.0.as_slice().to_vec(),
                    Method::Ridge(ridge) => {
                        Ridge::fit(&design, &y, weights, ridge)?.coefficients.as_slice().to_vec()
                    }
                    Method::Level => vec![level(&table.power)?],
                    Method::Similar { .. } => return None,
                };
                let (constant, coefficients) = x.split_first()?;
                Fitted::Linear { constant: *constant, coefficients: coefficients.to_vec() }
            }
        };
        let low = table.power.iter().copied().fold(f64::MAX, f64::min);
        let high = table.power.iter().copied().fold(0.0, f64::max);
        Some(Self { recipe, prepared, fitted, range: (low, high) })
    }

    /// Reads a model that was stored as JSON.
    ///
    /// # Errors
    /// [`StoredModelError`] if it is none, or one that cannot predict anything.
    pub fn from_json(text: &str) -> Result<Self, StoredModelError> {
        let model: Self = serde_json::from_str(text)?;
        if model.is_sound() { Ok(model) } else { Err(StoredModelError::Inconsistent) }
    }

    /// Whether its parts fit together, as they may not if they come from a file.
    pub(super) fn is_sound(&self) -> bool {
        let terms = self.prepared.names.len();
        let fits = match &self.fitted {
            Fitted::Linear { coefficients, .. } => coefficients.len() == terms,
            Fitted::Similar { points, weights, .. } => {
                points.len() == weights.len() && points.iter().all(|point| point.len() == terms)
            }
        };
        let has_range = 0.0 < self.range.0 && self.range.0 <= self.range.1;
        fits && has_range && self.prepared.is_sound()
    }

    /// Predicted power in watts of a row with the columns of the table it was fitted to: at least
    /// half of the least that was measured, at most twice the most.
    pub fn predict(&self, row: &[f64]) -> f64 {
        let (low, high) = self.limits();
        self.unlimited(row).clamp(low, high)
    }

    /// Whether a row lies so far from all that was learnt from that limits stand for its terms or its power.
    pub fn is_beyond(&self, row: &[f64]) -> bool {
        let (low, high) = self.limits();
        self.prepared.is_beyond(row) || !(low..=high).contains(&self.unlimited(row))
    }

    /// The least and the most power that is ever predicted, in watts: half of the least that was measured, twice the most.
    fn limits(&self) -> (f64, f64) {
        (0.5 * self.range.0, 2.0 * self.range.1)
    }

    fn unlimited(&self, row: &[f64]) -> f64 {
        let terms = self.prepared.apply(row);
        let value = match &self.fitted {
            Fitted::Linear { constant, coefficients } => {
                constant + coefficients.iter().zip(&terms).map(|(c, x)| c * x).sum::<f64>()
            }
            Fitted::Similar { points, weights, mean, length } => {
                let similar = points.iter().zip(weights).map(|(point, w)| w * alike(point, &terms, *length));
                mean + similar.sum::<f64>()
            }
        };
        self.recipe.response.watts_of(value)
    }

    /// Coefficients per standard deviation of their term, largest first: in watts, or in shares of the
    /// power where its logarithm was fitted. Empty for a fit by similarity.
    pub fn coefficients(&self) -> Vec<(String, f64)> {
        let Fitted::Linear { coefficients, .. } = &self.fitted else { return Vec::new() };
        let mut ranked: Vec<(String, f64)> =
            self.prepared.names.iter().cloned().zip(coefficients.iter().copied()).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked
    }
}

impl Recipe {
    /// Whether two differ only in how large coefficients may be.
    pub fn is_like(&self, other: &Self) -> bool {
        self.form == other.form
            && self.response == other.response
            && std::mem::discriminant(&self.method) == std::mem::discriminant(&other.method)
    }
}

impl Response {
    /// The power of what was fitted.
    pub fn watts_of(self, value: f64) -> f64 {
        // Beyond any power, but a number.
        const MOST: f64 = 50.0;
        if self == Self::Log { value.min(MOST).exp() } else { value }
    }

    /// Power as it is fitted.
    pub fn of(self, power: &[f64]) -> DVector<f64> {
        let value = |watts: &f64| if self == Self::Log { watts.ln() } else { *watts };
        DVector::from_iterator(power.len(), power.iter().map(value))
    }

    /// What each row's squared error counts, 1 on average; `None` if all count alike.
    pub fn weights(self, power: &[f64]) -> Option<Vec<f64>> {
        let weights: Vec<f64> = power.iter().map(|watts| watts.powi(-2)).collect();
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        (self == Self::Shares).then(|| weights.into_iter().map(|weight| weight / mean).collect())
    }
}

/// The power from which the others are off by the least share on average: their median if each weighs as its reciprocal.
pub(super) fn level(power: &[f64]) -> Option<f64> {
    let mut sorted = power.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantiles::weighted(&sorted, |watts| watts.recip(), 0.5).copied()
}

/// The matrix of similarities with the noise on its diagonal.
pub fn similarity(rows: &[Vec<f64>], length: f64, noise: f64) -> DMatrix<f64> {
    DMatrix::from_fn(rows.len(), rows.len(), |i, j| {
        alike(&rows[i], &rows[j], length) + if i == j { noise } else { 0.0 }
    })
}

/// Gaussian of the distance per term, plus a linear part.
fn alike(a: &[f64], b: &[f64], length: f64) -> f64 {
    let terms = a.len().max(1) as f64;
    let (mut distance, mut product) = (0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        distance += (a - b).powi(2);
        product += a * b;
    }
    (-distance / (2.0 * length * length * terms)).exp() + 0.3 * product / terms
}

/// Iteratively reweighted least squares with Huber's weights on top of the given ones; the coefficients
/// and the last weights.
pub fn robust(
    matrix: &DMatrix<f64>,
    y: &DVector<f64>,
    given: Option<&[f64]>,
    ridge: f64,
) -> Option<(DVector<f64>, Vec<f64>)> {
    // 1.345 standard deviations: 95 % as efficient as least squares where errors are normal.
    const HUBER: f64 = 1.345;
    let given = given.map_or_else(|| vec![1.0; y.len()], <[f64]>::to_vec);
    let mut weights = given.clone();
    let mut x = Ridge::fit(matrix, y, Some(&weights), ridge)?.coefficients;
    for _ in 0..15 {
        let mut residuals = y - matrix * &x;
        residuals.iter_mut().zip(&given).for_each(|(residual, given)| *residual *= given.sqrt());
        let mut sizes: Vec<f64> = residuals.iter().map(|r| r.abs()).collect();
        let deviation = deviation(&mut sizes).unwrap_or(0.0);
        if deviation <= 0.0 {
            break;
        }
        let huber = residuals.iter().map(|residual| huber_weight(residual.abs(), HUBER * deviation));
        weights = huber.zip(&given).map(|(huber, given)| huber * given).collect();
        x = Ridge::fit(matrix, y, Some(&weights), ridge)?.coefficients;
    }
    Some((x, weights))
}

#[cfg(test)]
mod tests {
    use super::super::form::{Columns, Scale};
    use super::*;

    /// Of 1, 2, 4 and 8 W the level is 1 W: half of all reciprocals (1 of 1.875) lie there.
    #[test]
    fn the_level_is_the_constant_with_the_least_error() {
        let power = [8.0, 2.0, 1.0, 4.0];
        let error = |level: f64| power.iter().map(|watts| (level / watts - 1.0).abs()).sum::<f64>();
        let found = level(&power).expect("rows");
        assert_eq!(found, 1.0);
        assert!((1..100).all(|tenths| error(found) <= error(f64::from(tenths) / 10.0) + 1e-12));
        assert_eq!(level(&[]), None);
    }

    #[test]
    fn stored_models_are_checked() {
        let table = Table {
            columns: vec!["reads".into(), "writes".into()],
            rows: (0..12).map(|i| vec![f64::from(i), f64::from(i * i % 7)]).collect(),
            power: (0..12).map(|i| f64::from(50 + 3 * i)).collect(),
            groups: (0..12).map(|i| i.to_string()).collect(),
            ..Table::default()
        };
        let form = Form::plain(Columns::AsGiven, Scale::Log);
        for method in [Method::Ridge(0.1), Method::Similar { length: 1.0, noise: 0.1 }] {
            let model =
                Model::fit(Recipe { form, response: Response::Watts, method }, &table).expect("a fit");
            let text = serde_json::to_string(&model).expect("JSON");
            let read = Model::from_json(&text).expect("what was stored");
            for row in &table.rows {
                assert!((read.predict(row) / model.predict(row) - 1.0).abs() < 1e-12);
            }
            for (whole, part) in [
                ("\"kept\":[0,1]", "\"kept\":[0,2]"),
                ("\"kept\":[0,1]", "\"kept\":[0]"),
                ("\"falling\":[false,false]", "\"falling\":[]"),
                ("\"time\":null", "\"time\":9"),
                ("\"columns\":[\"reads\",\"writes\"]", "\"columns\":[]"),
                ("\"range\":[50.0,83.0]", "\"range\":[83.0,50.0]"),
            ] {
                let broken = text.replace(whole, part);
                assert_ne!(broken, text, "{whole}");
                assert!(matches!(Model::from_json(&broken), Err(StoredModelError::Inconsistent)), "{part}");
            }
        }
        assert!(matches!(Model::from_json("{}"), Err(StoredModelError::Json(_))));
        assert!(
            Model::fit(
                Recipe { form, response: Response::Watts, method: Method::Ridge(0.0) },
                &table.subset(&[])
            )
            .is_none()
        );
    }

    #[test]
    fn rows_that_are_met_exactly_keep_their_weights() {
        let matrix = DMatrix::from_row_slice(4, 1, &[1.0, 2.0, 3.0, 4.0]);
        let (x, weights) =
            robust(&matrix, &DVector::zeros(4), Some(&[1.0, 1.0, 2.0, 3.0]), 0.0).expect("a fit");
        assert_eq!((x[0], weights), (0.0, vec![1.0, 1.0, 2.0, 3.0]));
    }
}
