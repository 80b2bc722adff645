//! The analysis as text for a terminal; in `csv`, all predictions for programs.

use std::fmt::Write;

use super::TuneError;
use super::analysis::{Analysis, LimitSource, Limits};
use super::model::Estimate;
use super::runs::{AXES, Axis, Responses};
use super::validate::Errors;
use crate::numerics::least_squares::LeastSquares;
use crate::units::{Joules, Nanoseconds};

mod checks;
mod csv;
mod doubts;

pub use checks::{describe_hold_out, describe_verification};
pub use csv::{cell, heading, predictions_csv};
pub use doubts::{describe_without, note_doubts};

/// Most settings of the front that the table shows.
const MOST_ROWS: usize = 16;

/// The analysis at most 100 columns wide: model, accuracy, limits, the settings worth choosing.
///
/// `energy` says where the joules come from, for example "estimated from CPU time".
///
/// # Errors
/// None that the analysis itself did not have.
pub fn describe(analysis: &Analysis, energy: &str) -> Result<String, TuneError> {
    let mut text = String::new();
    let measured = analysis.measured();
    let formula = analysis.model(Axis::Speed).formula();
    let fit = analysis.model(Axis::Speed).least_squares();
    // Writing to a String cannot fail.
    let of_energy = analysis.model(Axis::Energy).formula();
    if of_energy == formula {
        let _ = writeln!(text, "model    ln(y) ~ {formula}");
    } else {
        for (axis, formula, head) in
            [(Axis::Speed, formula, "model   "), (Axis::Energy, of_energy, "        ")]
        {
            let _ = writeln!(text, "{head} ln({}) ~ {formula}", measured.responses.name(axis));
        }
    }
    let coefficients = formula.coefficients().max(of_energy.coefficients());
    let _ = writeln!(
        text,
        "         {} from {}, {}; condition number {:.0}",
        count(coefficients, "coefficient"),
        count(measured.settings().len(), "setting"),
        count(measured.runs(), "run"),
        fit.condition(),
    );
    let fixed: Vec<String> = analysis
        .space()
        .variables()
        .iter()
        .filter(|variable| variable.levels().len() == 1)
        .map(|variable| format!("{}={}", variable.name, variable.show(variable.usual_level())))
        .collect();
    if !fixed.is_empty() {
        let _ = writeln!(text, "fixed    {}", fixed.join(" "));
    }
    let _ = writeln!(text, "energy   {energy}");
    let _ = writeln!(text);
    let _ =
        writeln!(text, "accuracy       R2  one left out  three folds   of those within 5 %   10 %   20 %");
    for axis in AXES {
        let validation = analysis.validate(axis)?;
        let folded = validation.folded();
        let shares: String =
            [0.05, 0.10, 0.20].map(|limit| format!("{:>7}", percent(folded.share_below(limit), 0))).concat();
        let _ = writeln!(
            text,
            "{:<12} {:>5} {:>12} {:>12}               {shares}",
            measured.responses.name(axis),
            r_squared(analysis.model(axis).least_squares()),
            error(&validation.left_out),
            error(&folded),
        );
    }
    let limits = analysis.limits();
    let _ = writeln!(
        text,
        "error limits  {}",
        limit(&limits.measured, "measured", "from repeated runs", measured.responses)
    );
    let found =
        if fit.degrees_of_freedom() > 0 { "from the model's residuals" } else { "from repeated runs" };
    let _ =
        writeln!(text, "              {}", limit(&limits.predicted, "predicted", found, measured.responses));
    let _ = writeln!(text);
    let _ = writeln!(
        text,
        "predicted: {} of {} on the Pareto front, {} in the trade-off zone",
        analysis.front().len(),
        count(analysis.space().size(), "setting"),
        analysis.in_zone().count(),
    );
    let [on_front, in_zone] = analysis.measured_in_zone();
    let _ = writeln!(
        text,
        "measured:  {on_front} of {} on their Pareto front, {in_zone} in its trade-off zone",
        count(measured.settings().len(), "setting"),
    );
    text.push_str(&front_table(analysis));
    text.push_str(&recommendation(analysis));
    Ok(text)
}

/// A value of an axis with its unit.
pub fn value(responses: Responses, axis: Axis, value: f64) -> String {
    match (responses, axis) {
        (Responses::Totals, Axis::Speed) => Nanoseconds::from_secs_f64(value).to_string(),
        (Responses::Totals, Axis::Energy) => Joules::from_joules(value).to_string(),
        (Responses::Rates, _) => significant(value),
    }
}

