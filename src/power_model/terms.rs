//! Terms of a power model beyond the event rate itself: curves that power follows when cores wake up,
//! buses saturate or clocks rise.

use nalgebra::{DMatrix, DVector};

use super::dataset::Dataset;

/// The curve by which a rate enters a model. Rates are taken relative to the largest one known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    /// Each event costs the same.
    Linear,
    /// The first events cost more than the last: waking up, saturation.
    SquareRoot,
    /// The same, sharper.
    CubeRoot,
    /// The last events cost more than the first: turbo clocks, contention.
    Square,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Self; 4] = [Self::Linear, Self::SquareRoot, Self::CubeRoot, Self::Square];

    /// The value of the curve at a relative rate of 0 or more.
    pub fn of(self, relative_rate: f64) -> f64 {
        match self {
            Self::Linear => relative_rate,
            Self::SquareRoot => relative_rate.sqrt(),
            Self::CubeRoot => relative_rate.cbrt(),
            Self::Square => relative_rate * relative_rate,
        }
    }

    /// How a term is written: `cycles`, `sqrt(cycles)`.
    pub fn describe(self, column: &str) -> String {
        match self {
            Self::Linear => column.to_owned(),
            Self::SquareRoot => format!("sqrt({column})"),
            Self::CubeRoot => format!("cbrt({column})"),
            Self::Square => format!("({column})^2"),
        }
    }
}

/// A column in one shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term {
    /// Index of the column.
    pub column: usize,
    /// Its curve.
    pub shape: Shape,
}

/// The terms that data offer, and how to compute them for any row.
///
/// A rate above the largest one of the data is taken as the largest: nothing was learnt about what lies
/// beyond, and a straight line through it is where predictions go wrong by factors.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    largest: Vec<f64>,
    terms: Vec<Term>,
}

/// A column whose values differ by less than this share of the largest says nothing.
const LEAST_VARIATION: f64 = 1e-6;

impl Terms {
    /// All `shapes` of all columns of `data` that vary.
    pub fn of(data: &Dataset, shapes: &[Shape]) -> Self {
        let columns = data.columns().len();
        let mut largest = vec![0.0; columns];
        let mut terms = Vec::new();
        for (column, largest) in largest.iter_mut().enumerate() {
            let (low, high) =
                data.column(column).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), rate| {
                    (low.min(rate), high.max(rate))
                });
            *largest = high;
            if high > 0.0 && high - low > LEAST_VARIATION * high {
                terms.extend(shapes.iter().map(|&shape| Term { column, shape }));
            }
        }
        Self { largest, terms }
    }

    /// The terms.
    pub fn list(&self) -> &[Term] {
        &self.terms
    }

    /// The value of one term in a row of rates.
    pub fn value(&self, term: Term, rates: &[f64]) -> f64 {
        let relative = rates[term.column] / self.largest[term.column];
        term.shape.of(relative.clamp(0.0, 1.0))
    }

    /// The design matrix of some rows, a constant first, each row divided by its power, and the target
    /// that belongs to it: all ones. Least squares over them minimises relative errors.
    pub fn relative_design(&self, data: &Dataset, rows: &[usize]) -> (DMatrix<f64>, DVector<f64>) {
        let mut design = DMatrix::zeros(rows.len(), self.terms.len() + 1);
        for (at, &row) in rows.iter().enumerate() {
            let weight = 1.0 / data.watts(row);
            let rates = data.rates(row);
            design[(at, 0)] = weight;
            for (index, &term) in self.terms.iter().enumerate() {
                design[(at, index + 1)] = weight * self.value(term, rates);
            }
        }
        (design, DVector::from_element(rows.len(), 1.0))
    }
}
