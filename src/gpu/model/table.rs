//! Rows of counters with measured power.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a text is no table of counters.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TableError {
    /// No heading or no row.
    #[error("the table needs a line of column names and at least one row of numbers")]
    Empty,
    /// A column that was asked for is not there.
    #[error("there is no column `{wanted}`; the columns are: {found}")]
    NoColumn {
        /// Name asked for.
        wanted: String,
        /// Names that are there.
        found: String,
    },
    /// No column, or several, look like power.
    #[error("which column is the measured power? Name it with --target; candidates: {0}")]
    NoTarget(String),
    /// The CSV itself is broken.
    #[error("line {line}: {problem}")]
    Csv {
        /// Line, from 1.
        line: u64,
        /// What is wrong.
        problem: String,
    },
    /// No column holds numbers in every row.
    #[error("no column but the power holds a number in every row")]
    NoCounters,
    /// Too few rows for any fit.
    #[error("{0} rows with positive power are too few for a fit; at least 6 are needed")]
    TooFew(usize),
}

/// What the columns of a table are.
#[derive(Debug, Clone, Default)]
pub struct Roles {
    /// Measured power; found by name if `None`.
    pub target: Option<String>,
    /// Rows with the same value are left out together (an application); each row alone if empty.
    pub group: Vec<String>,
    /// Run time or cycles, by which counts are divided; found by name if `None`.
    pub time: Option<String>,
    /// Columns that must not be used.
    pub exclude: Vec<String>,
}

/// Counters and power, one row per kernel and setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Names of the counters.
    pub columns: Vec<String>,
    /// Values: one row of `columns.len()` per observation.
    pub rows: Vec<Vec<f64>>,
    /// Measured mean power in watts, positive.
    pub power: Vec<f64>,
    /// Which rows belong together.
    pub groups: Vec<String>,
    /// Column of the run time.
    pub time: Option<usize>,
    /// Columns that grow with the run time.
    pub counts: Vec<usize>,
    /// Columns of clock frequencies.
    pub clocks: Vec<usize>,
    /// Columns that were left out, and why.
    pub left_out: Vec<(String, String)>,
    /// Rows that were left out because a number was missing.
    pub skipped: usize,
}

