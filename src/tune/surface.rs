//! A response over the whole space: where nothing was run what the model says, and where something was, what
//! model and measurement say together.
//!
//! An observation is `ln y = model + misfit + noise`. Misfit is what the model's form cannot follow (a step at
//! the second socket): it stays however often a setting is run. Repeated runs tell the noise, and what residuals
//! vary by beyond it is misfit. At a setting that was run, the best estimate takes the share
//! `misfit / (misfit + noise)` of its residual (C. R. Henderson, "Best linear unbiased estimation and prediction
//! under a selection model", Biometrics 31, 1975); elsewhere the misfit widens the intervals.

use rustc_hash::FxHashMap;

use super::model::{Estimate, LogModel};
use super::runs::{Axis, Measurements};
use super::space::Setting;
use crate::numerics::student::t_quantile;

/// Without repeated runs nothing tells misfit from noise. Halves are wrong by the least, whichever it is.
const UNTOLD: f64 = 0.5;

/// A model of one response, and what was measured of it.
#[derive(Debug, Clone)]
pub struct Surface {
    model: LogModel,
    errors: Option<Errors>,
    measured: FxHashMap<String, Measured>,
}

/// Variances of logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Errors {
    /// Of an observation about the model, by which its coefficients are uncertain.
    residual: f64,
    /// Of the truth about the model.
    misfit: f64,
    /// Of the mean of a typical setting's runs.
    noise: f64,
    /// Of one run.
    noise_of_run: f64,
    /// Degrees of freedom of the residuals, and of the noise.
    freedom: [usize; 2],
    /// Repeated runs told misfit from noise.
    is_told: bool,
}

/// What the runs of a setting add to the model.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Measured {
    residual: f64,
    runs: f64,
}

impl Errors {
    fn of(model: &LogModel, measured: &Measurements, axis: Axis) -> Option<Self> {
        let (residual, freedom) = model.variance()?;
        let has_residuals = model.least_squares().degrees_of_freedom() > 0;
        let settings = measured.settings();
        let per_run =
            settings.iter().map(|of| 1.0 / of.runs as f64).sum::<f64>() / settings.len().max(1) as f64;
        let (noise, of_noise, is_told) = match measured.mean_error(axis) {
            // All that is known is noise; of misfit nothing.
            _ if !has_residuals => (residual, freedom, false),
            Some((noise, freedom)) => (noise, freedom, true),
            None => (UNTOLD * residual, freedom, false),
        };
        let misfit = if has_residuals { (residual - noise).max(0.0) } else { 0.0 };
        let noise_of_run = noise / per_run;
        Some(Self { residual, misfit, noise, noise_of_run, freedom: [freedom, of_noise], is_told })
    }
}

/// A linear combination of the model's coefficients and of one setting's own error.
struct Part {
    log: f64,
    row: Vec<f64>,
    /// Variance by the misfit, and by the noise, that remains.
    variances: [f64; 2],
}

impl Surface {
    /// Of a model that was fitted to these runs.
    pub fn new(model: LogModel, measured: &Measurements, axis: Axis) -> Self {
        let errors = Errors::of(&model, measured, axis);
        let residuals = model.least_squares().residuals();
        let of_setting =
            measured.settings().iter().zip(residuals).map(|(of, residual)| {
                (of.setting.key(), Measured { residual: *residual, runs: of.runs as f64 })
            });
        Self { errors, measured: of_setting.collect(), model }
    }

    /// The model alone.
    pub fn model(&self) -> &LogModel {
        &self.model
    }

    /// The expected value at a setting.
    pub fn value_at(&self, setting: &Setting) -> f64 {
        self.part(setting).log.exp()
    }

    /// The expected value at a setting, with the interval in which the mean of as many new runs as a typical setting had
    /// will lie with probability `level`.
    pub fn predict(&self, setting: &Setting, level: f64) -> Estimate {
        let part = self.part(setting);
        let noise = self.errors.map_or(0.0, |errors| errors.noise);
        self.estimate(part.log, &part.row, [part.variances[0], part.variances[1] + noise], level)
    }

