//! `eprof gpu`: power sensors of GPUs, models of GPU power, energy of GPU instructions.

mod calibrate;
mod correct;
mod inputs;
mod instructions;
mod model;
mod recorded;

use clap::{Args, Subcommand};

use super::Outcome;

/// GPU power: correct a sensor's trace, find out a sensor's kind, model power, measure instructions.
#[derive(Args)]
pub struct GpuArgs {
    #[command(subcommand)]
    verb: GpuVerb,
}

#[derive(Subcommand)]
enum GpuVerb {
    Correct(correct::CorrectArgs),
    Calibrate(calibrate::CalibrateArgs),
    Instructions(instructions::InstructionsArgs),
    Model(model::ModelArgs),
}

/// Runs the verb below `eprof gpu`.
pub fn run(args: GpuArgs) -> Outcome {
    match args.verb {
        GpuVerb::Correct(args) => correct::run(&args),
        GpuVerb::Calibrate(args) => calibrate::run(&args),
        GpuVerb::Instructions(args) => instructions::run(&args),
        GpuVerb::Model(args) => model::run(&args),
    }
}
