//! `eprof model`: fit power models to measurements, say how wrong they are, estimate power by them, show the ones there
//! are.

mod fit;
mod observe;
mod predict;
mod show;
mod validate;

use clap::{Args, Subcommand};

use super::Outcome;

pub use show::{folder_for_new, folders, print as print_model};

/// Fit, validate, apply and show power models: watts from event rates.
#[derive(Args)]
#[command(after_help = "Examples:
  eprof model show stored                                   the model that recordings here take
  eprof model fit --target watts --group job runs.csv       a model of measurements
  eprof model validate --target watts --group job runs.csv  and how wrong such a model is
  eprof model predict --target watts --group job runs.csv --rates new.csv   watts where there is no meter")]
pub struct ModelArgs {
    #[command(subcommand)]
    verb: ModelVerb,
}

#[derive(Subcommand)]
enum ModelVerb {
    Fit(fit::FitArgs),
    Validate(validate::ValidateArgs),
    Predict(predict::PredictArgs),
    Show(show::ShowArgs),
}

/// Runs the verb.
pub fn run(args: ModelArgs) -> Outcome {
    match args.verb {
        ModelVerb::Fit(args) => fit::run(args),
        ModelVerb::Validate(args) => validate::run(&args),
        ModelVerb::Predict(args) => predict::run(&args),
        ModelVerb::Show(args) => show::run(&args),
    }
}
