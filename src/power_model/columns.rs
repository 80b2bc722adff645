//! Intervals as a system of equations.

use super::edge_noise::Whitening;
use super::intervals::{Interval, Intervals};
use crate::numerics::normal_equations::NormalEquations;

/// The intervals as a system of equations: columns of events, of the seconds of each static term, and the
/// joules that they are to explain.
pub(super) struct Columns {
    pub events: Vec<Vec<f64>>,
    pub seconds: Vec<f64>,
    pub joules: Vec<f64>,
    /// The static term of each row; empty if there are none.
    pub terms: Vec<usize>,
    pub static_terms: usize,
}

impl Columns {
    pub fn of(intervals: &Intervals, events: usize, has_static: bool) -> Self {
        let rows = &intervals.rows;
        let count = |row: &Interval, event: usize| row.counts.get(event).copied().unwrap_or(0.0);
        let last = intervals.static_terms.saturating_sub(1);
        Self {
            events: (0..events).map(|event| rows.iter().map(|row| count(row, event)).collect()).collect(),
            seconds: rows.iter().map(|row| row.seconds).collect(),
            joules: rows.iter().map(|row| row.joules).collect(),
            terms: rows.iter().map(|row| row.static_term.min(last)).collect(),
            static_terms: if has_static { intervals.static_terms } else { 0 },
        }
    }

    pub fn size(&self) -> usize {
        self.events.len() + self.static_terms
    }

    pub fn turned(&self, whitening: &Whitening) -> Self {
        let turned = |column: &Vec<f64>| {
            let mut column = column.clone();
            whitening.apply(&mut column);
            column
        };
        Self {
            events: self.events.iter().map(turned).collect(),
            seconds: turned(&self.seconds),
            joules: turned(&self.joules),
            terms: self.terms.clone(),
            static_terms: self.static_terms,
        }
    }

    pub fn equations(&self, weights: &[f64]) -> NormalEquations {
        let events = self.events.len();
        let mut equations = NormalEquations::empty(self.size());
        let mut values = vec![0.0; self.size()];
        for (row, weight) in weights.iter().enumerate() {
            let root = weight.sqrt();
            for (value, column) in values.iter_mut().zip(&self.events) {
                *value = column[row] * root;
            }
            if self.static_terms > 0 {
                values[events..].fill(0.0);
                values[events + self.terms[row]] = self.seconds[row] * root;
            }
            equations.add_row(&values, self.joules[row] * root);
        }
        equations
    }

    /// What a solution leaves unexplained of each row.
    pub fn errors(&self, solution: &[f64]) -> Vec<f64> {
        let (of_events, of_static) = solution.split_at(self.events.len().min(solution.len()));
        let mut errors = self.joules.clone();
        for (column, cost) in self.events.iter().zip(of_events) {
            errors.iter_mut().zip(column).for_each(|(error, value)| *error -= cost * value);
        }
        for (row, error) in errors.iter_mut().enumerate() {
            let watts = of_static.get(self.terms[row]).copied().unwrap_or(0.0);
            *error -= watts * self.seconds[row];
        }
        errors
    }

    /// Sum of the squares of the first column that the static terms do not explain.
    pub fn variation_beside_static(&self, weights: &[f64]) -> f64 {
        let Some(column) = self.events.first() else { return 0.0 };
        let mut products = vec![(0.0, 0.0); self.static_terms.max(1)];
        let mut square = 0.0;
        for (row, weight) in weights.iter().enumerate() {
            let (common, own) = &mut products[self.terms[row]];
            square += weight * column[row] * column[row];
            *common += weight * column[row] * self.seconds[row];
            *own += weight * self.seconds[row] * self.seconds[row];
        }
        let explained =
            products.iter().filter(|(_, own)| *own > 0.0).map(|(common, own)| common * common / own);
        square - explained.sum::<f64>()
    }
}
