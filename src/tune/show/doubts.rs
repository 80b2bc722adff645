//! Runs that are out of line, and what would be recommended without them.

use super::{count, signed_percent, value};
use crate::tune::analysis::Analysis;
use crate::tune::out_of_line::{Doubts, OutOfLine, Witness};
use crate::tune::runs::{Axis, Run};

/// Most runs that are named one by one.
const MOST_NAMED: usize = 5;

/// One sentence for each run that is out of line, and what follows from them; `None` where there are none.
///
/// `name` says of a run, by its position, where it is to be found: `line 7`.
pub fn note_doubts(
    analysis: &Analysis,
    runs: &[Run],
    doubts: &Doubts,
    name: impl Fn(usize) -> String,
) -> Option<String> {
    let (responses, space) = (analysis.measured().responses, analysis.space());
    let of_run = |of: &OutOfLine| {
        let run = &runs[of.run];
        let told = match of.by {
            Witness::Repeats => "the other runs of this setting say",
            Witness::Model => "all other settings lead to expect",
        };
        format!(
            "{} ({}): {} {}, where {told} {}",
            name(of.run),
            space.show(&run.setting),
            responses.name(of.axis),
            value(responses, of.axis, run.values[of.axis as usize]),
            value(responses, of.axis, of.expected),
        )
    };
    let mut named: Vec<String> = doubts.runs.iter().take(MOST_NAMED).map(of_run).collect();
    let more = doubts.runs.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        named.push(format!("and {more} more"));
    }
    let which = which(doubts)?;
    let follows = match &doubts.without {
        None => format!("without {which} the others do not determine the model"),
        Some(without) if doubts.move_the_choice_of(analysis) => format!(
            "the recommendation depends on {which}: {} with, {} without",
            space.show(&space.setting(analysis.chosen())),
            space.show(&space.setting(without.chosen())),
        ),
        Some(_) => format!("the recommendation is the same without {which}, but not its figures"),
    };
    let are = if doubts.runs.len() == 1 { "is" } else { "are" };
    Some(format!(
        "{} {are} out of line: {}. Nothing is left out for it; {follows}. Repeat {which}, or take out what is wrong",
        count(doubts.runs.len(), "run"),
        named.join("; "),
    ))
}

/// What would be recommended without runs that are out of line, as a line below what is; empty where it is the same.
pub fn describe_without(analysis: &Analysis, doubts: &Doubts) -> String {
    let Some(without) = doubts.without.as_ref().filter(|_| doubts.move_the_choice_of(analysis)) else {
        return String::new();
    };
    let which = match doubts.runs.len() {
        1 => "the run that is".to_owned(),
        count => format!("the {count} runs that are"),
    };
    let of = |axis: Axis| without.against_default(axis, without.chosen()).value;
    format!(
        "without {which} out of line: {} (saving {}, slower {})\n",
        without.space().show(&without.space().setting(without.chosen())),
        signed_percent(1.0 - of(Axis::Energy)),
        signed_percent(of(Axis::Speed) - 1.0),
    )
}

/// What the runs are called together.
fn which(doubts: &Doubts) -> Option<String> {
    match doubts.runs.len() {
        0 => None,
        1 => Some("this run".to_owned()),
        count => Some(format!("these {count} runs")),
    }
}
