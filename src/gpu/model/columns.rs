//! What the columns of a table of counters are, and its rows that can be used.

use super::gpmtool;
use super::table::{Roles, Table, TableError};
use crate::tables::unit::Quantity;
use crate::tables::{self, CellError, Grid};

/// With fewer rows than this nothing can be fitted.
const FEWEST_ROWS: usize = 6;

impl Table {
    /// Reads a table with a line of names, or the four-line heading of gpmTOOL's files.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn parse(text: &str, roles: &Roles) -> Result<Self, TableError> {
        Self::read(text, roles).map(|(table, _)| table)
    }

    /// As [`Table::parse`], with what a reader of results should know about rows and columns.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn read(text: &str, roles: &Roles) -> Result<(Self, Vec<String>), TableError> {
        read(text, roles)
    }
}

/// Reads a text. Also what a reader should know.
fn read(text: &str, roles: &Roles) -> Result<(Table, Vec<String>), TableError> {
    let sheet = Sheet::read(text)?;
    let columns = CounterColumns::find(&sheet.table, roles)?;
    columns.table(&sheet.table, |row| sheet.label(&columns.group, row))
}

/// A table whose rows may tell by their form what kernel they are of.
pub(super) struct Sheet {
    pub(super) table: tables::Table,
    /// Of a file of gpmTOOL: whether kernels have names, and the column in which what they use begins.
    gpm: Option<(bool, usize)>,
}

impl Sheet {
    pub(super) fn read(text: &str) -> Result<Self, TableError> {
        let text = text.trim_start_matches('\u{feff}');
        let Some(heading) = gpmtool::heading(text) else {
            return Ok(Self { table: tables::Table::read(text)?, gpm: None });
        };
        let grid = Grid::read(heading.body);
        let names = heading.names(grid.row(0).map_or(0, |row| row.len()));
        let table = tables::Table::with_names(grid, names.iter().map(String::as_str))?;
        let is_named = names.first().is_some_and(|name| name == "name");
        Ok(Self { table, gpm: Some((is_named, gpmtool::first_utilisation(&names))) })
    }

    /// What a row belongs to, by these columns or by itself. gpmTOOL measures each kernel at many clocks, and its
    /// utilisations at one of them: rows of one kernel have a name in common, or else their utilisations.
    pub(super) fn label(&self, group: &[usize], row: usize) -> Option<String> {
        if !group.is_empty() {
            let cells: Vec<&str> = group.iter().map(|column| self.table.cell(row, *column)).collect();
            return Some(cells.join(" "));
        }
        match self.gpm? {
            (true, _) => Some(self.table.cell(row, 0).to_owned()),
            (false, first) => Some(self.table.cells(row).skip(first).collect::<Vec<_>>().join(" ")),
        }
    }
}

/// Where a table has what.
struct CounterColumns {
    /// Column of the power, and watts per unit of it.
    target: (usize, f64),
    group: Vec<usize>,
    time: Option<usize>,
    /// How much of the unit in its heading, or of a second, one of the values of the time is.
    time_factor: f64,
    /// The user named the time: what is not divided by it is to be told.
    is_time_named: bool,
    /// The only counters; all if empty.
    chosen: Vec<usize>,
    exclude: Vec<usize>,
    takes_meters: bool,
    rows: Vec<usize>,
    notes: Vec<String>,
}

impl CounterColumns {
    fn find(table: &tables::Table, roles: &Roles) -> Result<Self, TableError> {
        let target = power_column(table, roles)?;
        let names = || table.headings().iter().enumerate();
        let time = match &roles.time {
            Some(name) => Some(run_time(table, name)?),
            None => {
                only(names().filter(|(_, heading)| is_time(heading.text())).map(|(column, _)| (column, 1.0)))
            }
        };
        let (exclude, missing) = table.find_present(&roles.exclude);
        let mut notes = table.notes();
        notes.extend(missing.into_iter().map(|name| format!("there is no column `{name}` to leave out")));
        Ok(Self {
            target,
            group: table.find_each(&roles.group)?,
            time: time.map(|(column, _)| column),
            time_factor: time.map_or(1.0, |(_, factor)| factor),
            is_time_named: roles.time.is_some(),
            chosen: table.find_each(&roles.columns)?,
            exclude,
            takes_meters: !roles.columns.is_empty(),
            rows: table.matching(&roles.only)?,
            notes,
        })
    }

