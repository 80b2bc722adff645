//! Rows of event rates whose power is to be estimated: as observations, but without power.

use super::ObservationError;
use super::rows::LeftOut;
use super::table::{Table, TableColumns};
use crate::tables::unit::Quantity;
use crate::tables::{CellError, TableError};

/// Rates in the order of a model's columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rates {
    /// One entry per row, one value per column.
    pub rows: Vec<RateRow>,
    /// What a reader of the result should know.
    pub notes: Vec<String>,
}

/// One row to estimate.
#[derive(Debug, Clone, PartialEq)]
pub struct RateRow {
    /// The rates.
    pub rates: Vec<f64>,
    /// What ran, by the columns that say so, or the file's name.
    pub workload: String,
    /// The file.
    pub file: String,
    /// Which row of the file, or interval of a log, it is, from 1. Those that cannot be used count as well.
    pub row: usize,
}

/// Reads the rows of tables that have these events. Of `columns`, the power and the frequency are not looked at,
/// and columns of the workload may be missing.
///
/// # Errors
/// [`ObservationError::Table`] if an event is missing, [`ObservationError::NoRows`] if no row has all of them.
pub fn rates(tables: &[Table], events: &[String], columns: &TableColumns) -> Result<Rates, ObservationError> {
    let mut found = Rates::default();
    let mut left_out = LeftOut::default();
    for table in tables {
        found.notes.extend(table.table.notes().into_iter().map(|note| format!("{}: {note}", table.name)));
        let places: Vec<usize> =
            events.iter().map(|event| table.find(event)).collect::<Result<_, ObservationError>>()?;
        let workload = table.find_each(&columns.workload).unwrap_or_default();
        let with_unit = |text: &String| {
            let found = table.table.find_with_unit(text, Quantity::Time, "s, ms, us, ns, min or h");
            found.map(|(column, unit)| (column, unit.unwrap_or(1.0))).map_err(|problem| table.refuse(problem))
        };
        let duration = columns.duration.as_ref().map(with_unit).transpose()?;
        let rows = match table.table.matching(&columns.only) {
            Ok(rows) => rows,
            Err(problem @ TableError::NoRowWith { .. }) => {
                left_out.add_table(table.refuse(problem));
                continue;
            }
            Err(problem) => return Err(table.refuse(problem)),
        };
        for row in rows {
            let seconds = match duration {
                None => Ok(1.0),
                Some((column, factor)) => table
                    .table
                    .value(row, column, Quantity::Time, factor)
                    .filter(|seconds| *seconds > 0.0)
                    .ok_or_else(|| table.table.error(row, column, "not above 0")),
            };
            let rate = |seconds: f64| -> Result<Vec<f64>, CellError> {
                places.iter().map(|&place| Ok(table.table.try_count(row, place)? / seconds)).collect()
            };
            match seconds.and_then(rate) {
                Ok(rates) => {
                    let label: Vec<&str> =
                        workload.iter().map(|&column| table.table.cell(row, column)).collect();
                    let label = label.join(" ");
                    let workload = if label.trim().is_empty() { table.workload.clone() } else { label };
                    found.rows.push(RateRow { rates, workload, file: table.name.clone(), row: row + 1 });
                }
                Err(error) => left_out.add(table, &error),
            }
        }
    }
    if found.rows.is_empty() {
        if let Some(why) = left_out.nothing_matches() {
            return Err(why.clone());
        }
        let file = tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(ObservationError::NoRows {
            file,
            reason: "every row lacks a rate".to_owned() + &left_out.first(),
        });
    }
    if left_out.rows > 0 {
        found.notes.push(format!("{} rows lack a rate and were left out{}", left_out.rows, left_out.first()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_need_no_power_and_say_what_is_missing() {
        let table = |text: &str| Table::parse("t.csv", "t", text).expect("a table");
        let events = ["misses".to_owned(), "cycles".to_owned()];
        let columns = TableColumns {
            workload: vec!["job".into()],
            duration: Some("ms:ms".into()),
            ..TableColumns::default()
        };
        let full = table("job,cycles,misses,ms\nb,100,,500\na,300,4,500\n");
        let found = rates(&[full], &events, &columns).expect("a row");
        let (workload, file) = ("a".into(), "t.csv".into());
        assert_eq!(found.rows, [RateRow { rates: vec![8.0, 600.0], workload, file, row: 2 }]);
        assert!(found.notes[0].starts_with("1 rows lack a rate"), "{:?}", found.notes);
        let nameless = rates(&[table("cycles,misses,ms\n300,4,500\n")], &events, &columns).expect("a row");
        assert_eq!(nameless.rows[0].workload, "t");
        let error = rates(&[table("cycles,ms\n300,500\n")], &events, &columns).expect_err("no misses");
        assert!(error.to_string().contains("there is no column `misses`"), "{error}");
    }
}
