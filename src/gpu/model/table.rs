//! Rows of counters with measured power.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::tables::{self, CellError};

/// Why a text is no table of counters.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TableError {
    /// The text is no table, or a column that was named is not there.
    #[error(transparent)]
    Table(#[from] tables::TableError),
    /// No column, or several, look like power.
    #[error("which column is the measured power? Name it with --target; candidates: {0}")]
    NoTarget(String),
    /// A power that nothing can be calculated with.
    #[error("{0}; mend that row, or take it out of the table")]
    Power(CellError),
    /// No column holds numbers in every row.
    #[error(
        "no column but the power holds a number in every row and is a counter; --columns takes columns that by their names are a meter's"
    )]
    NoCounters,
    /// No row can be predicted.
    #[error("no row has a number in each column that the model needs{0}")]
    NoRates(String),
    /// A column is in a unit that the model's cannot be calculated from.
    #[error(
        "`{found}` is in another unit than `{wanted}` of the model, and neither can be calculated from the other"
    )]
    OtherQuantity {
        /// The heading.
        found: String,
        /// The model's column.
        wanted: String,
    },
    /// Too few rows for any fit.
    #[error("{rows} rows with positive power are too few for a fit; at least 6 are needed{first}")]
    TooFew {
        /// Those there are.
        rows: usize,
        /// Why the first of the others cannot be used, to be put behind a sentence.
        first: String,
    },
}

/// What the columns of a table are. Names need not be written in every detail.
#[derive(Debug, Clone, Default)]
pub struct Roles {
    /// Measured power, with its unit behind a colon if need be (`draw:mW`); found by name if `None`.
    pub target: Option<String>,
    /// Rows with the same value are left out together (an application); each row alone if empty.
    pub group: Vec<String>,
    /// Run time or cycles, by which counts are divided, with its unit behind a colon if need be (`wall:ms`); found by name
    /// if `None`.
    pub time: Option<String>,
    /// The only columns to be used as counters; all that hold numbers if empty.
    pub columns: Vec<String>,
    /// Columns that must not be used.
    pub exclude: Vec<String>,
    /// Only rows in which these columns have these values.
    pub only: Vec<(String, String)>,
}