    /// The rows with a positive power and a number in each counter. `label` tells what a row belongs to.
    fn table(
        &self,
        values: &tables::Table,
        label: impl Fn(usize) -> Option<String>,
    ) -> Result<(Table, Vec<String>), TableError> {
        let mut left_out_rows: Vec<CellError> = Vec::new();
        let mut usable = Vec::with_capacity(self.rows.len());
        for row in self.rows.iter().copied() {
            match power(values, self.target, row) {
                Ok(watts) => usable.push((row, watts)),
                Err(error) => left_out_rows.push(error),
            }
        }
        // Its square, and what is divided by that.
        let is_usable = |watts: f64| (watts * watts).is_normal() && (watts * watts).recip().is_normal();
        if let Some((row, _)) = usable.iter().find(|(_, watts)| !is_usable(*watts)) {
            return Err(TableError::Power(values.error(
                *row,
                self.target.0,
                "beyond what can be calculated with",
            )));
        }
        let (kept, left_out) = self.counters(values, &usable)?;
        let mut table = Table {
            columns: kept.iter().map(|column| values.headings()[*column].text().to_owned()).collect(),
            rows: Vec::with_capacity(usable.len()),
            power: Vec::with_capacity(usable.len()),
            groups: Vec::with_capacity(usable.len()),
            time: self.time.and_then(|time| kept.iter().position(|column| *column == time)),
            counts: Vec::new(),
            clocks: Vec::new(),
            left_out,
            skipped: 0,
        };
        let mut rows = Vec::with_capacity(usable.len());
        for (index, (row, watts)) in usable.into_iter().enumerate() {
            match self.numbers(values, &kept, row) {
                Ok(numbers) => {
                    table.groups.push(label(row).unwrap_or_else(|| format!("row {}", index + 1)));
                    table.rows.push(numbers);
                    table.power.push(watts);
                    rows.push(row);
                }
                Err(error) => left_out_rows.push(error),
            }
        }
        let undivided = table.find_roles(self.is_time_named);
        let negative = table.negative_counts();
        left_out_rows
            .extend(negative.iter().map(|(at, count)| values.error(rows[*at], kept[*count], BELOW_ZERO)));
        if !negative.is_empty() {
            let is_sound = |at: &usize| !negative.iter().any(|(row, _)| row == at);
            table = table.subset(&(0..table.rows.len()).filter(is_sound).collect::<Vec<_>>());
        }
        table.skipped = left_out_rows.len();
        let first = left_out_rows.iter().min_by_key(|error| error.line);
        if table.rows.len() < FEWEST_ROWS {
            let first = first.map(|error| format!("; {error}")).unwrap_or_default();
            return Err(TableError::TooFew { rows: table.rows.len(), first });
        }
        let mut notes = self.notes.clone();
        if let Some(first) = first {
            notes.push(format!(
                "{} rows without a positive power or with missing numbers were skipped, the first in {first}",
                table.skipped
            ));
        }
        if let (Some(time), false) = (table.time, undivided.is_empty()) {
            notes.push(format!(
                "not divided by `{}`, as their names say that they are no counts, or as they have values up to 100 that do not \
                 grow with it: {}",
                table.columns[time],
                undivided.join(", ")
            ));
        }
        Ok((table, notes))
    }

    /// What a row has in these columns.
    fn numbers(&self, values: &tables::Table, columns: &[usize], row: usize) -> Result<Vec<f64>, CellError> {
        let number = |column: &usize| match self.time == Some(*column) {
            true => positive_time(values, row, *column).map(|time| time * self.time_factor),
            false => values.try_count(row, *column),
        };
        columns.iter().map(number).collect()
    }

    /// The columns that are counters, and why others that might be are not.
    #[allow(clippy::type_complexity, reason = "two lists that belong together once")]
    fn counters(
        &self,
        table: &tables::Table,
        usable: &[(usize, f64)],
    ) -> Result<(Vec<usize>, Vec<(String, String)>), TableError> {
        let mut left_out = Vec::new();
        let mut kept = Vec::new();
        for (column, heading) in table.headings().iter().enumerate() {
            let is_chosen =
                self.chosen.is_empty() || self.chosen.contains(&column) || self.time == Some(column);
            if column == self.target.0
                || self.group.contains(&column)
                || heading.text().is_empty()
                || !is_chosen
            {
                continue;
            }
            if self.exclude.contains(&column) {
                left_out.push((heading.text().to_owned(), "excluded".to_owned()));
                continue;
            }
            if !self.takes_meters
                && self.time != Some(column)
                && tables::is_of_a_meter(heading, table.headings())
            {
                let why =
                    "by its name a meter's, which would leak the power; --columns takes it all the same";
                left_out.push((heading.text().to_owned(), why.to_owned()));
                continue;
            }
            let filled = usable.iter().filter(|(row, _)| table.number(*row, column).is_some()).count();
            if filled * 10 < usable.len() * 9 {
                left_out.push((heading.text().to_owned(), "not a number in every row".to_owned()));
            } else {
                kept.push(column);
            }
        }
        if kept.is_empty() { Err(TableError::NoCounters) } else { Ok((kept, left_out)) }
    }
}

