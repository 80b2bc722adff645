//! Observations that a power model is fitted to: rates of events, beside the watts that were measured.

use std::collections::HashMap;

use crate::numerics::folds::{Part, by_group};

/// Rows of event rates with the power measured during each, labelled by the workload that ran.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dataset {
    columns: Vec<String>,
    rates: Vec<f64>,
    watts: Vec<f64>,
    workload_of: Vec<usize>,
    workloads: Vec<String>,
    frequency_of: Vec<f64>,
}

/// One row to be added to a [`Dataset`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation<'a> {
    /// The rate of each column, usually in events per second.
    pub rates: &'a [f64],
    /// Mean power during the row, in watts.
    pub watts: f64,
    /// What ran.
    pub workload: &'a str,
    /// Clock frequency, where rows of different frequencies are to be modelled apart; any unit.
    pub frequency: Option<f64>,
}

impl Dataset {
    /// No observations of these columns.
    pub fn new(columns: Vec<String>) -> Self {
        Self { columns, ..Self::default() }
    }

    /// Adds a row; `false` if it is left out because a value is not finite, the power is not positive or
    /// the number of rates is not that of the columns.
    pub fn push(&mut self, row: Observation<'_>) -> bool {
        let usable = row.rates.len() == self.columns.len()
            && row.rates.iter().all(|rate| rate.is_finite())
            && row.watts.is_finite()
            && row.watts > 0.0
            && row.frequency.is_none_or(f64::is_finite);
        if usable {
            self.rates.extend_from_slice(row.rates);
            self.watts.push(row.watts);
            let workload = self.workload_index(row.workload);
            self.workload_of.push(workload);
            self.frequency_of.push(row.frequency.unwrap_or(0.0));
        }
        usable
    }

    fn workload_index(&mut self, name: &str) -> usize {
        // Rows of one workload usually follow each other.
        if let Some(&last) = self.workload_of.last()
            && self.workloads[last] == name
        {
            return last;
        }
        if let Some(index) = self.workloads.iter().position(|known| known == name) {
            return index;
        }
        self.workloads.push(name.to_owned());
        self.workloads.len() - 1
    }

    /// Names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.watts.len()
    }

    /// No rows.
    pub fn is_empty(&self) -> bool {
        self.watts.is_empty()
    }

    /// The rates of a row.
    pub fn rates(&self, row: usize) -> &[f64] {
        &self.rates[row * self.columns.len()..(row + 1) * self.columns.len()]
    }

    /// The power of a row in watts.
    pub fn watts(&self, row: usize) -> f64 {
        self.watts[row]
    }

    /// The workload of a row, an index of [`Dataset::workloads`].
    pub fn workload_of(&self, row: usize) -> usize {
        self.workload_of[row]
    }

    /// Names of the workloads, in the order of their first rows.
    pub fn workloads(&self) -> &[String] {
        &self.workloads
    }

    /// The rows of each workload that has any, in the order of [`Dataset::workloads`].
    pub fn by_workload(&self) -> Vec<Part> {
        let mut parts = by_group(&self.workload_of);
        parts.sort_by_key(|rows| rows.first().map(|&row| self.workload_of[row]));
        parts
    }

    /// The rows of a column.
    pub fn column(&self, column: usize) -> impl Iterator<Item = f64> + '_ {
        (0..self.len()).map(move |row| self.rates(row)[column])
    }

    /// Only the rows for which `keep` says so. Workloads keep their indices.
    pub fn filter(&self, keep: impl Fn(usize) -> bool) -> Self {
        self.only(&(0..self.len()).filter(|&row| keep(row)).collect::<Vec<_>>())
    }

    /// Only these rows, in this order. Workloads keep their indices.
    pub fn only(&self, rows: &[usize]) -> Self {
        let mut kept =
            Self { columns: self.columns.clone(), workloads: self.workloads.clone(), ..Self::default() };
        for &row in rows {
            kept.rates.extend_from_slice(self.rates(row));
            kept.watts.push(self.watts[row]);
            kept.workload_of.push(self.workload_of[row]);
            kept.frequency_of.push(self.frequency_of[row]);
        }
        kept
    }

    /// Only these columns, in this order.
    pub fn select(&self, columns: &[usize]) -> Self {
        let mut selected = self.clone();
        selected.columns = columns.iter().map(|&column| self.columns[column].clone()).collect();
        selected.rates = (0..self.len())
            .flat_map(|row| columns.iter().map(move |&column| self.rates(row)[column]))
            .collect();
        selected
    }

    /// One data set per clock frequency, slowest first; one of all rows if no row has a frequency.
    pub fn by_frequency(&self) -> Vec<(f64, Self)> {
        let mut frequencies = self.frequency_of.clone();
        frequencies.sort_by(f64::total_cmp);
        frequencies.dedup();
        frequencies
            .into_iter()
            .map(|frequency| (frequency, self.filter(|row| self.frequency_of[row] == frequency)))
            .collect()
    }

    /// Adds up columns of single CPUs, see [`CpuSums::of`]. Returns the new data set and what was added up.
    pub fn with_cpus_summed(&self) -> (Self, Vec<String>) {
        let sums = CpuSums::of(&self.columns);
        let mut summed = self.clone();
        summed.rates = (0..self.len()).flat_map(|row| sums.apply(self.rates(row))).collect();
        summed.columns = sums.names;
        (summed, sums.notes)
    }
}

