//! Tables of times and powers.

use std::collections::BTreeMap;

use super::named_trace::{NamedTrace, TraceError};
use super::trace::{PowerReading, PowerTrace};
use super::trace_order::{Disorder, disorder, past_midnight};
use super::trace_times::{TimeFormat, is_clock, parse_time, time_unit, unit_of_steps};
use crate::numerics::quantiles::median;
use crate::tables::unit::{self, Quantity};
use crate::tables::{CellError, Grid, Heading, Number, Table, TableError};
use crate::units::{Timestamp, Watts};

/// A table of which the times are understood.
pub(super) struct TraceTable {
    pub(super) table: Table,
    time: usize,
    format: TimeFormat,
    /// Columns that tell which GPU, the best first.
    gpu: Vec<usize>,
    notes: Vec<String>,
}

/// Names of columns of times, beside those that start with `time`.
const TIME_NAMES: [&str; 12] =
    ["t", "ts", "date", "datetime", "elapsed", "epoch", "clock", "seconds", "sec", "s", "milliseconds", "ms"];
/// Names of columns of power, beside those with `power` or a unit in them.
const POWER_NAMES: [&str; 3] = ["p", "draw", "w"];
/// How far below zero a power may lie, as a share of the highest of its column: what a meter reads of an idle line may be a
/// little less than nothing, by how far off its zero is. It is kept, for without it means would be too high.
const BELOW_ZERO: f64 = 0.02;
/// Names of columns that tell which GPU.
const GPU_NAMES: [&str; 6] = ["index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "gpu"];

impl TraceTable {
    /// Reads a text.
    pub(super) fn read(text: &str) -> Result<Self, TraceError> {
        let grid = Grid::read(text);
        let first = grid.row(0).ok_or(TableError::Empty)?;
        let format = TimeFormat::new(grid.default_marks());
        let has_names = !first.cells().any(|cell| parse_time(cell, format).is_some());
        let table = if has_names {
            Table::with_heading(grid)
        } else {
            let names: Vec<String> = (1..=first.len()).map(|number| format!("column {number}")).collect();
            Table::with_names(grid, names.iter().map(String::as_str))
        };
        let table = table?;
        if table.is_empty() {
            return Err(TableError::NoRows.into());
        }
        let time = match has_names {
            true => time_column(&table).ok_or_else(|| TraceError::NoTime(table.columns()))?,
            false => 0,
        };
        let is_called = |key: &str| {
            let mut names = table.headings().iter().map(Heading::before_bracket);
            names.position(|name| name.eq_ignore_ascii_case(key))
        };
        let gpu = GPU_NAMES.iter().filter_map(|key| is_called(key)).collect();
        let format = TimeFormat::new(table.marks(time));
        let mut notes = table.notes();
        notes.extend(other_times(&table, time).filter(|_| has_names));
        let mut table = Self { table, time, format, gpu, notes };
        table.understand_times();
        Ok(table)
    }

    /// The name of a column.
    pub(super) fn heading(&self, column: usize) -> &Heading {
        &self.table.headings()[column]
    }

    /// The numbers of a column that name no unit.
    fn plain_numbers(&self, column: usize) -> Vec<f64> {
        let quantities = (0..self.table.len()).filter_map(|row| self.table.quantity(row, column));
        quantities.filter(|number| number.unit.is_empty()).map(|number| number.value).collect()
    }

    /// The unit of plain numbers, and where their zero lies.
    fn understand_times(&mut self) {
        let numbers = self.plain_numbers(self.time);
        let Some(first) = numbers.first().copied() else { return };
        self.format.shift = -numbers.iter().copied().fold(0.0, f64::min);
        self.format.unit = time_unit(self.heading(self.time));
        if self.format.unit.is_some() {
            return;
        }
        // Several GPUs are polled at almost one time.
        let mut steps: Vec<f64> =
            numbers.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0).collect();
        let typical = median(&mut steps).unwrap_or(0.0);
        self.format.unit = unit_of_steps(first, typical);
        let unit = match self.format.unit {
            Some(1e6) => "milliseconds",
            Some(1e3) => "microseconds",
            Some(_) => "nanoseconds",
            None => return,
        };
        self.notes.push(format!(
            "column `{}` names no unit: with steps of {typical} it is taken for {unit}",
            self.heading(self.time).text()
        ));
    }

    /// The columns of power.
    pub(super) fn power_columns(&self) -> Result<Vec<usize>, TraceError> {
        let columns = self.table.headings().len();
        let others = || (0..columns).filter(|column| *column != self.time);
        let mut found: Vec<usize> = others().filter(|column| self.is_power(*column)).collect();
        // Two columns, one of them the time: the other is what the file is about.
        if found.is_empty() && columns == 2 {
            found = others().filter(|column| self.power(0, *column, 1.0).is_some()).collect();
        }
        if found.is_empty() { Err(TraceError::NoPower(self.table.columns())) } else { Ok(found) }
    }

    fn is_power(&self, column: usize) -> bool {
        let heading = self.heading(column);
        let name = heading.text().to_ascii_lowercase();
        // `clocks_event_reasons.hw_power_brake_slowdown` says whether, not how much.
        const NO_POWER: [&str; 9] =
            ["limit", "cap", "state", "management", "readings", "brake", "slowdown", "throttle", "reasons"];
        if NO_POWER.iter().any(|word| name.contains(word)) {
            return false;
        }
        let names_power = |number: Number<'_>| unit::factor(number.unit, Quantity::Power).is_some();
        name.contains("power")
            || heading.factor(Quantity::Power).is_some()
            || POWER_NAMES.contains(&name.as_str())
            || self.table.quantity(0, column).is_some_and(names_power)
    }

    /// The time of a row.
    pub(super) fn time(&self, row: usize) -> Option<Timestamp> {
        parse_time(self.table.cell(row, self.time), self.format)
    }

    /// Watts in a cell; `unit` of them per unit where the cell names none.
    pub(super) fn power(&self, row: usize, column: usize, unit: f64) -> Option<f64> {
        as_watts(self.table.quantity(row, column)?, unit)
    }

    /// Watts per unit of a column's plain numbers, and what had to be assumed for it.
    pub(super) fn power_unit(&self, column: usize) -> (f64, Option<String>) {
        if let Some(unit) = self.heading(column).factor(Quantity::Power) {
            return (unit, None);
        }
        // No card draws four kilowatts, and none less than four watts all the time.
        let (unit, name) = match median(&mut self.plain_numbers(column)) {
            Some(typical) if typical >= 4e6 => (1e-6, "microwatts"),
            Some(typical) if typical >= 4e3 => (1e-3, "milliwatts"),
            _ => return (1.0, None),
        };
        let column = self.heading(column).text();
        (unit, Some(format!("column `{column}` names no unit: by its size it is taken for {name}")))
    }

    /// Refuses powers below zero that no meter's zero explains.
    ///
    /// # Errors
    /// [`TraceError::BelowZero`] with the first.
    pub(super) fn refuse_below_zero(&self, column: usize, unit: f64) -> Result<(), TraceError> {
        let powers = || (0..self.table.len()).filter_map(|row| Some((row, self.power(row, column, unit)?)));
        let highest = powers().map(|(_, power)| power).fold(0.0, f64::max);
        match powers().find(|(_, power)| *power < -BELOW_ZERO * highest) {
            Some((row, _)) => Err(TraceError::BelowZero(self.table.error(row, column, "below 0"))),
            None => Ok(()),
        }
    }

    /// The readings of a row, or which cell prevents them.
    fn reading(&self, row: usize, column: usize, unit: f64) -> Result<PowerReading, CellError> {
        let time = self.time(row).ok_or_else(|| self.table.error(row, self.time, "no time"))?;
        let power = self
            .power(row, column, unit)
            .ok_or_else(|| self.table.error(row, column, "no number of watts"))?;
        Ok(PowerReading { time, power: Watts::from_watts(power) })
    }

    /// The traces of a column, one for each GPU; `unit` is told by the user.
    pub(super) fn traces(&self, column: usize, unit: Option<f64>) -> Result<Vec<NamedTrace>, TraceError> {
        let (unit, assumed) = unit.map_or_else(|| self.power_unit(column), |unit| (unit, None));
        self.refuse_below_zero(column, unit)?;
        let mut traces: Vec<OneGpu<'_>> = Vec::new();
        for row in 0..self.table.len() {
            let mut names = self.gpu.iter().map(|gpu| self.table.cell(row, *gpu));
            let gpu = names.next();
            let slot = traces.iter().position(|known| known.gpu == gpu).unwrap_or_else(|| {
                traces.push(OneGpu { gpu, other_names: names.collect(), ..OneGpu::default() });
                traces.len() - 1
            });
            match self.reading(row, column, unit) {
                Ok(reading) => traces[slot].readings.push((row, reading)),
                Err(error) => traces[slot].errors.push(error),
            }
        }
        if traces.iter().all(|of| of.readings.is_empty()) {
            let errors = traces.iter().flat_map(|of| &of.errors).min_by_key(|error| error.line);
            return Err(TraceError::NoReadings {
                column: self.heading(column).text().to_owned(),
                rows: self.table.len(),
                first: errors.map_or_else(String::new, ToString::to_string),
            });
        }
        traces.retain(|of| !of.readings.is_empty());
        let named = |OneGpu { gpu, other_names, readings, errors }: OneGpu<'_>| {
            let (readings, order) = self.in_order(readings)?;
            let (several, times) = times_of_several(&readings);
            if 2 * several >= times && several > 1 {
                return Err(TraceError::SeveralAtOnce { several, times });
            }
            let notes = self.notes.iter().cloned().chain(assumed.clone()).chain(order);
            Ok(NamedTrace {
                column: self.heading(column).before_bracket().to_owned(),
                gpu: gpu.map(str::to_owned),
                other_names: other_names.into_iter().map(str::to_owned).collect(),
                trace: PowerTrace::new(readings),
                skipped: errors.len(),
                notes: notes.chain(skipped_note(&errors)).collect(),
            })
        };
        traces.into_iter().map(named).collect()
    }

    /// Readings of rows, past midnight on the next day, and what their order tells of the clock.
    pub(super) fn in_order(
        &self,
        rows: Vec<(usize, PowerReading)>,
    ) -> Result<(Vec<PowerReading>, Option<String>), TraceError> {
        let (rows, mut readings): (Vec<usize>, Vec<PowerReading>) = rows.into_iter().unzip();
        let cell = |at: usize| self.table.cell(rows[at], self.time);
        let column = self.heading(self.time).text();
        if (0..rows.len()).all(|at| is_clock(cell(at))) {
            let mut times: Vec<Timestamp> = readings.iter().map(|reading| reading.time).collect();
            if let Some(at) = past_midnight(&mut times) {
                readings.iter_mut().zip(times).for_each(|(reading, time)| reading.time = time);
                let note = format!(
                    "line {}: `{column}` goes from {} to {}: it is taken to go past midnight there",
                    self.table.line(rows[at]),
                    cell(at - 1),
                    cell(at)
                );
                return Ok((readings, Some(note)));
            }
        }
        let (row, is_mixed) = match disorder(&readings) {
            None => return Ok((readings, None)),
            Some(Disorder::Shuffled { row, rows: count }) => {
                let note = format!(
                    "`{column}` goes back in {count} rows, the first of them line {}: rows are put in the order of their times",
                    self.table.line(rows[row])
                );
                return Ok((readings, Some(note)));
            }
            Some(Disorder::StepBack { row, is_mixed }) => (row, is_mixed),
        };
        let (line, from, to) = (self.table.line(rows[row]), cell(row - 1), cell(row));
        // Rows of several at one time are told of as what they are.
        let (several, times) = times_of_several(&readings);
        if is_mixed && 2 * several < times {
            let (column, from, to) = (column.to_owned(), from.to_owned(), to.to_owned());
            return Err(TraceError::SetBack { line, column, from, to });
        }
        let note = format!(
            "line {line}: `{column}` goes back from {from} to {to}: rows are put in the order of their times. If the clock was \
             set back there, times on one side of it are wrong: cut the table in two above that line"
        );
        Ok((readings, Some(note)))
    }
}

