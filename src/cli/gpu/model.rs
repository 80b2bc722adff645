//! `eprof gpu model`: power as a function of counters.

mod fit;
mod predict;
mod text;
mod validate;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use eprof::gpu::model::blend::Blend;
use eprof::gpu::model::candidates::Allowed;
use eprof::gpu::model::table::{Roles, Table};
use eprof::gpu::model::validate::{Validation, leave_group_out};
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::Outcome;
use crate::cli::table_file;
use crate::cli::table_options::ColumnArgs;

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

#[derive(Args)]
struct TableArgs {
    /// Table with a line of names, or a file of gpmTOOL with its four heading lines; `-` is standard input.
    /// The power is found by its name if only one column has `power` in it, and files of gpmTOOL tell
    /// their kernels themselves.
    table: PathBuf,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Column of the run time or the elapsed cycles, by which counts are divided; found by its name if
    /// only one has `time`, `elapsed` or `duration` in it.
    #[arg(long, value_name = "COLUMN", alias = "time")]
    duration: Option<String>,
}

/// What may be chosen from.
#[derive(Clone, Copy, ValueEnum)]
enum Methods {
    /// Ridge, robust, non-negative and similarity fits; counters as given, per time, pooled, as roots or logarithms;
    /// clocks by steps; no counters at all; averages of the best.
    All,
    /// Only fits with coefficients.
    Linear,
    /// Plain least squares on standardised counters per time, as published in 2009.
    Published,
}

impl From<Methods> for Allowed {
    fn from(methods: Methods) -> Self {
        match methods {
            Methods::All => Self::All,
            Methods::Linear => Self::Linear,
            Methods::Published => Self::Published,
        }
    }
}

/// Runs the verb below `eprof gpu model`.
pub fn run(args: &ModelArgs) -> Outcome {
    match &args.verb {
        ModelVerb::Fit(args) => fit::run(args),
        ModelVerb::Validate(args) => validate::run(args),
        ModelVerb::Predict(args) => predict::run(args),
    }
}

impl TableArgs {
    /// Rows of one kernel at several clocks are no strangers to each other: left out one by one, they flatter the model.
    fn warn_of_groups(&self, table: &Table, out: &mut impl Write) -> io::Result<()> {
        if self.columns.group.is_empty() && table.by_group().len() == table.rows.len() {
            writeln!(
                out,
                "note: without --group each row is left out alone; where several rows are of one kernel or application \
                 (at other clocks or sizes) errors come out too small: name the column that says so"
            )?;
        }
        Ok(())
    }

    fn read(&self) -> anyhow::Result<TableRead> {
        let text = table_file::read(&self.table)?;
        let (table, notes) = Table::read(&text, &self.roles())
            .with_context(|| format!("{} is no table of counters", self.table.display()))?;
        Ok(TableRead { table, notes })
    }

    fn roles(&self) -> Roles {
        let ColumnArgs { target, group, columns, exclude, only } = &self.columns;
        Roles {
            target: target.clone(),
            group: group.clone(),
            time: self.duration.clone(),
            columns: columns.clone(),
            exclude: exclude.clone(),
            only: only.clone(),
        }
    }
}

/// A table, and what is to be known about it.
struct TableRead {
    table: Table,
    notes: Vec<String>,
}

/// Leaves groups out with a bar that shows how many are done.
fn left_out(table: &Table, allowed: Allowed, most: usize) -> anyhow::Result<Option<Validation>> {
    let progress = ProgressBar::new(table.by_group().len().min(most) as u64);
    progress.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} left out")?);
    let validation = leave_group_out(table, allowed, most, |done, all| {
        progress.set_length(all as u64);
        progress.set_position(done as u64);
    });
    progress.finish_and_clear();
    Ok(validation)
}

fn load(path: &Path) -> anyhow::Result<Blend> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Blend::from_json(&text).with_context(|| format!("{} is no stored GPU power model", path.display()))
}
