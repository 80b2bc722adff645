//! A report as a table that a person reads, 80 columns wide unless the terminal has more.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use unicode_width::UnicodeWidthStr;

use super::error::ReportError;
use super::groups::title;
use super::head;
use super::neighbours::Side;
use super::rows::{Grouping, Row, RowKind};
use super::scale::{Scale, fixed};
use super::select::{Totals, Weight};
use super::style::Style;
use super::value::Report;
use crate::identity::Dimension;
use crate::label::{Label, ShortNames, padded};
use crate::profile::{EQUAL_WATTS_ERROR, ProfileMethod};
use crate::units::{Joules, grouped};

/// Writes a report as a table: the head, the balance, the rows, the warnings.
///
/// # Errors
/// If writing fails.
pub fn write(report: &Report, style: &Style, mut out: impl Write) -> Result<(), ReportError> {
    head::write(&report.summary, style, &mut out)?;
    writeln!(out)?;
    if let Some((side, name)) = &report.neighbours_of {
        writeln!(out, "{} of {}", side.name(), name.short_name(style.width.saturating_sub(11)))?;
    }
    let table = Table::new(report, style);
    table.write(style, &mut out)?;
    if let Some(text) = about_estimate(report) {
        head::write_wrapped("", &text, style.width, &mut out)?;
    }
    for warning in &report.warnings {
        head::write_wrapped("warning: ", warning.as_str(), style.width, &mut out)?;
    }
    Ok(())
}

struct Column {
    title: &'static str,
    cells: Vec<String>,
}

struct Table {
    numbers: Vec<Column>,
    names: Vec<(Label, Option<Label>)>,
    titles: (&'static str, Option<&'static str>),
    names_are_paths: bool,
    dim: Vec<bool>,
    /// Of the rows, how many are sums below the line.
    sums: usize,
    footer: String,
}

impl Table {
    fn new(report: &Report, style: &Style) -> Self {
        let sums = sums(report);
        let lines: Vec<&Row> = report.rows.iter().chain(&sums).collect();
        let several = modules_of_one_name(report);
        let mut table = Self {
            numbers: numbers(report, style, &lines),
            names: lines.iter().map(|row| names(report, row, &several)).collect(),
            titles: titles(report),
            names_are_paths: report.by == Grouping::Line || !several.is_empty(),
            dim: lines.iter().map(|row| row.kind == RowKind::Balance).collect(),
            sums: sums.len(),
            footer: footer(report, style),
        };
        if table.names.iter().all(|(_, second)| second.is_none()) {
            table.titles.1 = None;
        }
        table
    }

    fn write(&self, style: &Style, out: &mut impl Write) -> std::io::Result<()> {
        const GAP: &str = "  ";
        let widths: Vec<usize> = self.numbers.iter().map(Column::width).collect();
        let used: usize = widths.iter().map(|width| width + GAP.len()).sum();
        let (first, second) = self.name_widths(style.width.saturating_sub(used).max(20), style.names);
        let (bold, dim, plain) = if style.color { ("\x1b[1m", "\x1b[2m", "\x1b[0m") } else { ("", "", "") };

        let mut line = String::new();
        for (column, width) in self.numbers.iter().zip(&widths) {
            line += &right(column.title, *width);
            line += GAP;
        }
        line += &padded(self.titles.0, first);
        if let Some(title) = self.titles.1 {
            line += &format!("{GAP}{title}");
        }
        writeln!(out, "{bold}{}{plain}", line.trim_end())?;
        let names: Vec<&Label> = self.names.iter().map(|(name, _)| name).collect();
        let short = if self.names_are_paths { Label::end_of } else { Label::short_name };
        let names = ShortNames::all(&names, first, short);
        for (row, (name, (_, module))) in names.iter().zip(&self.names).enumerate() {
            if row == self.names.len() - self.sums {
                writeln!(out, "{dim}{}{plain}", "─".repeat(line.trim_end().width().min(style.width)))?;
            }
            let mut line = String::new();
            for (column, width) in self.numbers.iter().zip(&widths) {
                line += &right(&column.cells[row], *width);
                line += GAP;
            }
            line += &padded(name, first);
            if let Some(module) = module {
                line += &format!("{GAP}{}", module.short_name(second));
            }
            let (on, off) = if self.dim[row] { (dim, plain) } else { ("", "") };
            writeln!(out, "{on}{}{off}", line.trim_end())?;
        }
        let mut footer = Vec::new();
        head::write_wrapped("", &self.footer, style.width, &mut footer)?;
        for line in String::from_utf8_lossy(&footer).lines().filter(|line| !line.is_empty()) {
            writeln!(out, "{dim}{line}{plain}")?;
        }
        Ok(())
    }

