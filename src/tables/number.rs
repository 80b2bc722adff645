//! Single cells as numbers.

use super::marks::Marks;
use super::numeral::Numeral;

/// A number, and what is written behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number<'a> {
    /// Its value in that unit; finite.
    pub value: f64,
    /// `W`, `%`, `GB/s`; empty if there is none.
    pub unit: &'a str,
}

impl<'a> Number<'a> {
    /// Reads a cell. `None` for text, for what is missing and for what is not finite.
    ///
    /// Thousands may be set apart by commas, points, blanks or apostrophes. Where a single comma or point
    /// before three digits could be either, `marks` decides.
    pub fn read(cell: &'a str, marks: Marks) -> Option<Self> {
        // Most cells are like this.
        if !marks.point_sets_thousands_apart
            && matches!(cell.as_bytes().first()?, b'0'..=b'9' | b'-')
            && let Ok(value) = cell.parse::<f64>()
        {
            return value.is_finite().then_some(Self { value, unit: "" });
        }
        let cell = bare(cell);
        let (sign, rest) = match cell.as_bytes().first()? {
            b'-' => (-1.0, &cell[1..]),
            b'+' => (1.0, &cell[1..]),
            _ => cell.strip_prefix('\u{2212}').map_or((1.0, cell), |rest| (-1.0, rest)),
        };
        let numeral = Numeral::before(rest)?;
        let unit = unit_behind(&rest[numeral.text.len()..])?;
        let value = sign * numeral.value(marks)?;
        value.is_finite().then_some(Self { value, unit })
    }

    /// Reads a cell that has no unit.
    pub fn read_plain(cell: &str, marks: Marks) -> Option<f64> {
        Number::read(cell, marks).filter(|number| number.unit.is_empty()).map(|number| number.value)
    }
}

/// A cell without the quotes and blanks around it.
pub(super) fn bare(cell: &str) -> &str {
    cell.trim().trim_matches(['"', '\'']).trim()
}

/// Is this how tools write that there is no value: nothing, `N/A`, `[Not Supported]`, `<not counted>`?
pub fn is_missing(cell: &str) -> bool {
    const WORDS: [&str; 16] = [
        "n/a",
        "na",
        "nan",
        "null",
        "nil",
        "none",
        "-",
        "--",
        "not supported",
        "not available",
        "not counted",
        "not found",
        "unknown error",
        "unknown",
        "err!",
        "insufficient permissions",
    ];
    let cell = bare(cell).trim_matches(['[', ']', '<', '>', '(', ')']);
    cell.is_empty() || WORDS.iter().any(|word| cell.eq_ignore_ascii_case(word))
}

