//! Power traces as text: what `nvidia-smi --query-gpu=timestamp,power.draw --format=csv -lms 10`
//! prints, and tables like it (a meter's log, another tool's samples).

use thiserror::Error;

use super::trace::{PowerReading, PowerTrace};
use crate::units::{Timestamp, Watts};

/// Why a text is no power trace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    /// There is nothing in it.
    #[error("the file holds no line")]
    Empty,
    /// No column tells the time.
    #[error(
        "line 1 names no time column (expected `timestamp` or a name starting with `time`); its columns are: {0}"
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
}

/// Reads every power column of a table.
///
/// Cells are separated by commas, or by blanks where the first line has no comma. The first line
/// names the columns; without such a line (`--format=csv,noheader`) the first column is the time and
/// every column whose cells end in `W` is power. Times are dates or numbers since any zero in s, ms,
/// us or ns, told by the column's name or, for times since 1970, by their size; a date is taken as UTC.
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
    let readings = table
        .rows
        .iter()
        .filter_map(|row| {
            let time = table.time(row)?;
            let power = columns.iter().map(|column| table.power(row, *column)).sum::<Option<f64>>()?;
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
        .filter_map(|line| parse_time(line.split([',', ';']).next().unwrap_or_default().trim(), None))
        .collect();
    times.sort();
    times.dedup();
    times
}

struct Table<'a> {
    names: Vec<String>,
    rows: Vec<Vec<&'a str>>,
    time: usize,
    /// Nanoseconds per unit of a numeric time, where the column's name tells it.
    time_unit: Option<f64>,
    gpu: Option<usize>,
}

impl<'a> Table<'a> {
    fn parse(text: &'a str) -> Result<Self, TraceError> {
        let text = text.trim_start_matches('\u{feff}');
        let mut lines =
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
        let first = *lines.peek().ok_or(TraceError::Empty)?;
        let comma = first.contains(',');
        let split = |line: &'a str| -> Vec<&'a str> {
            if comma { line.split(',').map(str::trim).collect() } else { line.split_whitespace().collect() }
        };
        let cells = split(first);
        if cells.first().is_some_and(|cell| parse_time(cell, None).is_some()) {
            let names = (0..cells.len())
                .map(|i| if i == 0 { "timestamp".into() } else { format!("column {}", i + 1) })
                .collect();
            return Ok(Self { names, rows: lines.map(split).collect(), time: 0, time_unit: None, gpu: None });
        }
        lines.next();
        let names: Vec<String> = cells.iter().map(|name| name.trim_matches('"').to_owned()).collect();
        let is_time = |name: &String| name.to_ascii_lowercase().starts_with("time");
        let Some(time) = names.iter().position(is_time) else {
            return Err(TraceError::NoTime(names.join(", ")));
        };
        let gpu = ["index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "gpu"]
            .iter()
            .find_map(|key| names.iter().position(|name| bare_name(name).eq_ignore_ascii_case(key)));
        let time_unit = time_unit(&names[time]);
        Ok(Self { rows: lines.map(split).collect(), names, time, time_unit, gpu })
    }

    fn power_columns(&self) -> Vec<usize> {
        (0..self.names.len()).filter(|column| *column != self.time && self.is_power(*column)).collect()
    }

    fn is_power(&self, column: usize) -> bool {
        let name = self.names[column].to_ascii_lowercase();
        if ["limit", "cap", "state", "management", "readings"].iter().any(|word| name.contains(word)) {
            return false;
        }
        if name.starts_with("column ") {
            return self.rows.iter().any(|row| row.get(column).is_some_and(|cell| cell.ends_with('W')));
        }
        name.contains("power")
            || ["[w]", "(w)", "_w", "[mw]", "(mw)", "_mw", " w", "watts"]
                .iter()
                .any(|unit| name.ends_with(unit))
    }

    fn time(&self, row: &[&str]) -> Option<Timestamp> {
        parse_time(row.get(self.time)?, self.time_unit)
    }

    fn power(&self, row: &[&str], column: usize) -> Option<f64> {
        let cell = row.get(column)?.trim_matches('"');
        let (number, milli) = match (cell.strip_suffix("mW"), cell.strip_suffix('W')) {
            (Some(number), _) => (number, true),
            (None, Some(number)) => (number, false),
            (None, None) => (cell, self.names[column].to_ascii_lowercase().contains("mw")),
        };
        let value: f64 = number.trim().parse().ok()?;
        value.is_finite().then_some(if milli { value * 1e-3 } else { value })
    }

    fn traces(&self, column: usize) -> Result<Vec<NamedTrace>, TraceError> {
        let mut traces: Vec<(Option<&str>, Vec<PowerReading>, usize)> = Vec::new();
        for row in &self.rows {
            let gpu = self.gpu.and_then(|gpu| row.get(gpu).copied());
            let slot = traces.iter().position(|(known, ..)| *known == gpu).unwrap_or_else(|| {
                traces.push((gpu, Vec::new(), 0));
                traces.len() - 1
            });
            match (self.time(row), self.power(row, column)) {
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
            })
            .collect())
    }
}

