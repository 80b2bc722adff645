//! Runs that are out of line with all others: a meter's glitch, a typing error, a machine that did something else.
//!
//! Where a setting was run three times and more, its own runs tell, about their median; elsewhere what all other settings
//! lead to expect of it does, beyond what chance makes of its distance (the externally studentized residual: R. D. Cook
//! and S. Weisberg, "Residuals and Influence in Regression", 1982). No run is dropped for it: only who made it can tell
//! whether it is wrong. It is named, and the answer without it stands beside that with it.

use rustc_hash::FxHashMap;

use super::analysis::Analysis;
use super::best_form::squares_without;
use super::formula::Formula;
use super::model::LogModel;
use super::runs::{AXES, Axis, Run};
use crate::numerics::quantiles::median;
use crate::numerics::student::t_quantile;

/// Less than this factor from what is expected is no gross error, however well that is known.
const GROSS: f64 = 1.5;
/// How many times the usual distance from a setting's median is out of line.
const BEYOND_REPEATS: f64 = 10.0;
/// Chance with which one of all settings is called out of line where none is.
const CHANCE: f64 = 1e-3;
/// Of the settings, one in so many may be out of line by the others: more of them are what the model cannot follow.
const SETTINGS_FOR_ONE: usize = 10;
/// And no more than this, as each costs an analysis.
const MOST_BY_MODEL: usize = 5;

/// A run that is out of line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutOfLine {
    /// Its position among the runs.
    pub run: usize,
    /// Which of its values is farthest off.
    pub axis: Axis,
    /// What is expected of that value without this run.
    pub expected: f64,
    /// What tells it.
    pub by: Witness,
}

/// What tells that a run is out of line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Witness {
    /// The other runs of its setting.
    Repeats,
    /// The runs of all other settings, by the model.
    Model,
}

/// Runs out of line, and the answer without them.
#[derive(Debug, Clone, Default)]
pub struct Doubts {
    /// The runs, in their order.
    pub runs: Vec<OutOfLine>,
    /// The same question put to all other runs; `None` where these do not determine the model.
    pub without: Option<Analysis>,
}

impl Doubts {
    /// Of an analysis and the runs that it is made of.
    pub fn of(analysis: &Analysis, runs: &[Run]) -> Self {
        let mut doubts = Self { runs: by_repeats(runs), without: None };
        if !doubts.runs.is_empty() {
            doubts.without = doubts.answer_without(analysis, runs);
        }
        let most = analysis.measured().settings().len().div_ceil(SETTINGS_FOR_ONE);
        for _ in 0..most.min(MOST_BY_MODEL) {
            let current = if doubts.runs.is_empty() { Some(analysis) } else { doubts.without.as_ref() };
            let Some(next) = current.and_then(|current| by_model(current, runs, &doubts.runs)) else { break };
            doubts.runs.push(next);
            doubts.without = doubts.answer_without(analysis, runs);
        }
        doubts.runs.sort_by_key(|of| of.run);
        doubts
    }

    /// Whether another setting is recommended without these runs.
    pub fn move_the_choice_of(&self, analysis: &Analysis) -> bool {
        self.without.as_ref().is_some_and(|without| without.chosen() != analysis.chosen())
    }

    fn answer_without(&self, analysis: &Analysis, runs: &[Run]) -> Option<Analysis> {
        let is_kept = |at: &usize| !self.runs.iter().any(|of| of.run == *at);
        let kept: Vec<Run> = (0..runs.len()).filter(is_kept).map(|at| runs[at].clone()).collect();
        let (space, responses) = (analysis.space().clone(), analysis.measured().responses);
        Analysis::new(space, responses, &kept, analysis.question().clone()).ok()
    }
}

/// Positions of each setting's runs.
fn by_setting<'a>(runs: impl Iterator<Item = (usize, &'a Run)>) -> FxHashMap<String, Vec<usize>> {
    let mut groups: FxHashMap<String, Vec<usize>> = FxHashMap::default();
    for (at, run) in runs {
        groups.entry(run.setting.key()).or_default().push(at);
    }
    groups
}

/// Fewest runs of a setting of which the others outvote one.
const FEWEST_REPEATS: usize = 3;

