//! Predictions against runs that the model has not seen.

use super::accuracy::{FrontAccuracy, compare_fronts, front_error};
use super::analysis::Analysis;
use super::front::{Cost, pareto_front};
use super::runs::{AXES, MeasuredSetting, Measurements};
use super::validate::Errors;

/// How well an analysis agrees with runs beyond its own.
#[derive(Debug, Clone, PartialEq)]
pub struct HoldOut {
    /// Errors of time and energy at the settings that the analysis did not learn from.
    pub errors: [Errors; 2],
    /// Comparison of the fronts; only where every setting of the space was run.
    pub fronts: Option<HeldOutFronts>,
}

/// The predicted front against the one of all runs.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOutFronts {
    /// Distance of the curves in time and in energy.
    pub error: [f64; 2],
    /// The paper's five measures.
    pub accuracy: FrontAccuracy,
    /// Settings on the observed front, and how many of them the predicted zone holds.
    pub observed: usize,
    /// Of those, the settings in the predicted trade-off zone.
    pub in_zone: usize,
    /// Settings on the predicted front.
    pub predicted: usize,
}

/// Compares an analysis with all runs there are.
pub fn hold_out(analysis: &Analysis, all: &Measurements) -> HoldOut {
    let errors = AXES.map(|axis| {
        let unseen =
            all.settings().iter().filter(|measured| analysis.measured().find(&measured.setting).is_none());
        let error = unseen
            .map(|measured| analysis.model(axis).value_at(&measured.setting) / measured.value(axis) - 1.0);
        Errors { relative: error.collect(), undetermined: 0 }
    });
    HoldOut { errors, fronts: compare_all(analysis, all) }
}

fn compare_all(analysis: &Analysis, all: &Measurements) -> Option<HeldOutFronts> {
    let space = analysis.space();
    let cost = |measured: &MeasuredSetting| AXES.map(|axis| all.responses.cost(measured.value(axis)));
    let observed: Option<Vec<Cost>> = space.settings().map(|setting| all.find(&setting).map(cost)).collect();
    let observed = observed?;
    let front = pareto_front(&observed);
    Some(HeldOutFronts {
        error: front_error(&observed, analysis.costs())?,
        accuracy: compare_fronts(space, &observed, analysis.costs(), analysis.default_position()),
        observed: front.len(),
        in_zone: front
            .iter()
            .filter(|&&position| analysis.zone().contains(analysis.costs()[position]))
            .count(),
        predicted: analysis.front().len(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::analysis::{ErrorLimits, Question};
    use super::super::choice::Goal;
    use super::super::levels::parse_named_variable;
    use super::super::runs::{Responses, Run};
    use super::super::space::Space;
    use super::*;

    fn analysis_of_half(all: &[Run], space: &Space) -> Analysis {
        let half: Vec<Run> = all.iter().step_by(2).cloned().collect();
        let question = Question {
            formula: None,
            default: space.usual_setting(),
            goal: Goal::EnergyDelay,
            level: 0.95,
            limits: ErrorLimits::default(),
            seed: 1,
        };
        Analysis::new(space.clone(), Responses::Totals, &half, question).expect("determined")
    }

    #[test]
    fn a_perfect_model_has_no_errors_and_the_same_front() {
        let space = Space::new(vec![parse_named_variable("threads=1..16").expect("valid")]).expect("valid");
        let runs: Vec<Run> = space
            .settings()
            .map(|setting| {
                let threads = setting.0[0].number().expect("a number");
                Run { setting, values: [10.0 / threads, 100.0 * threads.sqrt()] }
            })
            .collect();
        let all = Measurements::gather(Responses::Totals, &runs).expect("valid");
        let compared = hold_out(&analysis_of_half(&runs, &space), &all);
        assert_eq!(compared.errors[0].relative.len(), 8);
        assert!(
            compared.errors.iter().all(|errors| errors.root_mean_square().is_some_and(|error| error < 1e-9))
        );
        let fronts = compared.fronts.expect("every setting was run");
        assert_eq!(
            (fronts.observed, fronts.predicted, fronts.in_zone, fronts.accuracy.overlapping),
            (16, 16, 16, 16)
        );
        assert!(fronts.error.iter().all(|error| *error < 1e-9));
        let part = Measurements::gather(Responses::Totals, &runs[..15]).expect("valid");
        assert_eq!(hold_out(&analysis_of_half(&runs, &space), &part).fronts, None);
    }
}
