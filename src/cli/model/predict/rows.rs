//! Rows whose power was estimated, as they are written.

use std::io::{self, Write};

use eprof::power_model::observations::rates::RateRow;
use serde_json::{Value, json};

use crate::cli::fixed::Fixed;

/// What is said of one row.
pub struct Predicted<'a> {
    pub of: &'a RateRow,
    pub watts: f64,
    pub interval: Option<(f64, f64)>,
    /// A rate lies beyond all that the model learnt from; `None` where that is not known.
    pub is_beyond: Option<bool>,
    /// The model says more or less than an estimate may be: the limit stands for it.
    pub is_limited: bool,
}

/// As a table for people.
///
/// # Errors
///
/// It cannot be written.
pub fn print_rows(out: &mut impl Write, predicted: &[Predicted]) -> io::Result<()> {
    writeln!(out, "\n{:>10} {:>10} {:>10}  workload", "watts", "low", "high")?;
    for row in predicted {
        let (low, high) = match row.interval {
            Some((low, high)) => (Fixed(low, 2).to_string(), Fixed(high, 2).to_string()),
            None => ("-".to_owned(), "-".to_owned()),
        };
        let beyond = match (row.is_beyond == Some(true), row.is_limited) {
            (true, true) => "  (beyond the data) (limited)",
            (true, false) => "  (beyond the data)",
            (false, true) => "  (limited)",
            (false, false) => "",
        };
        let watts = Fixed(row.watts, 2);
        writeln!(out, "{watts:>10} {low:>10} {high:>10}  {}{beyond}", row.of.workload)?;
    }
    if predicted.iter().any(|row| row.is_beyond == Some(true)) {
        writeln!(
            out,
            "\nbeyond the data: an event is rarer or more frequent than in all that was measured, and no measurement tells \
             how far off the model is there: low and high are by the errors within the data, and may not hold"
        )?;
    }
    Ok(())
}

/// As CSV.
///
/// # Errors
///
/// It cannot be written.
pub fn print_csv(out: &mut impl Write, predicted: &[Predicted]) -> csv::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(["workload", "watts", "low", "high", "beyond_the_data", "file", "row", "limited"])?;
    for row in predicted {
        let limit = |of: fn((f64, f64)) -> f64| {
            row.interval.map_or_else(String::new, |interval| format!("{:.4}", of(interval)))
        };
        let RateRow { workload, file, row: number, .. } = row.of;
        table.write_record([
            workload,
            &format!("{:.4}", row.watts),
            &limit(|(low, _)| low),
            &limit(|(_, high)| high),
            &row.is_beyond.map_or_else(String::new, |is_beyond| is_beyond.to_string()),
            file,
            &number.to_string(),
            &row.is_limited.to_string(),
        ])?;
    }
    table.flush()?;
    Ok(())
}

/// As JSON.
pub fn json(row: &Predicted) -> Value {
    json!({
        "workload": row.of.workload, "watts": row.watts,
        "low": row.interval.map(|(low, _)| low), "high": row.interval.map(|(_, high)| high),
        "file": row.of.file, "row": row.of.row, "limited": row.is_limited,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_quotes_and_commas_are_one_field() {
        let of =
            RateRow { rates: Vec::new(), workload: "say \"a, b\"".into(), file: "a,1.csv".into(), row: 7 };
        let rows = [Some((60.0, 70.25)), None].map(|interval| Predicted {
            of: &of,
            watts: 66.0,
            interval,
            is_beyond: interval.map(|_| false),
            is_limited: interval.is_none(),
        });
        let mut out = Vec::new();
        print_csv(&mut out, &rows).expect("written");
        let mut table = csv::Reader::from_reader(&out[..]);
        let read: Vec<Vec<String>> =
            table.records().map(|row| row.expect("a row").iter().map(str::to_owned).collect()).collect();
        let row = |low: &str, high: &str, beyond: &str, limited: &str| {
            ["say \"a, b\"", "66.0000", low, high, beyond, "a,1.csv", "7", limited]
                .map(str::to_owned)
                .to_vec()
        };
        assert_eq!(read, [row("60.0000", "70.2500", "false", "false"), row("", "", "", "true")]);
    }

    /// An interval stands beside such a row: what is said below the table must not deny it.
    #[test]
    fn of_rows_beyond_the_data_it_is_said_what_their_interval_is_by() {
        let of = RateRow { rates: Vec::new(), workload: "a".into(), file: "a.csv".into(), row: 1 };
        let row = |is_beyond: bool| Predicted {
            of: &of,
            watts: 66.0,
            interval: Some((60.0, 70.0)),
            is_beyond: Some(is_beyond),
            is_limited: false,
        };
        let text = |rows: &[Predicted]| {
            let mut out = Vec::new();
            print_rows(&mut out, rows).expect("written");
            String::from_utf8(out).expect("text")
        };
        let said = text(&[row(true)]);
        assert!(
            said.contains("60.00") && said.contains("low and high are by the errors within the data"),
            "{said}"
        );
        assert!(!said.contains("no interval"), "{said}");
        assert!(!text(&[row(false)]).contains("beyond"));
    }
}
