//! Power traces as text: what `nvidia-smi --query-gpu=timestamp,power.draw --format=csv -lms 10`
//! prints, and tables like it (a meter's log, another tool's samples).

use thiserror::Error;

use super::trace::{PowerReading, PowerTrace};
use super::trace_cells::{
    TimeFormat, bare, names_power, names_unit, parse_power, parse_time, plain_number, power_unit, time_unit,
    unit_of_steps,
};
use crate::numerics::quantiles::median;
use crate::units::{Timestamp, Watts};

/// Why a text is no power trace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    /// There is nothing in it.
    #[error("the file holds no line")]
    Empty,
    /// No column tells the time.
    #[error(
        "no column of times (expected `timestamp`, a name that starts with `time`, or numbers that rise); the columns are: {0}"
    )]
    NoTime(String),
    /// No column tells power.
    #[error(
        "no column of power (a name with `power` or a unit W, mW); the columns are: {0}. Choose one with --column"
    )]
    NoPower(String),
    /// The column asked for does not exist.
    #[error("there is no column `{wanted}`; the columns of power are: {found}")]
    NoSuchColumn {
        /// What was asked for.
        wanted: String,
        /// What there is.
        found: String,
    },
    /// Not one row could be read.
    #[error("column `{column}`: none of {rows} rows holds a time and a number; the first is `{first}`")]
    NoReadings {
        /// Name of the column.
        column: String,
        /// Rows below the header.
        rows: usize,
        /// The first row, cut short.
        first: String,
    },
}

/// One column of power of one GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedTrace {
    /// The column's name without its unit, such as `power.draw.instant`.
    pub column: String,
    /// Which GPU, where the table has a column that tells (`index`, `uuid`, `pci.bus_id`).
    pub gpu: Option<String>,
    /// The readings.
    pub trace: PowerTrace,
    /// Rows without a readable time or number: `[N/A]`, cut lines.
    pub skipped: usize,
    /// What the table does not tell and was assumed, such as a unit.
    pub notes: Vec<String>,
}

/// Reads every power column of a table.
///
/// Cells are separated by commas, semicolons, tabs or bars, as the first line tells, or by blanks where
/// it has none of them. The first line names the columns; without such a line
/// (`--format=csv,noheader`) the first column is the time and power is every column whose cells end in
/// a unit of it, or the only other column. Times are dates (taken as UTC), times of day or numbers since any zero; their unit is told
/// by the cell, by the column's name, by their size (times since 1970) or by their steps.
///
/// # Errors
/// [`TraceError`] when no column fits or none of its rows can be read.
pub fn parse(text: &str) -> Result<Vec<NamedTrace>, TraceError> {
    let table = Table::parse(text)?;
    let columns = table.power_columns();
    if columns.is_empty() {
        return Err(TraceError::NoPower(table.names.join(", ")));
    }
    let mut traces = Vec::new();
    for column in columns {
        traces.extend(table.traces(column)?);
    }
    Ok(traces)
}

/// Reads one column by name; any column may be named, in any case, with or without its unit.
///
/// # Errors
/// As [`parse`].
pub fn parse_column(text: &str, wanted: &str) -> Result<Vec<NamedTrace>, TraceError> {
    let table = Table::parse(text)?;
    let exact =
        |name: &String| name.eq_ignore_ascii_case(wanted) || bare_name(name).eq_ignore_ascii_case(wanted);
    let column = table.names.iter().position(exact).ok_or_else(|| TraceError::NoSuchColumn {
        wanted: wanted.to_owned(),
        found: table
            .power_columns()
            .into_iter()
            .map(|c| bare_name(&table.names[c]))
            .collect::<Vec<_>>()
            .join(", "),
    })?;
    table.traces(column)
}

