//! Tables joined into one data set.

use super::ObservationError;
use super::numeric::{self, NumericColumn};
use super::rows::{Found, LeftOut, add_rows};
use super::table::{Table, TableColumns};
use crate::power_model::dataset::Dataset;
use crate::tables::is_of_a_meter;

/// A data set, and what was left out on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The rows that can be used.
    pub data: Dataset,
    /// What a reader of the result should know.
    pub notes: Vec<String>,
}

/// Parts of a column's name that make it a bookkeeping column, not an event.
const BOOKKEEPING: [&str; 3] = ["timestamp", "time_stamp", "node_type"];

/// Joins tables into one data set.
///
/// # Errors
/// [`ObservationError::Table`] if a named column is missing in one of them,
/// [`ObservationError::NoRows`] if no row can be used.
pub fn observe(tables: &[Table], columns: &TableColumns) -> Result<Observed, ObservationError> {
    let mut notes = Vec::new();
    let events = match (&columns.events, tables.first()) {
        (Some(events), Some(first)) => {
            let found = first.find_each(events)?;
            found.into_iter().map(|column| first.table.headings()[column].text().to_owned()).collect()
        }
        _ => numeric_events(tables, columns, &mut notes)?,
    };
    let mut data = Dataset::new(events.clone());
    let mut left_out = LeftOut::default();
    for table in tables {
        notes.extend(table.table.notes().into_iter().map(|note| format!("{}: {note}", table.name)));
        add_rows(table, columns, &events, &mut data, &mut left_out)?;
    }
    if data.is_empty() {
        if let Some(why) = left_out.nothing_matches() {
            return Err(why.clone());
        }
        let file = tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(", ");
        let reason = "every row lacks a number or has no positive power".to_owned() + &left_out.first();
        return Err(ObservationError::NoRows { file, reason });
    }
    if left_out.rows > 0 {
        let first = left_out.first();
        notes.push(format!(
            "{} rows lack a number or a positive power and were left out{first}",
            left_out.rows
        ));
    }
    notes.extend(negative_counts(&data));
    Ok(Observed { data, notes })
}

/// Columns with numbers below zero: events are not counted backwards, though what a column may be besides is.
fn negative_counts(data: &Dataset) -> Option<String> {
    let below = |column: usize| data.column(column).filter(|rate| *rate < 0.0).count();
    let found: Vec<String> = (0..data.columns().len())
        .map(|column| (column, below(column)))
        .filter(|(_, rows)| *rows > 0)
        .map(|(column, rows)| format!("`{}` in {rows}", data.columns()[column]))
        .collect();
    (!found.is_empty()).then(|| {
        format!(
            "counts are not below zero, and are so of {} rows: where that is a mistake, leave the column out (--exclude)",
            found.join(" and of ")
        )
    })
}

