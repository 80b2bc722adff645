//! Estimating power from rates as well as the data allow: many small models, averaged.
//!
//! A model for sampling periods must be a handful of events with straight lines ([`super::fit`]). To
//! estimate watts where no meter is, more is allowed: curves besides straight lines, and, because a few
//! workloads never tell which of a hundred small models is the right one, all of the good ones together.
//! Every candidate set of at most a few terms is judged by leaving out one workload of the training data
//! after the other; the candidates are then averaged with weights that fall with their error. Averages
//! of non-negative models are non-negative, and single lucky picks have no say.

use std::collections::BTreeMap;

use super::dataset::Dataset;
use super::error::ModelError;
use super::least_squares::{NormalEquations, Sign};
use super::terms::{Shape, Term, Terms};

/// How an [`Estimator`] is made.
#[derive(Debug, Clone, PartialEq)]
pub struct EstimatorOptions {
    /// Curves that may be used.
    pub shapes: Vec<Shape>,
    /// Signs that coefficients may have; with several, data decide.
    pub signs: Vec<Sign>,
    /// Largest number of terms of one candidate. Never more than two fewer than training workloads.
    pub max_terms: usize,
    /// Candidates of each size from which the next size is grown.
    pub beam: usize,
    /// A candidate's weight falls by e for each so many standard errors of the best one's error that it
    /// is worse.
    pub tolerance: f64,
    /// Most groups that training workloads are dealt into for judging candidates.
    pub folds: usize,
    /// The set of all columns as straight lines is a candidate, and what dropping columns one after the
    /// other makes of it, if there are at most so many columns.
    pub max_complete: usize,
}

impl Default for EstimatorOptions {
    fn default() -> Self {
        Self {
            shapes: Shape::ALL.to_vec(),
            signs: vec![Sign::NonNegative, Sign::Free],
            max_terms: 8,
            beam: 10,
            tolerance: 1.0,
            folds: 8,
            max_complete: 16,
        }
    }
}

/// Candidates of less than this weight, relative to the best, are left out of the average.
const LEAST_WEIGHT: f64 = 0.01;

/// An average of small models: power as a sum of curves of rates.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimator {
    terms: Terms,
    constant: f64,
    coefficients: Vec<f64>,
    candidates: usize,
    expected_error: f64,
}

/// A candidate: the indices of its terms (0 is the constant), its signs and its error.
#[derive(Debug, Clone, PartialEq)]
struct Candidate {
    chosen: Vec<usize>,
    sign: Sign,
    /// Relative error of each fold when it is left out.
    errors: Vec<f64>,
    /// Their mean.
    error: f64,
}

impl Candidate {
    /// 1 for the best candidate, less for one that is worse by more than chance explains.
    fn weight(&self, best: &Self, tolerance: f64) -> f64 {
        let n = self.errors.len() as f64;
        let excess = self.error - best.error;
        let scale = match std::env::var("WEIGHT").as_deref() {
            Ok("rel") => 0.3 * best.error,
            Ok("se") => {
                (best.errors.iter().map(|e| (e - best.error).powi(2)).sum::<f64>() / (n * (n - 1.0))).sqrt()
            }
            _ => {
                let d =
                    self.errors.iter().zip(&best.errors).map(|(a, b)| (a - b - excess).powi(2)).sum::<f64>();
                (d / (n * (n - 1.0))).sqrt()
            }
        };
        if excess <= 0.0 { 1.0 } else { (-excess / (tolerance * scale)).exp() }
    }
}