fn front_table(analysis: &Analysis) -> String {
    let measured = analysis.measured();
    let mut rows = vec![analysis.default_position()];
    let front = analysis.front();
    let shown = front.len().min(MOST_ROWS);
    rows.extend((0..shown).map(|n| front[n * front.len() / shown]));
    rows.push(analysis.chosen());
    rows.sort_by(|&a, &b| analysis.costs()[a][0].total_cmp(&analysis.costs()[b][0]).then(a.cmp(&b)));
    rows.dedup();

    let chosen_variables: Vec<usize> = (0..analysis.space().variables().len())
        .filter(|&index| analysis.space().variables()[index].levels().len() > 1)
        .collect();
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut head = vec![String::new()];
    head.extend(chosen_variables.iter().map(|&index| analysis.space().variables()[index].name.clone()));
    head.extend([measured.responses.name(Axis::Speed).into(), "+-".into()]);
    head.extend([measured.responses.name(Axis::Energy).into(), "+-".into()]);
    head.extend(["saving".into(), "+-".into(), "slower".into(), "+-".into()]);
    lines.push(head);
    for position in rows {
        let setting = analysis.space().setting(position);
        let mark = |is: bool, mark: char| if is { mark } else { ' ' };
        let mut line = vec![
            [
                mark(position == analysis.chosen(), '>'),
                mark(position == analysis.default_position(), 'D'),
                mark(front.contains(&position), '*'),
            ]
            .iter()
            .collect::<String>(),
        ];
        for &index in &chosen_variables {
            line.push(analysis.space().variables()[index].show(&setting.0[index]));
        }
        for axis in AXES {
            let estimate = analysis.predict(axis, position);
            line.push(value(measured.responses, axis, estimate.value));
            line.push(half_width(estimate));
        }
        for axis in [Axis::Energy, Axis::Speed] {
            let ratio = analysis.against_default(axis, position);
            let change = if axis == Axis::Energy { 1.0 - ratio.value } else { ratio.value - 1.0 };
            line.push(signed_percent(change));
            line.push(percent(ratio.interval.map(|(low, high)| (high - low) / 2.0), 1));
        }
        lines.push(line);
    }
    let mut text = align(&lines);
    if shown < front.len() {
        let _ = writeln!(
            text,
            "    ({} more on the front; --format csv lists all settings)",
            front.len() - shown
        );
    }
    let _ = writeln!(
        text,
        "> recommended, D default, * on the front; +- {:.0} % intervals: {}; the ratio",
        100.0 * analysis.question().level,
        new_measurement(analysis)
    );
    text
}

/// What an interval is for: a new measurement as those that are there.
fn new_measurement(analysis: &Analysis) -> String {
    let runs = || analysis.measured().settings().iter().map(|measured| measured.runs);
    match (runs().min(), runs().max()) {
        (Some(1) | None, Some(1) | None) => "one new run".into(),
        (least, most) if least == most => format!("mean of {} new runs", most.unwrap_or(1)),
        _ => "mean of as many new runs".into(),
    }
}

fn recommendation(analysis: &Analysis) -> String {
    let (space, chosen) = (analysis.space(), analysis.chosen());
    let mut text =
        format!("\nrecommended ({}): {}\n", analysis.question().goal, space.show(&space.setting(chosen)));
    if chosen == analysis.default_position() {
        text.push_str("  that is the default setting: nothing to gain\n");
    } else if !analysis.saving_is_certain() {
        let known = analysis.against_default(Axis::Energy, chosen).interval.is_some();
        text.push_str(match known {
            true => "  its saving cannot be told from none: more runs or repeats would tell\n",
            false => "  nothing tells how certain its saving is: repeat the runs, or run more settings\n",
        });
    }
    text
}

fn limit(limits: &Limits, what: &str, found: &str, responses: Responses) -> String {
    let source = match limits.source {
        LimitSource::Given => "given",
        LimitSource::Found => found,
        LimitSource::Assumed => "assumed, nothing tells it",
    };
    format!(
        "{what} {} {}, {} {} ({source})",
        responses.name(Axis::Speed),
        percent(Some(limits.values[0]), 1),
        responses.name(Axis::Energy),
        percent(Some(limits.values[1]), 1),
    )
}

/// Nothing is explained by a model that has a coefficient for every setting.
fn r_squared(fit: &LeastSquares) -> String {
    match fit.degrees_of_freedom() {
        0 => "-".into(),
        _ => format!("{:.3}", fit.r_squared()),
    }
}