    /// The expected ratio of a setting's value to another's, with its confidence interval.
    pub fn ratio(&self, setting: &Setting, reference: &Setting, level: f64) -> Estimate {
        let (part, other) = (self.part(setting), self.part(reference));
        if setting.key() == reference.key() {
            return Estimate { value: 1.0, interval: self.errors.map(|_| (1.0, 1.0)) };
        }
        let row: Vec<f64> = part.row.iter().zip(&other.row).map(|(value, other)| value - other).collect();
        let variances = [0, 1].map(|of| part.variances[of] + other.variances[of]);
        self.estimate(part.log - other.log, &row, variances, level)
    }

    /// Variance of the expected logarithm at a setting; of a misfit only what repeated runs told.
    pub fn variance_at(&self, setting: &Setting) -> Option<f64> {
        let errors = self.errors?;
        if !errors.is_told {
            return Some(errors.residual * self.model.leverage_of(setting));
        }
        let part = self.part(setting);
        let leverage = self.model.least_squares().leverage_of(&part.row);
        Some(errors.residual * leverage + part.variances.iter().sum::<f64>())
    }

    fn part(&self, setting: &Setting) -> Part {
        let mut row = self.model.formula().row(setting);
        let log = self.model.least_squares().predict(&row);
        let Some(errors) = self.errors else { return Part { log, row, variances: [0.0; 2] } };
        let Some(own) = self.measured.get(&setting.key()) else {
            return Part { log, row, variances: [errors.misfit, 0.0] };
        };
        let noise = errors.noise_of_run / own.runs;
        let weight = if errors.misfit > 0.0 { errors.misfit / (errors.misfit + noise) } else { 0.0 };
        row.iter_mut().for_each(|value| *value *= 1.0 - weight);
        Part {
            log: log + weight * own.residual,
            row,
            variances: [(1.0 - weight).powi(2) * errors.misfit, weight * weight * noise],
        }
    }

    /// Of parts of variance that residuals tell and of what the noise adds, with the degrees of freedom of their sum
    /// (F. E. Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics Bulletin 2, 1946).
    fn estimate(&self, log: f64, row: &[f64], [misfit, noise]: [f64; 2], level: f64) -> Estimate {
        let interval = self.errors.and_then(|errors| {
            let of_model = errors.residual * self.model.least_squares().leverage_of(row) + misfit;
            let variance = of_model + noise;
            let squares =
                of_model.powi(2) / errors.freedom[0] as f64 + noise.powi(2) / errors.freedom[1] as f64;
            // Without repeats all parts come of one estimate, and are off together.
            let freedom = match errors.is_told && squares > 0.0 {
                true => variance.powi(2) / squares,
                false => errors.freedom[0] as f64,
            };
            // Rounding must not take a whole degree from a sum of one part.
            let half = t_quantile(level, (freedom + 1e-6).max(1.0) as usize)? * variance.sqrt();
            Some(((log - half).exp(), (log + half).exp()))
        });
        Estimate { value: log.exp(), interval }
    }
}

#[cfg(test)]
mod tests {
    use super::super::formula::Formula;
    use super::super::levels::parse_named_variable;
    use super::super::runs::{Responses, Run};
    use super::super::space::{Level, Space};
    use super::*;
    use crate::numerics::random::Random;

    /// Four settings of a line in x, `times` runs of each that lie `noise` apart in logarithms.
    fn line(residuals: [f64; 4], noise: f64, times: usize) -> (Surface, Space) {
        let space = Space::new(vec![parse_named_variable("x=1..5").expect("valid")]).expect("valid");
        let runs: Vec<Run> = (0..4 * times)
            .map(|n| {
                let (at, repeat) = (n % 4, n / 4);
                let off = noise * (repeat as f64 - (times - 1) as f64 / 2.0);
                let value = (residuals[at] + off).exp();
                Run { setting: Setting(vec![Level::Number((at + 1) as f64)]), values: [value, value] }
            })
            .collect();
        let measured = Measurements::gather(Responses::Totals, &runs).expect("valid");
        let formula = Formula::parse("x", &space).expect("valid");
        let model = LogModel::fit(&formula, &space, &measured, Axis::Speed).expect("determined");
        (Surface::new(model, &measured, Axis::Speed), space)
    }

