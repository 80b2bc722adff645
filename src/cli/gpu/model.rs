//! `eprof gpu model`: power as a function of counters.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use eprof::gpu::model::choose::{Allowed, ranked};
use eprof::gpu::model::diagnostics::diagnose;
use eprof::gpu::model::figure;
use eprof::gpu::model::fit::{Method, Model, Recipe, Response};
use eprof::gpu::model::form::{Columns, Scale};
use eprof::gpu::model::table::{Roles, Table};
use eprof::gpu::model::validate::{Validation, apply, leave_group_out};
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::Outcome;
use crate::cli::new_file::keep_inputs_from;
use crate::cli::output::write_file;
use crate::cli::table_file;
use crate::cli::table_options::ColumnArgs;

/// Model a GPU's power from performance counters.
#[derive(Args)]
#[command(after_help = "Examples:
  eprof gpu model fit counters.csv --save model.json
  eprof gpu model validate counters.csv --group kernel
  eprof gpu model predict model.json others.csv")]
pub struct ModelArgs {
    #[command(subcommand)]
    verb: ModelVerb,
}

#[derive(Subcommand)]
enum ModelVerb {
    /// Fit a model to a table, list coefficients, leverage points and outliers, and store it.
    #[command(
        after_help = "Example:\n  eprof gpu model fit counters.csv --save model.json --figure coefficients.svg"
    )]
    Fit(FitArgs),
    /// Leave each kernel or application out in turn, choose and fit on the others, predict it.
    #[command(
        after_help = "Example:\n  eprof gpu model validate counters.csv --group kernel --output predicted.csv"
    )]
    Validate(ValidateArgs),
    /// Predict the power of the rows of a table by a stored model.
    #[command(after_help = "Example:\n  eprof gpu model predict model.json others.csv")]
    Predict(PredictArgs),
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

#[derive(Args)]
struct FitArgs {
    #[command(flatten)]
    table: TableArgs,
    /// What may be chosen from.
    #[arg(long, value_enum, default_value = "all")]
    methods: Methods,
    /// File to store the model in.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Draw the ranked coefficients of the best linear fit.
    #[arg(long, value_name = "SVG")]
    figure: Option<PathBuf>,
}

#[derive(Args)]
struct ValidateArgs {
    #[command(flatten)]
    table: TableArgs,
    /// What may be chosen from.
    #[arg(long, value_enum, default_value = "all")]
    methods: Methods,
    /// Validate this stored model on the table instead, which it must not have been fitted to.
    #[arg(long, value_name = "FILE", conflicts_with = "methods")]
    model: Option<PathBuf>,
    /// Write measured and predicted power of each row.
    #[arg(long, value_name = "CSV")]
    output: Option<PathBuf>,
}

#[derive(Args)]
struct PredictArgs {
    /// A model written by `eprof gpu model fit --save`.
    model: PathBuf,
    #[command(flatten)]
    table: TableArgs,
}

/// What may be chosen from.
#[derive(Clone, Copy, ValueEnum)]
enum Methods {
    /// Ridge, robust, non-negative and similarity fits; counters as given, per time, pooled, as roots or logarithms.
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
        ModelVerb::Fit(args) => fit(args),
        ModelVerb::Validate(args) => validate(args),
        ModelVerb::Predict(args) => predict(args),
    }
}