fn error(errors: &Errors) -> String {
    match (errors.root_mean_square(), errors.undetermined) {
        (None, _) => "too few runs".into(),
        (Some(error), 0) => percent(Some(error), 1),
        // The others could not be predicted.
        (Some(error), some) => {
            let predicted = errors.relative.len();
            format!("{} ({predicted}/{})", percent(Some(error), 1), predicted + some)
        }
    }
}

fn half_width(estimate: Estimate) -> String {
    percent(estimate.interval.map(|(low, high)| (high / low).sqrt() - 1.0), 1)
}

/// A share as percent; a dash where it is not known.
pub fn percent(share: Option<f64>, decimals: usize) -> String {
    match share {
        Some(share) if share < 10.0 => format!("{:.decimals$} %", 100.0 * share),
        Some(_) => "> 999 %".into(),
        None => "-".into(),
    }
}

/// A change in percent, always with its sign.
pub fn signed_percent(change: f64) -> String {
    // -0.04 % would be printed as -0.0 %.
    let rounded = (change * 1000.0).round() / 10.0 + 0.0;
    format!("{rounded:+.1} %")
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Four significant digits.
fn significant(value: f64) -> String {
    let magnitude = value.abs().log10().floor();
    match magnitude {
        m if (-3.0..6.0).contains(&m) => format!("{value:.*}", (3.0 - m).max(0.0) as usize),
        _ => format!("{value:.3e}"),
    }
}

/// Columns aligned to the right, two blanks apart; `+-` columns one blank.
fn align(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let wide = |text: &String| text.chars().count();
    let widths: Vec<usize> = (0..columns)
        .map(|column| lines.iter().filter_map(|line| line.get(column)).map(wide).max().unwrap_or(0))
        .collect();
    let narrow: Vec<bool> =
        (0..columns).map(|column| lines[0].get(column).is_some_and(|head| head == "+-")).collect();
    let mut text = String::new();
    for line in lines {
        let mut written = String::new();
        for (column, field) in line.iter().enumerate() {
            let gap = if column == 0 {
                ""
            } else if narrow[column] {
                " "
            } else {
                "  "
            };
            let _ = write!(written, "{gap}{field:>width$}", width = widths[column]);
        }
        let _ = writeln!(text, "{}", written.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::analysis::{ErrorLimits, Question};
    use super::super::choice::Goal;
    use super::super::levels::parse_named_variable;
    use super::super::runs::Run;
    use super::super::space::Space;
    use super::*;

    fn analysis(repeats: usize) -> Analysis {
        let variables =
            ["threads=1..4", "freq=1,2GHz"].map(|text| parse_named_variable(text).expect("valid"));
        let space = Space::new(variables.into()).expect("valid");
        let runs: Vec<Run> = (0..repeats * space.size())
            .map(|n| {
                let setting = space.setting(n % space.size());
                let at = |index: usize| setting.0[index].number().expect("a number");
                let wobble = 1.0 + 0.01 * ((n * 5 % 7) as f64 - 3.0);
                let time = 12.0 / at(0).min(3.0) / at(1).sqrt() * wobble;
                Run { values: [time, time * (10.0 + at(0) * at(1) * at(1))], setting }
            })
            .collect();
        let question = Question {
            formula: None,
            default: space.usual_setting(),
            goal: Goal::MaxSlowdown(0.2),
            level: 0.95,
            limits: ErrorLimits::default(),
            seed: 1,
        };
        Analysis::new(space, Responses::Totals, &runs, question).expect("determined")
    }

    #[test]
    fn the_text_a_person_reads() {
        let text = describe(&analysis(2), "measured by package-0").expect("valid");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn without_repeats_or_spare_settings_nothing_is_made_up() {
        let text = describe(&analysis(1), "measured").expect("valid");
        assert!(text.contains("too few runs"), "{text}");
        assert!(text.contains("assumed, nothing tells it"), "{text}");
        assert!(text.contains("nothing tells how certain"), "{text}");
    }

    #[test]
    fn every_setting_is_a_line_of_csv() {
        let csv = predictions_csv(&analysis(2));
        let fields: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(fields, [20; 9]);
        assert!(csv.contains(",time_ratio,time_ratio_low,time_ratio_high,energy_ratio,energy_ratio_low,"));
        assert!(csv.starts_with("threads,freq_GHz,time,time_low,time_high,energy,"));
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        assert_eq!(cell("-O2"), "-O2");
        assert_eq!(cell("a,\"b\""), "\"a,\"\"b\"\"\"");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(significant(123456.0), "123456");
        assert_eq!(significant(1.23456), "1.235");
        assert_eq!(significant(1.2e9), "1.200e9");
        assert_eq!(signed_percent(-0.0001), "+0.0 %");
    }
}