/// Reads a meter's log: all its columns of power added up row by row.
///
/// # Errors
/// As [`parse`].
pub fn parse_sum(text: &str) -> Result<PowerTrace, TraceError> {
    let table = Table::parse(text)?;
    let columns = table.power_columns();
    if columns.is_empty() {
        return Err(TraceError::NoPower(table.names.join(", ")));
    }
    let units: Vec<(usize, f64)> =
        columns.into_iter().map(|column| (column, table.power_unit(column).0)).collect();
    let readings = table
        .rows
        .iter()
        .filter_map(|row| {
            let time = table.time(row)?;
            let power =
                units.iter().map(|(column, unit)| table.power(row, *column, *unit)).sum::<Option<f64>>()?;
            Some(PowerReading { time, power: Watts::from_watts(power) })
        })
        .collect();
    Ok(PowerTrace::new(readings))
}

/// Reads a list of times, one a line below an optional heading, such as the times at which a load was
/// switched; equal neighbours count once.
pub fn parse_times(text: &str) -> Vec<Timestamp> {
    let mut times: Vec<Timestamp> = text
        .lines()
        .filter_map(|line| {
            parse_time(line.split([',', ';', '\t']).next().unwrap_or_default(), TimeFormat::default())
        })
        .collect();
    times.sort();
    times.dedup();
    times
}

struct Table<'a> {
    names: Vec<String>,
    rows: Vec<Vec<&'a str>>,
    time: usize,
    format: TimeFormat,
    gpu: Option<usize>,
    notes: Vec<String>,
}

/// Names of columns of times, beside those that start with `time`.
const TIME_NAMES: [&str; 12] =
    ["t", "ts", "date", "datetime", "elapsed", "epoch", "clock", "seconds", "sec", "s", "milliseconds", "ms"];
/// Names of columns of power, beside those with `power` or a unit in them.
const POWER_NAMES: [&str; 3] = ["p", "draw", "w"];

