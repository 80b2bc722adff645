//! How sure the joules of a row are.
//!
//! Three things make them unsure, and their variances add up:
//!
//! - **Sampling.** A sample stands for all events since the one before it, whoever they were of. Where
//!   code runs long, only the samples at its two ends are wrong, by a uniform part of a quantum each:
//!   a twelfth of its square. Where code changes within a sampling period, samples fall by chance, as in
//!   an urn. In between, take the row's being sampled for a process that switches on and off at random:
//!   its autocorrelation from one sample to the next, `x`, follows from how often two samples in a row
//!   and two samples apart differ, `x = d2 / d1 - 1`, and the variance of the count against the truth is
//!   `d1 / (2 (1 - x)) * ((1 + x) / (1 - x) + 2 / ln x)`, which goes from `d1 / 12` to `d1 / 2`. (The
//!   variance of the sum of a sampled exponentially correlated process less its integral.)
//! - **The model.** Its coefficients have a covariance; how a row's joules depend on each of them was
//!   added up bucket by bucket.
//! - **The meter.** The first and the last reading are as old as the meter's refresh.

use rustc_hash::FxHashMap;

use super::select::Selected;
use crate::profile::{ErrorTerms, NO_CELL, Profile};
use crate::units::{Joules, Nanoseconds};

/// Sums of one row, by event.
#[derive(Debug, Clone, Default)]
struct RowSums {
    joules: Vec<f64>,
    samples: Vec<f64>,
    /// Neighbours in the trail that differ in being of the row, and samples two apart.
    jumps: Vec<f64>,
    jumps_of_two: f64,
    /// By domain, then parameter.
    gradient: Vec<f64>,
}

/// The variance, in square joules, of each of `rows` rows, of which `row_of` tells for each cell its
/// own. `None` if the profile does not tell.
pub(super) fn variances(
    profile: &Profile,
    selected: &Selected,
    rows: usize,
    row_of: impl Fn(usize) -> Option<usize>,
) -> Option<Vec<f64>> {
    let terms = profile.errors.as_ref()?;
    let columns = profile.domains.len();
    let of_cell: Vec<Option<usize>> = (0..profile.cells.len()).map(&row_of).collect();
    let empty = RowSums {
        joules: vec![0.0; profile.events.len()],
        samples: vec![0.0; profile.events.len()],
        jumps: vec![0.0; profile.events.len()],
        jumps_of_two: 0.0,
        gradient: vec![0.0; selected.domains.len() * terms.parameters],
    };
    let mut sums: Vec<Option<RowSums>> = vec![None; rows];
    for (index, cell, totals) in selected.cells(profile) {
        let Some(row) = of_cell[index] else { continue };
        let sum = sums.get_mut(row)?.get_or_insert_with(|| empty.clone());
        let event = cell.event as usize;
        sum.joules[event] += totals.joules.as_joules();
        sum.samples[event] += cell.samples as f64;
        for (position, &domain) in selected.domains.iter().enumerate() {
            let start = (index * columns + domain) * terms.parameters;
            let Some(changes) = terms.sensitivities.get(start..start + terms.parameters) else { continue };
            let gradient = &mut sum.gradient[position * terms.parameters..][..terms.parameters];
            gradient.iter_mut().zip(changes).for_each(|(sum, change)| *sum += f64::from(*change));
            let cost = coefficient(profile, domain, event);
            if cost > 0.0 {
                gradient[event] += profile.cell_joules[index * columns + domain].as_joules() / cost;
            }
        }
    }
    add_jumps(terms, &of_cell, &mut sums);
    let edges = meter_error(profile, selected);
    let whole: f64 = sums.iter().flatten().flat_map(|sum| &sum.joules).sum();
    let variance = |sum: &Option<RowSums>| {
        let Some(sum) = sum else { return 0.0 };
        let share = if whole > 0.0 { sum.joules.iter().sum::<f64>() / whole } else { 0.0 };
        sum.by_sampling(terms.trail.share()) + by_model(sum, terms, selected) + (edges * share).powi(2)
    };
    Some(sums.iter().map(variance).collect())
}

fn coefficient(profile: &Profile, domain: usize, event: usize) -> f64 {
    let model = profile.division.as_ref().and_then(|division| division.domains.get(domain)?.as_ref());
    model.and_then(|model| model.joules_per_event.get(event)).copied().unwrap_or(0.0)
}