/// Rows of one GPU.
#[derive(Default)]
struct OneGpu<'t> {
    gpu: Option<&'t str>,
    other_names: Vec<&'t str>,
    /// With the number of the row.
    readings: Vec<(usize, PowerReading)>,
    errors: Vec<CellError>,
}

/// At how many times there are readings that differ by more than a tenth, and how many times there are.
fn times_of_several(readings: &[PowerReading]) -> (usize, usize) {
    let mut by_time: BTreeMap<Timestamp, (f64, f64)> = BTreeMap::new();
    for reading in readings {
        let watts = reading.power.as_watts();
        let (low, high) = by_time.entry(reading.time).or_insert((watts, watts));
        (*low, *high) = (low.min(watts), high.max(watts));
    }
    let several = by_time.values().filter(|(low, high)| high - low > 0.1 * high.abs()).count();
    (several, by_time.len())
}

/// A number as watts; `unit` for those that name none.
fn as_watts(number: Number<'_>, unit: f64) -> Option<f64> {
    let unit = if number.unit.is_empty() { unit } else { unit::factor(number.unit, Quantity::Power)? };
    Some(number.value * unit)
}

fn skipped_note(errors: &[CellError]) -> Option<String> {
    let first = errors.first()?;
    Some(format!("{} rows hold no reading, the first in {first}", errors.len()))
}

