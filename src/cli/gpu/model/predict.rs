//! `eprof gpu model predict`: watts of rows whose power nobody need have measured, with intervals.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use eprof::gpu::model::blend::Blend;
use eprof::gpu::model::unmeasured::Wanted;
use serde_json::json;

use super::super::super::letters;
use super::inputs::{TableArgs, load};
use crate::cli::Outcome;
use crate::cli::fixed::Fixed;
use crate::cli::output::say;
use crate::cli::table_options::level;

#[derive(Args)]
pub(super) struct PredictArgs {
    /// A model written by `eprof gpu model fit --save`.
    model: PathBuf,
    #[command(flatten)]
    table: TableArgs,
    /// Probability, in percent, with which a measurement is to lie in its interval.
    #[arg(long, value_name = "PERCENT", default_value_t = 95.0, value_parser = level)]
    level: f64,
    /// How the result is written.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Csv,
    Json,
}

/// What is said of one row.
struct Predicted<'a> {
    group: &'a str,
    measured: Option<f64>,
    watts: f64,
    interval: Option<(f64, f64)>,
    /// Limits stand for a part of what it is predicted by.
    is_beyond: bool,
}

/// Runs the verb.
pub(super) fn run(args: &PredictArgs) -> Outcome {
    let model = load(&args.model)?;
    let rows = args.table.rows_of(Wanted::by(&model), &args.model)?;
    let predicted: Vec<Predicted> = rows
        .rows
        .iter()
        .zip(&rows.power)
        .zip(&rows.groups)
        .map(|((row, measured), group)| {
            let watts = model.predict(row);
            let interval = model.interval(watts, args.level / 100.0);
            Predicted { group, measured: *measured, watts, interval, is_beyond: model.is_beyond(row) }
        })
        .collect();
    let notes: Vec<String> = rows.notes.iter().cloned().chain(note_beyond(&predicted)).collect();
    let mut out = letters::stdout_for(args.format == Format::Text);
    match args.format {
        Format::Text => print_text(&mut out, &model, &notes, &predicted, args.level)?,
        Format::Csv => {
            if let Some(note) = note_beyond(&predicted) {
                say(format_args!("note: {note}"));
            }
            print_csv(&mut out, &predicted)?;
        }
        Format::Json => {
            let of_row = |row: &Predicted| {
                json!({
                    "group": row.group, "watts": row.watts, "measured_watts": row.measured,
                    "low": row.interval.map(|(low, _)| low), "high": row.interval.map(|(_, high)| high),
                    "beyond_the_data": row.is_beyond,
                })
            };
            let whole = json!({
                "level": args.level / 100.0, "notes": notes,
                "mean_error_left_out": model.left_out().map(|errors| errors.mean_error()),
                "left_out": model.left_out().map(|errors| errors.parts()),
                "rows": predicted.iter().map(of_row).collect::<Vec<_>>(),
            });
            serde_json::to_writer_pretty(&mut out, &whole)?;
            writeln!(out)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Which rows lie beyond what the model knows; `None` if none does.
fn note_beyond(rows: &[Predicted]) -> Option<String> {
    let beyond: Vec<&Predicted> = rows.iter().filter(|row| row.is_beyond).collect();
    let first = beyond.first()?;
    Some(format!(
        "{} of {} rows lie beyond the data, the first of group `{}`: a term is more than half of its range outside of what the \
         model learnt from, or the power is less than half or more than twice of all that was measured, and the limit stands \
         for it. These are not to be relied on: measure such kernels, or look at their counters",
        beyond.len(),
        rows.len(),
        first.group
    ))
}

fn print_text(
    out: &mut impl Write,
    model: &Blend,
    notes: &[String],
    predicted: &[Predicted],
    level: f64,
) -> io::Result<()> {
    notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))?;
    match model.left_out() {
        Some(errors) => writeln!(
            out,
            "mean error {:.2} % of {} groups that were left out when the model was made; intervals of {level} % follow \
             from these",
            100.0 * errors.mean_error(),
            errors.parts()
        )?,
        None => writeln!(
            out,
            "note: no intervals: the model does not say how wrong it is for what it does not know; make it anew with \
             `eprof gpu model fit --save`, without --quick"
        )?,
    }
    writeln!(
        out,
        "\n{:>10} {:>10} {:>10} {:>11} {:>8}  group",
        "watts", "low", "high", "measured W", "error"
    )?;
    for row in predicted {
        let (low, high) = match row.interval {
            Some((low, high)) => (Fixed(low, 2).to_string(), Fixed(high, 2).to_string()),
            None => ("-".to_owned(), "-".to_owned()),
        };
        let (measured, error) = match row.measured {
            Some(watts) => {
                (Fixed(watts, 2).to_string(), format!("{:+.1} %", (row.watts / watts - 1.0) * 100.0))
            }
            None => ("-".to_owned(), "-".to_owned()),
        };
        let watts = Fixed(row.watts, 2);
        let beyond = if row.is_beyond { "  (beyond the data)" } else { "" };
        writeln!(out, "{watts:>10} {low:>10} {high:>10} {measured:>11} {error:>8}  {}{beyond}", row.group)?;
    }
    Ok(())
}

fn print_csv(out: &mut impl Write, predicted: &[Predicted]) -> csv::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(["group", "watts", "low", "high", "measured_watts", "beyond_the_data"])?;
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.4}"));
    for row in predicted {
        let (low, high) = (row.interval.map(|(low, _)| low), row.interval.map(|(_, high)| high));
        let numbers = [Some(row.watts), low, high, row.measured].map(number);
        let beyond = row.is_beyond.to_string();
        let cells = std::iter::once(row.group).chain(numbers.iter().map(String::as_str)).chain([&*beyond]);
        table.write_record(cells)?;
    }
    table.flush()?;
    Ok(())
}
