//! `eprof gpu model validate`: how wrong models are for kernels that they do not know.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Args;
use eprof::gpu::model::table::Table;
use eprof::gpu::model::unmeasured::Wanted;
use eprof::gpu::model::validate::{Coverage, Validation, apply};

use super::super::super::letters;
use super::inputs::{Methods, TableArgs, TableRead, left_out, load};
use super::text::{LEVEL, describe_all, print_coverage, print_table};
use crate::cli::Outcome;
use crate::cli::new_file::keep_inputs_from;
use crate::cli::output::write_file;

#[derive(Args)]
pub(super) struct ValidateArgs {
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

/// Runs the verb.
pub(super) fn run(args: &ValidateArgs) -> Outcome {
    let inputs: Vec<&Path> = [args.table.table.as_path()].into_iter().chain(args.model.as_deref()).collect();
    keep_inputs_from("--output", args.output.as_deref(), &inputs)?;
    let (TableRead { table, notes }, validation, coverage) = match &args.model {
        Some(path) => {
            let model = load(path)?;
            let mut rows = args.table.rows_of(Wanted::by(&model).with_power(), path)?;
            let notes = std::mem::take(&mut rows.notes);
            let table = rows.measured(&model);
            let validation = apply(&model, &table);
            let coverage = validation.coverage_by(&model, &table, LEVEL);
            (TableRead { table, notes }, validation, coverage)
        }
        None => {
            let TableRead { table, notes } = args.table.read()?;
            ensure!(
                table.by_group().len() > 1,
                "all rows belong to one group, so it cannot be left out and predicted by others: name what tells \
                 them apart with --group"
            );
            let validation = left_out(&table, args.methods.into(), usize::MAX)?
                .context("no fit is possible with a group left out: too few rows or no varying column")?;
            let coverage = validation.coverage(&table, LEVEL);
            (TableRead { table, notes }, validation, coverage)
        }
    };
    // Before anything is printed, as whoever reads that may leave (`| head`).
    if let Some(path) = &args.output {
        let mut text = csv::Writer::from_writer(Vec::new());
        text.write_record(["group", "measured_w", "predicted_w"])?;
        for ((group, measured), predicted) in table.groups.iter().zip(&table.power).zip(&validation.predicted)
        {
            text.write_record([group, &measured.to_string(), &format!("{predicted:.4}")])?;
        }
        let text = text.into_inner()?;
        write_file(path, text)?;
    }
    let mut out = letters::stdout();
    print_table(&table, &notes, &mut out)?;
    args.table.warn_of_groups(&table, &mut out)?;
    print_validation(&table, &validation, coverage, &mut out)?;
    Ok(ExitCode::SUCCESS)
}

fn print_validation(
    table: &Table,
    validation: &Validation,
    coverage: Option<Coverage>,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(
        out,
        "\nmean error {:.2} %, median {:.2} %, RMS {:.2} W, R2 {:.3}",
        validation.mean_error * 100.0,
        validation.median_error * 100.0,
        validation.rms,
        validation.r2
    )?;
    if let Some(coverage) = coverage {
        print_coverage(coverage, out)?;
    }
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
    for (_, chosen) in &validation.recipes {
        let text = describe_all(chosen);
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