impl<'a> Table<'a> {
    fn parse(text: &'a str) -> Result<Self, TraceError> {
        let text = text.trim_start_matches('\u{feff}');
        let is_told = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let mut lines = text.lines().map(str::trim).filter(is_told).peekable();
        let first = *lines.peek().ok_or(TraceError::Empty)?;
        let separator = Separator::of(first);
        let decimal_comma = separator != Separator::Character(',');
        let format = TimeFormat { decimal_comma, ..TimeFormat::default() };
        let cells = separator.split(first);
        let has_names = !cells.iter().any(|cell| parse_time(cell, format).is_some());
        let names: Vec<String> = match has_names {
            true => cells.iter().map(|name| bare(name).to_owned()).collect(),
            false => (1..=cells.len()).map(|number| format!("column {number}")).collect(),
        };
        let rows: Vec<Vec<&str>> =
            lines.skip(usize::from(has_names)).map(|line| separator.split(line)).collect();
        let time = match has_names {
            true => time_column(&names, &rows, format).ok_or_else(|| TraceError::NoTime(names.join(", ")))?,
            false => 0,
        };
        let gpu = ["index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "gpu"]
            .iter()
            .find_map(|key| names.iter().position(|name| bare_name(name).eq_ignore_ascii_case(key)));
        let mut table = Self { names, rows, time, format, gpu, notes: Vec::new() };
        table.understand_times();
        Ok(table)
    }

    /// The unit of plain numbers, and where their zero lies.
    fn understand_times(&mut self) {
        let decimal_comma = self.format.decimal_comma;
        let cells = self.rows.iter().filter_map(|row| row.get(self.time));
        let numbers: Vec<f64> = cells.filter_map(|cell| plain_number(cell, decimal_comma)).collect();
        let Some(first) = numbers.first().copied() else { return };
        self.format.shift = -numbers.iter().copied().fold(0.0, f64::min);
        self.format.unit = time_unit(&self.names[self.time]);
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
            self.names[self.time]
        ));
    }

    fn power_columns(&self) -> Vec<usize> {
        let others = || (0..self.names.len()).filter(|column| *column != self.time);
        let named: Vec<usize> = others().filter(|column| self.is_power(*column)).collect();
        if !named.is_empty() {
            return named;
        }
        // Two columns, one of them the time: the other is what the file is about.
        let numbers = others().filter(|column| {
            let cell = self.rows.first().and_then(|row| row.get(*column));
            cell.is_some_and(|cell| parse_power(cell, 1.0, self.format.decimal_comma).is_some())
        });
        if self.names.len() == 2 { numbers.collect() } else { Vec::new() }
    }

    fn is_power(&self, column: usize) -> bool {
        let name = self.names[column].to_ascii_lowercase();
        if ["limit", "cap", "state", "management", "readings"].iter().any(|word| name.contains(word)) {
            return false;
        }
        name.contains("power")
            || power_unit(&name).is_some()
            || POWER_NAMES.contains(&name.as_str())
            || self.rows.first().and_then(|row| row.get(column)).is_some_and(|cell| names_power(cell))
    }

    fn time(&self, row: &[&str]) -> Option<Timestamp> {
        parse_time(row.get(self.time)?, self.format)
    }

    fn power(&self, row: &[&str], column: usize, unit: f64) -> Option<f64> {
        parse_power(row.get(column)?, unit, self.format.decimal_comma)
    }

    /// Watts per unit of a column's plain numbers, and what had to be assumed for it.
    fn power_unit(&self, column: usize) -> (f64, Option<String>) {
        if let Some(unit) = power_unit(&self.names[column]) {
            return (unit, None);
        }
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let mut numbers: Vec<f64> =
            cells.filter_map(|cell| plain_number(cell, self.format.decimal_comma)).collect();
        // No card draws four kilowatts, and none less than four watts all the time.
        let (unit, name) = match median(&mut numbers) {
            Some(typical) if typical >= 4e6 => (1e-6, "microwatts"),
            Some(typical) if typical >= 4e3 => (1e-3, "milliwatts"),
            _ => return (1.0, None),
        };
        let column = &self.names[column];
        (unit, Some(format!("column `{column}` names no unit: by its size it is taken for {name}")))
    }

    fn traces(&self, column: usize) -> Result<Vec<NamedTrace>, TraceError> {
        let (unit, assumed) = self.power_unit(column);
        let mut traces: Vec<(Option<&str>, Vec<PowerReading>, usize)> = Vec::new();
        for row in &self.rows {
            let gpu = self.gpu.and_then(|gpu| row.get(gpu).map(|cell| bare(cell)));
            let slot = traces.iter().position(|(known, ..)| *known == gpu).unwrap_or_else(|| {
                traces.push((gpu, Vec::new(), 0));
                traces.len() - 1
            });
            match (self.time(row), self.power(row, column, unit)) {
                (Some(time), Some(power)) => {
                    traces[slot].1.push(PowerReading { time, power: Watts::from_watts(power) });
                }
                _ => traces[slot].2 += 1,
            }
        }
        traces.retain(|(_, readings, _)| !readings.is_empty());
        if traces.is_empty() {
            let first = self.rows.first().map(|row| row.join(", ")).unwrap_or_default();
            return Err(TraceError::NoReadings {
                column: self.names[column].clone(),
                rows: self.rows.len(),
                first: first.chars().take(80).collect(),
            });
        }
        let name = bare_name(&self.names[column]);
        Ok(traces
            .into_iter()
            .map(|(gpu, readings, skipped)| NamedTrace {
                column: name.clone(),
                gpu: gpu.map(str::to_owned),
                trace: PowerTrace::new(readings),
                skipped,
                notes: self.notes.iter().cloned().chain(assumed.clone()).collect(),
            })
            .collect())
    }
}

/// What stands between the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separator {
    Character(char),
    Blanks,
}

impl Separator {
    /// A tab or a semicolon leaves the comma for decimals.
    fn of(line: &str) -> Self {
        let found = ['\t', ';', '|', ','].into_iter().find(|character| line.contains(*character));
        found.map_or(Self::Blanks, Self::Character)
    }

    fn split(self, line: &str) -> Vec<&str> {
        match self {
            Self::Character(character) => line.split(character).map(str::trim).collect(),
            Self::Blanks => words(line),
        }
    }
}