    /// Divides the room between the two columns of names: what one does not need, the other gets.
    fn name_widths(&self, room: usize, most: usize) -> (usize, usize) {
        let longest = |names: &mut dyn Iterator<Item = &Label>| names.map(|name| name.as_str().width()).max();
        // Functions are beside lines, and before modules.
        let (most_of_first, most_of_second) =
            if self.names_are_paths { (usize::MAX, most) } else { (most, usize::MAX) };
        let first = longest(&mut self.names.iter().map(|(name, _)| name)).unwrap_or(0);
        let first = first.min(most_of_first).max(self.titles.0.width());
        let Some(title) = self.titles.1 else { return (first.min(room), 0) };
        let second = longest(&mut self.names.iter().filter_map(|(_, name)| name.as_ref())).unwrap_or(0);
        let second = second.min(most_of_second).max(title.width());
        let room = room.saturating_sub(2);
        if first + second <= room {
            return (first, second);
        }
        // The second needs no more than a third, unless the first leaves more.
        let second = second.min((room / 3).max(room.saturating_sub(first)));
        (room - second, second)
    }
}

impl Column {
    fn width(&self) -> usize {
        self.cells.iter().map(|cell| cell.width()).max().unwrap_or(0).max(self.title.width())
    }
}

/// What the last line is called.
const NOT_SELECTED: &str = "… samples not selected";

/// The lines below the rows, so that what is shown adds up.
fn sums(report: &Report) -> Vec<Row> {
    let mut lines = Vec::new();
    let mut line = |name: String, totals: Totals| {
        lines.push(Row { kind: RowKind::Balance, ..Row::new(Label::new(&name), totals, totals) });
    };
    let (cut, filtered) = (report.cut, report.filtered);
    if cut.0 > 0 {
        line(format!("… {} more (--limit)", cut.0), cut.1);
    }
    if filtered.0 > 0 {
        line(format!("… {} not matching (--filter)", filtered.0), filtered.1);
    }
    line(whole_name(report).to_owned(), report.whole);
    // How often other events happened is no part of how often this one did.
    let is_of_others = report.weight == Weight::Count && report.event.is_some();
    if !report.not_selected.is_empty() && !is_of_others && !report.has_row_of_not_selected() {
        line(NOT_SELECTED.to_owned(), report.not_selected);
    }
    lines
}

