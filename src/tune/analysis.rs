//! From runs to a recommendation: model, front, zone, choice, and how far to trust them.

use super::TuneError;
use super::best_form::{best_forms, fit};
use super::choice::{Goal, choose};
use super::formula::Formula;
use super::front::{Cost, pareto_front};
use super::model::{Estimate, LogModel};
use super::runs::{AXES, Axis, Measurements, Responses, Run};
use super::space::{Setting, Space};
use super::surface::Surface;
use super::validate::{Errors, k_fold, leave_one_out, pooled};
use super::zone::TradeOffZone;
use crate::numerics::student::t_quantile;

/// The error limit where nothing tells a better one: the paper's, 5 %.
pub const ASSUMED_ERROR: f64 = 0.05;

/// Number of parts of the cross validation, as in the paper.
const FOLDS: usize = 3;

/// What is asked of an analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The model's terms; `None` for the usual ones.
    pub formula: Option<String>,
    /// The setting that savings refer to.
    pub default: Setting,
    /// What to recommend.
    pub goal: Goal,
    /// Confidence level of all intervals, 0..1.
    pub level: f64,
    /// Error limits of measured and of predicted values, as shares; `None` to find them.
    pub limits: ErrorLimits<Option<f64>>,
    /// Seed of everything random.
    pub seed: u64,
}

/// A figure for measured and one for predicted values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ErrorLimits<T> {
    /// For what runs measured.
    pub measured: T,
    /// For what the model says.
    pub predicted: T,
}

/// Where an error limit comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitSource {
    /// The user said so.
    Given,
    /// Repeated runs, or the residuals of the model.
    Found,
    /// Nothing tells it; the paper's 5 %.
    Assumed,
}

/// Error limits of time and energy as shares of the value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// For each axis.
    pub values: [f64; 2],
    /// How they were found.
    pub source: LimitSource,
}

/// One axis of a model's validation.
#[derive(Debug, Clone, PartialEq)]
pub struct Validation {
    /// Each setting predicted from all others.
    pub left_out: Errors,
    /// Three-fold cross validation.
    pub folds: Vec<Errors>,
}

/// The answer.
#[derive(Debug, Clone)]
pub struct Analysis {
    space: Space,
    measured: Measurements,
    surfaces: [Surface; 2],
    question: Question,
    /// Expected costs of all settings of the space.
    costs: Vec<Cost>,
    default: usize,
    front: Vec<usize>,
    zone: TradeOffZone,
    measured_zone: TradeOffZone,
    limits: ErrorLimits<Limits>,
    chosen: usize,
}

impl Analysis {
    /// Fits the model and answers the question.
    ///
    /// # Errors
    /// Runs without a logarithm or too few of them, a formula that cannot be read, a default setting
    /// outside of the space.
    pub fn new(
        space: Space,
        responses: Responses,
        runs: &[Run],
        question: Question,
    ) -> Result<Self, TuneError> {
        let measured = Measurements::gather(responses, runs)?;
        let [speed, energy] = match &question.formula {
            Some(text) => fit(&Formula::parse(text, &space)?, &space, &measured)?,
            None => best_forms(&space, &measured)?,
        };
        let surfaces = [(speed, Axis::Speed), (energy, Axis::Energy)]
            .map(|(model, axis)| Surface::new(model, &measured, axis));
        let default = space.position(&question.default).ok_or_else(|| TuneError::Setting {
            text: space.show(&question.default),
            reason: "the default setting is not in the search space".into(),
        })?;
        let costs: Vec<Cost> = space
            .settings()
            .map(|setting| AXES.map(|axis| responses.cost(surfaces[axis as usize].value_at(&setting))))
            .collect();
        let limits = ErrorLimits {
            measured: measured_limits(&measured, &question),
            predicted: predicted_limits(&space, &surfaces, &question),
        };
        let zone = TradeOffZone::behind(&costs, limits.predicted.values);
        let runs: Vec<Cost> = measured
            .settings()
            .iter()
            .filter(|measured| space.spans(&measured.setting))
            .map(|measured| AXES.map(|axis| responses.cost(measured.value(axis))))
            .collect();
        let measured_zone = TradeOffZone::behind(&runs, limits.measured.values);
        let front = pareto_front(&costs);
        let chosen = choose(question.goal, &costs, default).unwrap_or(default);
        Ok(Self {
            space,
            measured,
            surfaces,
            question,
            costs,
            default,
            front,
            zone,
            measured_zone,
            limits,
            chosen,
        })
    }

