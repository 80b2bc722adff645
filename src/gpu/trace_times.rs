//! Times in the cells of power traces: dates, clocks and numbers since any zero.

use crate::tables::unit::{self, Quantity};
use crate::tables::{Heading, Marks, Number, date_or_clock};
use crate::units::Timestamp;

/// Nanoseconds per second.
const SECOND: f64 = 1e9;

/// Nanoseconds per unit of a column of times, where its name tells: `time_ms`, `elapsed [s]`.
pub(super) fn time_unit(heading: &Heading) -> Option<f64> {
    heading.factor(Quantity::Time).map(|seconds| (seconds * SECOND).round())
}

/// Nanoseconds per unit.
fn nanos_per(unit: &str) -> Option<f64> {
    unit::factor(unit, Quantity::Time).map(|seconds| (seconds * SECOND).round())
}

/// How the cells of a column of times are to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeFormat {
    /// Nanoseconds per unit of a plain number; by its size if `None`.
    pub unit: Option<f64>,
    /// Numbers below zero are there: this is added to all, in the column's own unit.
    pub shift: f64,
    /// What a mark in a number means that could separate its fraction or thousands.
    pub marks: Marks,
}

impl TimeFormat {
    /// For a column of which nothing else is known.
    pub(super) fn new(marks: Marks) -> Self {
        Self { unit: None, shift: 0.0, marks }
    }
}

/// A date such as `2023/07/30 17:29:56.995`, a time of day or a number, as nanoseconds.
pub(super) fn parse_time(cell: &str, format: TimeFormat) -> Option<Timestamp> {
    let cell = cell.trim();
    let number = Number::read(cell, format.marks);
    let number = number.filter(|number| number.unit.is_empty() || nanos_per(number.unit).is_some());
    if let Some(Number { value, unit }) = number {
        let digits = cell.strip_suffix(unit).unwrap_or(cell).trim();
        let unit = if unit.is_empty() { format.unit } else { nanos_per(unit) };
        // A whole number need not lose its last digits in a float.
        if let (Ok(whole), true) = (digits.parse::<u64>(), format.shift == 0.0) {
            let unit = unit.unwrap_or_else(|| unit_of_epoch(whole as f64));
            return whole.checked_mul(unit as u64).map(Timestamp::from_nanos);
        }
        let value = value + format.shift;
        let nanos = value * unit.unwrap_or_else(|| unit_of_epoch(value));
        return (0.0..1.8e19).contains(&nanos).then(|| Timestamp::from_nanos(nanos.round() as u64));
    }
    date_or_clock(cell).map(Timestamp::from_nanos)
}

/// Whether a cell is a time of day without a date.
pub(super) fn is_clock(cell: &str) -> bool {
    let cell = cell.trim();
    !cell.contains([' ', 'T']) && cell.contains(':') && date_or_clock(cell).is_some()
}

/// Today is 1.8e9 s, 1.8e12 ms, 1.8e15 us, 1.8e18 ns after 1970; less is seconds since any zero.
fn unit_of_epoch(number: f64) -> f64 {
    match number {
        n if n >= 1e17 => 1.0,
        n if n >= 1e14 => 1e3,
        n if n >= 1e11 => 1e6,
        _ => SECOND,
    }
}

/// The unit of times since any zero that name none, by how far apart they are: a sensor is polled
/// every 0.2 ms to 1 s. `None` for times since 1970, which their size tells.
pub(super) fn unit_of_steps(first: f64, typical_step: f64) -> Option<f64> {
    if first >= 1e9 {
        return None;
    }
    match typical_step {
        step if step < 2.0 => None,
        step if step < 1e3 => Some(1e6),
        step if step < 1e6 => Some(1e3),
        _ => Some(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(cell: &str, unit: Option<f64>) -> Option<u64> {
        parse_time(cell, TimeFormat { unit, ..TimeFormat::new(Marks::ENGLISH) }).map(|time| time.as_nanos())
    }

    #[test]
    fn times_of_many_kinds() {
        // date -u -d '2023-08-24 22:18:34.203' +%s%N
        const THEN: Option<u64> = Some(1_692_915_514_203_000_000);
        for cell in [
            "2023/08/24 22:18:34.203",
            "2023-08-24T22:18:34.203Z",
            "2023-08-24 22:18:34,203",
            "2023-08-24 22:18:34.203+00:00",
            "1692915514203",
            "1692915514.203",
            "1692915514203000000",
        ] {
            let found = nanos(cell, None).map(|nanos| (nanos + 500) / 1000 * 1000);
            assert_eq!(found, THEN, "{cell}");
        }
        assert_eq!(nanos("133.25 ms", None), Some(133_250_000));
        assert_eq!(nanos("00:01:02.5", None), Some(62_500_000_000));
        assert_eq!(nanos("15", Some(1e6)), Some(15_000_000));
        assert_eq!(nanos("[N/A]", None), None);
        assert_eq!(nanos("2023/13/24 22:18:34", None), None);
        assert_eq!(
            parse_time("0,015", TimeFormat::new(Marks::UNTOLD)),
            Some(Timestamp::from_nanos(15_000_000))
        );
        assert_eq!(nanos("1.5 h", None), Some(5_400_000_000_000));
    }

    #[test]
    fn clocks_have_no_date() {
        assert!(is_clock("23:59:50.000") && is_clock(" 05:19 "));
        for other in ["2023/08/24 22:18:34", "2023-08-24T22:18:34", "12.5", "[N/A]"] {
            assert!(!is_clock(other), "{other}");
        }
    }

    #[test]
    fn units_by_size_and_by_steps() {
        assert_eq!(
            [1e17, 9.9e16, 1e14, 9.9e13, 1e11, 9.9e10, 0.0].map(unit_of_epoch),
            [1.0, 1e3, 1e3, 1e6, 1e6, SECOND, SECOND]
        );
        let of = |step: f64| unit_of_steps(0.0, step);
        assert_eq!(
            [1.99, 2.0, 999.0, 1e3, 999e3, 1e6].map(of),
            [None, Some(1e6), Some(1e6), Some(1e3), Some(1e3), Some(1.0)]
        );
        assert_eq!((unit_of_steps(1e9, 100.0), unit_of_steps(9.99e8, 100.0)), (None, Some(1e6)));
    }
}