/// Every numeric column that all tables have and that is neither named as something else nor a meter's.
fn numeric_events(
    tables: &[Table],
    columns: &TableColumns,
    notes: &mut Vec<String>,
) -> Result<Vec<String>, ObservationError> {
    let Some(first) = tables.first() else { return Ok(Vec::new()) };
    let (mut others, missing) = first.table.find_present(&columns.except);
    notes.extend(missing.into_iter().map(|name| format!("there is no column `{name}` to leave out")));
    others.extend(Found::new(first, columns, &[])?.all());
    let mut of_meters = Vec::new();
    let mut candidates = Vec::new();
    for (column, heading) in first.table.headings().iter().enumerate() {
        let name = heading.text();
        let lower = name.to_ascii_lowercase();
        let is_other = lower.is_empty()
            || others.contains(&column)
            || BOOKKEEPING.iter().any(|word| lower.contains(word));
        if !is_other && (0..first.rows()).any(|row| first.has_number(row, column)) {
            first.find(name)?;
        }
        let Some(column) = NumericColumn::of(name, tables).filter(|_| !is_other) else { continue };
        if is_of_a_meter(heading, first.table.headings()) {
            of_meters.push(name);
        } else {
            candidates.push(column);
        }
    }
    let (events, sparse) = numeric::filled(candidates);
    notes.extend(sparse);
    if !of_meters.is_empty() {
        notes.push(format!(
            "by their names a meter's and no events, as they would leak the power: {}; --columns takes them all the \
             same",
            of_meters.join(", ")
        ));
    }
    Ok(events)
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
        assert_eq!(observed.notes.len(), 1);
        assert!(observed.notes[0].contains("leak the power: dram_power; --columns"), "{}", observed.notes[0]);
    }

    #[test]
    fn readings_of_meters_are_no_events() {
        let text = "misses,psu_mW,pkg_pwr,wall,volt,amps,VDD_core,power_limit,watts\n1,2,3,4,5,6,7,8,9\n";
        let table = Table::parse("t.csv", "t", text).expect("a table");
        let observed = observe(std::slice::from_ref(&table), &columns()).expect("a row");
        assert_eq!(observed.data.columns(), ["misses", "power_limit"]);
        let named = TableColumns { events: Some(vec!["volt".into()]), ..columns() };
        assert_eq!(observe(&[table], &named).expect("a row").data.columns(), ["volt"]);
    }

    #[test]
    fn named_columns_order_rates_and_labels() {
        let table = Table::parse("t.csv", "t", TEXT).expect("a table");
        let named = TableColumns {
            events: Some(vec!["cycles".into()]),
            workload: vec!["job".into()],
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
    fn of_rows_that_nobody_has_the_values_there_are_are_told() {
        let table = Table::parse("t.csv", "t", TEXT).expect("a table");
        let only = |value: &str| TableColumns { only: vec![("job".into(), value.into())], ..columns() };
        let error = observe(std::slice::from_ref(&table), &only("nope")).expect_err("no row").to_string();
        assert_eq!(error, "t.csv: no row has job=nope; its values are: a, b");
        // Another of several tables has it.
        let other = Table::parse("u.csv", "u", &TEXT.replace(",a,", ",nope,")).expect("a table");
        assert!(observe(&[table, other], &only("nope")).is_ok());
    }

    #[test]
    fn counts_below_zero_are_told() {
        let table = Table::parse("t.csv", "t", &TEXT.replace("300,4", "-300,4").replace("100,2", "-1,2"));
        let observed = observe(&[table.expect("a table")], &columns()).expect("rows");
        let note = observed.notes.iter().find(|note| note.contains("below zero")).expect("a note");
        assert!(note.contains("of `cycles` in 2 rows") && !note.contains("misses"), "{note}");
    }

    #[test]
    fn rows_without_a_number_are_counted() {
        let table = Table::parse("t.csv", "t", TEXT).expect("a table");
        let named = TableColumns { events: Some(vec!["misses".into()]), ..columns() };
        let observed = observe(&[table], &named).expect("rows");
        assert_eq!(observed.data.len(), 2);
        assert_eq!(
            observed.notes,
            [
                "1 rows lack a number or a positive power and were left out, the first: t.csv, line 4: `misses` is \
                 empty"
            ]
        );
    }

    #[test]
    fn blanks_cost_rows_and_not_counters() {
        // 3 of 40 rows lack a number in one of two counters, and the third has hardly any.
        let row = |i: usize| {
            let cycles = if i == 7 { String::new() } else { format!("{i}") };
            let misses = if i == 9 || i == 30 { "NaN".to_owned() } else { format!("{}", 2 * i) };
            let rare = if i < 3 { "1" } else { "" };
            format!("{cycles},{misses},{rare},{}\n", 10 + i)
        };
        let text = "cycles,misses,rare,watts\n".to_owned() + &(0..40).map(row).collect::<String>();
        let table = Table::parse("t.csv", "t", &text).expect("a table");
        let observed = observe(&[table], &columns()).expect("rows");
        assert_eq!(observed.data.columns(), ["cycles", "misses"]);
        assert_eq!(observed.data.len(), 37);
        assert_eq!(
            observed.notes,
            [
                "`rare` is not used: it has a number in 3 of 40 rows only",
                "3 rows lack a number or a positive power and were left out, the first: t.csv, line 9: `cycles` is \
                 empty"
            ]
        );
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
    fn a_table_without_rows_is_no_obstacle_to_others() {
        let table = |text: &str| Table::parse("t.csv", "t", text).expect("a table");
        let full = table(&TEXT.replace("200,,", "200,3,"));
        let none = table("timestamp,job,watts,cycles,misses,comment,dram_power\n");
        let observed = observe(&[full, none.clone()], &columns()).expect("rows");
        assert_eq!((observed.data.len(), observed.data.columns().len()), (3, 2));
        assert!(observe(&[none], &columns()).expect_err("no row").to_string().contains("no usable row"));
    }

    #[test]
    fn a_missing_column_is_named() {
        let table = Table::parse("t.csv", "t", TEXT).expect("a table");
        let named = TableColumns { power: "volts".into(), ..TableColumns::default() };
        let error = observe(&[table], &named).expect_err("no such column");
        let text = error.to_string();
        assert!(
            text.starts_with("t.csv: there is no column `volts`; the columns are: timestamp, job"),
            "{text}"
        );
    }
}