/// What stands behind a number: nothing, or a unit. Digits in it mean that this is no number with a unit,
/// but a name such as `4x4` or `2mm3`.
fn unit_behind(text: &str) -> Option<&str> {
    let unit = text.trim().trim_matches(['[', ']', '(', ')']).trim();
    let is_unit = |c: char| c.is_alphabetic() || "%‰°/ *·^²³_".contains(c);
    let begins = unit.chars().next().is_none_or(|c| c.is_alphabetic() || "%‰°/".contains(c));
    (begins && unit.chars().all(is_unit)).then_some(unit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GERMAN: Marks = Marks { comma_sets_thousands_apart: false, point_sets_thousands_apart: true };

    fn read(cell: &str) -> Option<(f64, &str)> {
        Number::read(cell, Marks::ENGLISH).map(|number| (number.value, number.unit))
    }

    #[test]
    fn numbers_as_tools_write_them() {
        for (cell, value, unit) in [
            ("12", 12.0, ""),
            (" 12.5 ", 12.5, ""),
            ("-1", -1.0, ""),
            ("\u{2212}1.5", -1.5, ""),
            ("+.5", 0.5, ""),
            ("5.", 5.0, ""),
            ("1e3 J", 1000.0, "J"),
            ("1.5E-2", 0.015, ""),
            ("12.5 W", 12.5, "W"),
            ("12.5W", 12.5, "W"),
            ("99 %", 99.0, "%"),
            ("45.2%", 45.2, "%"),
            ("12.5 GB/s", 12.5, "GB/s"),
            ("30 [W]", 30.0, "W"),
            ("2.10GHz", 2.1, "GHz"),
            ("61 °C", 61.0, "°C"),
            ("\"12.5\"", 12.5, ""),
            ("'12.5'", 12.5, ""),
            ("1,234", 1234.0, ""),
            ("1,234,567.5", 1_234_567.5, ""),
            ("1.234.567,5", 1_234_567.5, ""),
            ("1.234.567", 1_234_567.0, ""),
            ("1 234 567.5", 1_234_567.5, ""),
            ("1\u{a0}234,5", 1234.5, ""),
            ("1'234.5", 1234.5, ""),
            ("12,5 W", 12.5, "W"),
            ("0,125", 0.125, ""),
            ("1,2345", 1.2345, ""),
            ("1,5e3", 1500.0, ""),
            ("1,234e3", 1234.0, ""),
            ("5e", 5.0, "e"),
        ] {
            assert_eq!(read(cell), Some((value, unit)), "{cell}");
        }
    }

    #[test]
    fn what_is_no_number() {
        for cell in [
            "",
            "-",
            "W",
            "N/A",
            "[N/A]",
            "kernel7b",
            "Idle (0%)",
            "4x4",
            "2024-01-05",
            "22:18:34",
            "1.2.3",
            "1,2,3",
            "1,23,456",
            "1.234,567.8",
            "12 34",
            "1,",
            "inf",
            "NaN",
            "1e999",
            "0x1F",
            "-O2",
            "1-2",
            "..",
        ] {
            assert_eq!(read(cell), None, "{cell}");
        }
    }

    #[test]
    fn marks_decide_where_both_readings_are_possible() {
        let read = |cell, marks| Number::read(cell, marks).map(|number| number.value);
        assert_eq!(read("1,234", Marks::ENGLISH), Some(1234.0));
        assert_eq!(read("1,234", Marks::UNTOLD), Some(1.234));
        assert_eq!(read("1.234", Marks::ENGLISH), Some(1.234));
        assert_eq!(read("1.234", Marks::UNTOLD), Some(1.234));
        assert_eq!(read("1.234", GERMAN), Some(1234.0));
        // Where only one is, they do not matter.
        assert_eq!(read("0.234", GERMAN), Some(0.234));
        assert_eq!(read("12.5", GERMAN), Some(12.5));
    }

    #[test]
    fn values_that_are_missing() {
        for cell in [
            "",
            " ",
            "N/A",
            "n/a",
            "[N/A]",
            "[Not Supported]",
            "<not counted>",
            "<not supported>",
            "-",
            "NaN",
        ] {
            assert!(is_missing(cell), "{cell}");
            assert_eq!(read(cell), None, "{cell}");
        }
        for cell in ["0", "failed", "W"] {
            assert!(!is_missing(cell), "{cell}");
        }
    }

    proptest! {
        #[test]
        fn every_number_reads_back(value in any::<f64>().prop_filter("finite", |value| value.is_finite())) {
            let (plain, exponent) = (value.to_string(), format!("{value:e}"));
            prop_assert_eq!(read(&plain), Some((value, "")));
            prop_assert_eq!(read(&exponent), Some((value, "")));
            let commas = plain.replace('.', ",");
            prop_assert_eq!(Number::read(&commas, GERMAN).map(|number| number.value), Some(value));
        }

        #[test]
        fn anything_else_does_no_harm(cell in "\\PC{0,24}", digits in "[-+0-9.,' eEW%]{0,16}") {
            for marks in [Marks::ENGLISH, Marks::UNTOLD, GERMAN] {
                for cell in [&cell, &digits] {
                    prop_assert!(Number::read(cell, marks).is_none_or(|number| number.value.is_finite()));
                }
            }
        }
    }
}
