//! What the runs measured, and how far repeated runs of one setting lie apart.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::TuneError;
use super::space::Setting;
use crate::numerics::student::t_quantile;

/// Which two figures describe a run. Both pairs say the same of a fixed amount of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Responses {
    /// Seconds and joules of the whole run: less is better.
    Totals,
    /// Work per second and work per joule: more is better.
    Rates,
}

/// One of the two responses: time or performance, energy or efficiency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Seconds, or work per second.
    Speed = 0,
    /// Joules, or work per joule.
    Energy = 1,
}

/// Both axes, in the order of every pair of values.
pub const AXES: [Axis; 2] = [Axis::Speed, Axis::Energy];

impl Responses {
    /// A value as a cost, of which less is better: itself, or its reciprocal.
    pub fn cost(self, value: f64) -> f64 {
        match self {
            Responses::Totals => value,
            Responses::Rates => 1.0 / value,
        }
    }

    /// What an axis is called.
    pub const fn name(self, axis: Axis) -> &'static str {
        match (self, axis) {
            (Responses::Totals, Axis::Speed) => "time",
            (Responses::Totals, Axis::Energy) => "energy",
            (Responses::Rates, Axis::Speed) => "performance",
            (Responses::Rates, Axis::Energy) => "efficiency",
        }
    }
}

/// One run of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What was set.
    pub setting: Setting,
    /// Time and energy (seconds, joules), or performance and efficiency.
    pub values: [f64; 2],
}

/// All runs of one setting.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredSetting {
    /// What was set.
    pub setting: Setting,
    /// Number of runs.
    pub runs: usize,
    /// Mean of the natural logarithms of both values.
    pub log_mean: [f64; 2],
    /// Sum of the squared distances from that mean.
    log_spread: [f64; 2],
}

impl MeasuredSetting {
    /// Geometric mean of the runs' values.
    pub fn value(&self, axis: Axis) -> f64 {
        self.log_mean[axis as usize].exp()
    }

    /// Interval of the mean at a confidence level, from this setting's own repeats; `None` where these do not differ.
    pub fn interval(&self, axis: Axis, level: f64) -> Option<(f64, f64)> {
        let freedom = self.runs.checked_sub(1)?;
        let quantile = t_quantile(level, freedom)?;
        let spread = Some(self.log_spread[axis as usize]).filter(|spread| *spread > 0.0)?;
        let variance = spread / freedom as f64 / self.runs as f64;
        let half = quantile * variance.sqrt();
        let mean = self.log_mean[axis as usize];
        Some(((mean - half).exp(), (mean + half).exp()))
    }
}

/// Runs, gathered by setting in the order of their first appearance.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurements {
    /// Which two figures were measured.
    pub responses: Responses,
    settings: Vec<MeasuredSetting>,
    /// Where the setting with a key stands.
    places: FxHashMap<String, usize>,
}

impl Measurements {
    /// Gathers runs.
    ///
    /// # Errors
    /// No run at all, or a value that is not a number above 0: it has no logarithm.
    pub fn gather(responses: Responses, runs: &[Run]) -> Result<Self, TuneError> {
        if runs.is_empty() {
            return Err(TuneError::NoRuns);
        }
        let mut groups: Vec<(&Setting, Vec<[f64; 2]>)> = Vec::new();
        let mut places: FxHashMap<String, usize> = FxHashMap::default();
        for run in runs {
            for axis in AXES {
                let value = run.values[axis as usize];
                if !(value.is_finite() && value > 0.0) {
                    return Err(TuneError::NotPositive { response: responses.name(axis), value });
                }
            }
            let logs = run.values.map(f64::ln);
            let place = *places.entry(run.setting.key()).or_insert_with(|| {
                groups.push((&run.setting, Vec::new()));
                groups.len() - 1
            });
            groups[place].1.push(logs);
        }
        let settings = groups.into_iter().map(|(setting, logs)| summarize(setting.clone(), &logs)).collect();
        Ok(Self { responses, settings, places })
    }

    /// The settings that were run.
    pub fn settings(&self) -> &[MeasuredSetting] {
        &self.settings
    }

    /// The runs of a setting, if there are any.
    pub fn find(&self, setting: &Setting) -> Option<&MeasuredSetting> {
        self.places.get(&setting.key()).map(|&place| &self.settings[place])
    }