impl Table {
    /// Reads a CSV with a line of names, or the four-line heading of gpmTOOL's files.
    ///
    /// # Errors
    /// [`TableError`], which names line and column.
    pub fn parse(text: &str, roles: &Roles) -> Result<Self, TableError> {
        let text = text.trim_start_matches('\u{feff}');
        let heading = gpmtool_heading(text);
        let body = heading.as_ref().map_or(text, |heading| heading.body);
        let separator = separator(body);
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .delimiter(separator)
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(body.as_bytes());
        let mut records = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| TableError::Csv {
                line: error.position().map_or(0, csv::Position::line),
                problem: error.to_string(),
            })?;
            if record.iter().any(|cell| !cell.is_empty()) {
                records.push(record);
            }
        }
        let has_kernels_in_rows = heading.is_some();
        let names: Vec<String> = match heading {
            Some(heading) => heading.names(records.first().map_or(0, |record| record.len())),
            None if records.is_empty() => return Err(TableError::Empty),
            None => records.remove(0).iter().map(str::to_owned).collect(),
        };
        if records.is_empty() {
            return Err(TableError::Empty);
        }
        let mut table = Self::from_records(&names, &records, roles, separator != b',')?;
        if has_kernels_in_rows && roles.group.is_empty() {
            table.group_by_kernel(&names, &records);
        }
        Ok(table)
    }

    /// gpmTOOL measures each kernel at many clocks, and its utilisations at one of them: rows of one
    /// kernel have a name in common, or else their utilisations.
    fn group_by_kernel(&mut self, names: &[String], records: &[csv::StringRecord]) {
        let is_named = names.first().is_some_and(|name| name == "name");
        let first = names.iter().position(|name| name.ends_with(" clock")).unwrap_or(0);
        let utilisations = first + names.iter().filter(|name| name.ends_with(" clock")).count();
        let key = |record: &csv::StringRecord| match record.get(0) {
            Some(name) if is_named => name.to_owned(),
            _ => record.iter().skip(utilisations).collect::<Vec<_>>().join(" "),
        };
        // No row of these files lacks a number, or else their rows are not ours one to one.
        if self.skipped > 0 || records.len() != self.groups.len() {
            return;
        }
        self.groups = records.iter().map(key).collect();
    }

    fn from_records(
        names: &[String],
        records: &[csv::StringRecord],
        roles: &Roles,
        decimal_comma: bool,
    ) -> Result<Self, TableError> {
        let find = |wanted: &str| {
            names
                .iter()
                .position(|name| name == wanted)
                .ok_or_else(|| TableError::NoColumn { wanted: wanted.to_owned(), found: names.join(", ") })
        };
        let target = match &roles.target {
            Some(name) => find(name)?,
            None => {
                let candidates: Vec<usize> =
                    (0..names.len()).filter(|i| names[*i].to_ascii_lowercase().contains("power")).collect();
                let in_watts = || only((0..names.len()).filter(|i| is_in_watts(&names[*i])));
                match candidates[..] {
                    [one] => one,
                    [] => in_watts().ok_or_else(|| TableError::NoTarget(names.join(", ")))?,
                    _ => {
                        let names: Vec<&str> = candidates.iter().map(|i| names[*i].as_str()).collect();
                        return Err(TableError::NoTarget(names.join(", ")));
                    }
                }
            }
        };
        let group = roles.group.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>()?;
        let time_column = match &roles.time {
            Some(name) => Some(find(name)?),
            None => only((0..names.len()).filter(|i| is_time(&names[*i]))),
        };
        let exclude = roles.exclude.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>()?;

        let number = |record: &csv::StringRecord, column: usize| -> Option<f64> {
            parse_number(record.get(column)?, decimal_comma)
        };
        let usable: Vec<&csv::StringRecord> =
            records.iter().filter(|record| number(record, target).is_some_and(|watts| watts > 0.0)).collect();
        let mut left_out = Vec::new();
        let mut kept = Vec::new();
        for (column, name) in names.iter().enumerate() {
            let filled = usable.iter().filter(|record| number(record, column).is_some()).count();
            match () {
                () if column == target || group.contains(&column) => {}
                () if exclude.contains(&column) => left_out.push((name.clone(), "excluded".to_owned())),
                () if name.is_empty() => {}
                () if filled * 10 < usable.len() * 9 => {
                    left_out.push((name.clone(), "not a number in every row".to_owned()));
                }
                () => kept.push(column),
            }
        }
        if kept.is_empty() {
            return Err(TableError::NoCounters);
        }
        let mut table = Self {
            columns: kept.iter().map(|column| names[*column].clone()).collect(),
            rows: Vec::new(),
            power: Vec::new(),
            groups: Vec::new(),
            time: time_column.and_then(|time| kept.iter().position(|column| *column == time)),
            counts: Vec::new(),
            clocks: Vec::new(),
            left_out,
            skipped: records.len() - usable.len(),
        };
        for (index, record) in usable.into_iter().enumerate() {
            let row: Option<Vec<f64>> = kept.iter().map(|column| number(record, *column)).collect();
            let (Some(row), Some(power)) = (row, number(record, target)) else {
                table.skipped += 1;
                continue;
            };
            let label = group.iter().filter_map(|column| record.get(*column)).collect::<Vec<_>>().join(" ");
            table.groups.push(if group.is_empty() { format!("row {}", index + 1) } else { label });
            table.rows.push(row);
            table.power.push(power);
        }
        if table.rows.len() < 6 {
            return Err(TableError::TooFew(table.rows.len()));
        }
        table.find_roles();
        Ok(table)
    }

    /// Which columns are clocks and which grow with time.
    fn find_roles(&mut self) {
        const RATES: [&str; 14] = [
            "throughput",
            "util",
            "efficiency",
            "rate",
            "ratio",
            "ipc",
            "freq",
            "clock",
            "per_",
            "occupancy",
            "duty",
            "activity",
            "percent",
            "size",
        ];
        for (index, name) in self.columns.iter().enumerate() {
            let name = name.to_ascii_lowercase();
            let largest = self.rows.iter().map(|row| row[index].abs()).fold(0.0, f64::max);
            let is_clock = ["freq", "clock", "mhz"].iter().any(|word| name.contains(word))
                || ["coref", "memf", "fc", "fm"].contains(&name.as_str());
            if is_clock {
                self.clocks.push(index);
            } else if Some(index) != self.time
                && largest >= 1000.0
                && !RATES.iter().any(|word| name.contains(word))
            {
                self.counts.push(index);
            }
        }
    }

    /// The table without some rows.
    pub fn subset(&self, rows: &[usize]) -> Self {
        Self {
            rows: rows.iter().map(|row| self.rows[*row].clone()).collect(),
            power: rows.iter().map(|row| self.power[*row]).collect(),
            groups: rows.iter().map(|row| self.groups[*row].clone()).collect(),
            ..self.clone()
        }
    }

    /// Row numbers by group, groups in order of first appearance.
    pub fn by_group(&self) -> Vec<(String, Vec<usize>)> {
        let mut known = hashbrown::HashMap::new();
        let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
        for (row, name) in self.groups.iter().enumerate() {
            let slot = *known.entry(name.as_str()).or_insert_with(|| {
                groups.push((name.clone(), Vec::new()));
                groups.len() - 1
            });
            groups[slot].1.push(row);
        }
        groups
    }
}

