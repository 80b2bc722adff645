//! Answers on paper. All names are made safe to show.

use std::io::{self, Write};

use chrono::DateTime;
use eprof::label::{Label, padded, visible_lines};
use eprof::profile::BALANCE_TOLERANCE;
use eprof::units::Joules;

use crate::answer::{Answer, Cell};
use crate::args::Format;
use crate::balance::Whole;

/// Columns of a name in a table.
const WIDEST_NAME: usize = 60;

/// Writes an answer to standard output; warnings go to standard error.
pub fn write(answer: &Answer, format: Format) -> anyhow::Result<()> {
    for warning in &answer.warnings {
        say(&format!("warning: {warning}"));
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    match format {
        Format::Table => table(answer, &mut out)?,
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, &answer.json())?;
            writeln!(out)?;
        }
        Format::Csv => csv(answer, &mut out)?,
    }
    Ok(out.flush()?)
}

/// Says a line on standard error.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "eprof fleet: {}", visible_lines(line));
}

/// Nobody reads what is written.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind_of = |cause: &(dyn std::error::Error + 'static)| {
        let of_io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        of_io.or_else(|| cause.downcast_ref::<serde_json::Error>()?.io_error_kind())
    };
    error.chain().filter_map(kind_of).any(|kind| kind == io::ErrorKind::BrokenPipe)
}

fn csv(answer: &Answer, out: impl Write) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(&answer.columns)?;
    for row in &answer.rows {
        writer.write_record(row.iter().map(Cell::plain))?;
    }
    Ok(writer.flush()?)
}

/// How sure it is that joules are those of a balance.
fn exactness(whole: &Whole) -> String {
    format!(
        "functions + static + others + eprof + lost = {}, to {:.0e} of it",
        whole.methods.title(),
        whole.balance.error().max(1e-16)
    )
}

