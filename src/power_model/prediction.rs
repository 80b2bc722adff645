//! Intervals around estimates of power, from how far measurements lay from estimates of workloads left out.
//!
//! Each workload is left out in turn, the whole way from data to model is gone again without it, and how far its rows
//! lie from their estimates tells how wide an interval must be for the rows of yet another workload
//! ([`LeftOutDistances`]).

use super::dataset::Dataset;
use super::error::ModelError;
use crate::numerics::folds::{Fold, dealt, spans};
use crate::numerics::left_out::LeftOutDistances;

/// Most groups that workloads are dealt into to be left out: each is another training.
const MOST_GROUPS: usize = 24;
/// Spans of rows that are left out where there is one workload only.
const SPANS: usize = 8;

/// How far measurements lay from estimates that did not know them.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOutErrors {
    distances: LeftOutDistances,
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
        let mut estimated = vec![0.0; data.len()];
        for part in &folds {
            let Fold { held_out, kept } = Fold::holding_out(part, data.len());
            let model = train(&data.only(&kept))?;
            for row in held_out {
                estimated[row] = watts(&model, data.rates(row));
            }
        }
        let measured: Vec<f64> = (0..data.len()).map(|row| data.watts(row)).collect();
        Ok(Self { distances: LeftOutDistances::new(&estimated, &measured, &parts), kind })
    }

    /// Lowest and highest power, in watts, between which a measurement lies with this probability (0..1) where a
    /// model of all the data says `watts`; see [`LeftOutDistances::interval`].
    pub fn interval(&self, watts: f64, level: f64) -> Option<(f64, f64)> {
        self.distances.interval(watts, level)
    }

    /// Mean of |estimate - measured| / measured, each workload counted once.
    pub fn mean_error(&self) -> f64 {
        self.distances.mean_error()
    }

    /// How many were left out in turn.
    pub fn groups(&self) -> usize {
        self.distances.parts()
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
        // Two rows to a span.
        let rows = |count: usize| {
            let mut one = Dataset::new(vec!["a".into()]);
            for row in 0..count {
                let watts = 20.0 + row as f64;
                one.push(Observation { rates: &[1.0], watts, workload: "w", frequency: None });
            }
            LeftOutErrors::new(&one, mean, |model, _| *model)
        };
        assert!(matches!(rows(15), Err(ModelError::TooFewRows { rows: 15, coefficients: 16 })));
        assert!(rows(16).is_ok());
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
