//! `eprof gpu instructions`: microjoules per instruction.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use eprof::gpu::instructions::catalogue::{INSTRUCTIONS, Instruction};
use eprof::gpu::instructions::ptx;
use eprof::measure::gpu::{Cuda, MeasureOptions, Measured, Method, Occupancy, measure};
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::Outcome;
use crate::cli::letters;
use crate::cli::output::write_file;

/// Measure the energy of single GPU instructions.
///
/// Each instruction runs in a loop of three lengths, with and without it; the difference of the slopes
/// is its energy above idle. Needs NVIDIA's driver, not the CUDA toolkit. Nothing else should run on
/// the GPU; locked clocks make the figures steadier.
#[derive(Args)]
#[command(after_help = "Examples:
  eprof gpu instructions --only add.u32,div.u32,fma.rn.f32
  eprof gpu instructions --full --seconds 2
  eprof gpu instructions --emit-ptx programs/")]
pub struct InstructionsArgs {
    /// Number of the GPU.
    #[arg(long, default_value_t = 0)]
    gpu: u32,
    /// Only these instructions, by their names in PTX.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Optimisation levels of the driver's assembler.
    #[arg(long, value_name = "0..4", value_delimiter = ',', default_values_t = [0, 4], value_parser = clap::value_parser!(u32).range(0..=4))]
    level: Vec<u32>,
    /// Fill every multiprocessor instead of running one thread.
    #[arg(long)]
    full: bool,
    /// Time of the shortest kernel; the longest takes three times as long.
    #[arg(long, default_value_t = 0.7)]
    seconds: f64,
    /// Repeats of each length.
    #[arg(long, default_value_t = 2)]
    repeats: u32,
    /// Write the programs to this folder and measure nothing.
    #[arg(long, value_name = "FOLDER")]
    emit_ptx: Option<PathBuf>,
    /// CUDA's driver library, if not libcuda.so.1.
    #[arg(long, value_name = "FILE")]
    cuda_lib: Option<PathBuf>,
    /// NVIDIA's management library, if not libnvidia-ml.so.1.
    #[arg(long, value_name = "FILE")]
    nvml_lib: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: &InstructionsArgs) -> Outcome {
    let chosen = args.chosen()?;
    if let Some(folder) = &args.emit_ptx {
        return emit(folder, &chosen);
    }
    if !(0.05..=600.0).contains(&args.seconds) {
        bail!("--seconds must lie between 0.05 and 600");
    }
    let cuda = Cuda::open(args.cuda_lib.as_deref(), args.gpu)?;
    let occupancy = if args.full { Occupancy::Full } else { Occupancy::OneThread };
    let options = |level: u32| MeasureOptions {
        duration: Duration::from_secs_f64(args.seconds),
        repeats: args.repeats,
        level,
        occupancy,
        interval: Duration::from_millis(5),
        margin: Duration::from_millis(350),
        nvml_library: args.nvml_lib.clone(),
    };
    let (kernels, mut done) = (u64::from(options(0).kernels()), 0);
    let mut out = letters::stdout();
    writeln!(
        out,
        "{}, compute capability {}.{}, {} multiprocessors, driver for CUDA {}.{}, {}",
        cuda.name,
        cuda.capability / 10,
        cuda.capability % 10,
        cuda.multiprocessors,
        cuda.driver / 1000,
        cuda.driver % 1000 / 10,
        if args.full { "every multiprocessor full" } else { "one thread" }
    )?;
    writeln!(
        out,
        "microjoules per instruction and thread, above idle; {kernels} kernels a line, idling between: {:.0} s\n",
        options(0).expected().as_secs_f64()
    )?;
    writeln!(
        out,
        "{:<18} {:>5} {:>12} {:>11} {:>12} {:>12} {:>8} {:>9}",
        "instruction", "level", "counter", "±", "area", "last", "cycles", "TITAN V"
    )?;
    let progress = ProgressBar::new((chosen.len() * args.level.len()) as u64 * kernels);
    progress.set_style(ProgressStyle::with_template("{bar:30} kernel {pos} of {len}, {msg}; {eta} left")?);
    for instruction in &chosen {
        for level in &args.level {
            progress.set_message(instruction.name);
            let line = if !instruction.runs_on(cuda.capability) {
                format!("{:<18} {level:>5} not on this device", instruction.name)
            } else {
                match measure(&cuda, instruction, &options(*level), &mut || progress.inc(1)) {
                    Ok(measured) => describe(instruction, *level, &measured),
                    Err(error) => format!("{:<18} {level:>5} {error}", instruction.name),
                }
            };
            progress.suspend(|| writeln!(out, "{line}"))?;
            // A line that failed has run fewer.
            done += kernels;
            progress.set_position(done);
        }
    }
    progress.finish_and_clear();
    Ok(ExitCode::SUCCESS)
}

