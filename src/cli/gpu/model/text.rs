//! Tables of counters and recipes in words.

use std::io::{self, Write};

use eprof::gpu::model::fit::{Method, Recipe, Response};
use eprof::gpu::model::form::{Columns, Scale};
use eprof::gpu::model::table::Table;
use eprof::gpu::model::validate::Coverage;

use crate::cli::fixed::Fixed;

/// The level of the intervals that are spoken of.
pub(super) const LEVEL: f64 = 0.95;

/// A share in percent, without the sign: what is left of a fit that is exact is no figure.
pub(super) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent < 0.005 { format!("{percent:.2}") } else { Fixed(percent, 2).to_string() }
}

/// How wide intervals are, and how many rows they hold.
pub(super) fn print_coverage(coverage: Coverage, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "intervals of {:.0} % by errors of groups left out: ±{:.0} %, and {:.0} % of the rows lie in them",
        100.0 * LEVEL,
        100.0 * coverage.half_width,
        100.0 * coverage.held
    )
}

/// What was read.
pub(super) fn print_table(table: &Table, notes: &[String], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{} rows in {} groups, {} counters ({} of them counts{}), power {}..{} W",
        table.rows.len(),
        table.by_group().len(),
        table.columns.len(),
        table.counts.len(),
        table.time.map_or_else(String::new, |time| format!(", per {}", table.columns[time])),
        Fixed(table.power.iter().copied().fold(f64::MAX, f64::min), 1),
        Fixed(table.power.iter().copied().fold(0.0, f64::max), 1)
    )?;
    notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))?;
    table.left_out.iter().try_for_each(|(name, why)| writeln!(out, "not used: {name} ({why})"))
}

/// Recipes that are averaged, in words.
pub(super) fn describe_all(recipes: &[Recipe]) -> String {
    recipes.iter().map(describe).collect::<Vec<_>>().join("; averaged with ")
}

/// A recipe in words.
pub(super) fn describe(recipe: &Recipe) -> String {
    let columns = match recipe.form.columns {
        Columns::AsGiven => "counters as given",
        Columns::PerTime => "counters per time",
        Columns::Pooled => "counters per time, pooled",
        Columns::NoCounters => "no counter",
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
        Method::Level => return "a constant, off by the least share on average".to_owned(),
        Method::Similar { length, noise } => format!("similarity, length {length}, noise {noise}"),
    };
    let steps = if recipe.form.clock_steps { " and steps of the clock" } else { "" };
    format!("{method} of {response} on {columns}{scale}{products}{steps}")
}
