//! Tables with a header line: CSV, or TSV if the header holds a tab.

use csv::{ReaderBuilder, StringRecord};

use super::ObservationError;
use crate::power_model::dataset::{Dataset, Observation};

/// A table as text cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    name: String,
    workload: String,
    headers: Vec<String>,
    rows: Vec<StringRecord>,
}

/// Which columns of tables mean what.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TableColumns {
    /// The column of measured power or energy.
    pub power: String,
    /// It holds joules per row, to be divided by [`TableColumns::duration`].
    pub power_is_energy: bool,
    /// The columns of events; `None` takes every numeric column that is not something else.
    pub events: Option<Vec<String>>,
    /// Columns that are no events, when all numeric columns are taken.
    pub except: Vec<String>,
    /// The column that names the workload; `None` takes each table for one workload.
    pub workload: Option<String>,
    /// The column of row lengths in seconds: the events are then counts, to be divided by it.
    pub duration: Option<String>,
    /// The column by which rows are put into the order of time.
    pub time: Option<String>,
    /// The column of clock frequencies, where each is to have a model of its own.
    pub frequency: Option<String>,
    /// Only rows in which these columns have these values.
    pub only: Vec<(String, String)>,
}

/// A data set, and what was left out on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The rows that can be used.
    pub data: Dataset,
    /// What a reader of the result should know.
    pub notes: Vec<String>,
}

/// Words in a column's name that make it a result or a bookkeeping column, not an event.
const NOT_EVENTS: [&str; 9] =
    ["power", "watt", "joule", "energy", "timestamp", "time_stamp", "current", "voltage", "node_type"];

impl Table {
    /// Reads the text of a table. `name` is for messages, `workload` stands for a missing workload column.
    ///
    /// # Errors
    /// [`ObservationError::NotATable`] if the text cannot be parsed.
    pub fn parse(name: &str, workload: &str, text: &str) -> Result<Self, ObservationError> {
        let header = text.lines().next().unwrap_or("");
        let delimiter = if header.contains('\t') {
            b'\t'
        } else if header.matches(';').count() > header.matches(',').count() {
            b';'
        } else {
            b','
        };
        let not_a_table = |error: csv::Error| ObservationError::NotATable {
            file: name.to_owned(),
            reason: error.to_string(),
        };
        let mut reader = ReaderBuilder::new()
            .delimiter(delimiter)
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());
        let headers: Vec<String> = reader
            .headers()
            .map_err(not_a_table)?
            .iter()
            .map(|header| header.trim_matches('\'').to_owned())
            .collect();
        let rows = reader.records().collect::<Result<_, _>>().map_err(not_a_table)?;
        Ok(Self { name: name.to_owned(), workload: workload.to_owned(), headers, rows })
    }

    fn find(&self, column: &str) -> Result<usize, ObservationError> {
        self.headers.iter().position(|header| header == column).ok_or_else(|| {
            ObservationError::NoSuchColumn {
                file: self.name.clone(),
                column: column.to_owned(),
                have: self.headers.clone(),
            }
        })
    }

    fn number(&self, row: &StringRecord, column: usize) -> f64 {
        row.get(column).and_then(|cell| cell.trim_matches('\'').parse().ok()).unwrap_or(f64::NAN)
    }

    /// Most of a column's cells are numbers, and not all the same.
    fn is_numeric(&self, column: usize) -> bool {
        let numbers = self.rows.iter().filter(|row| self.number(row, column).is_finite()).count();
        numbers > 0 && numbers * 100 >= self.rows.len() * 99
    }
}

/// Joins tables into one data set.
///
/// # Errors
/// [`ObservationError::NoSuchColumn`] if a named column is missing in one of them,
/// [`ObservationError::NoRows`] if no row can be used.
pub fn observe(tables: &[Table], columns: &TableColumns) -> Result<Observed, ObservationError> {
    let events = match &columns.events {
        Some(events) => events.clone(),
        None => numeric_events(tables, columns),
    };
    let mut data = Dataset::new(events.clone());
    let mut notes = Vec::new();
    let mut left_out = 0;
    for table in tables {
        left_out += add_rows(table, columns, &events, &mut data)?;
    }
    if data.is_empty() {
        let file = tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(", ");
        let reason = "every row lacks a number or has no positive power".to_owned();
        return Err(ObservationError::NoRows { file, reason });
    }
    if left_out > 0 {
        notes.push(format!("{left_out} rows lack a number or a positive power and were left out"));
    }
    Ok(Observed { data, notes })
}

