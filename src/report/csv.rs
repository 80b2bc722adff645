//! A report's rows as CSV, for spreadsheets and data frames.

use std::io::Write;

use super::select::Totals;
use super::summary::method_name;
use super::{Grouping, Report, ReportError, Row};
use crate::units::{Joules, Watts};

const COLUMNS: [&str; 17] = [
    "name",
    "module",
    "function",
    "pid",
    "tid",
    "self_joules",
    "total_joules",
    "stderr_joules",
    "self_share",
    "self_samples",
    "total_samples",
    "self_count",
    "self_time_s",
    "self_time_share",
    "self_watts",
    "method",
    "total_share",
];

/// Writes the rows of a report, one line each, below a line of column names. What is not known is an
/// empty cell. Where rows are of recordings that are told apart, a column for each thing that tells them stands at the end. A text that a spreadsheet would take for a formula is preceded by `'`.
///
/// # Errors
/// If writing fails.
pub fn write(report: &Report, out: impl Write) -> Result<(), ReportError> {
    let mut writer = csv::Writer::from_writer(out);
    let dimensions = report.dimensions.iter().map(ToString::to_string);
    writer.write_record(COLUMNS.map(str::to_owned).into_iter().chain(dimensions)).map_err(io_error)?;
    for row in &report.rows {
        // Rows of the balance are of no recording.
        let value = |at: usize| row.values.get(at).map(|value| value.csv().into_owned()).unwrap_or_default();
        let values = (0..report.dimensions.len()).map(value);
        writer.write_record(cells(report, row).into_iter().chain(values)).map_err(io_error)?;
    }
    writer.flush()?;
    Ok(())
}

fn cells(report: &Report, row: &Row) -> [String; COLUMNS.len()] {
    let joules = |totals: &Totals| report.joules(row, totals).map(Joules::as_joules);
    // Joules of a domain have none.
    let of_samples = report.by != Grouping::Domain;
    let function = row.place.as_ref().map(|place| place.function.csv());
    [
        row.name.csv().into_owned(),
        row.module.as_ref().map(|module| module.csv().into_owned()).unwrap_or_default(),
        function.map(|name| name.into_owned()).unwrap_or_default(),
        cell(row.ids.0),
        cell(row.ids.1),
        cell(joules(&row.own)),
        cell(joules(&row.total)),
        cell(report.error(row).map(Joules::as_joules)),
        cell(report.share(&row.own)),
        cell(of_samples.then_some(row.own.samples)),
        cell(of_samples.then_some(row.total.samples)),
        cell(of_samples.then_some(row.own.count)),
        row.own.time.as_secs_f64().to_string(),
        cell(report.time_share(&row.own)),
        cell(report.watts(row).map(Watts::as_watts)),
        method_name(report.summary.method).to_owned(),
        cell(report.share(&row.total)),
    ]
}

fn cell(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// The error that lies in an error of the CSV writer.
fn io_error(error: csv::Error) -> std::io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => std::io::Error::other(format!("{other:?}")),
    }
}