impl Estimator {
    /// Learns from `data`.
    ///
    /// # Errors
    /// [`ModelError::NoColumns`] if no column varies, [`ModelError::TooFewRows`] if there are fewer rows
    /// than a candidate has terms.
    pub fn train(data: &Dataset, options: &EstimatorOptions) -> Result<Self, ModelError> {
        let terms = Terms::of(data, &options.shapes);
        if terms.list().is_empty() {
            return Err(ModelError::NoColumns);
        }
        let search = Search::prepare(data, &terms, options);
        let candidates = search.candidates();
        let Some(best) = candidates.iter().min_by(|a, b| a.error.total_cmp(&b.error)) else {
            return Err(ModelError::NoColumns);
        };
        let mut sum = vec![0.0; terms.list().len() + 1];
        let mut total = 0.0;
        let mut averaged = 0;
        for candidate in &candidates {
            let weight = candidate.weight(best, options.tolerance);
            if weight < LEAST_WEIGHT {
                continue;
            }
            let Some(solution) = search.whole.solve(&candidate.chosen, candidate.sign) else { continue };
            for (&term, value) in candidate.chosen.iter().zip(solution) {
                sum[term] += weight * value;
            }
            total += weight;
            averaged += 1;
        }
        let best = best.error;
        if averaged == 0 {
            return Err(ModelError::NoColumns);
        }
        let coefficients: Vec<f64> = sum[1..].iter().map(|value| value / total).collect();
        Ok(Self { terms, constant: sum[0] / total, coefficients, candidates: averaged, expected_error: best })
    }

    /// The power estimated for a row of rates, in watts.
    pub fn watts(&self, rates: &[f64]) -> f64 {
        let terms = self.terms.list().iter().zip(&self.coefficients);
        self.constant + terms.map(|(&term, value)| value * self.terms.value(term, rates)).sum::<f64>()
    }

    /// Number of models averaged.
    pub fn candidates(&self) -> usize {
        self.candidates
    }

    /// Relative error of the best candidate for workloads it was not trained with.
    pub fn expected_error(&self) -> f64 {
        self.expected_error
    }

    /// The terms with their coefficients in watts at the largest rate known, largest first.
    pub fn contributions(&self) -> Vec<(Term, f64)> {
        let mut list: Vec<(Term, f64)> = self
            .terms
            .list()
            .iter()
            .copied()
            .zip(self.coefficients.iter().copied())
            .filter(|(_, value)| *value != 0.0)
            .collect();
        list.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        list
    }
}

/// Sums of the training data by fold, and the search over them.
struct Search<'a> {
    options: &'a EstimatorOptions,
    folds: Vec<NormalEquations>,
    /// For each fold, the sums of all others.
    others: Vec<NormalEquations>,
    whole: NormalEquations,
    usable: Vec<usize>,
    /// Those of the usable terms that are straight lines.
    linear: Vec<usize>,
    max_terms: usize,
}

impl<'a> Search<'a> {
    fn prepare(data: &Dataset, terms: &Terms, options: &'a EstimatorOptions) -> Self {
        let columns = terms.list().len() + 1;
        let folds: Vec<NormalEquations> = inner_folds(data, options.folds)
            .iter()
            .map(|rows| {
                let (design, target) = terms.relative_design(data, rows);
                // Every fold counts the same, however many rows it has.
                let mut sums = NormalEquations::empty(columns);
                sums.add(&NormalEquations::of_rows(&design, &target), 1.0 / rows.len() as f64);
                sums
            })
            .collect();
        let mut whole = NormalEquations::empty(columns);
        for fold in &folds {
            whole.add(fold, 1.0);
        }
        let others = folds
            .iter()
            .map(|fold| {
                let mut others = whole.clone();
                others.add(fold, -1.0);
                others
            })
            .collect();
        let usable: Vec<usize> = (1..columns).filter(|&term| whole.mean_square(term) > 0.0).collect();
        let is_linear = |term: &&usize| terms.list()[**term - 1].shape == Shape::Linear;
        let linear = usable.iter().filter(is_linear).copied().collect();
        let groups = count_groups(data);
        let max_terms = options.max_terms.min(groups.saturating_sub(2).max(1));
        Self { options, folds, others, whole, usable, linear, max_terms }
    }

    /// How wrong a set of terms is for each fold when it is left out.
    fn judge(&self, chosen: Vec<usize>, sign: Sign) -> Option<Candidate> {
        let mut errors = Vec::with_capacity(self.folds.len());
        for (fold, others) in self.folds.iter().zip(&self.others) {
            let solution = others.solve(&chosen, sign)?;
            errors.push(fold.mean_squared_error(&chosen, &solution).sqrt());
        }
        let error = errors.iter().sum::<f64>() / errors.len() as f64;
        error.is_finite().then_some(Candidate { chosen, sign, errors, error })
    }