/// Whether a column is called a time.
fn is_time(heading: &Heading) -> bool {
    let name = heading.text().to_ascii_lowercase();
    let without_unit = name.split([' ', '_', '[', '(']).next().unwrap_or_default();
    name.starts_with("time") || TIME_NAMES.contains(&without_unit)
}

/// Whether a column merely counts rows: 0, 1, 2 without a unit. Rows of several GPUs may share a number.
fn counts_rows(table: &Table, column: usize) -> bool {
    let number = |row: usize| table.quantity(row, column).filter(|number| number.unit.is_empty());
    let numbers: Option<Vec<f64>> = (0..table.len()).map(|row| Some(number(row)?.value)).collect();
    let is_count = |numbers: Vec<f64>| {
        let goes_on = |pair: &[f64]| pair[1] == pair[0] || pair[1] == pair[0] + 1.0;
        [0.0, 1.0].contains(&numbers[0]) && numbers.windows(2).all(goes_on)
    };
    table.headings()[column].factor(Quantity::Time).is_none() && numbers.is_some_and(is_count)
}

/// Whether the cells of a column are times that differ.
fn tells_time(table: &Table, column: usize) -> bool {
    let heading = &table.headings()[column];
    let format = TimeFormat::new(table.marks(column));
    let mut times = (0..table.len()).filter_map(|row| parse_time(table.cell(row, column), format));
    let is_of_time = heading.unit().is_empty() || heading.factor(Quantity::Time).is_some();
    let first = times.next();
    is_of_time && first.is_some_and(|first| times.any(|time| time != first))
}

