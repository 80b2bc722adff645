//! `eprof gpu`: power sensors of GPUs, models of GPU power, energy of GPU instructions.

mod calibrate;
mod correct;
mod doubt;
mod inputs;
mod instructions;
mod model;
mod outlier;
mod recorded;
mod rest_level;
mod switch_notes;
mod time_range;

use clap::{Args, Subcommand};

use super::Outcome;

const EXAMPLES: &str = "\
Examples:
  nvidia-smi --query-gpu=timestamp,power.draw --format=csv -lms 5 >trace.csv
  eprof gpu calibrate trace.csv --save sensor.json          of what kind the sensor is
  eprof gpu correct trace.csv --sensor sensor.json          the energy of each burst of load
  eprof gpu instructions --only add.u32,fma.rn.f32          joules of single instructions
  eprof gpu model fit counters.csv --save model.json        watts from performance counters";

/// GPU power: correct a sensor's trace, find out a sensor's kind, model power, measure instructions.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
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