/// Counters and power, one row per kernel and setting.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// Which columns are clocks and which grow with time: by their names and, where nobody `named` the time, by their size.
    /// Whoever names it has counts, in any unit. The columns that are then none are returned.
    pub(super) fn find_roles(&mut self, named: bool) -> Vec<String> {
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
        let mut others = Vec::new();
        for index in 0..self.columns.len() {
            let name = self.columns[index].to_ascii_lowercase();
            let is_clock = ["freq", "clock", "mhz"].iter().any(|word| name.contains(word))
                || ["coref", "memf", "fc", "fm"].contains(&name.as_str());
            if is_clock {
                self.clocks.push(index);
            }
            if is_clock || Some(index) == self.time {
                continue;
            }
            let is_count = match (named, self.time) {
                (true, Some(time)) => !is_of_a_state(&name) && self.may_be_counts(index, time),
                _ => self.largest(index) >= 1000.0,
            };
            if is_count && !RATES.iter().any(|word| name.contains(word)) {
                self.counts.push(index);
            } else if named {
                others.push(format!("`{}`", self.columns[index]));
            }
        }
        others
    }

    /// Without its sign.
    fn largest(&self, column: usize) -> f64 {
        self.rows.iter().map(|row| row[column].abs()).fold(0.0, f64::max)
    }

    /// Shares and percentages have values up to 100 that do not grow with the time, and what is often below zero is
    /// no count. All else is, in whatever unit.
    fn may_be_counts(&self, column: usize, time: usize) -> bool {
        const LARGEST_SHARE: f64 = 100.0;
        let is_signed = 10 * self.rows.iter().filter(|row| row[column] < 0.0).count() > self.rows.len();
        !is_signed && (self.largest(column) > LARGEST_SHARE || self.grows_with(column, time))
    }

    /// A column grows with the time if dividing by it makes its values more alike.
    fn grows_with(&self, column: usize, time: usize) -> bool {
        let logarithms: Vec<(f64, f64)> = self
            .rows
            .iter()
            .filter(|row| row[column] > 0.0 && row[time] > 0.0)
            .map(|row| (row[time].ln(), row[column].ln()))
            .collect();
        let mean = logarithms.iter().map(|(time, _)| time).sum::<f64>() / logarithms.len().max(1) as f64;
        let square: f64 = logarithms.iter().map(|(time, _)| (time - mean).powi(2)).sum();
        let product: f64 = logarithms.iter().map(|(time, value)| (time - mean) * value).sum();
        product > 0.5 * square
    }

    /// Rows with a count below zero, and the first such column of each. What is often so is no count.
    pub(super) fn negative_counts(&self) -> Vec<(usize, usize)> {
        let is_below = |row: &Vec<f64>, count: usize| row[count] < 0.0;
        let seldom = |count: &usize| {
            10 * self.rows.iter().filter(|row| is_below(row, *count)).count() <= self.rows.len()
        };
        let counts: Vec<usize> = self.counts.iter().copied().filter(seldom).collect();
        let rows = self.rows.iter().enumerate();
        rows.filter_map(|(at, row)| Some((at, *counts.iter().find(|count| is_below(row, **count))?)))
            .collect()
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

/// Whether a column's name, in lower case, says that it is the state of something, which no time adds to.
fn is_of_a_state(name: &str) -> bool {
    ["%", "temp", "volt", "limit", "threads", "share", "fraction"].iter().any(|word| name.contains(word))
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
    fn readings_of_meters_are_no_counters() {
        let names = "reads,energy_j,package_energy,voltage,gpu_power_W,joules,power_limit,draw";
        let row = |i: u32| format!("{i},{i},{i},{i},{i},{i},{},{}\n", i % 3, 50 + i);
        let text = format!("{names}\n") + &(0..9).map(row).collect::<String>();
        let roles = Roles { target: Some("draw".into()), ..Roles::default() };
        let table = Table::parse(&text, &roles).expect("a table");
        assert_eq!(table.columns, ["reads", "power_limit"]);
        let said: Vec<&str> = table.left_out.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(said, ["energy_j", "package_energy", "voltage", "gpu_power_W", "joules"]);
        let named = Roles { columns: vec!["reads,voltage".into()], ..roles };
        assert_eq!(Table::parse(&text, &named).expect("a table").columns, ["reads", "voltage"]);
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
        assert_eq!(Table::parse("", &roles), Err(tables::TableError::Empty.into()));
        assert!(Table::parse("a,b\n1,2\n", &roles).expect_err("no power").to_string().contains("--target"));
        let group = Roles { group: vec!["x".into()], ..Roles::default() };
        assert!(Table::parse("power,b\n1,2\n", &group).expect_err("no x").to_string().contains("power, b"));
        let few = Table::parse("power,b\n1,2\nlow,3\n", &roles).expect_err("one row").to_string();
        assert!(
            few.starts_with("1 rows") && few.ends_with("line 3: `power` is `low`, which is no number"),
            "{few}"
        );
    }

    #[test]
    fn columns_and_rows_are_chosen_by_name() {
        let mut text = String::from("app,machine,draw (mW),reads,writes\n");
        for i in 0..16 {
            text += &format!("a{},m{},{}000,{i},{}\n", i / 4, i % 2, 50 + i, 2 * i);
        }
        let roles = Roles {
            target: Some("draw".into()),
            group: vec!["app".into()],
            columns: vec!["Writes".into()],
            only: vec![("machine".into(), "m1".into())],
            exclude: vec!["volts".into()],
            ..Roles::default()
        };
        let (table, notes) = Table::read(&text, &roles).expect("a table");
        assert_eq!((table.columns.as_slice(), table.rows.len()), (&["writes".to_owned()][..], 8));
        assert_eq!((table.power[0], table.rows[0][0], table.by_group().len()), (51.0, 2.0, 4));
        assert_eq!(notes, ["there is no column `volts` to leave out"]);
    }
}
