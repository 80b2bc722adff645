//! Intervals around estimates of power, from how far measurements lay from estimates of workloads left out.
//!
//! What a model says of its own rows is no measure of what it says of others. So each workload is left out in turn,
//! the whole way from data to model is gone again without it, and how far its rows lie from their estimates tells how
//! wide an interval must be for the rows of yet another workload. Distances are those of logarithms: shares of the
//! power, and no interval reaches below zero.

use super::dataset::Dataset;
use super::error::ModelError;
use crate::numerics::folds::{Fold, Part, dealt, spans};
use crate::numerics::quantiles;
use crate::numerics::student::t_quantile;

/// Most groups that workloads are dealt into to be left out: each is another training.
const MOST_GROUPS: usize = 24;
/// Spans of rows that are left out where there is one workload only.
const SPANS: usize = 8;
/// An estimate of no power at all is as wrong as one of this share.
const LEAST_SHARE: f64 = 1e-3;

/// How far measurements lay from estimates that did not know them.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOutErrors {
    /// `|ln(measured / estimated)|` and the row's weight, ascending. Each workload weighs 1.
    distances: Vec<(f64, f64)>,
    mean_square: f64,
    mean: f64,
    groups: usize,
    kind: LeftOutKind,
}

/// What was left out in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOutKind {
    /// Workloads: intervals are about programs that were not measured.
    Workloads,
    /// Spans of the rows of a single workload: intervals are about more of the same.
    Spans,
}

impl LeftOutErrors {
    /// Leaves workloads out, or spans where there are fewer than two; `train` gets the rest.
    ///
    /// # Errors
    /// [`ModelError::TooFewRows`] if nothing would be left, and those of `train`.
    pub fn new<Model>(
        data: &Dataset,
        mut train: impl FnMut(&Dataset) -> Result<Model, ModelError>,
        watts: impl Fn(&Model, &[f64]) -> f64,
    ) -> Result<Self, ModelError> {
        let workloads = data.by_workload();
        let (parts, folds, kind) = if workloads.len() < 2 {
            if data.len() < 2 * SPANS {
                return Err(ModelError::TooFewRows { rows: data.len(), coefficients: 2 * SPANS });
            }
            let parts = spans(data.len(), SPANS);
            (parts.clone(), parts, LeftOutKind::Spans)
        } else {
            (workloads.clone(), dealt(workloads, MOST_GROUPS), LeftOutKind::Workloads)
        };
        let mut distance = vec![0.0; data.len()];
        let mut error = vec![0.0; data.len()];
        for part in &folds {
            let Fold { held_out, kept } = Fold::holding_out(part, data.len());
            let model = train(&data.only(&kept))?;
            for row in held_out {
                let estimated = watts(&model, data.rates(row));
                let share = (estimated / data.watts(row)).max(LEAST_SHARE);
                distance[row] = share.ln().abs();
                error[row] = (estimated / data.watts(row) - 1.0).abs();
            }
        }
        Ok(Self::of(&distance, &error, &parts, kind))
    }

    fn of(distance: &[f64], error: &[f64], parts: &[Part], kind: LeftOutKind) -> Self {
        let groups = parts.len();
        let mut distances = Vec::with_capacity(distance.len());
        let (mut mean_square, mut mean) = (0.0, 0.0);
        for part in parts {
            let weight = 1.0 / part.len() as f64;
            for &row in part {
                distances.push((distance[row], weight));
                mean_square += distance[row].powi(2) * weight / groups as f64;
                mean += error[row] * weight / groups as f64;
            }
        }
        distances.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { distances, mean_square, mean, groups, kind }
    }

    /// Lowest and highest power, in watts, between which a measurement lies with this probability (0..1) where a
    /// model of all the data says `watts`; `None` for a level that is none, or an estimate that is not positive.
    ///
    /// With enough workloads the interval is the share of what was left out that lay as near; with few, no share is
    /// that large, and Student's t at the root mean square of the distances takes its place.
    pub fn interval(&self, watts: f64, level: f64) -> Option<(f64, f64)> {
        let distance = self.distance(level)?;
        (watts > 0.0).then(|| (watts * (-distance).exp(), watts * distance.exp()))
    }