fn fit(args: &FitArgs) -> Outcome {
    keep_inputs_from("--save", args.save.as_deref(), &[&args.table.table])?;
    keep_inputs_from("--figure", args.figure.as_deref(), &[&args.table.table])?;
    let TableRead { table, notes } = args.table.read()?;
    let mut out = io::stdout().lock();
    print_table(&table, &notes, &mut out)?;
    if table.by_group().len() == 1 {
        writeln!(out, "note: all rows are of one group: each row is left out alone")?;
    }
    args.table.warn_of_groups(&table, &mut out)?;
    let choices = ranked(&table, args.methods.into());
    let best =
        choices.first().context("no fit is possible: the columns do not vary or depend on each other")?;
    let model = Model::fit(best.recipe, &table).context("the best recipe does not fit all rows together")?;
    writeln!(out, "\nerror on left-out rows   best recipes")?;
    for choice in choices.iter().take(5) {
        writeln!(out, "{:>22.2} %   {}", choice.error * 100.0, describe(&choice.recipe))?;
    }
    for (name, why) in &model.prepared.dropped {
        writeln!(out, "dropped {name}: {why}")?;
    }
    let linear = choices.iter().find(|choice| !matches!(choice.recipe.method, Method::Similar { .. }));
    if let Some(linear) = linear.and_then(|choice| Model::fit(choice.recipe, &table)) {
        let unit = if linear.recipe.response == Response::Log { "share of power" } else { "watts" };
        writeln!(out, "\ncoefficients, {unit} per standard deviation ({})", describe(&linear.recipe))?;
        let ranked = linear.coefficients();
        for (name, value) in &ranked {
            writeln!(out, "  {value:>+10.4}  {name}")?;
        }
        if let Some(path) = &args.figure {
            write(path, &figure::coefficients(&ranked, unit))?;
        }
    }
    print_diagnosis(&table, &mut out)?;
    if let Some(path) = &args.save {
        write(path, &(serde_json::to_string(&model)? + "\n"))?;
        writeln!(out, "\nwritten to {}", path.display())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn validate(args: &ValidateArgs) -> Outcome {
    let inputs: Vec<&Path> = [args.table.table.as_path()].into_iter().chain(args.model.as_deref()).collect();
    keep_inputs_from("--output", args.output.as_deref(), &inputs)?;
    let TableRead { table, notes } = args.table.read()?;
    let mut out = io::stdout().lock();
    print_table(&table, &notes, &mut out)?;
    args.table.warn_of_groups(&table, &mut out)?;
    let validation = match &args.model {
        Some(path) => {
            let model = load(path)?;
            apply(&model, &conform(&model, &table)?)
        }
        None => {
            ensure!(
                table.by_group().len() > 1,
                "all rows belong to one group, so it cannot be left out and predicted by others: name what tells \
                 them apart with --group"
            );
            let progress = ProgressBar::new(table.by_group().len() as u64);
            progress.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} left out")?);
            let validation =
                leave_group_out(&table, args.methods.into(), |done, _| progress.set_position(done as u64));
            progress.finish_and_clear();
            validation
                .context("no fit is possible with a group left out: too few rows or no varying column")?
        }
    };
    print_validation(&table, &validation, &mut out)?;
    if let Some(path) = &args.output {
        let mut text = String::from("group,measured_w,predicted_w\n");
        for ((group, measured), predicted) in table.groups.iter().zip(&table.power).zip(&validation.predicted)
        {
            text += &format!("\"{}\",{measured},{predicted:.4}\n", group.replace('"', "'"));
        }
        write(path, &text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn predict(args: &PredictArgs) -> Outcome {
    let model = load(&args.model)?;
    let table = conform(&model, &args.table.read()?.table)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{:>10} {:>11} {:>8}  group", "measured W", "predicted W", "error")?;
    for ((row, measured), group) in table.rows.iter().zip(&table.power).zip(&table.groups) {
        let predicted = model.predict(row);
        writeln!(
            out,
            "{measured:>10.2} {predicted:>11.2} {:>+6.1} %  {group}",
            (predicted / measured - 1.0) * 100.0
        )?;
    }
    Ok(ExitCode::SUCCESS)
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
        let ColumnArgs { target, group, columns, exclude, only } = &self.columns;
        let roles = Roles {
            target: target.clone(),
            group: group.clone(),
            time: self.duration.clone(),
            columns: columns.clone(),
            exclude: exclude.clone(),
            only: only.clone(),
        };
        let (table, notes) = Table::read(&text, &roles)
            .with_context(|| format!("{} is no table of counters", self.table.display()))?;
        Ok(TableRead { table, notes })
    }
}

/// A table, and what is to be known about it.
struct TableRead {
    table: Table,
    notes: Vec<String>,
}

/// The columns that the model knows, in its order.
fn conform(model: &Model, table: &Table) -> anyhow::Result<Table> {
    let mut order = Vec::new();
    for name in model.prepared.columns() {
        // Names in models of earlier versions have their decoration.
        let bare = name.trim_start_matches('#').trim_matches('\'');
        let is_called = |column: &String| column == name || column == bare;
        match table.columns.iter().position(is_called) {
            Some(index) => order.push(index),
            None => bail!("the model needs column `{name}`; the table has: {}", table.columns.join(", ")),
        }
    }
    let rows = table.rows.iter().map(|row| order.iter().map(|index| row[*index]).collect()).collect();
    Ok(Table { columns: model.prepared.columns().to_vec(), rows, ..table.clone() })
}

fn load(path: &Path) -> anyhow::Result<Model> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Model::from_json(&text).with_context(|| format!("{} is no stored GPU power model", path.display()))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    write_file(path, text)
}

fn print_table(table: &Table, notes: &[String], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{} rows in {} groups, {} counters ({} of them counts{}), power {:.1}..{:.1} W",
        table.rows.len(),
        table.by_group().len(),
        table.columns.len(),
        table.counts.len(),
        table.time.map_or_else(String::new, |time| format!(", per {}", table.columns[time])),
        table.power.iter().copied().fold(f64::MAX, f64::min),
        table.power.iter().copied().fold(0.0, f64::max)
    )?;
    notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))?;
    table.left_out.iter().try_for_each(|(name, why)| writeln!(out, "not used: {name} ({why})"))
}

