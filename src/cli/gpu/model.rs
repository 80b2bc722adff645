//! `eprof gpu model`: power as a function of counters.

mod fit;
mod inputs;
mod predict;
mod text;
mod validate;

use clap::{Args, Subcommand};

use crate::cli::Outcome;

/// Model a GPU's power from performance counters.
#[derive(Args)]
#[command(after_help = "Examples:
  eprof gpu model fit counters.csv --group kernel --save model.json
  eprof gpu model validate counters.csv --group kernel
  eprof gpu model predict model.json others.csv")]
pub struct ModelArgs {
    #[command(subcommand)]
    verb: ModelVerb,
}

#[derive(Subcommand)]
enum ModelVerb {
    /// Fit a model to a table, say how wrong it is, and store it.
    ///
    /// Which recipe is taken, and with what error for kernels that it does not know, is found by leaving groups of rows
    /// out. Also listed are coefficients, leverage points and outliers.
    #[command(
        after_help = "Example:\n  eprof gpu model fit counters.csv --group kernel --save model.json --figure coefficients.svg"
    )]
    Fit(fit::FitArgs),
    /// Leave each kernel or application out in turn, choose and fit on the others, predict it.
    #[command(
        after_help = "Example:\n  eprof gpu model validate counters.csv --group kernel --output predicted.csv"
    )]
    Validate(validate::ValidateArgs),
    /// Predict the power of the rows of a table by a stored model, with an interval around each.
    ///
    /// The table needs the model's counters and no power; where it has one, errors are shown. How wide intervals are
    /// follows from what the model said of groups of its own table when it did not know them.
    #[command(after_help = "Examples:
  eprof gpu model predict model.json others.csv
  eprof gpu model predict model.json others.csv --format csv > watts.csv")]
    Predict(predict::PredictArgs),
}

/// Runs the verb below `eprof gpu model`.
pub fn run(args: &ModelArgs) -> Outcome {
    match &args.verb {
        ModelVerb::Fit(args) => fit::run(args),
        ModelVerb::Validate(args) => validate::run(args),
        ModelVerb::Predict(args) => predict::run(args),
    }
}
