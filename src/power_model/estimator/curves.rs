//! Many small models, also curved ones, averaged.
//!
//! A few workloads never tell which of a hundred small models is the right one, so all of the good ones are taken
//! together. Every candidate set of at most a few terms is judged by leaving out one workload of the training data
//! after the other; the candidates are then averaged with weights that fall with their error. Averages of
//! non-negative models are non-negative, and single lucky picks have no say.

use std::collections::BTreeMap;

use super::folds::inner_folds;
use super::options::EstimatorOptions;
use crate::numerics::nnls::Sign;
use crate::numerics::normal_equations::NormalEquations;
use crate::power_model::dataset::Dataset;
use crate::power_model::error::ModelError;
use crate::power_model::terms::{Shape, Terms};

/// With so many training workloads per coefficient, least squares over all columns is safe.
const WORKLOADS_PER_COEFFICIENT: usize = 3;

/// Candidates of less than this weight, relative to the best, are left out of the average.
const LEAST_WEIGHT: f64 = 0.01;

/// An average of small models: power as a sum of curves of rates.
#[derive(Debug, Clone, PartialEq)]
pub struct Curves {
    terms: Terms,
    constant: f64,
    coefficients: Vec<f64>,
    candidates: usize,
}

/// A candidate: the indices of its terms (0 is the constant), its signs and its error.
#[derive(Debug, Clone, PartialEq)]
struct Candidate {
    chosen: Vec<usize>,
    sign: Sign,
    /// Mean relative error of the folds when left out.
    error: f64,
}

impl Curves {
    /// Learns from `data`.
    ///
    /// # Errors
    /// [`ModelError::NoColumns`] if no column varies, or no candidate can be fitted.
    pub fn train(data: &Dataset, options: &EstimatorOptions) -> Result<Self, ModelError> {
        let terms = Terms::of(data, &options.shapes);
        if terms.list().is_empty() {
            return Err(ModelError::NoColumns);
        }
        let search = Search::prepare(data, &terms, options);
        let candidates = search.candidates();
        let best = candidates.iter().map(|candidate| candidate.error).fold(f64::INFINITY, f64::min);
        // An exact fit leaves no error to compare by.
        let scale = search.strategy.tolerance * best.max(1e-6);
        let mut sum = vec![0.0; terms.list().len() + 1];
        let mut total = 0.0;
        let mut averaged = 0;
        for candidate in &candidates {
            let weight = (-(candidate.error - best) / scale).exp();
            if weight.is_nan() || weight < LEAST_WEIGHT {
                continue;
            }
            let Some(solution) = search.whole.solve(&candidate.chosen, candidate.sign) else { continue };
            for (&term, value) in candidate.chosen.iter().zip(solution) {
                sum[term] += weight * value;
            }
            total += weight;
            averaged += 1;
        }
        if averaged == 0 {
            return Err(ModelError::NoColumns);
        }
        let coefficients: Vec<f64> = sum[1..].iter().map(|value| value / total).collect();
        Ok(Self { terms, constant: sum[0] / total, coefficients, candidates: averaged })
    }

    /// The power estimated for a row of rates, in watts.
    pub fn watts(&self, rates: &[f64]) -> f64 {
        let terms = self.terms.list().iter().zip(&self.coefficients);
        self.constant + terms.map(|(&term, value)| value * self.terms.value(term, rates)).sum::<f64>()
    }

    /// Number of small models averaged.
    #[cfg(test)]
    fn candidates(&self) -> usize {
        self.candidates
    }
}

/// Sums of the training data by fold, and the search over them.
struct Search {
    folds: Vec<NormalEquations>,
    /// For each fold, the sums of all others.
    others: Vec<NormalEquations>,
    whole: NormalEquations,
    usable: Vec<usize>,
    strategy: Strategy,
}

/// Where the search for candidates begins and how far it goes.
#[derive(Debug, Clone, PartialEq)]
struct Strategy {
    start: Vec<usize>,
    signs: Vec<Sign>,
    growth: usize,
    beam: usize,
    pool: usize,
    tolerance: f64,
}

impl Strategy {
    /// Few workloads: sets grown from the constant alone, averaged widely.
    fn sparse(options: &EstimatorOptions, groups: usize) -> Self {
        Self {
            start: vec![0],
            signs: options.signs.clone(),
            growth: options.max_terms.min(groups.saturating_sub(2).max(1)),
            beam: options.beam,
            pool: options.pool,
            tolerance: options.tolerance,
        }
    }