/// Words of a line, where a clock belongs to the date before it and a unit to what it is the unit of.
fn words(line: &str) -> Vec<&str> {
    let mut cells: Vec<(usize, usize)> = Vec::new();
    let mut start = 0;
    while let Some(skip) = line[start..].find(|c: char| !c.is_whitespace()) {
        let from = start + skip;
        let to = line[from..].find(char::is_whitespace).map_or(line.len(), |length| from + length);
        start = to;
        let word = &line[from..to];
        let before = cells.last().map(|(from, to)| &line[*from..*to]);
        let is_rest = before.is_some_and(|before| {
            let is_date = before.contains(['/', '-']) && !before.contains(':') && word.contains(':');
            let has_unit = plain_number(before, true).is_some() && names_unit(word);
            is_date || has_unit || word.starts_with(['[', '('])
        });
        match cells.last_mut() {
            Some(last) if is_rest => last.1 = to,
            _ => cells.push((from, to)),
        }
    }
    cells.into_iter().map(|(from, to)| &line[from..to]).collect()
}

/// The column of times: by its name, or the first whose cells are times that never go back.
fn time_column(names: &[String], rows: &[Vec<&str>], format: TimeFormat) -> Option<usize> {
    const FEWEST: usize = 3;
    let is_time = |name: &String| {
        let name = name.to_ascii_lowercase();
        let without_unit = name.split([' ', '_', '[', '(']).next().unwrap_or_default();
        name.starts_with("time") || TIME_NAMES.contains(&without_unit)
    };
    let rises = |column: &usize| {
        let times: Option<Vec<Timestamp>> =
            rows.iter().map(|row| parse_time(row.get(*column)?, format)).collect();
        times.is_some_and(|times| {
            times.len() >= FEWEST
                && times.windows(2).all(|pair| pair[0] <= pair[1])
                && times[0] < times[FEWEST - 1]
        })
    };
    names.iter().position(is_time).or_else(|| (0..names.len()).find(rises))
}