/// Columns of which some are to be added up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CpuSums {
    names: Vec<String>,
    groups: Vec<Vec<usize>>,
    notes: Vec<String>,
}

impl CpuSums {
    /// Adds up columns that differ only by a number in their name, as `Core_0`..`Core_31` do, where there
    /// are at least three and their names say what the number counts: a CPU, a core or a thread.
    ///
    /// A model of one coefficient per core has nothing to learn from, and power does not depend on which
    /// core works.
    pub fn of(columns: &[String]) -> Self {
        let mut families: Vec<(String, Vec<usize>)> = Vec::new();
        let mut index = HashMap::new();
        for (column, name) in columns.iter().enumerate() {
            let family = cpu_family(name).unwrap_or_else(|| name.clone());
            let at = *index.entry(family.clone()).or_insert_with(|| {
                families.push((family, Vec::new()));
                families.len() - 1
            });
            families[at].1.push(column);
        }
        let mut sums = Self::default();
        for (family, members) in families {
            if members.len() >= 3 {
                sums.notes.push(format!("{family}: the sum of {} columns", members.len()));
                sums.names.push(family);
                sums.groups.push(members);
            } else {
                sums.names.extend(members.iter().map(|&column| columns[column].clone()));
                sums.groups.extend(members.into_iter().map(|column| vec![column]));
            }
        }
        sums
    }

    /// A row of the new columns.
    pub fn apply(&self, rates: &[f64]) -> Vec<f64> {
        self.groups.iter().map(|members| members.iter().map(|&column| rates[column]).sum()).collect()
    }
}

/// `Core_12` becomes `Core_*`; `None` if the name does not number a CPU.
fn cpu_family(name: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    let word = ["core", "cpu", "thread"].into_iter().find(|word| lower.starts_with(word))?;
    let rest = &name[word.len()..];
    let digits = rest.trim_start_matches(['_', ' ', '-', ':']);
    let after = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = after.len() < digits.len() && !after.starts_with(|c: char| c.is_ascii_alphanumeric());
    let head = &name[..name.len() - digits.len()];
    numbered.then(|| format!("{head}*{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_columns() -> Dataset {
        let mut data = Dataset::new(vec!["a".into(), "b".into()]);
        for (row, workload) in ["x", "x", "y", "x"].into_iter().enumerate() {
            let rates = [row as f64, 10.0 * row as f64];
            let frequency = Some(if row < 2 { 2.0 } else { 1.0 });
            assert!(data.push(Observation { rates: &rates, watts: 1.0 + row as f64, workload, frequency }));
        }
        data
    }

    #[test]
    fn rows_that_cannot_be_used_are_left_out() {
        let mut data = Dataset::new(vec!["a".into()]);
        let row = Observation { rates: &[1.0], watts: 5.0, workload: "w", frequency: None };
        assert!(!data.push(Observation { rates: &[f64::NAN], ..row }));
        assert!(!data.push(Observation { watts: 0.0, ..row }));
        assert!(!data.push(Observation { rates: &[1.0, 2.0], ..row }));
        assert!(data.push(row));
        assert_eq!(data.len(), 1);
    }

    #[test]
    fn workloads_frequencies_and_columns_are_told_apart() {
        let data = two_columns();
        assert_eq!(data.workloads(), ["x", "y"]);
        let parts = data.by_frequency();
        assert_eq!(parts.iter().map(|(f, part)| (*f, part.len())).collect::<Vec<_>>(), [(1.0, 2), (2.0, 2)]);
        let selected = data.select(&[1]);
        assert_eq!(selected.columns(), ["b"]);
        assert_eq!(selected.column(0).collect::<Vec<_>>(), [0.0, 10.0, 20.0, 30.0]);
    }

    #[test]
    fn columns_of_single_cores_are_added_up() {
        let names =
            ["Core_0", "Core_1", "Core_10", "Core_1CPU", "cpu_idle", "cpu-cycles", "Core 4 Event 0x1b"];
        let mut data = Dataset::new(names.map(String::from).to_vec());
        let rates = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        assert!(data.push(Observation { rates: &rates, watts: 1.0, workload: "w", frequency: None }));
        let (summed, notes) = data.with_cpus_summed();
        assert_eq!(summed.columns(), ["Core_*", "Core_1CPU", "cpu_idle", "cpu-cycles", "Core 4 Event 0x1b"]);
        assert_eq!(summed.rates(0), [6.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(notes, ["Core_*: the sum of 3 columns"]);
    }

    #[test]
    fn each_frequency_has_its_own_rows() {
        let apart = two_columns().by_frequency();
        let watts = |data: &Dataset| (0..data.len()).map(|row| data.watts(row)).collect::<Vec<_>>();
        let found: Vec<(f64, Vec<f64>)> =
            apart.iter().map(|(frequency, data)| (*frequency, watts(data))).collect();
        assert_eq!(found, [(1.0, vec![3.0, 4.0]), (2.0, vec![1.0, 2.0])]);
    }
}