fn by_repeats(runs: &[Run]) -> Vec<OutOfLine> {
    let groups = by_setting(runs.iter().enumerate());
    let mut worst: FxHashMap<usize, (f64, OutOfLine)> = FxHashMap::default();
    for axis in AXES {
        let log = |at: usize| runs[at].values[axis as usize].ln();
        let repeated = groups.values().filter(|group| group.len() >= FEWEST_REPEATS);
        let distances: Vec<(usize, f64, f64)> = repeated
            .flat_map(|group| {
                let middle = median(&mut group.iter().map(|&at| log(at)).collect::<Vec<_>>());
                let middle = middle.unwrap_or_default();
                group.iter().map(move |&at| (at, middle, (log(at) - middle).abs()))
            })
            .collect();
        let usual = usual_distance(distances.iter().map(|(.., distance)| *distance));
        for (run, middle, distance) in distances {
            if distance <= GROSS.ln().max(BEYOND_REPEATS * usual) {
                continue;
            }
            let found = OutOfLine { run, axis, expected: middle.exp(), by: Witness::Repeats };
            let slot = worst.entry(run).or_insert((distance, found));
            if distance > slot.0 {
                *slot = (distance, found);
            }
        }
    }
    worst.into_values().map(|(_, found)| found).collect()
}

/// The median of those that are not zero, as a coarse meter's and the middle runs' are. The largest has no say: it may be
/// the only one.
fn usual_distance(distances: impl Iterator<Item = f64>) -> f64 {
    let mut others: Vec<f64> = distances.filter(|distance| *distance > 0.0).collect();
    others.sort_by(f64::total_cmp);
    others.pop();
    median(&mut others).unwrap_or(0.0)
}

/// The run that is farthest out of line by what all other settings lead to expect, if one is.
fn by_model(analysis: &Analysis, runs: &[Run], known: &[OutOfLine]) -> Option<OutOfLine> {
    let is_kept = |(at, _): &(usize, &Run)| !known.iter().any(|of| of.run == *at);
    let groups = by_setting(runs.iter().enumerate().filter(is_kept));
    let settings = analysis.measured().settings();
    let mut worst: Option<(f64, OutOfLine)> = None;
    for (axis, model) in
        AXES.into_iter().flat_map(|axis| models(analysis, axis).map(move |model| (axis, model)))
    {
        let fit = model.least_squares();
        let Some((_, freedom)) = model.variance().filter(|_| fit.degrees_of_freedom() > 0) else { continue };
        let Some(limit) = t_quantile(1.0 - CHANCE / settings.len() as f64, freedom - 1) else { continue };
        let squares = squares_without(fit);
        for (place, distance) in fit.leave_one_out_residuals().into_iter().enumerate() {
            let Some(distance) = distance else { continue };
            let variance = squares[place].max(0.0) / (freedom - 1) as f64 / (1.0 - fit.leverages()[place]);
            let beyond = distance.abs() / variance.sqrt() / limit;
            if beyond <= 1.0 || worst.is_some_and(|(known, _)| beyond <= known) {
                continue;
            }
            let expected = settings[place].log_mean[axis as usize] - distance;
            let log = |at: usize| runs[at].values[axis as usize].ln();
            let of_setting = groups.get(&settings[place].setting.key()).map_or(&[][..], Vec::as_slice);
            if let Some(run) = the_odd_one(of_setting, log, expected) {
                let found = OutOfLine { run, axis, expected: expected.exp(), by: Witness::Model };
                worst = Some((beyond, found));
            }
        }
    }
    worst.map(|(_, found)| found)
}

/// The model that answers and the usual one: a wild run also chooses among formulas, by which it may be no wilder than all.
fn models(analysis: &Analysis, axis: Axis) -> impl Iterator<Item = LogModel> {
    let usual = analysis.question().formula.is_none().then(|| {
        let (space, measured) = (analysis.space(), analysis.measured());
        LogModel::fit(&Formula::usual(space), space, measured, axis).ok()
    });
    std::iter::once(analysis.model(axis).clone()).chain(usual.flatten())
}

/// The one run of a setting that is far from what is expected. Two that are both far off agree that the setting is
/// another than the model says, and three and more tell for themselves.
fn the_odd_one(runs: &[usize], log: impl Fn(usize) -> f64, expected: f64) -> Option<usize> {
    let distance = |at: usize| (log(at) - expected).abs();
    let odd = match *runs {
        [one] => one,
        [a, b] => {
            let (far, near) = if distance(a) > distance(b) { (a, b) } else { (b, a) };
            (distance(near) < distance(far) / 2.0).then_some(far)?
        }
        _ => return None,
    };
    (distance(odd) > GROSS.ln()).then_some(odd)
}

#[cfg(test)]
mod tests {
    use super::super::analysis::{ErrorLimits, Question};
    use super::super::choice::Goal;
    use super::super::levels::parse_named_variable;
    use super::super::runs::Responses;
    use super::super::space::Space;
    use super::*;

