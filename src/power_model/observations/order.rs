//! Rows in the order of time.

use crate::tables::unit::{self, Quantity};
use crate::tables::{CellError, DAY, Table, date_or_clock, day, is_missing, midnights};

/// The rows by a column of times. Those without one cannot be put anywhere and are left out.
///
/// # Errors
/// The first cell that holds something, and no time of the same kind as those before it.
pub(super) fn in_order(
    table: &Table,
    rows: &[usize],
    column: usize,
    mut left_out: impl FnMut(&CellError),
) -> Result<Vec<usize>, CellError> {
    let mut of_column = None;
    let mut timed: Vec<(f64, usize)> = Vec::with_capacity(rows.len());
    for &row in rows {
        if is_missing(table.cell(row, column)) {
            left_out(&table.error(row, column, "no time"));
            continue;
        }
        let (kind, time) = time(table, row, column).ok_or_else(|| table.error(row, column, "no time"))?;
        if *of_column.get_or_insert(kind) != kind {
            return Err(table.error(row, column, "no time like those above it"));
        }
        timed.push((time, row));
    }
    if of_column == Some(Kind::Clock) {
        add_midnight(&mut timed);
    }
    timed.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(timed.into_iter().map(|(_, row)| row).collect())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Date,
    Clock,
}

/// The time in a cell: nanoseconds of dates and clocks, numbers as they are.
fn time(table: &Table, row: usize, column: usize) -> Option<(Kind, f64)> {
    let cell = table.cell(row, column);
    if let Some(nanos) = date_or_clock(cell) {
        let kind = if nanos < DAY { Kind::Clock } else { Kind::Date };
        return Some((kind, nanos as f64));
    }
    if let Some(nanos) = day(cell) {
        return Some((Kind::Date, nanos as f64));
    }
    let unit = table.quantity(row, column)?.unit;
    let is_time = unit.is_empty() || unit::factor(unit, Quantity::Time).is_some();
    is_time.then(|| table.number(row, column)).flatten().map(|number| (Kind::Number, number))
}

/// Finds midnight among clocks: where they fall, if each time by more than half a day, or else, if they are in no order, where
/// the longest time without any ends. What is before it in the day is of the next one.
fn add_midnight(timed: &mut [(f64, usize)]) {
    const DAY_NANOS: f64 = DAY as f64;
    let clocks: Vec<u64> = timed.iter().map(|(nanos, _)| *nanos as u64).collect();
    if let Some(midnights) = midnights(&clocks) {
        for at in midnights {
            timed[at..].iter_mut().for_each(|(time, _)| *time += DAY_NANOS);
        }
        return;
    }
    let mut clocks: Vec<f64> = timed.iter().map(|(time, _)| *time).collect();
    clocks.sort_by(f64::total_cmp);
    let around = DAY_NANOS - (clocks[clocks.len() - 1] - clocks[0]);
    let longest = clocks.windows(2).max_by(|a, b| (a[1] - a[0]).total_cmp(&(b[1] - b[0])));
    if let Some(&[last, next]) = longest
        && next - last > around
    {
        let of_next_day = timed.iter_mut().filter(|(time, _)| *time <= last);
        of_next_day.for_each(|(time, _)| *time += DAY_NANOS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(cells: &[&str]) -> Result<(Vec<usize>, usize), String> {
        let text: String = cells.iter().map(|cell| format!("{cell};1\n")).collect();
        let table = Table::read(&format!("at;n\n{text}")).expect("a table");
        let rows: Vec<usize> = (0..cells.len()).collect();
        let mut left_out = 0;
        let rows = in_order(&table, &rows, 0, |_| left_out += 1).map_err(|error| error.to_string())?;
        Ok((rows, left_out))
    }

    #[test]
    fn rows_follow_their_times() {
        for cells in [
            ["3", "1", "2"],
            ["3 s", "1 s", "2000 ms"],
            ["2024-01-02 00:00:10", "2024-01-01 23:59:59", "2024-01-02 00:00:01"],
            ["2024-02-01", "2024-01-30", "2024-01-31"],
            ["01.02.2024", "28.01.2024", "30.01.2024"],
            ["12:00:03", "12:00:01", "12:00:02"],
        ] {
            assert_eq!(order(&cells), Ok((vec![1, 2, 0], 0)), "{cells:?}");
        }
        // Past midnight.
        assert_eq!(order(&["23:58:00", "23:59:30", "00:01:00"]), Ok((vec![0, 1, 2], 0)));
        let nights = ["12:00:00", "23:00:00", "01:00:00", "12:30:00", "00:15:00"];
        assert_eq!(order(&nights), Ok((vec![0, 1, 2, 3, 4], 0)), "two nights");
        let clocks = ["00:01:00", "23:58:00", "00:02:00", "23:59:30", "00:00:30"];
        assert_eq!(order(&clocks), Ok((vec![1, 3, 4, 0, 2], 0)));
        // At midnight itself.
        assert_eq!(order(&["23:58:00", "23:59:30", "00:00:00"]), Ok((vec![0, 1, 2], 0)));
        let clocks = ["00:00:00", "23:58:00", "00:02:00", "23:59:30", "00:00:30"];
        assert_eq!(order(&clocks), Ok((vec![1, 3, 0, 4, 2], 0)));
        // In their order already: a morning's one, and a day without any before the evening's.
        assert_eq!(order(&["00:01:00", "23:58:00", "23:59:30"]), Ok((vec![0, 1, 2], 0)));
        assert_eq!(order(&["2", "n/a", "1"]), Ok((vec![2, 0], 1)));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        assert_eq!(order(&["1", "early", "2"]), Err("line 3: `at` is `early`, which is no time".to_owned()));
        assert_eq!(order(&["5 W", "1", "2"]), Err("line 2: `at` is `5 W`, which is no time".to_owned()));
        let mixed = order(&["12:00:03", "7", "8"]).expect_err("two kinds");
        assert_eq!(mixed, "line 3: `at` is `7`, which is no time like those above it");
    }
}