    /// The search space.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// What the runs measured.
    pub fn measured(&self) -> &Measurements {
        &self.measured
    }

    /// What was asked.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// The model of a response.
    pub fn model(&self, axis: Axis) -> &LogModel {
        self.surfaces[axis as usize].model()
    }

    /// Expected costs (seconds and joules, or their reciprocals per work) of all settings.
    pub fn costs(&self) -> &[Cost] {
        &self.costs
    }

    /// Position of the default setting.
    pub fn default_position(&self) -> usize {
        self.default
    }

    /// Positions of the settings on the predicted front, from the fastest to the thriftiest.
    pub fn front(&self) -> &[usize] {
        &self.front
    }

    /// The trade-off zone of the predicted costs.
    pub fn zone(&self) -> &TradeOffZone {
        &self.zone
    }

    /// The trade-off zone of the measured costs.
    pub fn measured_zone(&self) -> &TradeOffZone {
        &self.measured_zone
    }

    /// How many of the settings that were run are on the front of what they measured, and how many in
    /// its zone.
    pub fn measured_in_zone(&self) -> [usize; 2] {
        let costs = self
            .measured
            .settings()
            .iter()
            .map(|measured| AXES.map(|axis| self.measured.responses.cost(measured.value(axis))));
        let in_zone = costs.clone().filter(|&cost| self.measured_zone.contains(cost)).count();
        let on_front = costs.filter(|cost| self.measured_zone.front().contains(cost)).count();
        [on_front, in_zone]
    }

    /// Positions of all settings in the predicted trade-off zone.
    pub fn in_zone(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.costs.len()).filter(|&position| self.zone.contains(self.costs[position]))
    }

    /// The error limits of the zones.
    pub fn limits(&self) -> &ErrorLimits<Limits> {
        &self.limits
    }

    /// Position of the recommended setting.
    pub fn chosen(&self) -> usize {
        self.chosen
    }

    /// The expected value at a position, with the interval for a new measurement of it: the mean of as many runs as a
    /// setting had here.
    pub fn predict(&self, axis: Axis, position: usize) -> Estimate {
        self.surfaces[axis as usize].predict(&self.space.setting(position), self.question.level)
    }

    /// Cost at a position as a share of the default setting's, with the interval of that ratio:
    /// 0.8 in energy is a saving of 20 %, 1.1 in time a slow-down of 10 %.
    pub fn against_default(&self, axis: Axis, position: usize) -> Estimate {
        let (setting, default) = (self.space.setting(position), self.space.setting(self.default));
        let surface = &self.surfaces[axis as usize];
        match self.measured.responses {
            Responses::Totals => surface.ratio(&setting, &default, self.question.level),
            Responses::Rates => surface.ratio(&default, &setting, self.question.level),
        }
    }

    /// Whether the recommended setting's saving can be told from none at all.
    pub fn saving_is_certain(&self) -> bool {
        let ratio = self.against_default(Axis::Energy, self.chosen);
        self.chosen != self.default && ratio.interval.is_some_and(|(_, high)| high < 1.0)
    }

    /// Cross validation of a response's model.
    ///
    /// # Errors
    /// None that the model itself did not have.
    pub fn validate(&self, axis: Axis) -> Result<Validation, TuneError> {
        let model = self.model(axis);
        let folds = k_fold(model.formula(), &self.space, &self.measured, axis, FOLDS, self.question.seed)?;
        Ok(Validation { left_out: leave_one_out(model), folds })
    }
}

impl Validation {
    /// The folds as one.
    pub fn folded(&self) -> Errors {
        pooled(&self.folds)
    }
}

fn measured_limits(measured: &Measurements, question: &Question) -> Limits {
    if let Some(given) = question.limits.measured {
        return Limits { values: [given; 2], source: LimitSource::Given };
    }
    match AXES.map(|axis| measured.error_limit(axis, question.level)) {
        [Some(speed), Some(energy)] => Limits { values: [speed, energy], source: LimitSource::Found },
        _ => Limits { values: [ASSUMED_ERROR; 2], source: LimitSource::Assumed },
    }
}

