//! Rows whose power was estimated, as they are written.

use std::io::{self, Write};

/// What is said of one row.
pub struct Predicted<'a> {
    pub workload: &'a str,
    pub watts: f64,
    pub interval: Option<(f64, f64)>,
    /// A rate lies beyond all that the model learnt from.
    pub is_beyond: bool,
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
            Some((low, high)) => (format!("{low:.2}"), format!("{high:.2}")),
            None => ("-".to_owned(), "-".to_owned()),
        };
        let beyond = if row.is_beyond { "  (beyond the data)" } else { "" };
        writeln!(out, "{:>10.2} {low:>10} {high:>10}  {}{beyond}", row.watts, row.workload)?;
    }
    if predicted.iter().any(|row| row.is_beyond) {
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
pub fn print_csv(out: &mut impl Write, predicted: &[Predicted]) -> io::Result<()> {
    writeln!(out, "workload,watts,low,high,beyond_the_data")?;
    for row in predicted {
        let (low, high) = match row.interval {
            Some((low, high)) => (format!("{low:.4}"), format!("{high:.4}")),
            None => (String::new(), String::new()),
        };
        let workload = row.workload.replace('"', "\"\"");
        writeln!(out, "\"{workload}\",{:.4},{low},{high},{}", row.watts, row.is_beyond)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interval stands beside such a row: what is said below the table must not deny it.
    #[test]
    fn of_rows_beyond_the_data_it_is_said_what_their_interval_is_by() {
        let row =
            |is_beyond| Predicted { workload: "a", watts: 66.0, interval: Some((60.0, 70.0)), is_beyond };
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