/// Counts, for each row and event, how often neighbours in the trail differ in being of the row.
fn add_jumps(terms: &ErrorTerms, of_cell: &[Option<usize>], sums: &mut [Option<RowSums>]) {
    let row_of =
        |cell: u32| (cell != NO_CELL).then(|| of_cell.get(cell as usize).copied().flatten()).flatten();
    let mut last_two: FxHashMap<u32, [Option<Option<usize>>; 2]> = FxHashMap::default();
    for block in terms.trail.blocks() {
        last_two.clear();
        for &(stream, cell) in block {
            let row = row_of(cell);
            let event = stream as usize % terms.parameters.saturating_sub(1).max(1);
            let [before, before_that] = last_two.entry(stream).or_default();
            if let Some(before) = *before
                && before != row
            {
                for row in [before, row].into_iter().flatten() {
                    if let Some(Some(sum)) = sums.get_mut(row) {
                        sum.jumps[event] += 1.0;
                    }
                }
            }
            if let Some(before_that) = *before_that
                && before_that != row
            {
                for row in [before_that, row].into_iter().flatten() {
                    if let Some(Some(sum)) = sums.get_mut(row) {
                        sum.jumps_of_two += 1.0;
                    }
                }
            }
            (*before_that, *before) = (*before, Some(row));
        }
    }
}

impl RowSums {
    fn by_sampling(&self, share_of_trail: f64) -> f64 {
        let all: f64 = self.jumps.iter().sum();
        let share = weight_of_a_jump(if all > 0.0 { self.jumps_of_two / all - 1.0 } else { 1.0 });
        let events = self.joules.iter().zip(&self.samples).zip(&self.jumps);
        events
            .filter(|((_, samples), _)| **samples > 0.0)
            .map(|((joules, samples), jumps)| {
                // A row that no jump was seen of has at least begun and ended.
                let jumps = (jumps / share_of_trail.max(f64::MIN_POSITIVE)).max(1.0);
                (joules / samples).powi(2) * share * jumps
            })
            .sum()
    }
}

/// The variance that one jump brings, in squares of a quantum, for an autocorrelation from one sample to
/// the next.
fn weight_of_a_jump(autocorrelation: f64) -> f64 {
    const URN: f64 = 0.5;
    const LONG_RUNS: f64 = 1.0 / 12.0;
    match autocorrelation {
        x if x < 1e-4 => URN,
        // The difference below loses its digits.
        x if x > 0.98 => LONG_RUNS,
        x => ((1.0 + x) / (1.0 - x) + 2.0 / x.ln()) / (2.0 * (1.0 - x)),
    }
}

fn by_model(sum: &RowSums, terms: &ErrorTerms, selected: &Selected) -> f64 {
    let size = terms.parameters;
    let of_domain = |(position, &domain): (usize, &usize)| {
        let gradient = &sum.gradient[position * size..][..size];
        let covariance =
            terms.covariances.get(domain).filter(|covariance| covariance.len() == size * size)?;
        let product: f64 = (0..size)
            .map(|row| {
                let of_row = &covariance[row * size..][..size];
                gradient[row] * of_row.iter().zip(gradient).map(|(a, b)| a * b).sum::<f64>()
            })
            .sum();
        Some(product.max(0.0))
    };
    selected.domains.iter().enumerate().filter_map(of_domain).sum()
}

/// Standard error of all measured joules: each end is wrong by a uniform part of what flows in a refresh.
fn meter_error(profile: &Profile, selected: &Selected) -> f64 {
    if profile.duration == Nanoseconds::ZERO {
        return 0.0;
    }
    let variance: f64 = selected
        .domains
        .iter()
        .map(|&domain| {
            let domain = &profile.domains[domain];
            let refresh = domain.info.refresh.unwrap_or(Nanoseconds::from_millis(1));
            let step = (domain.measured / profile.duration * refresh)
                .max(domain.info.resolution.unwrap_or(Joules::ZERO))
                .as_joules();
            step * step / 6.0
        })
        .sum();
    variance.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_counts_from_a_twelfth_to_a_half() {
        assert_eq!(weight_of_a_jump(-0.3), 0.5);
        assert_eq!(weight_of_a_jump(1.0), 1.0 / 12.0);
        let mut last = 0.5;
        for step in 1..98 {
            let weight = weight_of_a_jump(f64::from(step) / 100.0);
            assert!(weight < last && weight > 1.0 / 12.0, "{step}: {weight}");
            last = weight;
        }
        assert!((last - 1.0 / 12.0).abs() < 0.01);
    }
}
