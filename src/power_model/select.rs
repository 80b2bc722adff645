//! Which events to count: the best set of at most so many, judged on workloads that were left out.

use super::dataset::Dataset;
use super::error::ModelError;
use super::estimator::inner_folds;
use super::fit::{FitOptions, Weighting, check_range};
use super::terms::{Shape, Terms};
use crate::numerics::normal_equations::NormalEquations;

/// Up to this many sets are all tried; beyond, sets are grown event by event.
const EXHAUSTIVE: usize = 20_000;
/// A larger set must be better by this share to be taken: counters are few.
const WORTHWHILE: f64 = 0.01;
/// Training workloads are dealt into at most this many groups.
const FOLDS: usize = 8;

/// The columns of the best straight-line model with at most `max_events` of them.
///
/// Every set is judged by leaving out groups of the workloads in `data`, or spans of it where workloads
/// are few. `data` must be the training data only.
///
/// # Errors
/// [`ModelError::NoColumns`] if no column varies, [`ModelError::OutOfRange`].
pub fn best_events(
    data: &Dataset,
    max_events: usize,
    options: &FitOptions,
) -> Result<Vec<usize>, ModelError> {
    check_range(data)?;
    let terms = Terms::of(data, &[Shape::Linear]);
    let count = terms.list().len();
    if count == 0 || data.is_empty() {
        return Err(ModelError::NoColumns);
    }
    let judge = Judge::new(data, &terms, options);
    let best = if number_of_sets(count, max_events) <= EXHAUSTIVE {
        judge.try_all(count, max_events)
    } else {
        judge.grow(count, max_events)
    };
    let columns = best.iter().map(|&term| terms.list()[term - 1].column).collect::<Vec<_>>();
    if columns.is_empty() { Err(ModelError::NoColumns) } else { Ok(columns) }
}

/// Sets of one to `max_events` out of `count`, as far as it matters.
fn number_of_sets(count: usize, max_events: usize) -> usize {
    let mut sets = 1usize;
    let mut total = 0usize;
    for size in 1..=max_events.min(count) {
        sets = sets.saturating_mul(count + 1 - size) / size;
        total = total.saturating_add(sets);
    }
    total
}

struct Judge<'a> {
    options: &'a FitOptions,
    folds: Vec<NormalEquations>,
    /// Relative errors are compared whatever the fit makes small.
    relative: Vec<NormalEquations>,
    whole: NormalEquations,
}

impl<'a> Judge<'a> {
    fn new(data: &Dataset, terms: &Terms, options: &'a FitOptions) -> Self {
        let columns = terms.list().len() + 1;
        let (rows_of_folds, _) = inner_folds(data, FOLDS);
        let mut folds = Vec::new();
        let mut relative = Vec::new();
        for rows in &rows_of_folds {
            let (mut design, mut target) = terms.relative_design(data, rows);
            relative.push(NormalEquations::of_rows(&design, &target));
            if options.weighting == Weighting::Absolute {
                for (at, &row) in rows.iter().enumerate() {
                    design.row_mut(at).scale_mut(data.watts(row));
                    target[at] = data.watts(row);
                }
            }
            folds.push(NormalEquations::of_rows(&design, &target));
        }
        let mut whole = NormalEquations::empty(columns);
        folds.iter().for_each(|fold| whole.add(fold, 1.0));
        Self { options, folds, relative, whole }
    }

    /// Mean over the folds of the root mean square relative error; infinite for sets that cannot be fitted.
    fn error(&self, set: &[usize]) -> f64 {
        let mut chosen = vec![0];
        chosen.extend_from_slice(set);
        let mut sum = 0.0;
        for (fold, relative) in self.folds.iter().zip(&self.relative) {
            let mut others = self.whole.clone();
            others.add(fold, -1.0);
            let Some(solution) = others.solve(&chosen, self.options.sign) else { return f64::INFINITY };
            sum += relative.mean_squared_error(&chosen, &solution).sqrt();
        }
        sum / self.folds.len() as f64
    }

    fn try_all(&self, count: usize, max_events: usize) -> Vec<usize> {
        let (mut best, mut least) = (Vec::new(), f64::INFINITY);
        for size in 1..=max_events.min(count) {
            let mut set: Vec<usize> = (1..=size).collect();
            let (mut best_of_size, mut least_of_size) = (Vec::new(), f64::INFINITY);
            loop {
                let error = self.error(&set);
                if error < least_of_size {
                    (best_of_size, least_of_size) = (set.clone(), error);
                }
                if !next_combination(&mut set, count) {
                    break;
                }
            }
            if least_of_size < least * (1.0 - WORTHWHILE) {
                (best, least) = (best_of_size, least_of_size);
            }
        }
        best
    }

    fn grow(&self, count: usize, max_events: usize) -> Vec<usize> {
        let (mut set, mut least) = (Vec::new(), f64::INFINITY);
        while set.len() < max_events {
            let with = |term: usize| {
                let mut larger = set.clone();
                larger.push(term);
                (self.error(&larger), larger)
            };
            let grown =
                (1..=count).filter(|term| !set.contains(term)).map(with).min_by(|a, b| a.0.total_cmp(&b.0));
            match grown {
                Some((error, larger)) if error < least * (1.0 - WORTHWHILE) => (set, least) = (larger, error),
                _ => break,
            }
        }
        set.sort_unstable();
        set
    }
}

/// The next set of the same size out of 1..=count in lexical order; `false` after the last.
fn next_combination(set: &mut [usize], count: usize) -> bool {
    let size = set.len();
    for at in (0..size).rev() {
        if set[at] < count - (size - 1 - at) {
            set[at] += 1;
            for later in at + 1..size {
                set[later] = set[later - 1] + 1;
            }
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::random::Random;
    use crate::power_model::dataset::Observation;

    /// Power follows `busy` and `misses`; the others are noise of several patterns.
    fn data(columns: usize) -> Dataset {
        let names = (0..columns).map(|column| match column {
            3 => "busy".to_owned(),
            5 => "misses".to_owned(),
            other => format!("noise{other}"),
        });
        let mut data = Dataset::new(names.collect());
        let mut random = Random::seeded(0);
        for row in 0..200usize {
            let rates: Vec<f64> = (0..columns).map(|_| random.below(1000) as f64 / 10.0).collect();
            let watts = 30.0 + 0.5 * rates[3] + 0.2 * rates[5] + ((row * 31) % 7) as f64 * 0.1;
            let workload = format!("w{}", row % 5);
            data.push(Observation { rates: &rates, watts, workload: &workload, frequency: None });
        }
        data
    }

    #[test]
    fn the_events_that_matter_are_found_by_trying_all() {
        let data = data(8);
        assert!(number_of_sets(8, 4) <= EXHAUSTIVE);
        assert_eq!(best_events(&data, 4, &FitOptions::default()), Ok(vec![3, 5]));
        assert_eq!(best_events(&data, 1, &FitOptions::default()), Ok(vec![3]));
    }

    #[test]
    fn and_by_growing_where_there_are_too_many_sets() {
        let data = data(60);
        assert!(number_of_sets(60, 4) > EXHAUSTIVE);
        assert_eq!(best_events(&data, 4, &FitOptions::default()), Ok(vec![3, 5]));
    }

    #[test]
    fn combinations_are_all_there() {
        let mut set = vec![1, 2];
        let mut all = vec![set.clone()];
        while next_combination(&mut set, 4) {
            all.push(set.clone());
        }
        assert_eq!(all, [[1, 2], [1, 3], [1, 4], [2, 3], [2, 4], [3, 4]]);
        assert_eq!(number_of_sets(4, 2), 10);
    }
}