impl InstructionsArgs {
    fn chosen(&self) -> anyhow::Result<Vec<&'static Instruction>> {
        if self.only.is_empty() {
            return Ok(INSTRUCTIONS.iter().collect());
        }
        let find = |name: &String| {
            INSTRUCTIONS.iter().find(|instruction| instruction.name == name).with_context(|| {
                let names: Vec<&str> = INSTRUCTIONS.iter().map(|instruction| instruction.name).collect();
                format!("no instruction `{name}`; there are: {}", names.join(", "))
            })
        };
        self.only.iter().map(find).collect()
    }
}

/// Digits behind the point at least.
const LEAST_DECIMALS: usize = 5;

/// So many that a figure has four digits.
fn decimals_of(figure: f64) -> usize {
    const MOST: usize = 9;
    let size = figure.abs().log10().floor();
    if size.is_finite() {
        (3.0 - size).clamp(LEAST_DECIMALS as f64, MOST as f64) as usize
    } else {
        LEAST_DECIMALS
    }
}

fn describe(instruction: &Instruction, level: u32, measured: &Measured) -> String {
    let by =
        |method: Method| measured.by_method.iter().find(|(own, _)| *own == method).map(|(_, energy)| *energy);
    let best = by(Method::Counter).or_else(|| by(Method::Area));
    let decimals = best.map_or(LEAST_DECIMALS, |energy| decimals_of(energy.microjoules));
    let figure = |method| {
        by(method).map_or_else(|| "-".to_owned(), |energy| format!("{:.decimals$}", energy.microjoules))
    };
    let (error, cycles, note) = best.map_or_else(
        || ("-".to_owned(), "-".to_owned(), ""),
        |energy| {
            let note = match () {
                () if energy.eliminated => "  eliminated by the assembler",
                () if energy.is_lost_in_its_error() => {
                    "  no more than its error: make kernels longer (--seconds)"
                }
                () if energy.r2 < 0.99 => "  not linear in length",
                () => "",
            };
            (format!("{:.decimals$}", energy.std_error), format!("{:.1}", energy.cycles), note)
        },
    );
    let published = instruction.published.map_or_else(
        || "-".to_owned(),
        |(optimised, plain)| format!("{:.4}", if level == 0 { plain } else { optimised }),
    );
    format!(
        "{:<18} {level:>5} {:>12} {error:>11} {:>12} {:>12} {cycles:>8} {published:>9}{note}",
        instruction.name,
        figure(Method::Counter),
        figure(Method::Area),
        figure(Method::LastReading)
    )
}

fn emit(folder: &PathBuf, chosen: &[&Instruction]) -> Outcome {
    // A capability that every assembler of PTX 6.4 and every one since knows.
    const CAPABILITY: u32 = 70;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for instruction in chosen {
        for (with, suffix) in [(true, ""), (false, ".empty")] {
            let path = folder.join(format!("{}{suffix}.ptx", instruction.name));
            write_file(&path, ptx::program(instruction, with, CAPABILITY))?;
        }
    }
    println!("{} programs written to {}", 2 * chosen.len(), folder.display());
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_figures_have_four_digits_as_well() {
        let decimals = [2.25, 0.012_34, 0.001_234, 0.000_041_23, 1e-12, 0.0, 123.0].map(decimals_of);
        assert_eq!(decimals, [5, 5, 6, 8, 9, 5, 5]);
    }
}
