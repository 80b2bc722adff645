//! Tuning from a table of runs, without running anything.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use eprof::tune::analysis::{Analysis, Question};
use eprof::tune::design;
use eprof::tune::hold_out::hold_out;
use eprof::tune::out_of_line::Doubts;
use eprof::tune::runs::{Axis, Measurements, Run};
use eprof::tune::show;
use eprof::tune::space::Space;
use eprof::tune::table::{RunsTable, TableOptions, read_runs};

use super::super::outcome::Outcome;
use super::super::table_file;
use super::notices::note;
use super::options::{Format, TuneArgs};
use super::result;

pub fn run(args: &TuneArgs, path: &Path) -> Outcome {
    let text = table_file::read(path)?;
    let options = table_options(args)?;
    let table = read_runs(&text, &options).with_context(|| path.display().to_string())?;
    for text in &table.notes {
        note(text);
    }
    let question = args.question(&table.space)?;
    let (lines, learned): (Vec<usize>, Vec<Run>) = match args.offline.hold_out {
        true => designed(args, &table, &question)?.into_iter().unzip(),
        false => (table.lines.clone(), table.runs.clone()),
    };
    let analysis = Analysis::new(table.space, table.responses, &learned, question)
        .with_context(|| path.display().to_string())?;
    if args.design.plan {
        let next = next_settings(args, &analysis);
        result::print(&result::plan_csv(analysis.space(), &next, analysis.measured().responses))?;
        return Ok(ExitCode::SUCCESS);
    }
    result::save(args, &analysis, &learned)?;
    let doubts = Doubts::of(&analysis, &learned);
    let named = |run: usize| format!("line {}", lines[run]);
    if let Some(text) = show::note_doubts(&analysis, &learned, &doubts, named) {
        note(&text);
    }
    result::show(args, &analysis, &doubts, &[], &format!("as in {}", path.display()))?;
    if args.offline.hold_out && args.output.format == Format::Text {
        let all = Measurements::gather(table.responses, &table.runs)?;
        result::print(&show::describe_hold_out(&analysis, &hold_out(&analysis, &all)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The runs at the settings of the design, each with its line.
fn designed(args: &TuneArgs, table: &RunsTable, question: &Question) -> anyhow::Result<Vec<(usize, Run)>> {
    let formula = args.formula(&table.space)?;
    let default =
        table.space.position(&question.default).context("the default setting is not in the search space")?;
    let mut existing: Vec<usize> =
        table.runs.iter().filter_map(|run| table.space.position(&run.setting)).collect();
    existing.sort_unstable();
    existing.dedup();
    let settings = args.design.settings_among(&table.space, existing, &formula, default)?;
    let is_chosen = |run: &Run| table.space.position(&run.setting).is_some_and(|at| settings.contains(&at));
    let runs = table.lines.iter().copied().zip(&table.runs).filter(|(_, run)| is_chosen(run));
    Ok(runs.map(|(line, run)| (line, run.clone())).collect())
}

fn table_options(args: &TuneArgs) -> anyhow::Result<TableOptions> {
    Ok(TableOptions {
        time: args.offline.duration.clone(),
        energy: args.offline.energy.clone(),
        performance: args.offline.performance.clone(),
        efficiency: args.offline.efficiency.clone(),
        variables: args.space.columns(),
        space: args.space.given()?,
        conditions: args.offline.conditions.clone(),
    })
}

/// The settings whose runs would tell most, one after another; what they will measure does not matter
/// to where the model is uncertain, so any value stands for it.
fn next_settings(args: &TuneArgs, analysis: &Analysis) -> Vec<usize> {
    let known = analysis.measured().settings().len();
    let count = args.design.budget.map_or(3, |budget| budget.saturating_sub(known));
    let space: &Space = analysis.space();
    let mut runs: Vec<Run> = analysis
        .measured()
        .settings()
        .iter()
        .map(|measured| Run { setting: measured.setting.clone(), values: measured.log_mean.map(f64::exp) })
        .collect();
    let mut next = Vec::new();
    let mut current = analysis.clone();
    for _ in 0..count {
        let open = |position: &usize| current.measured().find(&space.setting(*position)).is_none();
        let model = current.model(Axis::Speed);
        let best = design::next_best(space, model, current.in_zone().filter(open))
            .or_else(|| design::next_best(space, model, (0..space.size()).filter(open)));
        let Some(position) = best else { break };
        next.push(position);
        let setting = space.setting(position);
        let values = [Axis::Speed, Axis::Energy].map(|axis| current.model(axis).value_at(&setting));
        runs.push(Run { setting, values });
        let question = analysis.question().clone();
        match Analysis::new(space.clone(), analysis.measured().responses, &runs, question) {
            Ok(analysis) => current = analysis,
            Err(_) => break,
        }
    }
    next
}
