//! What verbs of GPU models read: tables, what may be chosen from, stored models.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use eprof::gpu::model::blend::Blend;
use eprof::gpu::model::candidates::Allowed;
use eprof::gpu::model::table::{Roles, Table};
use eprof::gpu::model::unmeasured::{CounterRows, Wanted};
use eprof::gpu::model::validate::{Validation, leave_group_out};
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::table_file;
use crate::cli::table_options::ColumnArgs;

/// A table of counters, and what its columns are.
#[derive(Args)]
pub(super) struct TableArgs {
    /// Table with a line of names, or a file of gpmTOOL with its four heading lines; `-` is standard input.
    /// The power is found by its name if only one column has `power` in it, and files of gpmTOOL tell
    /// their kernels themselves.
    pub table: PathBuf,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// Column of the run time or the elapsed cycles, or NAME:UNIT, by which counts are divided; found by its
    /// name if only one has `time`, `elapsed` or `duration` in it. Where it is given, all columns are counts
    /// but clocks, what by its name is a rate, share, size or state, and values up to 100 that do not grow
    /// with it; where it is found, those that reach 1000.
    #[arg(long, value_name = "COLUMN", alias = "time")]
    pub duration: Option<String>,
}

/// What may be chosen from.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Methods {
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

impl TableArgs {
    /// Rows of one kernel at several clocks are no strangers to each other: left out one by one, they flatter the model.
    pub fn warn_of_groups(&self, table: &Table, out: &mut impl Write) -> io::Result<()> {
        if self.columns.group.is_empty() && table.by_group().len() == table.rows.len() {
            writeln!(
                out,
                "note: without --group each row is left out alone; where several rows are of one kernel or application \
                 (at other clocks or sizes) errors come out too small: name the column that says so"
            )?;
        }
        Ok(())
    }

    /// Reads it.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no such table.
    pub fn read(&self) -> anyhow::Result<TableRead> {
        let text = table_file::read(&self.table)?;
        let (table, notes) = Table::read(&text, &self.roles())
            .with_context(|| format!("{} is no table of counters", self.table.display()))?;
        Ok(TableRead { table, notes })
    }

    /// Reads what a stored model, of this file, needs of it.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has no such columns.
    pub fn rows_of(&self, wanted: Wanted<'_>, model: &Path) -> anyhow::Result<CounterRows> {
        let text = table_file::read(&self.table)?;
        CounterRows::read(&text, &self.roles(), wanted)
            .with_context(|| format!("{} has not what {} needs", self.table.display(), model.display()))
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
pub(super) struct TableRead {
    pub table: Table,
    pub notes: Vec<String>,
}

/// Leaves groups out with a bar that shows how many are done.
pub(super) fn left_out(table: &Table, allowed: Allowed, most: usize) -> anyhow::Result<Option<Validation>> {
    let progress = ProgressBar::new(table.by_group().len().min(most) as u64);
    progress.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} left out")?);
    let validation = leave_group_out(table, allowed, most, |done, all| {
        progress.set_length(all as u64);
        progress.set_position(done as u64);
    });
    progress.finish_and_clear();
    Ok(validation)
}

/// A stored model.
///
/// # Errors
///
/// The file cannot be read, or is no stored model.
pub(super) fn load(path: &Path) -> anyhow::Result<Blend> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Blend::from_json(&text).with_context(|| format!("{} is no stored GPU power model", path.display()))
}