/// `power.draw [W]` without its unit.
fn bare_name(name: &str) -> String {
    name.split(['[', '(']).next().unwrap_or_default().trim().to_owned()
}

fn time_unit(name: &str) -> Option<f64> {
    let name = name.to_ascii_lowercase();
    let ends = |units: &[&str]| units.iter().any(|unit| name.ends_with(unit));
    match () {
        () if ends(&["_ns", "[ns]", "(ns)"]) => Some(1.0),
        () if ends(&["_us", "[us]", "(us)", "[µs]"]) => Some(1e3),
        () if ends(&["_ms", "[ms]", "(ms)"]) => Some(1e6),
        () if ends(&["_s", "[s]", "(s)"]) => Some(1e9),
        () => None,
    }
}

/// A date such as `2023/07/30 17:29:56.995` or a number, as nanoseconds.
fn parse_time(cell: &str, unit: Option<f64>) -> Option<Timestamp> {
    let cell = cell.trim_matches('"');
    if let Ok(number) = cell.parse::<f64>() {
        if !(number.is_finite() && number >= 0.0) {
            return None;
        }
        // Without a unit: today is 1.8e9 s, 1.8e12 ms, 1.8e15 us, 1.8e18 ns after 1970.
        let unit = unit.unwrap_or(match number {
            n if n >= 1e17 => 1.0,
            n if n >= 1e14 => 1e3,
            n if n >= 1e11 => 1e6,
            _ => 1e9,
        });
        // A whole number need not lose its last digits in a float.
        if let Ok(whole) = cell.parse::<u64>() {
            return whole.checked_mul(unit as u64).map(Timestamp::from_nanos);
        }
        let nanos = number * unit;
        return (nanos < 1.8e19).then(|| Timestamp::from_nanos(nanos.round() as u64));
    }
    let (date, clock) = cell.split_once([' ', 'T'])?;
    let mut date = date.split(['/', '-']).map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut clock = clock.trim_end_matches('Z').split(':');
    let (hour, minute): (u64, u64) = (clock.next()?.trim().parse().ok()?, clock.next()?.parse().ok()?);
    let seconds: f64 = clock.next().unwrap_or("0").parse().ok()?;
    let plausible = (1970..2500).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && (0.0..61.0).contains(&seconds);
    if !plausible {
        return None;
    }
    let whole = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60;
    Some(Timestamp::from_nanos(whole * 1_000_000_000 + (seconds * 1e9).round() as u64))
}

/// Days from 1970-01-01 in the Gregorian calendar, counting years from March so that the leap day is
/// a year's last.
fn days_since_1970(year: i64, month: i64, day: i64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (month * 306 + 5) / 10 + day - 1;
    const UNTIL_1970: i64 = 719_468;
    (days - UNTIL_1970).max(0) as u64
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

    proptest! {
        #[test]
        fn any_text_gives_a_trace_or_an_error(text in "(timestamp, power.draw \\[W\\]\n)?[0-9/: .,WN\\[\\]e-]{0,200}") {
            let _ = (parse(&text), parse_sum(&text), parse_column(&text, "power.draw"), parse_times(&text));
        }
    }
}