    /// Residuals 0.1, -0.1, -0.1, 0.1 have no slope: their variance is 0.04 / 2.
    #[test]
    fn what_was_measured_counts_by_hand() {
        // Two runs each, 0.02 apart: a run varies by 0.0002, their mean by 0.0001.
        let (surface, space) = line([0.1, -0.1, -0.1, 0.1], 0.02, 2);
        let errors = surface.errors.expect("known");
        assert!((errors.residual - 0.02).abs() < 1e-12 && (errors.noise - 1e-4).abs() < 1e-12, "{errors:?}");
        assert!((errors.misfit - 0.0199).abs() < 1e-12 && errors.freedom == [2, 4]);
        let weight = 0.0199 / 0.02;
        assert!((surface.value_at(&space.setting(0)).ln() - 0.1 * weight).abs() < 1e-12);
        // Nobody ran the fifth: the model's 0, and all of its misfit.
        let fifth = surface.part(&space.setting(4));
        assert!(fifth.log.abs() < 1e-12 && fifth.variances == [errors.misfit, 0.0]);
        // Where noise explains all, the model is believed.
        let (surface, space) = line([0.1, -0.1, -0.1, 0.1], 0.4, 2);
        assert!(surface.value_at(&space.setting(0)).ln().abs() < 1e-12);
        // Once each: half of the residual, with half of its variance and a quarter of the model's.
        let (surface, space) = line([0.1, -0.1, -0.1, 0.1], 0.0, 1);
        let first = surface.part(&space.setting(0));
        assert!((first.log - 0.05).abs() < 1e-12);
        assert!((first.variances[0] - 0.0025).abs() < 1e-12 && (first.variances[1] - 0.0025).abs() < 1e-12);
        assert_eq!(surface.ratio(&space.setting(1), &space.setting(1), 0.95).interval, Some((1.0, 1.0)));
    }

    fn normal(random: &mut Random) -> f64 {
        (-2.0 * (1.0 - random.uniform()).ln()).sqrt() * (std::f64::consts::TAU * random.uniform()).cos()
    }

    /// A second socket from 9 threads on, which no smooth curve follows; every setting was run.
    #[test]
    fn intervals_hold_the_truth_where_the_model_cannot_follow_it() {
        let variables = ["threads=1..16", "freq=1,1.5,2,2.5,3"];
        let space = Space::new(variables.map(|text| parse_named_variable(text).expect("valid")).into())
            .expect("valid");
        let truth = |setting: &Setting| {
            let at = |index: usize| setting.0[index].number().expect("a number");
            let (threads, freq) = (at(0), at(1));
            (1.0 / threads + 0.05) / freq.sqrt() * if threads > 8.0 { 1.35 } else { 1.0 }
        };
        for (times, noise) in [(1, 0.01), (3, 0.01), (3, 0.03)] {
            let (mut held, mut of_model, mut all) = (0, 0, 0);
            for seed in 0..6 {
                let mut random = Random::seeded(seed);
                let runs: Vec<Run> = (0..times * space.size())
                    .map(|n| {
                        let setting = space.setting(n % space.size());
                        let value = truth(&setting) * (noise * normal(&mut random)).exp();
                        Run { setting, values: [value, value] }
                    })
                    .collect();
                let measured = Measurements::gather(Responses::Totals, &runs).expect("valid");
                let formula = Formula::usual(&space);
                let model = LogModel::fit(&formula, &space, &measured, Axis::Speed).expect("determined");
                let surface = Surface::new(model.clone(), &measured, Axis::Speed);
                // Each of some settings stands for the default.
                for pair in 0..space.size() * 8 {
                    let reference = space.setting(pair % 8 * 10 + 3);
                    let setting = space.setting(pair / 8);
                    if setting == reference {
                        continue;
                    }
                    let ratio = truth(&setting) / truth(&reference);
                    let holds = |estimate: Estimate| {
                        u32::from(estimate.interval.is_some_and(|(low, high)| (low..=high).contains(&ratio)))
                    };
                    held += holds(surface.ratio(&setting, &reference, 0.95));
                    of_model += holds(model.ratio(&setting, &reference, 0.95));
                    all += 1;
                }
            }
            println!("{times} runs, noise {noise}: {held} of {all} hold, {of_model} by the model alone");
            assert!(held * 100 >= all * 88, "{held} of {all} hold, {of_model} by the model alone");
        }
    }
}