    /// Threads that scale up to 4, `repeats` runs of each of eight settings that differ by a percent, `wild` of which has
    /// its joules times `factor`.
    fn doubts(repeats: usize, wild: &[(usize, f64)]) -> (Analysis, Doubts) {
        let space = Space::new(vec![parse_named_variable("threads=1..8").expect("valid")]).expect("valid");
        let mut runs: Vec<Run> = (0..repeats * space.size())
            .map(|n| {
                let setting = space.setting(n % space.size());
                let threads = setting.0[0].number().expect("a number");
                let wobble = 1.0 + 0.003 * ((n * 5 % 7) as f64 - 3.0);
                let time = (8.0 / threads + threads) * wobble;
                Run { setting, values: [time, time * (10.0 + 5.0 * threads)] }
            })
            .collect();
        wild.iter().for_each(|(at, factor)| runs[*at].values[1] *= factor);
        let question = Question {
            formula: None,
            default: space.usual_setting(),
            goal: Goal::LeastEnergy,
            level: 0.95,
            limits: ErrorLimits::default(),
            seed: 1,
        };
        let analysis = Analysis::new(space, Responses::Totals, &runs, question).expect("determined");
        let doubts = Doubts::of(&analysis, &runs);
        (analysis, doubts)
    }

    #[test]
    fn a_wild_run_is_found_by_its_repeats_or_by_all_others() {
        for (repeats, by) in [(1, Witness::Model), (2, Witness::Model), (3, Witness::Repeats)] {
            for factor in [1000.0, 0.001] {
                let (right, none) = doubts(repeats, &[]);
                assert!(none.runs.is_empty() && none.without.is_none(), "{repeats}: {:?}", none.runs);
                let (_, found) = doubts(repeats, &[(2, factor)]);
                let [run] = found.runs[..] else { panic!("{repeats}, {factor}: {:?}", found.runs) };
                assert_eq!((run.run, run.axis, run.by), (2, Axis::Energy, by));
                let expected = right.measured().settings()[2].value(Axis::Energy);
                assert!((run.expected / expected - 1.0).abs() < 0.2, "{repeats}: {run:?} for {expected}");
                assert_eq!(found.without.expect("determined").chosen(), right.chosen());
            }
        }
    }

    #[test]
    fn several_wild_runs_among_repeats_are_all_found() {
        let (right, _) = doubts(3, &[]);
        let (analysis, found) = doubts(3, &[(2, 1000.0), (5, 0.01), (14, 3.0)]);
        assert_eq!(found.runs.iter().map(|of| of.run).collect::<Vec<_>>(), [2, 5, 14]);
        assert!(found.move_the_choice_of(&analysis));
        assert_eq!(found.without.expect("determined").chosen(), right.chosen());
    }

    /// Both runs of a setting say the same: it is that expensive, whatever the curve says.
    #[test]
    fn repeats_that_agree_are_no_mistake() {
        for repeats in [2, 3] {
            let both: Vec<(usize, f64)> = (0..repeats).map(|repeat| (2 + 8 * repeat, 3.0)).collect();
            let (_, found) = doubts(repeats, &both);
            assert!(found.runs.is_empty(), "{repeats}: {:?}", found.runs);
        }
    }

    #[test]
    fn of_distances_the_largest_and_zeros_have_no_say() {
        assert_eq!(usual_distance([0.0, 0.2, 0.0, 7.0, 0.1, 0.3].into_iter()), 0.2);
        assert_eq!(usual_distance([0.0, 7.0, 0.0].into_iter()), 0.0);
    }

    /// Three runs of each of four settings at one watt, of which one took eight times as long: both of its values are as far off.
    #[test]
    fn of_values_that_are_as_far_off_the_time_is_named() {
        let space = Space::new(vec![parse_named_variable("threads=1..4").expect("valid")]).expect("valid");
        let mut runs: Vec<Run> =
            (0..12).map(|n| Run { setting: space.setting(n % 4), values: [2.0, 2.0] }).collect();
        runs[5].values = [16.0, 16.0];
        let found = by_repeats(&runs);
        let [of] = found[..] else { panic!("{found:?}") };
        assert_eq!((of.run, of.axis, of.by), (5, Axis::Speed, Witness::Repeats));
        assert!((of.expected - 2.0).abs() < 1e-9, "{of:?}");
    }

    /// Every other setting takes nine times the joules of its neighbours: far from any curve, and no farther than all others are.
    #[test]
    fn where_all_runs_lie_apart_none_is_out_of_line() {
        let scattered: Vec<(usize, f64)> =
            (0..8).map(|at| (at, if at % 2 == 0 { 3.0 } else { 1.0 / 3.0 })).collect();
        let (_, found) = doubts(1, &scattered);
        assert!(found.runs.is_empty(), "{:?}", found.runs);
    }
}