fn numbers(report: &Report, style: &Style, lines: &[&Row]) -> Vec<Column> {
    let has_joules = report.summary.has_joules() && !report.is_of_no_joules();
    let largest =
        lines.iter().map(|row| row.total.joules.max(row.own.joules)).fold(Joules::ZERO, Joules::max);
    let scale = Scale::for_largest(largest);
    let column = |title, show: &dyn Fn(&Row) -> Option<String>| Column {
        title,
        cells: lines.iter().map(|row| show(row).unwrap_or_default()).collect(),
    };
    // A sum with the balance's rows in it has power and time only in part.
    let sampled = |row: &Row| row.kind == RowKind::Samples || !report.includes_balance;
    let percent = |share: Option<f64>| share.map(|share| fixed(share * 100.0, 1) + "%");
    // What is not selected is no part of what is.
    let is_part = |row: &Row| row.kind == RowKind::Samples || row.name.as_str() != NOT_SELECTED;
    let share = |row: &Row, totals: &Totals| report.share(totals).filter(|_| is_part(row));
    let narrow = is_narrow(style);

    let mut columns = Vec::new();
    match report.weight {
        Weight::Joules => {}
        Weight::Samples => columns.push(column("samples", &|row| Some(grouped(row.own.samples)))),
        Weight::Count => columns.push(column("count", &|row| Some(grouped(row.own.count)))),
    }
    if style.children {
        columns.push(column("total", &|row| {
            Some(match report.weight {
                Weight::Joules => scale.show(row.total.joules),
                Weight::Samples => grouped(row.total.samples),
                Weight::Count => grouped(row.total.count),
            })
        }));
        columns.push(column("total%", &|row| percent(share(row, &row.total))));
    }
    if has_joules {
        let title = if scale.unit == "J" { "joules" } else { scale.unit };
        columns.push(column(title, &|row| Some(scale.show(row.own.joules))));
        let has_errors = lines.iter().any(|row| row.own.variance > 0.0);
        if report.weight == Weight::Joules && has_errors && !(narrow && style.children) {
            columns.push(column("±", &|row| {
                (row.own.variance > 0.0).then(|| scale.show(row.own.standard_error()))
            }));
        }
    }
    columns.push(column("share", &|row| percent(share(row, &row.own))));
    if has_joules && !report.summary.is_by_time && lines.iter().any(|row| row.own.watts().is_some()) {
        columns.push(column("watts", &|row| {
            row.own.watts().filter(|_| sampled(row)).map(|watts| fixed(watts.as_watts(), 2))
        }));
        if has_errors(report) && !narrow {
            columns.push(column("±", &|row| {
                row.own.watts_error().filter(|_| sampled(row)).map(|watts| fixed(watts.as_watts(), 2))
            }));
        }
    }
    if report.whole.time.as_nanos() > 0 {
        columns.push(column("time", &|row| {
            percent(report.time_share(&row.own).filter(|_| sampled(row) && is_part(row)))
        }));
    }
    columns
}

/// There is no room for all columns.
fn is_narrow(style: &Style) -> bool {
    style.width < 100
}

/// Names of files of which rows by module have several: only their paths tell them apart.
fn modules_of_one_name(report: &Report) -> HashSet<&str> {
    let (mut known, mut several) = (HashMap::new(), HashSet::new());
    for row in report.rows.iter().filter(|row| report.by == Grouping::Module && row.kind == RowKind::Samples)
    {
        let name = row.name.module_name();
        if known.insert(name, &row.name).is_some_and(|other| *other != row.name) {
            several.insert(name);
        }
    }
    several
}

/// What a row is called, and its module or what else tells rows of one name apart.
fn names(report: &Report, row: &Row, several: &HashSet<&str>) -> (Label, Option<Label>) {
    // As beside functions.
    let is_short = report.by == Grouping::Module
        && row.kind == RowKind::Samples
        && !several.contains(row.name.module_name());
    let own = if is_short { Label::new(row.name.module_name()) } else { row.name.clone() };
    let second = match (report.by, row.ids) {
        (Grouping::Thread, (Some(pid), Some(tid))) => Some(Label::new(&format!("{pid}/{tid}"))),
        (Grouping::Process, (Some(pid), _)) => Some(Label::new(&pid.to_string())),
        _ => match &row.place {
            Some(place) => Some(place.function.clone()),
            None => row.module.as_ref().map(|module| Label::new(module.module_name())),
        },
    };
    let name = match (&row.values[..], report.by) {
        ([], _) | (_, Grouping::Recording) => own,
        (values, _) => Label::new(&format!("{}: {}", title(values).as_str(), own.as_str())),
    };
    (name, second)
}

fn titles(report: &Report) -> (&'static str, Option<&'static str>) {
    let second = match report.by {
        Grouping::Function | Grouping::Kernel => Some("module"),
        Grouping::Line => Some("function"),
        Grouping::Thread => Some("pid/tid"),
        Grouping::Process => Some("pid"),
        Grouping::Module
        | Grouping::Command
        | Grouping::Core
        | Grouping::Event
        | Grouping::Domain
        | Grouping::Recording => None,
    };
    // Threads of one recording differ by it.
    let first = match (report.by, &report.dimensions[..]) {
        (Grouping::Recording, [Dimension::Cgroup]) => "control group",
        (by, _) => by.name(),
    };
    (first, second)
}