fn print_validation(table: &Table, validation: &Validation, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\nmean error {:.2} %, median {:.2} %, RMS {:.2} W, R2 {:.3}",
        validation.mean_error * 100.0,
        validation.median_error * 100.0,
        validation.rms,
        validation.r2
    )?;
    let mut groups: Vec<(f64, String)> = table
        .by_group()
        .into_iter()
        .map(|(name, rows)| {
            let error = |row: &usize| (validation.predicted[*row] / table.power[*row] - 1.0).abs();
            (rows.iter().map(error).sum::<f64>() / rows.len() as f64, name)
        })
        .collect();
    groups.sort_by(|a, b| b.0.total_cmp(&a.0));
    writeln!(out, "worst left out:")?;
    for (error, name) in groups.iter().take(5) {
        writeln!(out, "  {:>6.1} %  {}", error * 100.0, name.chars().take(60).collect::<String>())?;
    }
    let mut recipes: Vec<(usize, String)> = Vec::new();
    for (_, recipe) in &validation.recipes {
        let text = describe(recipe);
        match recipes.iter_mut().find(|(_, known)| *known == text) {
            Some((count, _)) => *count += 1,
            None => recipes.push((1, text)),
        }
    }
    recipes.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    for (count, recipe) in recipes.iter().take(4) {
        writeln!(out, "chosen {count} times: {recipe}")?;
    }
    Ok(())
}

fn print_diagnosis(table: &Table, out: &mut impl Write) -> io::Result<()> {
    let Some((rows, mean)) = diagnose(table) else { return Ok(()) };
    let mut leverage: Vec<_> = rows.iter().filter(|row| row.is_leverage_point(mean)).collect();
    leverage.sort_by(|a, b| b.leverage.total_cmp(&a.leverage));
    writeln!(out, "\n{} rows that the linear fit hangs on (mean leverage {mean:.2})", leverage.len())?;
    for row in leverage.iter().take(8) {
        let far = row
            .farthest
            .as_ref()
            .map_or_else(String::new, |(name, z)| format!("{name} at {z:+.1} deviations"));
        writeln!(out, "  leverage {:.2}  {:<32.32}  {far}", row.leverage, table.groups[row.row])?;
    }
    let mut outliers: Vec<_> = rows.iter().filter(|row| row.is_outlier()).collect();
    outliers.sort_by(|a, b| b.studentised.abs().total_cmp(&a.studentised.abs()));
    writeln!(out, "{} outliers (more than 3 standard deviations off the fit of the others)", outliers.len())?;
    for row in outliers.iter().take(8) {
        let watts = table.power[row.row];
        writeln!(
            out,
            "  {:>+7.1} deviations  {:<32.32}  {watts:.1} W",
            row.studentised, table.groups[row.row]
        )?;
    }
    Ok(())
}

fn describe(recipe: &Recipe) -> String {
    let columns = match recipe.form.columns {
        Columns::AsGiven => "counters as given",
        Columns::PerTime => "counters per time",
        Columns::Pooled => "counters per time, pooled",
    };
    let scale = match recipe.form.scale {
        Scale::Linear => "",
        Scale::Root => ", square roots",
        Scale::Log => ", logarithms",
    };
    let products = if recipe.form.clock_products { ", times clocks" } else { "" };
    let response = match recipe.response {
        Response::Watts => "power",
        Response::Shares => "power, errors as shares,",
        Response::Log => "log power",
    };
    let method = match recipe.method {
        Method::Ridge(0.0) => "least squares".to_owned(),
        Method::Ridge(ridge) => format!("ridge {ridge}"),
        Method::Robust(ridge) => format!("robust, ridge {ridge}"),
        Method::NonNegative(0.0) => "non-negative".to_owned(),
        Method::NonNegative(ridge) => format!("non-negative, ridge {ridge}"),
        Method::Similar { length, noise } => format!("similarity, length {length}, noise {noise}"),
    };
    format!("{method} of {response} on {columns}{scale}{products}")
}