    /// The settings at these places alone.
    pub fn only(&self, places: &[usize]) -> Self {
        let settings: Vec<MeasuredSetting> =
            places.iter().filter_map(|&place| self.settings.get(place)).cloned().collect();
        let places =
            settings.iter().enumerate().map(|(place, measured)| (measured.setting.key(), place)).collect();
        Self { responses: self.responses, settings, places }
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.settings.iter().map(|measured| measured.runs).sum()
    }

    /// Variance of the logarithm of one run about its setting's mean, pooled over all settings, with
    /// its degrees of freedom; `None` where nothing was run twice, or where no run differs from another of its setting: such
    /// values are rounded to what cannot tell.
    pub fn pure_error(&self, axis: Axis) -> Option<(f64, usize)> {
        let freedom: usize = self.settings.iter().map(|measured| measured.runs - 1).sum();
        let spread: f64 = self.settings.iter().map(|measured| measured.log_spread[axis as usize]).sum();
        (spread > 0.0).then(|| (spread / freedom as f64, freedom))
    }

    /// Variance of the mean of a typical setting's runs, with its degrees of freedom.
    pub fn mean_error(&self, axis: Axis) -> Option<(f64, usize)> {
        let (variance, freedom) = self.pure_error(axis)?;
        let inverse: f64 = self.settings.iter().map(|measured| 1.0 / measured.runs as f64).sum();
        Some((variance * inverse / self.settings.len() as f64, freedom))
    }

    /// How far a measured value can be from the true one, as a share of it: the interval of a
    /// setting's mean at this confidence level. `None` where nothing was run twice.
    pub fn error_limit(&self, axis: Axis, level: f64) -> Option<f64> {
        let (variance, freedom) = self.mean_error(axis)?;
        Some((t_quantile(level, freedom)? * variance.sqrt()).exp_m1())
    }
}

fn summarize(setting: Setting, logs: &[[f64; 2]]) -> MeasuredSetting {
    let count = logs.len() as f64;
    let mut log_mean = [0.0; 2];
    let mut log_spread = [0.0; 2];
    for axis in 0..2 {
        log_mean[axis] = logs.iter().map(|values| values[axis]).sum::<f64>() / count;
        log_spread[axis] = logs.iter().map(|values| (values[axis] - log_mean[axis]).powi(2)).sum();
    }
    MeasuredSetting { setting, runs: logs.len(), log_mean, log_spread }
}

#[cfg(test)]
mod tests {
    use super::super::space::Level;
    use super::*;

    fn run(threads: f64, time: f64, energy: f64) -> Run {
        Run { setting: Setting(vec![Level::Number(threads)]), values: [time, energy] }
    }

    #[test]
    fn repeats_are_gathered() {
        let runs = [run(1.0, 2.0, 10.0), run(2.0, 1.0, 8.0), run(1.0, 8.0, 10.0)];
        let measured = Measurements::gather(Responses::Totals, &runs).expect("valid");
        assert_eq!(measured.settings().len(), 2);
        assert_eq!(measured.runs(), 3);
        let first = &measured.settings()[0];
        assert!((first.value(Axis::Speed) - 4.0).abs() < 1e-12);
        // ln 2 and ln 8 lie ln 2 on either side of ln 4: the variance is 2 (ln 2)^2 with one degree.
        let (variance, freedom) = measured.pure_error(Axis::Speed).expect("one repeat");
        assert!((variance - 2.0 * 2f64.ln().powi(2)).abs() < 1e-12);
        assert_eq!(freedom, 1);
        // 10 J twice: that is what was rounded, not what is certain.
        assert_eq!(measured.pure_error(Axis::Energy), None);
        assert_eq!(first.interval(Axis::Energy, 0.95), None);
    }

    #[test]
    fn one_run_each_says_nothing_of_the_error() {
        let measured = Measurements::gather(Responses::Totals, &[run(1.0, 2.0, 10.0)]).expect("valid");
        assert_eq!(measured.error_limit(Axis::Speed, 0.95), None);
        assert_eq!(measured.settings()[0].interval(Axis::Speed, 0.95), None);
    }

    #[test]
    fn what_has_no_logarithm_is_refused() {
        for energy in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = Measurements::gather(Responses::Totals, &[run(1.0, 1.0, energy)]);
            assert!(matches!(error, Err(TuneError::NotPositive { response: "energy", .. })));
        }
        assert!(matches!(Measurements::gather(Responses::Totals, &[]), Err(TuneError::NoRuns)));
    }
}
