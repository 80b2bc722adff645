//! What `eprof tune` prints and writes.

use std::fmt::Write as _;
use std::io::{self, Write};

use eprof::tune::analysis::Analysis;
use eprof::tune::draw;
use eprof::tune::out_of_line::Doubts;
use eprof::tune::runs::{AXES, Responses, Run};
use eprof::tune::search::Verification;
use eprof::tune::show;
use eprof::tune::space::Space;

use super::super::output::write_file;
use super::options::{Format, TuneArgs};

/// Prints text to stdout.
pub fn print(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(text.as_bytes())
}

/// Writes the drawing and the runs where asked to.
pub fn save(args: &TuneArgs, analysis: &Analysis, runs: &[Run]) -> anyhow::Result<()> {
    if let Some(path) = &args.output.svg {
        let command: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
        let title = match (&args.offline.runs_csv, command.is_empty()) {
            (Some(table), _) => table.display().to_string(),
            (None, _) => command.join(" "),
        };
        write_file(path, draw::draw(analysis, &title))?;
    }
    if let Some(path) = &args.output.save_runs {
        write_file(path, runs_csv(analysis.space(), analysis.measured().responses, runs))?;
    }
    Ok(())
}

/// Prints the analysis, what it would be without the runs that are in doubt, and what verifying it gave.
pub fn show(
    args: &TuneArgs,
    analysis: &Analysis,
    doubts: &Doubts,
    verifications: &[Verification],
    energy: &str,
) -> anyhow::Result<()> {
    match args.output.format {
        Format::Csv => print(&show::predictions_csv(analysis))?,
        Format::Text => {
            print(&show::describe(analysis, energy)?)?;
            print(&show::describe_without(analysis, doubts))?;
            for verification in verifications {
                print(&show::describe_verification(analysis, verification))?;
            }
        }
    }
    Ok(())
}

/// Settings to run, with empty columns for what they will measure.
pub fn plan_csv(space: &Space, positions: &[usize], responses: Responses) -> String {
    let mut text = headings(space, responses);
    for &position in positions {
        text.push_str(&levels(space.setting(position).0.iter()));
        text.push_str(",\n");
    }
    text
}

fn runs_csv(space: &Space, responses: Responses, runs: &[Run]) -> String {
    let mut text = headings(space, responses);
    for run in runs {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}{},{}", levels(run.setting.0.iter()), run.values[0], run.values[1]);
    }
    text
}

fn headings(space: &Space, responses: Responses) -> String {
    let mut names: Vec<String> =
        space.variables().iter().map(|variable| show::cell(&show::heading(variable))).collect();
    match responses {
        Responses::Totals => names.extend(["seconds".into(), "joules".into()]),
        Responses::Rates => names.extend(AXES.map(|axis| responses.name(axis).into())),
    }
    names.join(",") + "\n"
}

fn levels<'a>(levels: impl Iterator<Item = &'a eprof::tune::space::Level>) -> String {
    levels.map(|level| show::cell(&level.to_string()) + ",").collect()
}