    /// Workloads enough for all columns: every candidate has them all, and at most a few curves besides.
    /// Signs need no guard then, and errors tell candidates apart well.
    fn complete(linear: &[usize]) -> Self {
        Self {
            start: std::iter::once(0).chain(linear.iter().copied()).collect(),
            signs: vec![Sign::Free],
            growth: 3,
            beam: 5,
            pool: usize::MAX,
            tolerance: 0.1,
        }
    }
}

impl Search {
    fn prepare(data: &Dataset, terms: &Terms, options: &EstimatorOptions) -> Self {
        let columns = terms.list().len() + 1;
        let (rows_of_folds, groups) = inner_folds(data, options.folds);
        let folds: Vec<NormalEquations> = rows_of_folds
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
        let linear: Vec<usize> = usable.iter().filter(is_linear).copied().collect();
        let strategy = if groups >= WORKLOADS_PER_COEFFICIENT * (linear.len() + 1) {
            Strategy::complete(&linear)
        } else {
            Strategy::sparse(options, groups)
        };
        Self { folds, others, whole, usable, strategy }
    }

    /// How wrong a set of terms is for each fold when it is left out.
    fn judge(&self, chosen: Vec<usize>, sign: Sign) -> Option<Candidate> {
        let mut sum = 0.0;
        for (fold, others) in self.folds.iter().zip(&self.others) {
            let solution = others.solve(&chosen, sign)?;
            sum += fold.mean_squared_error(&chosen, &solution).sqrt();
        }
        let error = sum / self.folds.len() as f64;
        error.is_finite().then_some(Candidate { chosen, sign, error })
    }

    /// Sets grown term by term from the strategy's start, the best of each size going on.
    fn candidates(&self) -> Vec<Candidate> {
        let mut all = Vec::new();
        for &sign in &self.strategy.signs {
            self.grow(sign, &mut all);
        }
        all
    }

