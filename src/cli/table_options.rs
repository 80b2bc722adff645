//! The options that say what the columns of a table mean: alike in all verbs that fit to one.

use clap::Args;

/// Which columns are what, and which rows count.
#[derive(Args)]
pub struct ColumnArgs {
    /// Column of the measured power in watts, or NAME:UNIT as in draw:mW. In logs of perf stat, the event
    /// that counts the joules [default there: power/energy-pkg/].
    #[arg(long, value_name = "COLUMN", alias = "power")]
    pub target: Option<String>,

    /// Columns that name the workload, application or kernel: rows that agree in them belong together and
    /// are left out together.
    #[arg(long, value_name = "COLUMN,...", alias = "workload")]
    pub group: Vec<String>,

    /// Columns of the events or counters to use [default: all that hold numbers].
    #[arg(long, value_name = "COLUMN,...", alias = "events")]
    pub columns: Vec<String>,

    /// Columns not to use.
    #[arg(long, value_name = "COLUMN,...", alias = "except")]
    pub exclude: Vec<String>,

    /// Only rows in which COLUMN has this VALUE; may be repeated.
    #[arg(long = "where", value_name = "COLUMN=VALUE", value_parser = condition)]
    pub only: Vec<(String, String)>,
}

/// Reads `COLUMN=VALUE`.
pub fn condition(text: &str) -> Result<(String, String), String> {
    let (column, value) = text.split_once('=').ok_or("write COLUMN=VALUE")?;
    Ok((column.trim().to_owned(), value.trim().to_owned()))
}

/// Reads a level of confidence in percent.
pub fn level(text: &str) -> Result<f64, String> {
    let level: f64 = text.parse().map_err(|_| "a number of percent, as 95".to_owned())?;
    if level > 0.0 && level < 100.0 { Ok(level) } else { Err("more than 0 and less than 100".to_owned()) }
}
