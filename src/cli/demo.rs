//! `eprof demo`: the way from a program to a flamegraph, on work of eprof's own.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;

use super::Outcome;

mod work;

const EXAMPLES: &str = "\
Examples:
  eprof demo                                 three seconds of work: eprof.data, a report and energy.svg
  eprof demo --seconds 10 -o long.data       more work, into another file
  eprof record eprof demo --work             only the work, to be recorded in another way";

/// Record some seconds of built-in work, print where its joules went, draw the flamegraph.
///
/// It prints the three commands that it runs: replace the work by your own program.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct DemoArgs {
    /// Recording to write.
    #[arg(short, long, value_name = "FILE", default_value = "eprof.data")]
    output: PathBuf,

    /// Flamegraph to write.
    #[arg(long, value_name = "FILE", default_value = "energy.svg")]
    svg: PathBuf,

    /// Do the work and nothing else: this is the program that the demo records.
    #[arg(long)]
    work: bool,

    /// Seconds of work.
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    seconds: u64,
}

/// Runs the verb.
pub fn run(args: DemoArgs) -> Outcome {
    if args.work {
        let until = Instant::now() + Duration::from_secs(args.seconds);
        println!("checksum {:x}", work::run(until));
        return Ok(ExitCode::SUCCESS);
    }
    let (data, svg) = (args.output.display().to_string(), args.svg.display().to_string());
    let seconds = args.seconds.to_string();
    let eprof = std::env::current_exe().context("cannot find the path of this program")?;
    let itself = eprof.display().to_string();
    let work = [&itself, "demo", "--work", "--seconds", &seconds];
    // The work is compiled without frame pointers, as most programs are: its stacks are copied.
    step(&eprof, &[&["record", "--call-graph", "dwarf,4096", "-o", &data, "--"], &work[..]].concat())?;
    step(&eprof, &["report", &data, "--by", "function", "--limit", "15"])?;
    step(&eprof, &["flamegraph", &data, "-o", &svg])?;
    Ok(ExitCode::SUCCESS)
}

/// Shows a command as a user would type it, and runs it.
fn step(eprof: &PathBuf, arguments: &[&str]) -> anyhow::Result<()> {
    let typed = arguments.join(" ").replace(&eprof.display().to_string(), "eprof");
    println!("\n$ eprof {typed}");
    // Its steps follow each other without a key being pressed.
    let status =
        Command::new(eprof).args(arguments).env("EPROF_PAGER", "").status().context("cannot run eprof")?;
    if !status.success() {
        bail!("`eprof {typed}` failed ({status})");
    }
    Ok(())
}