fn add_rows(
    table: &Table,
    columns: &TableColumns,
    events: &[String],
    data: &mut Dataset,
) -> Result<usize, ObservationError> {
    let find = |name: &Option<String>| name.as_deref().map(|name| table.find(name)).transpose();
    let power = table.find(&columns.power)?;
    let events: Vec<usize> = events.iter().map(|event| table.find(event)).collect::<Result<_, _>>()?;
    let (workload, duration) = (find(&columns.workload)?, find(&columns.duration)?);
    let (time, frequency) = (find(&columns.time)?, find(&columns.frequency)?);
    let only: Vec<(usize, &str)> = columns
        .only
        .iter()
        .map(|(column, value)| Ok((table.find(column)?, value.as_str())))
        .collect::<Result<_, _>>()?;
    let mut rows: Vec<&StringRecord> = table
        .rows
        .iter()
        .filter(|row| only.iter().all(|(column, value)| row.get(*column) == Some(*value)))
        .collect();
    if let Some(time) = time {
        rows.sort_by(|a, b| table.number(a, time).total_cmp(&table.number(b, time)));
    }
    let mut left_out = 0;
    let mut rates = Vec::new();
    for row in rows {
        let seconds = duration.map_or(1.0, |column| table.number(row, column));
        rates.clear();
        rates.extend(events.iter().map(|&event| table.number(row, event) / seconds));
        let power_seconds = if columns.power_is_energy { seconds } else { 1.0 };
        let used = data.push(Observation {
            rates: &rates,
            watts: table.number(row, power) / power_seconds,
            workload: workload.and_then(|column| row.get(column)).unwrap_or(&table.workload),
            frequency: frequency.map(|column| table.number(row, column)),
        });
        left_out += usize::from(!used);
    }
    Ok(left_out)
}

/// Every numeric column that all tables have and that is neither named as something else nor a result.
fn numeric_events(tables: &[Table], columns: &TableColumns) -> Vec<String> {
    let Some(first) = tables.first() else { return Vec::new() };
    let named = [&columns.workload, &columns.duration, &columns.time, &columns.frequency];
    first
        .headers
        .iter()
        .filter(|header| {
            let lower = header.to_ascii_lowercase();
            !header.is_empty()
                && **header != columns.power
                && !named.contains(&&Some((*header).clone()))
                && !columns.except.contains(header)
                && !NOT_EVENTS.iter().any(|word| lower.contains(word))
                && tables.iter().all(|table| table.find(header).is_ok_and(|column| table.is_numeric(column)))
        })
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "timestamp,job,watts,cycles,misses,comment,dram_power\n\
                        3,a,10,300,4,x,1\n1,a,8,100,2,y,1\n2,b,9,200,,z,1\n";

    fn columns() -> TableColumns {
        TableColumns { power: "watts".into(), ..TableColumns::default() }
    }

    #[test]
    fn numeric_columns_are_events_unless_they_are_results() {
        let table = Table::parse("t.csv", "t", &TEXT.replace("200,,", "200,3,")).expect("a table");
        let observed = observe(&[table], &columns()).expect("rows");
        assert_eq!(observed.data.columns(), ["cycles", "misses"]);
        assert_eq!(observed.data.workloads(), ["t"]);
        assert!(observed.notes.is_empty());
    }

    #[test]
    fn named_columns_order_rates_and_labels() {
        let table = Table::parse("t.csv", "t", TEXT).expect("a table");
        let named = TableColumns {
            events: Some(vec!["cycles".into()]),
            workload: Some("job".into()),
            time: Some("timestamp".into()),
            duration: Some("dram_power".into()),
            only: vec![("job".into(), "a".into())],
            ..columns()
        };
        let data = observe(&[table], &named).expect("rows").data;
        assert_eq!(data.column(0).collect::<Vec<_>>(), [100.0, 300.0]);
        assert_eq!(data.workloads(), ["a"]);
    }

    #[test]
    fn rows_without_a_number_are_counted() {
        let table = Table::parse("t.csv", "t", TEXT).expect("a table");
        let named = TableColumns { events: Some(vec!["misses".into()]), ..columns() };
        let observed = observe(&[table], &named).expect("rows");
        assert_eq!(observed.data.len(), 2);
        assert_eq!(observed.notes, ["1 rows lack a number or a positive power and were left out"]);
    }

    #[test]
    fn energy_is_divided_by_the_rows_length() {
        let table = Table::parse("t.tsv", "t", "s\tj\tn\n2\t30\t8\n").expect("a table");
        let named = TableColumns {
            power: "j".into(),
            power_is_energy: true,
            events: Some(vec!["n".into()]),
            duration: Some("s".into()),
            ..TableColumns::default()
        };
        let data = observe(&[table], &named).expect("rows").data;
        assert_eq!((data.watts(0), data.rates(0)), (15.0, &[4.0][..]));
    }

    #[test]
    fn a_missing_column_is_named() {
        let table = Table::parse("t.csv", "t", TEXT).expect("a table");
        let named = TableColumns { power: "volts".into(), ..TableColumns::default() };
        let error = observe(&[table], &named).expect_err("no such column");
        assert!(error.to_string().starts_with("t.csv: there is no column `volts`; it has timestamp, job"));
    }
}
