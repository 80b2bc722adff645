//! What putting predictions to the test gave.

use std::fmt::Write;

use super::{count, percent, signed_percent, value};
use crate::tune::analysis::Analysis;
use crate::tune::hold_out::{HeldOutFronts, HoldOut};
use crate::tune::runs::{AXES, Responses};
use crate::tune::search::Verification;

/// How predictions agree with runs that were held out, in a few lines.
pub fn describe_hold_out(analysis: &Analysis, held_out: &HoldOut) -> String {
    let responses = analysis.measured().responses;
    let count_of = held_out.errors[0].relative.len();
    if count_of == 0 {
        return "\nheld out 0 settings: the design chose every setting that was run, and none is left to compare with; \
                choose fewer with --sample, or with --design random --runs N\n"
            .into();
    }
    let mut text = format!("\nheld out {}\n", count(count_of, "setting"));
    let _ = writeln!(text, "{:<12} error   worst   of those within 5 %   10 %   20 %", "");
    for axis in AXES {
        let errors = &held_out.errors[axis as usize];
        let shares: String =
            [0.05, 0.10, 0.20].map(|limit| format!("{:>7}", percent(errors.share_below(limit), 0))).concat();
        let worst = errors.relative.iter().copied().map(f64::abs).reduce(f64::max);
        let _ = writeln!(
            text,
            "{:<12} {:>5} {:>7}              {shares}",
            responses.name(axis),
            percent(errors.root_mean_square(), 1),
            percent(worst, 1),
        );
    }
    if let Some(fronts) = &held_out.fronts {
        text.push_str(&describe_fronts(fronts, responses));
    }
    text
}

/// The paper's five measures, and the distance of the curves.
fn describe_fronts(fronts: &HeldOutFronts, responses: Responses) -> String {
    let accuracy = &fronts.accuracy;
    let shares = |distances: &[f64]| match distances.is_empty() {
        true => "none".into(),
        false => distances.iter().map(|share| percent(Some(*share), 0)).collect::<Vec<_>>().join(", "),
    };
    let ends = |ends: [f64; 2]| format!("{:.2}..{:.2}", ends[0], ends[1]);
    let [speed, energy] = AXES.map(|axis| responses.name(axis));
    format!(
        "fronts       {} settings observed, {} predicted, {} on both; the predicted zone holds {} of the observed\n  \
         apart by     {speed} {}, {energy} {}\n  \
         observed only, distance to the predicted front (share of the space): {}\n  \
         predicted only, distance to the observed front: {}\n  \
         range against the default: time {} observed, {} predicted; energy {} observed, {} predicted\n",
        fronts.observed,
        fronts.predicted,
        accuracy.overlapping,
        fronts.in_zone,
        percent(Some(fronts.error[0]), 1),
        percent(Some(fronts.error[1]), 1),
        shares(&accuracy.observed_only),
        shares(&accuracy.predicted_only),
        ends(accuracy.range.observed[0]),
        ends(accuracy.range.predicted[0]),
        ends(accuracy.range.observed[1]),
        ends(accuracy.range.predicted[1]),
    )
}

/// What verifying a recommendation gave, in a few lines.
pub fn describe_verification(analysis: &Analysis, verification: &Verification) -> String {
    let responses = analysis.measured().responses;
    let mut text = format!("verified {}:\n", analysis.space().show(&verification.setting));
    for axis in AXES {
        let predicted = verification.predicted[axis as usize];
        let verdict = match verification.agrees[axis as usize] {
            Some(true) => "agrees with the prediction",
            Some(false) => "DISAGREES with the prediction",
            None => "predicted, without an interval,",
        };
        let range = predicted.interval.map_or_else(String::new, |(low, high)| {
            format!(" ({} .. {})", value(responses, axis, low), value(responses, axis, high))
        });
        let _ = writeln!(
            text,
            "  {} {} {verdict} {}{range}",
            responses.name(axis),
            value(responses, axis, verification.measured[axis as usize]),
            value(responses, axis, predicted.value),
        );
    }
    let [time, energy] = verification.against_default;
    let _ = write!(
        text,
        "  against the default, run in turns: saving {}, slower {}",
        signed_percent(1.0 - energy),
        signed_percent(time - 1.0)
    );
    text.push_str(match verification.limit_kept {
        Some(true) => " (within the limit)\n",
        Some(false) => " (OVER THE LIMIT)\n",
        None => "\n",
    });
    text
}