/// What stands between the cells, as the first line tells: a comma, unless there are more of another.
fn separator(body: &str) -> u8 {
    let heading = body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let mut quoted = false;
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0)];
    for byte in heading.bytes() {
        quoted ^= byte == b'"';
        if let Some(count) = counts.iter_mut().find(|(separator, _)| *separator == byte && !quoted) {
            count.1 += 1;
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
    counts.iter().find(|(_, count)| *count == most).map_or(b',', |(separator, _)| *separator)
}

/// A number, whatever unit is written behind it; in quotes it may have commas between its thousands, as
/// NVIDIA's profilers write them.
fn parse_number(cell: &str, decimal_comma: bool) -> Option<f64> {
    if let Ok(value) = cell.parse::<f64>() {
        return Some(value).filter(|value| value.is_finite());
    }
    let digits = cell.trim_end_matches(|c: char| c.is_alphabetic() || "%/ ".contains(c));
    // A name that ends in letters is not a number with a unit.
    if !digits.ends_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let text = match digits.split_once(',') {
        None => digits.to_owned(),
        Some((whole, part)) if decimal_comma => format!("{whole}.{part}"),
        Some((_, thousands)) => {
            let groups = thousands.split('.').next().unwrap_or_default().split(',');
            if !groups.into_iter().all(|group| group.len() == 3) {
                return None;
            }
            digits.replace(',', "")
        }
    };
    text.parse().ok().filter(|value: &f64| value.is_finite())
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

/// gpmTOOL's heading: number of clock domains, their defaults, components per domain, component names.
struct GpmHeading<'a> {
    domains: usize,
    components: Vec<&'a str>,
    body: &'a str,
}

impl GpmHeading<'_> {
    fn names(&self, cells: usize) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        if cells == self.domains + self.components.len() + 2 {
            names.push("name".to_owned());
        }
        names.push("power".to_owned());
        names.extend(
            ["core clock", "memory clock", "third clock"].iter().take(self.domains).map(|n| (*n).to_owned()),
        );
        names.extend(self.components.iter().map(|name| (*name).to_owned()));
        names
    }
}

