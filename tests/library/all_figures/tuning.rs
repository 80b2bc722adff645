//! Tuning of made-up programs: models of time and energy, fronts, recommendations, drawings, and whole searches.

use std::convert::Infallible;
use std::fmt::Write as _;

use eprof::tune::analysis::{Analysis, ErrorLimits, Question};
use eprof::tune::choice::Goal;
use eprof::tune::design;
use eprof::tune::draw::draw;
use eprof::tune::formula::Formula;
use eprof::tune::hold_out::hold_out;
use eprof::tune::levels::parse_named_variable;
use eprof::tune::model::LogModel;
use eprof::tune::runs::{AXES, Axis, Measurements, Responses, Run};
use eprof::tune::search::{Bench, Purpose, Schedule, search};
use eprof::tune::show::{describe, describe_hold_out, describe_verification, predictions_csv};
use eprof::tune::space::{Setting, Space};
use eprof_testbed::figures::rounded;

fn keep(name: &str, text: &str) {
    insta::assert_snapshot!(name, rounded(text));
}

fn space(variables: &[&str]) -> Space {
    let variables = variables.iter().map(|text| parse_named_variable(text).expect("valid"));
    Space::new(variables.collect()).expect("valid")
}

/// Seconds and joules of a program by Amdahl's law, whose power grows with threads and the cube of the clock; a name of
/// an option, where there is one, makes it a tenth faster.
fn truth(setting: &Setting) -> [f64; 2] {
    let number = |index: usize| setting.0.get(index).and_then(|level| level.number()).unwrap_or(1.0);
    let is_fast = setting.0.last().is_some_and(|level| level.number().is_none() && level.to_string() == "O3");
    let (threads, clock) = (number(0), number(1));
    let seconds = (1.0 + 11.0 / threads) / clock * if is_fast { 0.9 } else { 1.0 };
    [seconds, seconds * (10.0 + threads * (1.0 + 0.5 * clock.powi(3)))]
}

/// Runs of these settings, each as often, a per cent off in turn.
fn runs(space: &Space, positions: &[usize], repeats: usize) -> Vec<Run> {
    let mut runs = Vec::new();
    for repeat in 0..repeats {
        for &position in positions {
            let setting = space.setting(position);
            let [time, energy] = truth(&setting);
            let wobble = 1.0 + 0.01 * (((position + 3 * repeat) * 5 % 7) as f64 - 3.0) / 3.0;
            runs.push(Run { values: [time * wobble, energy / wobble], setting });
        }
    }
    runs
}

fn question(space: &Space, goal: Goal) -> Question {
    let default = space.usual_setting();
    Question { formula: None, default, goal, level: 0.95, limits: ErrorLimits::default(), seed: 1 }
}

fn spaces() -> [Space; 3] {
    [
        space(&["threads=1..12", "freq=1,1.5,2,2.5GHz"]),
        space(&["threads=1,2,4,8", "freq=1,2GHz", "opt=O2,O3"]),
        space(&["threads=1..16"]),
    ]
}

#[test]
fn settings_are_predicted_and_recommended() {
    let mut text = String::new();
    for (space, goal) in
        spaces().into_iter().zip([Goal::MaxSlowdown(0.3), Goal::LeastEnergy, Goal::EnergyDelay])
    {
        let all: Vec<usize> = (0..space.size()).collect();
        let some = design::uniform(&space, &design::usual_counts(&space, &Formula::usual(&space)));
        let _ = writeln!(text, "{some:?}");
        let (measured, whole) = (runs(&space, &some, 2), runs(&space, &all, 1));
        for responses in [Responses::Totals, Responses::Rates] {
            let as_asked = |runs: &[Run]| -> Vec<Run> {
                let values = |run: &Run| run.values.map(|value| responses.cost(value));
                runs.iter().map(|run| Run { values: values(run), setting: run.setting.clone() }).collect()
            };
            let question = question(&space, goal);
            let found =
                Analysis::new(space.clone(), responses, &as_asked(&measured), question).expect("determined");
            for position in 0..space.size() {
                let expected = truth(&space.setting(position));
                for axis in AXES {
                    let off = found.costs()[position][axis as usize] / expected[axis as usize] - 1.0;
                    assert!(off.abs() < 0.2, "{} {axis:?}: {off}", space.show(&space.setting(position)));
                }
            }
            let _ = writeln!(text, "{}", describe(&found, "measured by package-0").expect("valid"));
            let lines = predictions_csv(&found);
            lines.lines().step_by(3).for_each(|line| text += &format!("{line}\n"));
            let all = Measurements::gather(responses, &as_asked(&whole)).expect("runs");
            let held_out = hold_out(&found, &all);
            let _ = writeln!(text, "{held_out:?}\n{}", describe_hold_out(&found, &held_out));
            let _ = writeln!(text, "{:?} {:?}", found.limits(), found.measured_in_zone());
            if responses == Responses::Totals {
                let name = format!("drawing_of_{}_variables", space.variables().len());
                keep(
                    &name,
                    &draw(&found, "a <program> & its settings").replace("/><", "/>\n<").replace("><", ">\n<"),
                );
            }
        }
    }
    keep("recommendations", &text);
}

