//! `eprof gpu model fit`: the best recipe, what it says, and how far it can be trusted.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use eprof::gpu::model::blend::Blend;
use eprof::gpu::model::choose::Ranking;
use eprof::gpu::model::diagnostics::diagnose;
use eprof::gpu::model::figure;
use eprof::gpu::model::fit::{Method, Model, Response};
use eprof::gpu::model::form::Columns;
use eprof::gpu::model::table::Table;
use eprof::gpu::model::validate::Validation;

use super::super::super::letters;
use super::inputs::{Methods, TableArgs, TableRead, left_out};
use super::text::{LEVEL, describe, describe_all, percent, print_coverage, print_table};
use crate::cli::Outcome;
use crate::cli::fixed::Fixed;
use crate::cli::new_file::keep_inputs_from;
use crate::cli::output::write_file;

#[derive(Args)]
pub(super) struct FitArgs {
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
    /// Do not find out how wrong the model is for groups that it does not know: some 25 times as fast. Predictions then
    /// have no intervals.
    #[arg(long)]
    quick: bool,
}

/// Groups are left out some at a time if there are more.
const MOST_FOLDS: usize = 24;

/// What there is to say of a table's models.
struct Fitted {
    ranking: Ranking,
    validation: Option<Validation>,
    model: Blend,
    /// The best fit with coefficients.
    linear: Option<Model>,
}

/// Runs the verb.
pub(super) fn run(args: &FitArgs) -> Outcome {
    keep_inputs_from("--save", args.save.as_deref(), &[&args.table.table])?;
    keep_inputs_from("--figure", args.figure.as_deref(), &[&args.table.table])?;
    let TableRead { table, notes } = args.table.read()?;
    let fitted = Fitted::of(args, &table)?;
    // Before anything is printed: whoever reads that may leave (`| head`), and the files are to be there all the same.
    if let (Some(path), Some(linear)) = (&args.figure, &fitted.linear) {
        write_file(path, figure::coefficients(&linear.coefficients(), unit_of(linear)))?;
    }
    if let Some(path) = &args.save {
        write_file(path, serde_json::to_string(&fitted.model)? + "\n")?;
    }
    fitted.print(args, &table, &notes, &mut letters::stdout())?;
    Ok(ExitCode::SUCCESS)
}

impl Fitted {
    fn of(args: &FitArgs, table: &Table) -> anyhow::Result<Self> {
        let allowed = args.methods.into();
        let ranking = Ranking::of(table, allowed)
            .context("no fit is possible: the columns do not vary or depend on each other")?;
        let model =
            Blend::fit(&ranking.chosen, table).context("the best recipe does not fit all rows together")?;
        let validation = if args.quick { None } else { left_out(table, allowed, MOST_FOLDS)? };
        let model = model.with_errors(validation.as_ref().map(|validation| validation.distances(table)));
        let linear =
            ranking.choices.iter().find(|choice| !matches!(choice.recipe.method, Method::Similar { .. }));
        let linear = linear.and_then(|choice| Model::fit(choice.recipe, table));
        Ok(Self { ranking, validation, model, linear })
    }

    fn print(&self, args: &FitArgs, table: &Table, notes: &[String], out: &mut impl Write) -> io::Result<()> {
        print_table(table, notes, out)?;
        if table.by_group().len() == 1 {
            writeln!(out, "note: all rows are of one group: each row is left out alone")?;
        }
        args.table.warn_of_groups(table, out)?;
        self.print_ranking(out)?;
        for (name, why) in &self.model.members()[0].prepared.dropped {
            writeln!(out, "dropped {name}: {why}")?;
        }
        print_nested(table, self.validation.as_ref(), args.quick, out)?;
        self.print_why_errors_differ(out)?;
        if let Some(linear) = &self.linear {
            let (unit, recipe) = (unit_of(linear), describe(&linear.recipe));
            writeln!(out, "\ncoefficients, {unit} per standard deviation ({recipe})")?;
            for (name, value) in linear.coefficients() {
                writeln!(out, "  {:>+10}  {name}", Fixed(value, 4))?;
            }
        }
        print_diagnosis(table, out)?;
        if let Some(path) = &args.save {
            writeln!(out, "\nwritten to {}", path.display())?;
        }
        Ok(())
    }

    /// One recipe may have one error in the list and another below it.
    fn print_why_errors_differ(&self, out: &mut impl Write) -> io::Result<()> {
        match &self.validation {
            Some(found) if percent(found.mean_error) != percent(self.ranking.error) => writeln!(
                out,
                "(the list above only compares recipes: the choice knew all groups, more than 24 were put together otherwise, \
                 and estimates went as far astray as they liked, where a model's own end at half of the least power and at \
                 twice the most)"
            ),
            _ => Ok(()),
        }
    }

    fn print_ranking(&self, out: &mut impl Write) -> io::Result<()> {
        let ranking = &self.ranking;
        writeln!(out, "\nerror on left-out rows   best recipes")?;
        for choice in ranking.choices.iter().take(5) {
            writeln!(out, "{:>22} %   {}", percent(choice.error), describe(&choice.recipe))?;
        }
        if let [first, _, ..] = ranking.chosen.as_slice() {
            let others = ranking.chosen.len() - 1;
            let and = if others == 1 { "another".to_owned() } else { format!("{others} others") };
            writeln!(out, "{:>22} %   the average of {} and {and}", percent(ranking.error), describe(first))?;
        }
        let null = ranking.choices.iter().find(|choice| choice.recipe.form.columns == Columns::NoCounters);
        if let Some(null) = null {
            writeln!(out, "{:>22} %   {}", percent(null.error), describe(&null.recipe))?;
        }
        writeln!(out, "chosen: {}", describe_all(&ranking.chosen))
    }
}

/// Of the coefficients.
fn unit_of(linear: &Model) -> &'static str {
    if linear.recipe.response == Response::Log { "share of power" } else { "watts" }
}

/// The error of all of it: recipes chosen, averaged and fitted without what is predicted.
fn print_nested(
    table: &Table,
    validation: Option<&Validation>,
    quick: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let Some(validation) = validation else {
        let why = if quick {
            "left out by --quick"
        } else {
            "with a group left out, the others do not allow any fit"
        };
        return writeln!(out, "\nno error for groups that the model does not know: {why}");
    };
    writeln!(
        out,
        "\nmean error {} % of groups left out in turn, recipes chosen and fitted without them",
        percent(validation.mean_error)
    )?;
    match validation.coverage(table, LEVEL) {
        Some(coverage) => print_coverage(coverage, out),
        None => writeln!(out, "too few groups to say how well intervals hold"),
    }
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
        let (deviations, watts) = (Fixed(row.studentised, 1), Fixed(table.power[row.row], 1));
        writeln!(out, "  {deviations:>+7} deviations  {:<32.32}  {watts} W", table.groups[row.row])?;
    }
    Ok(())
}