fn gpmtool_heading(text: &str) -> Option<GpmHeading<'_>> {
    let mut rest = text;
    let mut line = || {
        let (line, after) = rest.split_once('\n')?;
        rest = after;
        Some(line.trim())
    };
    let domains: usize = line()?.parse().ok().filter(|domains| (1..=3).contains(domains))?;
    let numbers =
        |line: &str| line.split(',').map(|cell| cell.trim().parse::<f64>().ok()).collect::<Option<Vec<_>>>();
    let defaults = numbers(line()?)?;
    let counts = numbers(line()?)?;
    let components: Vec<&str> = line()?.split(',').map(str::trim).collect();
    let fits = defaults.len() == domains && counts.iter().sum::<f64>() == components.len() as f64;
    fits.then_some(GpmHeading { domains, components, body: rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_other_tools() {
        let rows = |separator: &str, decimal: &str, unit: &str| -> String {
            let row =
                |i: u32| format!("k{i}{separator}{i}{decimal}25{separator}{}{decimal}5{unit}\n", 50 + i);
            format!("kernel{separator}reads{separator}power [W]\n") + &(0..6).map(row).collect::<String>()
        };
        for (name, text) in [
            ("commas", rows(",", ".", "")),
            ("semicolons", rows(";", ".", "")),
            ("decimal commas", rows(";", ",", "")),
            ("tabs", rows("\t", ".", "")),
            ("units", rows(",", ".", " W")),
        ] {
            let roles = Roles { group: vec!["kernel".to_owned()], ..Roles::default() };
            let table = Table::parse(&text, &roles).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(
                (table.power[2], table.rows[2][0], table.groups[2].as_str()),
                (52.5, 2.25, "k2"),
                "{name}"
            );
        }
        assert_eq!(parse_number("1,234,567.5", false), Some(1_234_567.5));
        assert_eq!(parse_number("45.2%", false), Some(45.2));
        assert_eq!(parse_number("12.5 GB/s", false), Some(12.5));
        for no_number in ["kernel7b", "N/A", "", "1,2", "Idle (0%)"] {
            assert_eq!(parse_number(no_number, false), None, "{no_number}");
        }
    }

    #[test]
    fn roles_are_found_by_name_and_size() {
        let mut text = String::from("app,coreF,instructions,l2_read_throughput,note,power/W\n");
        for i in 0..8 {
            text += &format!("a{},{},{},{},x,{}\n", i / 2, 1000 + i, 5000 * i, 2000 + i, 50 + i);
        }
        let table =
            Table::parse(&text, &Roles { group: vec!["app".into()], ..Roles::default() }).expect("a table");
        assert_eq!(table.columns, ["coreF", "instructions", "l2_read_throughput"]);
        assert_eq!((table.clocks.as_slice(), table.counts.as_slice()), (&[0][..], &[1][..]));
        assert_eq!(table.by_group().len(), 4);
        assert_eq!(table.left_out, [("note".to_owned(), "not a number in every row".to_owned())]);
    }

    #[test]
    fn gpmtool_files_are_read_as_they_are() {
        let mut text = String::from("2\n975,3505\n2,1\nSP,INT,DRAM\n");
        for i in 0..7 {
            text += &format!("k{i},{},975,3505,0.1,0.{i},0.3\n", 100 + i);
        }
        let table =
            Table::parse(&text, &Roles { group: vec!["name".into()], ..Roles::default() }).expect("a table");
        assert_eq!(table.columns, ["core clock", "memory clock", "SP", "INT", "DRAM"]);
        assert_eq!((table.power[3], table.clocks.len()), (103.0, 2));
        // Unasked, kernels are their rows' groups: by name, or where they have none by what they use.
        assert_eq!(Table::parse(&text, &Roles::default()).expect("a table").groups[2], "k2");
        let mut nameless = String::from("2\n975,3505\n2,1\nSP,INT,DRAM\n");
        for i in 0..8 {
            nameless += &format!("{},{},3505,0.1,0.{},0.3\n", 100 + i, 900 + 75 * (i % 2), i / 2);
        }
        assert_eq!(Table::parse(&nameless, &Roles::default()).expect("a table").by_group().len(), 4);
    }

    #[test]
    fn the_only_time_is_the_run_time() {
        let text = |times: &str| {
            let row = |i: u32| format!("{i}000,{i},{i},{}\n", 50 + i);
            let rows: String = (1..8).map(row).collect();
            format!("loads,{times},power\n{rows}")
        };
        let time = |times| Table::parse(&text(times), &Roles::default()).expect("a table").time;
        assert_eq!(time("Elapsed_Cycles,timer"), Some(1));
        assert_eq!(time("time/ms,duration"), None);
    }

    #[test]
    fn errors_say_what_to_do() {
        let roles = Roles::default();
        assert_eq!(Table::parse("", &roles), Err(TableError::Empty));
        assert!(Table::parse("a,b\n1,2\n", &roles).expect_err("no power").to_string().contains("--target"));
        let group = Roles { group: vec!["x".into()], ..Roles::default() };
        assert!(Table::parse("power,b\n1,2\n", &group).expect_err("no x").to_string().contains("power, b"));
    }
}