/// The half width of the confidence interval of a predicted value, as root mean square over the space.
fn predicted_limits(space: &Space, surfaces: &[Surface; 2], question: &Question) -> Limits {
    if let Some(given) = question.limits.predicted {
        return Limits { values: [given; 2], source: LimitSource::Given };
    }
    let limit = |surface: &Surface| {
        let (_, freedom) = surface.model().variance()?;
        let variances: Option<f64> = space.settings().map(|setting| surface.variance_at(&setting)).sum();
        let variance = variances? / space.size() as f64;
        Some((t_quantile(question.level, freedom)? * variance.sqrt()).exp_m1())
    };
    match [limit(&surfaces[0]), limit(&surfaces[1])] {
        [Some(speed), Some(energy)] => Limits { values: [speed, energy], source: LimitSource::Found },
        _ => Limits { values: [ASSUMED_ERROR; 2], source: LimitSource::Assumed },
    }
}

#[cfg(test)]
mod tests {
    use super::super::levels::parse_named_variable;
    use super::super::space::Level;
    use super::*;

    fn question(space: &Space, goal: Goal) -> Question {
        Question {
            formula: None,
            default: space.usual_setting(),
            goal,
            level: 0.95,
            limits: ErrorLimits::default(),
            seed: 1,
        }
    }

    /// Perfect scaling up to 4 threads, none after; every thread costs power.
    fn saturating(repeats: usize) -> (Space, Vec<Run>) {
        let space = Space::new(vec![parse_named_variable("threads=1..8").expect("valid")]).expect("valid");
        let runs = (0..repeats)
            .flat_map(|repeat| {
                space.settings().collect::<Vec<_>>().into_iter().map(move |setting| (repeat, setting))
            })
            .map(|(repeat, setting)| {
                let threads = setting.0[0].number().expect("a number");
                let time = 8.0 / threads.min(4.0) * (1.0 + 0.002 * repeat as f64);
                Run { setting, values: [time, time * (10.0 + 5.0 * threads)] }
            })
            .collect();
        (space, runs)
    }

    #[test]
    fn recommends_where_the_scaling_ends() {
        let (space, runs) = saturating(3);
        let question = question(&space, Goal::MaxSlowdown(0.2));
        let analysis = Analysis::new(space, Responses::Totals, &runs, question).expect("determined");
        let chosen = analysis.space().setting(analysis.chosen()).0[0].number().expect("a number");
        assert!((3.0..=5.0).contains(&chosen), "{chosen}");
        assert!(analysis.front().contains(&analysis.chosen()));
        assert!(analysis.in_zone().any(|position| position == analysis.chosen()));
        assert!(analysis.saving_is_certain());
        assert_eq!(analysis.limits().measured.source, LimitSource::Found);
    }

    /// A setting that was run and is the best of all is recommended, though the curve does not follow it.
    #[test]
    fn the_best_that_was_measured_is_recommended() {
        let space = Space::new(vec![parse_named_variable("threads=1..16").expect("valid")]).expect("valid");
        let runs: Vec<Run> = (0..3 * space.size())
            .map(|n| {
                let setting = space.setting(n % space.size());
                let threads = setting.0[0].number().expect("a number");
                let wobble = 1.0 + 0.002 * ((n * 5 % 7) as f64 - 3.0);
                // Threads that fill a socket share its caches well.
                let fit = if threads == 8.0 { 0.85 } else { 1.0 };
                let time = (1.0 / threads + 0.05) * fit * wobble;
                Run { setting, values: [time, time * (20.0 + 3.0 * threads)] }
            })
            .collect();
        let asked = question(&space, Goal::LeastEnergy);
        let analysis = Analysis::new(space, Responses::Totals, &runs, asked).expect("determined");
        assert_eq!(analysis.space().setting(analysis.chosen()).0[0].number(), Some(8.0));
        let predicted = analysis.predict(Axis::Energy, analysis.chosen()).value;
        let truth = (1.0 / 8.0 + 0.05) * 0.85 * 44.0;
        assert!((predicted / truth - 1.0).abs() < 0.01, "{predicted} of {truth}");
    }

    #[test]
    fn rates_and_totals_say_the_same() {
        let (space, runs) = saturating(2);
        let rates: Vec<Run> = runs
            .iter()
            .map(|run| Run { setting: run.setting.clone(), values: run.values.map(|v| 1000.0 / v) })
            .collect();
        let asked = question(&space, Goal::EnergyDelay);
        let totals =
            Analysis::new(space.clone(), Responses::Totals, &runs, asked.clone()).expect("determined");
        let rates = Analysis::new(space, Responses::Rates, &rates, asked).expect("determined");
        assert_eq!(totals.front(), rates.front());
        assert_eq!(totals.chosen(), rates.chosen());
        for position in 0..8 {
            for axis in AXES {
                let (a, b) = (totals.against_default(axis, position), rates.against_default(axis, position));
                assert!((a.value - b.value).abs() < 1e-9);
            }
        }
    }

