//! `eprof fleet`: runs `eprof-fleet`, which asks the tables of many machines.
//!
//! It has a database's engine in it and is several times larger than eprof, so that it is installed by those who want it.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use clap::Args;

use super::Outcome;

/// The program's name.
const PROGRAM: &str = "eprof-fleet";

const EXAMPLES: &str = "\
Examples:
  eprof export ranks/ --format parquet -o energy      the tables, of all recordings of ranks/
  eprof fleet report energy                           joules by function, of all machines
  eprof fleet top energy --by node,rank               joules by node and rank
  eprof fleet diff energy --old 'label:version = 1' --new 'label:version = 2'
  eprof fleet flamegraph energy -o fleet.svg

`eprof fleet report --help` has more, and so have the others: they are eprof-fleet's, a program of its own.";

/// Ask the energy profiles of many machines: what `eprof export --format parquet` wrote.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct FleetArgs {
    /// What eprof-fleet is to do: report, top, diff or flamegraph, a folder of tables, and options.
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    arguments: Vec<OsString>,
}

/// Becomes `eprof-fleet`; returns only if that fails.
pub fn run(args: FleetArgs) -> Outcome {
    let program = beside().unwrap_or_else(|| PathBuf::from(PROGRAM));
    let error = Command::new(&program).args(args.arguments).exec();
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    Err(error).with_context(|| {
        if is_missing {
            format!(
                "{PROGRAM} is neither beside eprof nor in PATH: install it with `cargo install --path src/fleet` in eprof's \
                 source folder"
            )
        } else {
            format!("cannot run {}", program.display())
        }
    })
}

/// The program in the folder that eprof itself is in.
fn beside() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name(PROGRAM);
    path.is_file().then_some(path)
}