    fn candidates(&self) -> Vec<Candidate> {
        let mut all = Vec::new();
        for &sign in &self.options.signs {
            self.grow(sign, &mut all);
            self.shrink(sign, &mut all);
        }
        all
    }

    /// Sets grown term by term from the constant alone, the best of each size going on.
    fn grow(&self, sign: Sign, all: &mut Vec<Candidate>) {
        let mut beam = vec![vec![0]];
        let mut best = f64::INFINITY;
        all.extend(self.judge(vec![0], sign));
        for _ in 0..self.max_terms {
            let mut grown: BTreeMap<Vec<usize>, Candidate> = BTreeMap::new();
            for base in &beam {
                for &term in self.usable.iter().filter(|term| !base.contains(term)) {
                    let mut chosen = base.clone();
                    chosen.push(term);
                    chosen.sort_unstable();
                    if !grown.contains_key(&chosen)
                        && let Some(candidate) = self.judge(chosen.clone(), sign)
                    {
                        grown.insert(chosen, candidate);
                    }
                }
            }
            let mut ranked: Vec<Candidate> = grown.into_values().collect();
            ranked.sort_by(|a, b| a.error.total_cmp(&b.error));
            beam = ranked.iter().take(self.options.beam).map(|candidate| candidate.chosen.clone()).collect();
            let better = ranked.first().is_some_and(|candidate| candidate.error < best);
            best = ranked.first().map_or(best, |candidate| best.min(candidate.error));
            all.extend(ranked);
            if !better {
                break;
            }
        }
    }

    /// All columns as straight lines, then without the one that is missed least, and so on.
    fn shrink(&self, sign: Sign, all: &mut Vec<Candidate>) {
        if self.linear.len() > self.options.max_complete || self.linear.len() <= self.max_terms.min(2) {
            return;
        }
        let mut chosen: Vec<usize> = std::iter::once(0).chain(self.linear.iter().copied()).collect();
        all.extend(self.judge(chosen.clone(), sign));
        while chosen.len() > 2 {
            let without =
                |drop: usize| chosen.iter().copied().filter(|&term| term != drop).collect::<Vec<_>>();
            let smaller = chosen[1..].iter().filter_map(|&drop| self.judge(without(drop), sign));
            let Some(best) = smaller.min_by(|a, b| a.error.total_cmp(&b.error)) else { return };
            chosen.clone_from(&best.chosen);
            all.push(best);
        }
    }
}

fn count_groups(data: &Dataset) -> usize {
    let mut seen = vec![false; data.workloads().len()];
    (0..data.len()).for_each(|row| seen[data.workload_of(row)] = true);
    match seen.into_iter().filter(|seen| *seen).count() {
        few if few < 3 => 6,
        groups => groups,
    }
}

/// Rows of the folds that candidates are judged by: workloads dealt into at most `limit` groups, or equal
/// spans of the data where there are too few workloads.
fn inner_folds(data: &Dataset, limit: usize) -> Vec<Vec<usize>> {
    const LEAST: usize = 3;
    const SPANS: usize = 6;
    let mut by_workload = vec![Vec::new(); data.workloads().len()];
    for row in 0..data.len() {
        by_workload[data.workload_of(row)].push(row);
    }
    by_workload.retain(|rows: &Vec<usize>| !rows.is_empty());
    if by_workload.len() < LEAST {
        let spans = SPANS.min(data.len());
        return (0..spans)
            .map(|span| (data.len() * span / spans..data.len() * (span + 1) / spans).collect())
            .collect();
    }
    let groups = by_workload.len().min(limit.max(LEAST));
    let mut folds = vec![Vec::new(); groups];
    for (index, rows) in by_workload.into_iter().enumerate() {
        folds[index % groups].extend(rows);
    }
    folds
}