/// What is wrong with a count that is negative.
pub(super) const BELOW_ZERO: &str = "below 0, and counts are not";

/// The column of the run time that `NAME` or `NAME:UNIT` means, and how much of the unit in its heading, or of a second,
/// one of its values is.
pub(super) fn run_time(table: &tables::Table, text: &str) -> Result<(usize, f64), TableError> {
    let (column, unit) = table.find_with_unit(text, Quantity::Time, "s, ms, us, ns, min or h")?;
    let of_heading = table.headings()[column].factor(Quantity::Time).unwrap_or(1.0);
    Ok((column, unit.map_or(1.0, |unit| unit / of_heading)))
}

/// The run time of a row, in the unit of its column.
pub(super) fn positive_time(table: &tables::Table, row: usize, column: usize) -> Result<f64, CellError> {
    match table.try_number(row, column)? {
        time if time > 0.0 => Ok(time),
        _ => Err(table.error(row, column, "not above 0")),
    }
}

/// Column of the power, and watts per unit of it.
pub(super) fn power_column(table: &tables::Table, roles: &Roles) -> Result<(usize, f64), TableError> {
    let (column, unit) = match &roles.target {
        Some(name) => table.find_with_unit(name, Quantity::Power, "W, mW, uW or kW")?,
        None => {
            let column = target(table)?;
            (column, table.headings()[column].factor(Quantity::Power))
        }
    };
    Ok((column, unit.unwrap_or(1.0)))
}

/// The power of a row in watts, above 0.
pub(super) fn power(
    table: &tables::Table,
    (column, factor): (usize, f64),
    row: usize,
) -> Result<f64, CellError> {
    match table.value(row, column, Quantity::Power, factor) {
        Some(watts) if watts > 0.0 => Ok(watts),
        Some(_) => Err(table.error(row, column, "not above 0")),
        None => Err(table.error(row, column, "no number")),
    }
}

/// The column of the power, by its name.
fn target(table: &tables::Table) -> Result<usize, TableError> {
    let names = || table.headings().iter().map(tables::Heading::text);
    let candidates: Vec<usize> = names()
        .enumerate()
        .filter(|(_, name)| name.to_ascii_lowercase().contains("power"))
        .map(|(column, _)| column)
        .collect();
    let in_watts =
        || only(names().enumerate().filter(|(_, name)| is_in_watts(name)).map(|(column, _)| column));
    match candidates[..] {
        [one] => Ok(one),
        [] => in_watts().ok_or_else(|| TableError::NoTarget(names().collect::<Vec<_>>().join(", "))),
        _ => {
            let named: Vec<&str> = candidates.iter().map(|column| table.headings()[*column].text()).collect();
            Err(TableError::NoTarget(named.join(", ")))
        }
    }
}

/// Does a column's name say that it is in watts?
fn is_in_watts(name: &str) -> bool {
    let words = name.split(|c: char| !c.is_ascii_alphabetic());
    words.map(str::to_ascii_lowercase).any(|word| ["w", "watt", "watts"].contains(&word.as_str()))
}

/// Does a column hold the run time?
fn is_time(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphabetic());
    words.any(|word| ["time", "runtime", "elapsed", "duration"].contains(&word))
}

/// The only one, if there is one and no more.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_names() {
        assert!(["power_w", "Watts", "draw [W]", "w"].into_iter().all(is_in_watts));
        assert!(!["width", "kw", "wattage"].into_iter().any(is_in_watts));
        assert!(["time_s", "Elapsed (ms)", "kernel duration", "runtime"].into_iter().all(is_time));
        assert!(!["timer", "overtime"].into_iter().any(is_time));
        assert_eq!(
            (only([1].into_iter()), only([1, 2].into_iter()), only::<u8>([].into_iter())),
            (Some(1), None, None)
        );
    }
}