    /// With flags that help at few threads only, a common factor is wrong; runs enough tell so.
    #[test]
    fn cross_validation_chooses_the_formula() {
        let variables = ["threads=1..8", "flags=a,b"].map(|text| parse_named_variable(text).expect("valid"));
        let space = Space::new(variables.into()).expect("valid");
        let runs: Vec<Run> = space
            .settings()
            .map(|setting| {
                let threads = setting.0[0].number().expect("a number");
                let compute = if setting.0[1].to_string() == "b" { 4.0 } else { 8.0 };
                let time = compute / threads + 1.0;
                Run { setting, values: [time, time * (10.0 + threads)] }
            })
            .collect();
        let mut asked = question(&space, Goal::EnergyDelay);
        let analysis =
            Analysis::new(space.clone(), Responses::Totals, &runs, asked.clone()).expect("determined");
        let chosen = analysis.model(Axis::Speed).formula().to_string();
        assert!(chosen.ends_with("bs(log(threads)):C(flags)"), "{chosen}");
        asked.formula = Some("bs(log(threads)) + C(flags)".into());
        let simple = Analysis::new(space, Responses::Totals, &runs, asked).expect("determined");
        let error = |analysis: &Analysis| {
            analysis.validate(Axis::Speed).expect("valid").left_out.root_mean_square().expect("predicted")
        };
        assert!(error(&analysis) < 0.5 * error(&simple));
    }

    /// A tenth of the work is serial, and 20 W are drawn however many cores work: seven of 48 settings tell the law, and it is
    /// right between them, where curves are not.
    #[test]
    fn a_law_is_found_where_it_holds() {
        let space = Space::new(vec![parse_named_variable("threads=1..48").expect("valid")]).expect("valid");
        let runs: Vec<Run> = [1.0, 2.0, 5.0, 12.0, 20.0, 30.0, 48.0]
            .into_iter()
            .map(|threads: f64| {
                let ripple = 1.0 + 0.004 * (threads * 7.0 % 5.0 - 2.0);
                let time = 100.0 * (0.1 + 0.9 / threads) * ripple;
                let energy = 20.0 * time + 900.0;
                Run { setting: Setting(vec![Level::Number(threads)]), values: [time, energy] }
            })
            .collect();
        let asked = question(&space, Goal::EnergyDelay);
        let analysis = Analysis::new(space.clone(), Responses::Totals, &runs, asked).expect("determined");
        for axis in AXES {
            let formula = analysis.model(axis).formula().to_string();
            assert!(formula.starts_with("amdahl(threads, serial=0."), "{formula}");
        }
        for (position, setting) in space.settings().enumerate() {
            let threads = setting.0[0].number().expect("a number");
            let truth = 100.0 * (0.1 + 0.9 / threads);
            let found = analysis.predict(Axis::Speed, position);
            assert!((found.value / truth - 1.0).abs() < 0.04, "{threads}: {found:?}, truth {truth}");
            let (low, high) = found.interval.expect("runs to spare");
            assert!(low < truth && truth < high && high / low < 1.3, "{threads}: {found:?}, truth {truth}");
        }
    }

    #[test]
    fn limits_that_nothing_tells_are_assumed() {
        let space = Space::new(vec![parse_named_variable("threads=1..2").expect("valid")]).expect("valid");
        let runs: Vec<Run> = space.settings().map(|setting| Run { setting, values: [1.0, 2.0] }).collect();
        let question = question(&space, Goal::LeastEnergy);
        let analysis = Analysis::new(space, Responses::Totals, &runs, question).expect("determined");
        assert_eq!(analysis.limits().predicted, Limits { values: [0.05; 2], source: LimitSource::Assumed });
        assert!(!analysis.saving_is_certain());
    }

    #[test]
    fn a_default_outside_of_the_space_is_refused() {
        let (space, runs) = saturating(1);
        let mut question = question(&space, Goal::LeastEnergy);
        question.default = Setting(vec![Level::Number(99.0)]);
        assert!(matches!(
            Analysis::new(space, Responses::Totals, &runs, question),
            Err(TuneError::Setting { .. })
        ));
    }
}