    fn distance(&self, level: f64) -> Option<f64> {
        let groups = self.groups as f64;
        let by_students_t =
            t_quantile(level, self.groups - 1)? * (self.mean_square * (1.0 + 1.0 / groups)).sqrt();
        // As many as there are and one more that is farther than all: the workload to come.
        let share = level * (groups + 1.0) / groups;
        let by_share = || quantiles::weighted(&self.distances, |(_, weight)| *weight, share);
        if share < 1.0 { by_share().map(|(distance, _)| *distance) } else { Some(by_students_t) }
    }

    /// Mean of |estimate - measured| / measured, each workload counted once.
    pub fn mean_error(&self) -> f64 {
        self.mean
    }

    /// How many were left out in turn.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// What they were.
    pub fn kind(&self) -> LeftOutKind {
        self.kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::random::Random;
    use crate::power_model::dataset::Observation;

    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0
    }

    /// Workloads that are each off by a share of their own; the model is the mean.
    fn data(workloads: usize, random: &mut Random) -> Dataset {
        let mut data = Dataset::new(vec!["a".into()]);
        for workload in 0..workloads {
            let off = 0.1 * normal(random);
            for _ in 0..10 {
                let watts = 50.0 * (off + 0.01 * normal(random)).exp();
                let workload = format!("w{workload}");
                let row = Observation { rates: &[1.0], watts, workload: &workload, frequency: None };
                assert!(data.push(row));
            }
        }
        data
    }

    fn mean(data: &Dataset) -> Result<f64, ModelError> {
        let logs = (0..data.len()).map(|row| data.watts(row).ln()).sum::<f64>();
        Ok((logs / data.len() as f64).exp())
    }

    #[test]
    fn intervals_hold_what_they_say_and_are_no_wider() {
        for workloads in [5, 40] {
            let mut random = Random::seeded(5);
            let (mut held, mut width, trials) = (0, 0.0, 300);
            for _ in 0..trials {
                let data = data(workloads, &mut random);
                let errors = LeftOutErrors::new(&data, mean, |model, _| *model).expect("workloads enough");
                let estimate = mean(&data).expect("rows");
                let (low, high) = errors.interval(estimate, 0.95).expect("valid");
                let another = 50.0 * (0.1 * normal(&mut random)).exp();
                held += u32::from((low..=high).contains(&another));
                width += (high / low).ln() / 2.0 / f64::from(trials);
            }
            let share = f64::from(held) / f64::from(trials);
            println!("{workloads} workloads: {share:.3} held, +-{:.1} %", 100.0 * width);
            assert!((0.92..=0.985).contains(&share), "{workloads}: {share}");
            // Twice the deviation of 10 % at best; Student's t of 4 degrees is 2.8.
            assert!(width < if workloads == 5 { 0.45 } else { 0.26 }, "{workloads}: {width}");
        }
    }

    #[test]
    fn one_workload_is_left_out_in_spans() {
        let one = data(2, &mut Random::seeded(1)).filter(|row| row < 10);
        assert!(matches!(
            LeftOutErrors::new(&one, mean, |model, _| *model),
            Err(ModelError::TooFewRows { .. })
        ));
        let mut random = Random::seeded(2);
        let mut one = Dataset::new(vec!["a".into()]);
        for _ in 0..64 {
            let watts = 20.0 + normal(&mut random);
            one.push(Observation { rates: &[1.0], watts, workload: "w", frequency: None });
        }
        let errors = LeftOutErrors::new(&one, mean, |model, _| *model).expect("rows enough");
        assert_eq!((errors.groups(), errors.kind()), (SPANS, LeftOutKind::Spans));
        assert_eq!(errors.interval(20.0, 1.0), None);
        assert_eq!(errors.interval(-1.0, 0.95), None);
    }
}