fn table(answer: &Answer, out: &mut impl Write) -> anyhow::Result<()> {
    for (name, whole) in &answer.balances {
        head(name, whole, out)?;
    }
    let largest = |at: usize| {
        let joules = answer.rows.iter().filter_map(|row| match row[at] {
            Cell::Joules(joules) | Cell::Error(Some(joules)) => Some(joules.abs()),
            _ => None,
        });
        joules.fold(0.0, f64::max)
    };
    let columns: Vec<usize> = (0..answer.columns.len()).filter(|at| !is_said_above(answer, *at)).collect();
    let titles: Vec<String> = columns.iter().map(|at| title(answer, *at)).collect();
    let scales: Vec<usize> = columns.iter().map(|at| decimals(largest(*at))).collect();
    let shown_row = |row: &Vec<Cell>| -> Vec<String> {
        columns.iter().zip(&scales).map(|(at, decimals)| show(&row[*at], *decimals)).collect()
    };
    let shown: Vec<Vec<String>> = answer.rows.iter().map(shown_row).collect();
    let is_name = |cell: &Cell| matches!(cell, Cell::Text(_) | Cell::Method(_));
    let is_text = |at: usize| answer.rows.first().is_some_and(|row| is_name(&row[columns[at]]));
    let width = |at: usize| {
        let rows = shown.iter().map(|row| row[at].chars().count());
        rows.chain([titles[at].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |cells: &[String]| {
        let last = cells.len().saturating_sub(1);
        let cells = cells.iter().enumerate().map(|(at, cell)| match is_text(at) {
            true if at == last => cell.clone(),
            true => padded(cell, widths[at]),
            false => format!("{cell:>0$}", widths[at]),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    if answer.rows.is_empty() {
        writeln!(out, "no samples are selected")?;
        return Ok(());
    }
    writeln!(out, "{}", line(&titles))?;
    for row in &shown {
        writeln!(out, "{}", line(row))?;
    }
    let is_error = |cell: &Cell| matches!(cell, Cell::Error(Some(_)));
    if answer.rows.iter().flatten().any(is_error) {
        writeln!(
            out,
            "stderr_joules: one standard error, as if chance differed from stack to stack and all else erred alike in all rows"
        )?;
    }
    if let Some(note) = answer.note {
        writeln!(out, "{note}")?;
    }
    if answer.cut > 0 {
        writeln!(out, "{} more rows; --limit 0 shows all", answer.cut)?;
    }
    Ok(())
}

/// How joules were found stands in the head; where it is not the same for all rows, in these, too.
fn is_said_above(answer: &Answer, at: usize) -> bool {
    let mut methods = answer.rows.iter().filter_map(|row| match row[at] {
        Cell::Method(methods) => Some(methods),
        _ => None,
    });
    methods.next().is_some_and(|first| methods.all(|other| other == first))
}

/// A column's title: other programs find a figure by one name, and people are told what it is.
fn title(answer: &Answer, at: usize) -> String {
    let name = &answer.columns[at];
    let of_whole = answer.balances.first().filter(|_| name == "measured");
    of_whole.map_or_else(|| name.clone(), |(_, whole)| whole.methods.title().to_owned())
}

fn head(name: &str, whole: &Whole, out: &mut impl Write) -> anyhow::Result<()> {
    let balance = &whole.balance;
    // Each window of an agent is a recording of its own.
    let recordings = match whole.recordings {
        1 => "1 window or recording".to_owned(),
        count => format!("{count} windows or recordings"),
    };
    let many = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let of = if name.is_empty() { String::new() } else { format!("{name}: ") };
    let time = |micros: i64| match DateTime::from_timestamp_micros(micros) {
        Some(time) => time.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        None => format!("{micros} us"),
    };
    let span = whole.span.map(|(start, end)| format!(", {} to {}", time(start), time(end)));
    writeln!(
        out,
        "{of}{} on {} in {}{}, {}",
        balance.measured,
        many(whole.nodes, "node"),
        recordings,
        span.unwrap_or_default(),
        whole.methods.in_words(),
    )?;
    let parts = [
        ("functions, selected", whole.selected),
        ("functions, other", whole.not_selected()),
        ("static", balance.static_energy),
        ("others", balance.other_processes),
        ("eprof", balance.recorder),
        ("lost", balance.lost),
        (whole.methods.title(), balance.measured),
    ];
    let decimals = decimals(balance.measured.as_joules());
    for (part, joules) in parts {
        let is_rounding = joules.abs() <= balance.measured.abs() * BALANCE_TOLERANCE;
        let joules = if is_rounding { Joules::ZERO } else { joules };
        let share = if balance.measured > Joules::ZERO { 100.0 * (joules / balance.measured) } else { 0.0 };
        writeln!(out, "  {part:<20} {:>14.decimals$} J {share:>6.1}%", joules.as_joules())?;
    }
    writeln!(out, "{}\n", exactness(whole))?;
    Ok(())
}

/// Decimals by which the largest figure has five digits.
fn decimals(largest: f64) -> usize {
    if largest <= 0.0 || !largest.is_finite() {
        return 3;
    }
    (4 - largest.log10().floor() as i32).clamp(0, 9) as usize
}

fn show(cell: &Cell, decimals: usize) -> String {
    let or_dash = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
    match cell {
        Cell::Text(text) => Label::new(text).shortened(WIDEST_NAME).into_owned(),
        Cell::Joules(joules) => format!("{joules:.decimals$}"),
        Cell::Error(error) => or_dash(error.map(|joules| format!("{joules:.decimals$}"))),
        Cell::Seconds(seconds) => or_dash(seconds.map(|seconds| format!("{seconds:.3}"))),
        Cell::Watts(watts) => or_dash(watts.map(|watts| format!("{watts:.2}"))),
        Cell::Share(share) => or_dash(share.map(|share| format!("{:.1}%", share * 100.0))),
        Cell::Count(count) => or_dash(count.map(|count| count.to_string())),
        Cell::Method(methods) => methods.in_words().to_owned(),
    }
}