#[test]
fn formulas_are_fitted() {
    let mut text = String::new();
    for space in spaces() {
        let all: Vec<usize> = (0..space.size()).collect();
        let measured = Measurements::gather(Responses::Totals, &runs(&space, &all, 2)).expect("runs");
        for formula in [Formula::usual(&space), Formula::as_in_the_paper(&space)] {
            let _ =
                writeln!(text, "{formula}: {:?} {:?}", formula.coefficient_names(), formula.levels_needed());
            let _ = writeln!(text, "  {:?}", design::usual_counts(&space, &formula));
            for axis in AXES {
                let Ok(model) = LogModel::fit(&formula, &space, &measured, axis) else { continue };
                let _ = writeln!(
                    text,
                    "  {:?} {:?}",
                    model.least_squares().coefficients(),
                    model.standard_errors()
                );
                let setting = space.setting(space.size() / 2);
                for estimate in [model.predict(&setting, 0.9), model.expect(&setting, 0.9)] {
                    assert!((estimate.value / truth(&setting)[axis as usize] - 1.0).abs() < 0.1);
                    let _ = writeln!(text, "  {estimate:?}");
                }
                let _ = writeln!(text, "  {:?}", model.ratio(&setting, &space.setting(0), 0.9));
                let _ = writeln!(text, "  {:?} {:?}", model.variance(), &model.leave_one_out()[..4]);
            }
        }
        for seed in 1..4 {
            let _ = writeln!(text, "{:?}", design::latin_hypercube(&space, 6, seed));
            let _ = writeln!(text, "{:?}", design::random(&space, 6, seed));
        }
    }
    keep("formulas", &text);
}

/// Runs the truth, each time a little off, and keeps what it was told.
#[derive(Default)]
struct MadeUp {
    told: String,
    runs: usize,
}

impl Bench for MadeUp {
    type Error = Infallible;

    fn run(&mut self, setting: &Setting, purpose: Purpose) -> Result<[f64; 2], Infallible> {
        let wobble = 1.0 + 0.004 * ((self.runs * 5 % 7) as f64 - 3.0);
        self.runs += 1;
        let values: Vec<String> = setting.0.iter().map(|level| level.to_string()).collect();
        let _ = write!(self.told, "{purpose:?} {} ", values.join("/"));
        let [time, energy] = truth(setting);
        Ok([time * wobble, energy * wobble])
    }

    fn expect(&mut self, runs: usize) {
        let _ = write!(self.told, "({runs}) ");
    }
}

#[test]
fn searches_take_their_runs_as_planned() {
    let mut text = String::new();
    let space = space(&["threads=1..12", "freq=1,1.5,2,2.5GHz"]);
    for (grouped, wanted_error, goal) in [
        (false, None, Goal::MaxSlowdown(0.2)),
        (true, Some(0.01), Goal::LeastEnergy),
        (false, Some(0.1), Goal::EnergyDelay),
    ] {
        let settings = design::uniform(&space, &design::usual_counts(&space, &Formula::usual(&space)));
        let schedule = Schedule {
            budget: settings.len() + 3,
            settings,
            repeats: 2,
            wanted_error,
            most_repeats: 4,
            grouped,
            verify: true,
        };
        let mut bench = MadeUp::default();
        let question = question(&space, goal);
        let Ok(found) = search(&space, Responses::Totals, &question, &schedule, &mut bench) else {
            panic!("the design determines the model")
        };
        let best = (0..space.size())
            .map(|position| truth(&space.setting(position))[Axis::Energy as usize])
            .fold(f64::MAX, f64::min);
        let chosen = truth(&space.setting(found.analysis.chosen()))[Axis::Energy as usize];
        assert!(goal != Goal::LeastEnergy || chosen < 1.05 * best, "{chosen} J instead of {best} J");
        let _ = writeln!(text, "{}\n{} runs", bench.told, bench.runs);
        for verification in &found.verifications {
            let _ = writeln!(text, "{verification:?}");
            let _ = writeln!(text, "{}", describe_verification(&found.analysis, verification));
        }
        let _ = writeln!(text, "{}", describe(&found.analysis, "measured").expect("valid"));
    }
    keep("searches", &text);
}
