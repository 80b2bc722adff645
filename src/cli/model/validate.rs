//! `eprof model validate`: how wrong models are for what they were not trained with.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use eprof::power_model::dataset::Dataset;
use eprof::power_model::error::ModelError;
use eprof::power_model::estimator::{Estimator, EstimatorOptions};
use eprof::power_model::fit::{Fit, FitOptions};
use eprof::power_model::select::best_events;
use eprof::power_model::validate::{Protocol, Validation, validate};
use serde_json::json;

use super::super::Outcome;
use super::super::letters;
use super::observe::{ObserveArgs, describe};

/// Say how wrong a power model is for programs it was not trained with.
///
/// Two kinds of model are tried. The straight-line model has at most --max-events events, each of which
/// costs the same energy every time, so that sampling periods follow from it. The estimator averages many
/// small models, also curved ones, and is for estimating watts. Everything is chosen inside the training
/// rows: events, signs, curves, weights. What is left out is never looked at.
#[derive(Args)]
#[command(after_help = "Examples:
  eprof model validate --target watts --group job runs.csv
  eprof model validate --target powerWatts validation/*.csv
  eprof model validate --target package_power --protocol forward:60 log.csv
  eprof model validate hpl.perf sleep.perf stream.perf     # perf stat -a -I 100 -x,")]
pub struct ValidateArgs {
    #[command(flatten)]
    observe: ObserveArgs,

    /// What is left out: `workload` (each in turn), `blocks:K` (each of K spans of rows), or `forward:P`
    /// (all after the first P percent).
    #[arg(long, default_value = "workload", value_parser = protocol)]
    protocol: Protocol,

    /// Largest number of events of the straight-line model.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = super::fit::most_events())]
    max_events: usize,

    /// How the result is written.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// The kinds of model, in the order in which they are printed.
const KINDS: [&str; 2] = ["straight lines", "estimator"];

/// Runs the verb.
pub fn run(args: &ValidateArgs) -> Outcome {
    let observed = args.observe.observe()?;
    let description = describe(&observed.data);
    let parts = args.observe.parts(observed.data);
    let mut results = Vec::new();
    for (frequency, data) in &parts {
        results.push((*frequency, [straight_lines(data, args), estimator(data, args)]));
    }
    // If neither kind can be validated anywhere, the reason is the answer.
    if let Some((_, [first, _])) = results.first()
        && results.iter().all(|(_, kinds)| kinds.iter().all(Result::is_err))
        && let Err(error) = first
    {
        return Err(error.clone().into());
    }
    let mut out = letters::stdout_for(args.format != Format::Json);
    if args.format == Format::Json {
        serde_json::to_writer_pretty(&mut out, &as_json(args, &observed.notes, &description, &results))?;
        writeln!(out)?;
    } else {
        for note in &observed.notes {
            writeln!(out, "note: {note}")?;
        }
        writeln!(out, "{description}")?;
        writeln!(out, "protocol: {}", args.protocol)?;
        print_text(&mut out, &results)?;
    }
    Ok(ExitCode::SUCCESS)
}

type Outcomes = [Result<Validation, ModelError>; 2];

fn straight_lines(data: &Dataset, args: &ValidateArgs) -> Result<Validation, ModelError> {
    let options = FitOptions::default();
    let train = |data: &Dataset| {
        let columns = best_events(data, args.max_events, &options)?;
        Ok((Fit::new(&data.select(&columns), &options)?, columns))
    };
    validate(data, args.protocol, train, |(fit, columns), rates| {
        let chosen: Vec<f64> = columns.iter().map(|&column| rates[column]).collect();
        fit.watts(&chosen)
    })
}

fn estimator(data: &Dataset, args: &ValidateArgs) -> Result<Validation, ModelError> {
    let options = EstimatorOptions::default();
    validate(data, args.protocol, |data| Estimator::train(data, &options), Estimator::watts)
}

fn print_text(out: &mut impl Write, results: &[(Option<f64>, Outcomes)]) -> io::Result<()> {
    for (frequency, kinds) in results {
        writeln!(out)?;
        if let Some(frequency) = frequency {
            writeln!(out, "frequency {frequency}")?;
        }
        print_table(out, kinds)?;
    }
    if results.len() > 1 {
        writeln!(out, "\nmean over {} frequencies", results.len())?;
        for (kind, name) in KINDS.iter().enumerate() {
            if let Some(mean) = mean_error(results, kind) {
                writeln!(out, "  {name:<16}{:>8.2} %", 100.0 * mean)?;
            }
        }
    }
    Ok(())
}

/// Mean over the frequencies of the mean over the parts left out; `None` if one of them failed.
fn mean_error(results: &[(Option<f64>, Outcomes)], kind: usize) -> Option<f64> {
    let errors: Option<Vec<f64>> =
        results.iter().map(|(_, kinds)| kinds[kind].as_ref().ok().map(Validation::mean_over_folds)).collect();
    errors.map(|errors| errors.iter().sum::<f64>() / errors.len() as f64)
}

fn print_table(out: &mut impl Write, kinds: &Outcomes) -> io::Result<()> {
    let folds =
        kinds.iter().find_map(|kind| kind.as_ref().ok()).map_or(&[][..], |validation| &validation.folds);
    let width = folds.iter().map(|fold| fold.name.chars().count()).max().unwrap_or(0).clamp(10, 32);
    writeln!(out, "{:<width$} {:>8} {:>14} {:>14}", "left out", "rows", "straight lines", "estimator")?;
    for (index, fold) in folds.iter().enumerate() {
        write!(out, "{:<width$} {:>8}", fold.name, fold.rows)?;
        for kind in kinds {
            match kind.as_ref().ok().and_then(|validation| validation.folds.get(index)) {
                Some(fold) => write!(out, " {:>12.2} %", 100.0 * fold.mean)?,
                None => write!(out, " {:>14}", "-")?,
            }
        }
        writeln!(out)?;
    }
    for (label, mean) in [
        ("mean error", Validation::mean_over_folds as fn(&Validation) -> f64),
        ("mean over rows", Validation::mean_over_rows),
    ] {
        write!(out, "{label:<width$} {:>8}", "")?;
        for kind in kinds {
            match kind {
                Ok(validation) => write!(out, " {:>12.2} %", 100.0 * mean(validation))?,
                Err(_) => write!(out, " {:>14}", "-")?,
            }
        }
        writeln!(out)?;
    }
    for (kind, name) in kinds.iter().zip(KINDS) {
        if let Err(error) = kind {
            writeln!(out, "{name}: {error}")?;
        }
    }
    Ok(())
}

fn as_json(
    args: &ValidateArgs,
    notes: &[String],
    description: &str,
    results: &[(Option<f64>, Outcomes)],
) -> serde_json::Value {
    let validation = |result: &Result<Validation, ModelError>| match result {
        Ok(validation) => json!({
            "mean_error": validation.mean_over_folds(),
            "mean_error_over_rows": validation.mean_over_rows(),
            "left_out": validation.folds.iter().map(|fold| json!({
                "name": fold.name, "rows": fold.rows, "mean_error": fold.mean,
                "worst_error": fold.worst, "bias": fold.bias,
            })).collect::<Vec<_>>(),
        }),
        Err(error) => json!({ "error": error.to_string() }),
    };
    json!({
        "protocol": args.protocol.to_string(),
        "data": description,
        "notes": notes,
        "results": results.iter().map(|(frequency, [lines, estimator])| json!({
            "frequency": frequency,
            "straight_lines": validation(lines),
            "estimator": validation(estimator),
        })).collect::<Vec<_>>(),
    })
}

fn protocol(text: &str) -> Result<Protocol, String> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    match text.split_once(':').map_or((text, None), |(kind, rest)| (kind, Some(rest))) {
        ("workload", None) => Ok(Protocol::LeaveOneWorkloadOut),
        ("blocks", None) => Ok(Protocol::Blocks(5)),
        ("blocks", Some(count)) => match count.parse() {
            Ok(count @ 2..=1000) => Ok(Protocol::Blocks(count)),
            _ => Err("blocks:K with K from 2 to 1000".to_owned()),
        },
        ("forward", None) => Ok(Protocol::Forward(0.6)),
        ("forward", Some(percent)) => match number(percent) {
            Some(percent) if (1.0..100.0).contains(&percent) => Ok(Protocol::Forward(percent / 100.0)),
            _ => Err("forward:P with P percent from 1 to 99".to_owned()),
        },
        _ => Err("one of workload, blocks:K, forward:P".to_owned()),
    }
}