/// Columns that are called times, and hold some.
fn named_times(table: &Table) -> impl Iterator<Item = usize> {
    let columns = 0..table.headings().len();
    columns.filter(|column| is_time(&table.headings()[*column]) && tells_time(table, *column))
}

/// What to say of columns of times beside the one that is read.
fn other_times(table: &Table, read: usize) -> Option<String> {
    let name = |column: usize| format!("`{}`", table.headings()[column].text());
    let others: Vec<String> = named_times(table).filter(|column| *column != read).map(name).collect();
    (!others.is_empty() && is_time(&table.headings()[read])).then(|| {
        format!(
            "times are read from {}, and the table has {} besides: take the column out that is not to be read",
            name(read),
            others.join(", ")
        )
    })
}

/// The column of times: by its name, one that merely counts rows only where there is no other, or the first whose cells are
/// times that never go back.
fn time_column(table: &Table) -> Option<usize> {
    const FEWEST: usize = 3;
    let named = || named_times(table).find(|column| !counts_rows(table, *column));
    let rises = |column: &usize| {
        let format = TimeFormat::new(table.marks(*column));
        let times = (0..table.len()).map(|row| parse_time(table.cell(row, *column), format));
        times.collect::<Option<Vec<Timestamp>>>().is_some_and(|times| {
            times.len() >= FEWEST
                && times.windows(2).all(|pair| pair[0] <= pair[1])
                && times[0] < times[FEWEST - 1]
        })
    };
    let first = || table.headings().iter().position(is_time);
    named().or_else(first).or_else(|| (0..table.headings().len()).find(rises))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Marks;

    #[test]
    fn powers_and_their_units() {
        let watts = |cell: &str, unit| as_watts(Number::read(cell, Marks::UNTOLD)?, unit);
        assert_eq!(watts("35.50 W", 1e-3), Some(35.5));
        assert_eq!(watts("35500", 1e-3), Some(35.5));
        assert_eq!(watts("35,5", 1.0), Some(35.5));
        assert_eq!(watts("[N/A]", 1.0), None);
        assert_eq!(watts("61 C", 1.0), None, "degrees are no watts");
    }

    #[test]
    fn two_cards_that_are_polled_at_one_time_tell_the_unit_of_steps() {
        let table =
            TraceTable::read("t,index,power [W]\n0,0,50\n0,1,60\n100,0,51\n100,1,61\n200,0,52\n200,1,62\n")
                .expect("a table");
        assert_eq!(table.format.unit, Some(1e6));
        assert!(
            table.notes.iter().any(|note| note.contains("with steps of 100 it is taken for milliseconds")),
            "{:?}",
            table.notes
        );
        let traces = table.traces(2, Some(1.0)).expect("readings");
        let of = |trace: &NamedTrace| {
            let readings = trace.trace.readings().iter();
            readings
                .map(|reading| (reading.time.as_nanos() / 1_000_000, reading.power.as_watts()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            traces.iter().map(|trace| trace.gpu.as_deref()).collect::<Vec<_>>(),
            [Some("0"), Some("1")]
        );
        assert_eq!(of(&traces[0]), [(0, 50.0), (100, 51.0), (200, 52.0)]);
        assert_eq!(of(&traces[1]), [(0, 60.0), (100, 61.0), (200, 62.0)]);
        // Times below zero are counted from the earliest.
        let table = TraceTable::read("t [s],power [W]\n-2,50\n-1,60\n0.5,70\n").expect("a table");
        assert_eq!((table.format.shift, table.format.unit), (2.0, Some(1e9)));
    }

    #[test]
    fn powers_without_a_unit_are_taken_by_their_size() {
        let unit = |watts: f64| {
            let text = format!("time [s],power\n0,{watts}\n1,{watts}\n2,1\n");
            let (unit, note) = TraceTable::read(&text).expect("a table").power_unit(1);
            (unit, note.map(|note| note.rsplit(' ').next().unwrap_or_default().to_owned()))
        };
        let named = |unit: f64, name: &str| (unit, Some(name.to_owned()));
        assert_eq!((unit(3999.0), unit(4000.0)), ((1.0, None), named(1e-3, "milliwatts")));
        assert_eq!((unit(3_999_999.0), unit(4e6)), (named(1e-3, "milliwatts"), named(1e-6, "microwatts")));
        let of_heading = TraceTable::read("time [s],power [mW]\n0,5\n1,5\n").expect("a table").power_unit(1);
        assert_eq!(of_heading, (1e-3, None));
    }

    #[test]
    fn columns_of_power_are_told_from_others() {
        let columns = |names: &str, row: &str| {
            let table = TraceTable::read(&format!("time [s],{names}\n0,{row}\n1,{row}\n")).expect("a table");
            table.power_columns().ok()
        };
        assert_eq!(columns("power.draw [W],power.limit [W],draw,temp", "1,2,3,4"), Some(vec![1, 3]));
        assert_eq!(columns("a,b", "35.5 W,61 C"), Some(vec![1]));
        assert_eq!(columns("anything", "35.5"), Some(vec![1]), "the only one beside the time");
        assert_eq!((columns("a,b", "1,2"), columns("anything", "on")), (None, None));
    }
}