    fn grow(&self, sign: Sign, all: &mut Vec<Candidate>) {
        let mut beam = vec![self.strategy.start.clone()];
        let mut pool = self.usable.clone();
        let mut best = f64::INFINITY;
        all.extend(self.judge(self.strategy.start.clone(), sign));
        for _ in 0..self.strategy.growth {
            let mut grown: BTreeMap<Vec<usize>, Candidate> = BTreeMap::new();
            for base in &beam {
                for &term in pool.iter().filter(|term| !base.contains(term)) {
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
            beam = ranked.iter().take(self.strategy.beam).map(|candidate| candidate.chosen.clone()).collect();
            if pool.len() > self.strategy.pool {
                // Only after the first round can there be more: sets of one term each, best first.
                pool = ranked.iter().filter_map(|candidate| candidate.chosen.last().copied()).collect();
                pool.truncate(self.strategy.pool);
            }
            let found = ranked.first().map_or(f64::INFINITY, |candidate| candidate.error);
            all.extend(ranked);
            if found >= best {
                break;
            }
            best = found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power_model::dataset::Observation;

    /// Workloads that load a machine of 20 W + 3 nJ per `a` + 40 W * sqrt(b / 1e9) at several levels.
    /// `decoy` follows `a` in all workloads but the last.
    fn machine() -> Dataset {
        let mut data = Dataset::new(vec!["a".into(), "b".into(), "decoy".into()]);
        for workload in 0..6 {
            for level in 1..=20 {
                let a = 1e8 * f64::from(level * (workload + 1));
                let b = 1e9 * f64::from(level * (7 - workload)) / 140.0;
                let decoy = if workload == 5 { a * 0.1 } else { a };
                let watts = 20.0 + 3e-9 * a + 40.0 * (b / 1e9).sqrt();
                let workload = format!("w{workload}");
                let row = Observation { rates: &[a, b, decoy], watts, workload: &workload, frequency: None };
                assert!(data.push(row));
            }
        }
        data
    }

    #[test]
    fn a_curved_machine_is_learnt_for_unseen_workloads() {
        let data = machine();
        let training = data.filter(|row| data.workload_of(row) != 2);
        let curves = Curves::train(&training, &EstimatorOptions::default()).expect("enough rows");
        let held_back: Vec<usize> = (0..data.len()).filter(|&row| data.workload_of(row) == 2).collect();
        let errors =
            held_back.iter().map(|&row| (curves.watts(data.rates(row)) / data.watts(row) - 1.0).abs());
        let mean = errors.sum::<f64>() / held_back.len() as f64;
        assert!(mean < 0.03, "{mean}");
        assert!(curves.candidates() > 10);
    }

    #[test]
    fn training_is_deterministic() {
        let data = machine();
        let training = data.filter(|row| data.workload_of(row) != 0);
        let train = |data: &Dataset| Curves::train(data, &EstimatorOptions::default()).expect("enough rows");
        assert_eq!(train(&training), train(&training.clone()));
    }

    #[test]
    fn non_negative_models_average_to_a_non_negative_one() {
        let options = EstimatorOptions { signs: vec![Sign::NonNegative], ..EstimatorOptions::default() };
        let curves = Curves::train(&machine(), &options).expect("enough rows");
        assert!(curves.coefficients.iter().all(|watts| *watts >= 0.0));
        assert!(curves.watts(&[0.0; 3]) >= 0.0);
    }

    #[test]
    fn rates_beyond_the_training_data_are_taken_as_the_largest() {
        let curves = Curves::train(&machine(), &EstimatorOptions::default()).expect("enough rows");
        assert_eq!(curves.watts(&[1e12, 1e12, 1e12]), curves.watts(&[1e15, 1e15, 1e15]));
    }

    #[test]
    fn nothing_to_learn_from_is_an_error() {
        let mut data = Dataset::new(vec!["same".into()]);
        for _ in 0..10 {
            data.push(Observation { rates: &[1.0], watts: 5.0, workload: "w", frequency: None });
        }
        assert_eq!(Curves::train(&data, &EstimatorOptions::default()), Err(ModelError::NoColumns));
    }

    /// So many workloads, a column for each of these factors: power is 20 W and 3 W for each unit of the first.
    fn workloads(count: usize, columns: usize) -> Dataset {
        let mut data = Dataset::new((0..columns).map(|column| format!("c{column}")).collect());
        for at in 0..count * 8 {
            let rates: Vec<f64> =
                (0..columns).map(|column| (1 + (at * (2 * column + 3) + at / 5) % 13) as f64).collect();
            let workload = format!("w{}", at / 8);
            let watts = 20.0 + 3.0 * rates[0];
            assert!(data.push(Observation { rates: &rates, watts, workload: &workload, frequency: None }));
        }
        data
    }

    fn prepared(data: &Dataset, options: &EstimatorOptions) -> Search {
        Search::prepare(data, &Terms::of(data, &options.shapes), options)
    }

    /// A constant and a coefficient for each column need three workloads each for all columns to be safe.
    #[test]
    fn all_columns_are_taken_where_workloads_are_three_times_as_many() {
        let options = EstimatorOptions::default();
        let strategy = |count, columns| prepared(&workloads(count, columns), &options).strategy;
        assert_eq!(strategy(6, 1), Strategy::complete(&[1]));
        assert_eq!(strategy(5, 1), Strategy::sparse(&options, 5));
        // Each column has four terms, the first of which is the line.
        assert_eq!(strategy(9, 2), Strategy::complete(&[1, 5]));
        assert_eq!(strategy(8, 2), Strategy::sparse(&options, 8));
        assert_eq!(Strategy::complete(&[1, 5]).start, [0, 1, 5]);
        // Never more than two fewer terms than workloads, but one.
        let growth = [2, 3, 5, 8, 9].map(|groups| Strategy::sparse(&options, groups).growth);
        assert_eq!(growth, [1, 1, 3, 6, 6]);
    }

    /// Every fold counts the same, and is left out of the others.
    #[test]
    fn sums_of_folds_by_hand() {
        let mut data = workloads(4, 1);
        // The last workload has one row more.
        data.push(Observation { rates: &[2.0], watts: 26.0, workload: "w3", frequency: None });
        let options = EstimatorOptions { shapes: vec![Shape::Linear], ..EstimatorOptions::default() };
        let search = prepared(&data, &options);
        assert_eq!((search.folds.len(), search.usable.as_slice()), (4, &[1][..]));
        let mean = |rows: std::ops::Range<usize>, of: &dyn Fn(usize) -> f64| {
            rows.clone().map(of).sum::<f64>() / rows.len() as f64
        };
        let square = |row: usize| (data.rates(row)[0] / 13.0 / data.watts(row)).powi(2);
        let by_fold: Vec<f64> = [0..8, 8..16, 16..24, 24..33].map(|rows| mean(rows, &square)).to_vec();
        let all: f64 = by_fold.iter().sum();
        let found = |sums: &NormalEquations| sums.gram()[(1, 1)];
        assert!((found(&search.whole) - all).abs() < 1e-12);
        for (fold, others) in search.others.iter().enumerate() {
            assert!((found(&search.folds[fold]) - by_fold[fold]).abs() < 1e-12);
            assert!((found(others) - (all - by_fold[fold])).abs() < 1e-12);
            assert!((search.folds[fold].rows() - 1.0).abs() < 1e-12 && (others.rows() - 3.0).abs() < 1e-12);
        }
        // The constant alone: for each fold the best of the others, by its mean square.
        let judged = search.judge(vec![0], Sign::Free).expect("solvable");
        let (one, two) = (|row: usize| 1.0 / data.watts(row), |row: usize| data.watts(row).powi(-2));
        let folds = [0..8, 8..16, 16..24, 24..33];
        let error: f64 = (0..4)
            .map(|fold| {
                let others = || (0..4).filter(move |other| *other != fold);
                let constant = others().map(|other| mean(folds[other].clone(), &one)).sum::<f64>()
                    / others().map(|other| mean(folds[other].clone(), &two)).sum::<f64>();
                mean(folds[fold].clone(), &|row| (constant / data.watts(row) - 1.0).powi(2)).sqrt()
            })
            .sum::<f64>()
            / 4.0;
        assert!((judged.error - error).abs() < 1e-9, "{} for {error}", judged.error);
        // The line is the truth.
        assert!(search.judge(vec![0, 1], Sign::Free).expect("solvable").error < 1e-6);
    }

    /// Sets of several terms are made of the best single ones alone, and go on from the best of each size.
    #[test]
    fn sets_grow_from_the_best() {
        let data = workloads(8, 3);
        let sets = |beam, pool, max_terms| -> Vec<Vec<usize>> {
            let options = EstimatorOptions {
                shapes: vec![Shape::Linear, Shape::Square],
                signs: vec![Sign::Free],
                beam,
                pool,
                max_terms,
                ..EstimatorOptions::default()
            };
            prepared(&data, &options).candidates().into_iter().map(|candidate| candidate.chosen).collect()
        };
        // The constant, and each of six terms beside it.
        let mut single = sets(30, 64, 1);
        single.sort();
        assert_eq!(single, [vec![0], vec![0, 1], vec![0, 2], vec![0, 3], vec![0, 4], vec![0, 5], vec![0, 6]]);
        // All pairs.
        let pairs =
            |found: Vec<Vec<usize>>| found.into_iter().filter(|set| set.len() == 3).collect::<Vec<_>>();
        assert_eq!(pairs(sets(30, 64, 2)).len(), 15);
        // From the best, which is the truth, to all others.
        let from_best = pairs(sets(1, 64, 2));
        assert!(from_best.len() == 5 && from_best.iter().all(|set| set.contains(&1)), "{from_best:?}");
        // One of the two best is in each: the truth and its square.
        let of_two = pairs(sets(30, 2, 2));
        assert!(
            of_two.len() == 9 && of_two.iter().all(|set| set.contains(&1) || set.contains(&2)),
            "{of_two:?}"
        );
        assert_eq!(pairs(sets(30, 6, 2)).len(), 15, "there are no more than six");
        // What is no better ends the search: nothing is better than the truth.
        assert!(sets(30, 64, 6).iter().all(|set| set.len() <= 4));
    }

    /// What is far worse than the best has no say.
    #[test]
    fn bad_candidates_are_left_out_of_the_average() {
        let (data, options) = (machine(), EstimatorOptions::default());
        let all = prepared(&data, &options).candidates().len();
        let averaged = Curves::train(&data, &options).expect("enough rows").candidates();
        assert!(averaged < all, "{averaged} of {all}");
    }
}