/// What the line is called that shares are shares of.
fn whole_name(report: &Report) -> &'static str {
    match report.by {
        _ if report.includes_balance => match report.summary.method {
            ProfileMethod::Measured | ProfileMethod::None => "everything measured",
            ProfileMethod::Estimated => "everything estimated",
            ProfileMethod::Mixed => "everything",
        },
        Grouping::Function if report.neighbours_of.is_none() => "all functions",
        _ => "all of these",
    }
}

fn footer(report: &Report, style: &Style) -> String {
    let of_neighbours = about_recursion(report).to_owned();
    [about_weights(report, style), about_inlined(report).to_owned(), of_neighbours, about_unknown(report)]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

/// What rows are of that stand in the place of functions without names, and of callers that nobody knows.
fn about_unknown(report: &Report) -> String {
    let has = |name: &str| report.rows.iter().any(|row| row.name.as_str().starts_with(name));
    let code = has("[unknown]").then_some("[unknown]: code in no file and in no map of a compiler");
    let callers = has("[unknown: ").then_some("[unknown: ...]: why its callers are not known");
    code.into_iter().chain(callers).collect::<Vec<_>>().join("; ")
}

/// Which of several frames of one function on a path has the neighbours that are shown.
fn about_recursion(report: &Report) -> &'static str {
    match report.neighbours_of {
        Some((Side::Callers, _)) => "of recursive calls the outermost counts",
        Some((Side::Callees, _)) => "of recursive calls the innermost counts",
        None => "",
    }
}

/// Whose rows have what inlined functions took: tables and pages differ, unless one says which is wanted.
fn about_inlined(report: &Report) -> &'static str {
    match (report.by, report.inline) {
        (Grouping::Function, false) => {
            "inlined functions: in the rows of their callers (--inline: in their own)"
        }
        (Grouping::Function, true) => {
            "inlined functions: in rows of their own (--no-inline: in those of their callers)"
        }
        _ => "",
    }
}

fn about_weights(report: &Report, style: &Style) -> String {
    if report.weight != Weight::Joules {
        let events = report.summary.events.iter().filter(|event| event.samples > 0).count();
        let several = report.event.is_none() && report.by != Grouping::Event && events > 1;
        let text =
            if several { "samples of all events together; --event NAME takes those of one" } else { "" };
        return text.to_owned();
    }
    let errors = if has_errors(report) { "±: one standard error; " } else { "" };
    let watts = match report.summary.is_by_time {
        true => "",
        // They have a column of their own.
        false if errors.is_empty() || !is_narrow(style) => "watts: while running; ",
        false => "watts: while running, ± in % as of joules; ",
    };
    format!("{errors}{watts}share: of {}", whole_name(report))
}

fn has_errors(report: &Report) -> bool {
    report.rows.iter().any(|row| row.own.variance > 0.0)
}

/// What an estimate is sure of and what not, since a number with `±` looks measured.
fn about_estimate(report: &Report) -> Option<String> {
    let summary = &report.summary;
    if report.weight != Weight::Joules || !summary.is_by_time && summary.watts_error.is_none() {
        return None;
    }
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let mut text = String::new();
    if let Some(error) = summary.watts_error.filter(|_| has_errors(report)) {
        let equal = percent(EQUAL_WATTS_ERROR);
        text = match error {
            0.0 => format!(
                "± of an estimate: of sampling and of equal watts for all code ({equal}); it takes --watts for true"
            ),
            error => format!(
                "± of an estimate: of sampling, of equal watts for all code ({equal}) and of typical watts for this \
                 machine ({}, all rows alike); it",
                percent(error)
            ),
        };
        text += if error == 0.0 { " and" } else { "" };
        text += " leaves out what clocks, memory and devices change";
    }
    let constant = report.whole.watts().filter(|_| summary.is_by_time && !report.includes_balance);
    if let Some(watts) = constant {
        let separator = if text.is_empty() { "" } else { ". " };
        let error = report.whole.watts_error().filter(|_| has_errors(report));
        let error = error.map(|error| format!(" ± {error}")).unwrap_or_default();
        text += &format!("{separator}No watts by row: joules follow time here, {watts}{error} of all code");
    }
    (!text.is_empty()).then_some(text)
}

fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.width())))
}