/// `power.draw [W]` without its unit.
fn bare_name(name: &str) -> String {
    name.split(['[', '(']).next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nvidia_smi_with_units_in_the_cells() {
        let text = "timestamp, power.draw [W], power.draw.instant [W], enforced.power.limit [W]\n\
                    2023/08/24 22:18:34.203, 34.63 W, 35.00 W, 250.00 W\n\
                    2023/08/24 22:18:34.227, [N/A], 36.50 W, 250.00 W\n";
        let traces = parse(text).expect("a trace");
        assert_eq!(traces.len(), 2);
        assert_eq!((traces[0].column.as_str(), traces[0].skipped), ("power.draw", 1));
        assert_eq!(traces[1].trace.readings()[1].power, Watts::from_watts(36.5));
        // date -u -d '2023-08-24 22:18:34.203' +%s%N
        assert_eq!(traces[1].trace.readings()[0].time, Timestamp::from_nanos(1_692_915_514_203_000_000));
    }

    #[test]
    fn several_gpus_become_several_traces() {
        let text = "timestamp, index, power.draw [W]\n\
                    2024/02/29 00:00:00.000, 0, 50\n2024/02/29 00:00:00.001, 1, 60\n2024/02/29 00:00:00.100, 0, 51\n";
        let traces = parse(text).expect("traces");
        let gpus: Vec<_> = traces.iter().map(|t| (t.gpu.clone(), t.trace.readings().len())).collect();
        assert_eq!(gpus, [(Some("0".into()), 2), (Some("1".into()), 1)]);
    }

    #[test]
    fn a_meter_in_microseconds_is_summed() {
        let trace =
            parse_sum("time_us,pcie_w,eps_w\n1689325966944676.8,58.5,7.5\n1689325966944881.5,56.0,6.0\n");
        let readings = trace.expect("a meter").readings().to_vec();
        assert_eq!(readings[0].power, Watts::from_watts(66.0));
        assert_eq!(readings[0].time.as_nanos() / 1000, 1_689_325_966_944_676);
    }

    #[test]
    fn tables_without_heading_or_commas() {
        let bare =
            parse("2023/08/24 22:18:34.203, 41.00 W\n2023/08/24 22:18:34.227, 42.00 W\n").expect("bare");
        assert_eq!(bare[0].trace.readings().len(), 2);
        let blanks = "timestamp gpu_instant gpu_average\n1733935225.009 28.873 23.595\n";
        assert!(matches!(parse(blanks), Err(TraceError::NoPower(_))));
        assert_eq!(parse_column(blanks, "gpu_instant").expect("named")[0].trace.readings().len(), 1);
    }

    #[test]
    fn switching_times() {
        let times = parse_times("timestamp\n1689325967982958\n1689325967982958\n1689325968035292\n");
        assert_eq!(times.len(), 2);
        assert_eq!(times[0].as_nanos(), 1_689_325_967_982_958_000);
    }

    #[test]
    fn errors_name_what_is_there() {
        assert_eq!(parse("").unwrap_err(), TraceError::Empty);
        assert!(parse("a,b\n1,2\n").unwrap_err().to_string().contains("a, b"));
        let none = parse("timestamp, power.draw [W]\n2023/08/24 22:18:34.203, [N/A]\n").unwrap_err();
        assert!(none.to_string().contains("[N/A]"), "{none}");
    }

    /// Readings every 15 ms of 30 and 31.5 W, as different tools write them.
    #[test]
    fn tables_of_many_kinds() {
        for (name, text) in [
            ("no names, no units", "0.100,30\n0.115,31.5\n0.130,30\n"),
            ("semicolons", "time;power\n0.100;30\n0.115;31.5\n0.130;30\n"),
            ("decimal commas", "Time (s);Power (W)\n0,100;30,0\n0,115;31,5\n0,130;30,0\n"),
            (
                "tabs",
                "timestamp\tpower.draw [W]\n2023/07/30 17:29:56.100\t30 W\n2023/07/30 17:29:56.115\t31.50 W\n2023/07/30 17:29:56.130\t30 W\n",
            ),
            (
                "blanks",
                "2023-07-30 17:29:56.100 30 W\n2023-07-30 17:29:56.115 31.50 W\n2023-07-30 17:29:56.130 30 W\n",
            ),
            ("blanks and names", "time [s]  power [mW]\n0.100  30000\n0.115  31500\n0.130 30000\n"),
            ("units in the cells", "time,power\n100 ms,30W\n115 ms,31500 mW\n130 ms,30 W\n"),
            ("elapsed", "elapsed_ms,gpu_power\n100,30\n115,31.5\n130,30\n"),
            ("letters", "t,P\n0.1,30\n0.115,31.5\n0.13,30\n"),
            ("other names", "when,board\n0.1,30\n0.115,31.5\n0.13,30\n"),
            ("milliseconds by their steps", "time,power\n100,30\n115,31.5\n130,30\n"),
            ("microseconds by their steps", "time,power\n100000,30\n115000,31.5\n130000,30\n"),
            (
                "milliwatts by their size",
                "timestamp,power\n1690738196.100,30000\n1690738196.115,31500\n1690738196.130,30000\n",
            ),
            ("times below zero", "time_s,power\n-0.015,30\n0.0,31.5\n0.015,30\n"),
            ("time of day", "time,power\n17:29:56.100,30\n17:29:56.115,31.5\n17:29:56.130,30\n"),
        ] {
            let traces = parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let readings = traces[0].trace.readings();
            let watts: Vec<f64> = readings.iter().map(|reading| reading.power.as_watts()).collect();
            assert_eq!((traces.len(), watts.as_slice()), (1, [30.0, 31.5, 30.0].as_slice()), "{name}");
            let step = readings[1].time.since(readings[0].time).as_secs_f64();
            assert!((step - 0.015).abs() < 1e-6, "{name}: {step} s");
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_a_trace_or_an_error(text in "(timestamp, power.draw \\[W\\]\n)?[0-9/: .,WN\\[\\]e-]{0,200}") {
            let _ = (parse(&text), parse_sum(&text), parse_column(&text, "power.draw"), parse_times(&text));
        }
    }
}
