//! How engines say the same: the one place where their SQL differs.
//!
//! What a user or a stranger wrote never stands in a text of SQL as it is: a value of other characters than those of plain names
//! is written as hexadecimal digits of its bytes. Engines do not agree on what a quote or a backslash within quotes means
//! (in Spark's SQL `'a''b'` is `ab`), but on digits they do.

use std::fmt::Write;

/// An engine's way to say things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// The embedded engine's.
    DataFusion,
    /// ClickHouse's, of 18.16 and later.
    ClickHouse,
    /// Spark's, as Sail speaks it.
    Spark,
}

/// What needs no digits beside letters and numbers.
const PLAIN: &str = " _./:@+=,-";

impl Dialect {
    /// A text as a literal.
    pub fn text(self, value: &str) -> String {
        if value.chars().all(|c| c.is_ascii_alphanumeric() || PLAIN.contains(c)) {
            return format!("'{value}'");
        }
        let mut digits = String::with_capacity(2 * value.len());
        for byte in value.bytes() {
            let _ = write!(digits, "{byte:02x}");
        }
        match self {
            Self::DataFusion => format!("CAST(X'{digits}' AS VARCHAR)"),
            Self::ClickHouse => format!("unhex('{digits}')"),
            Self::Spark => format!("CAST(X'{digits}' AS STRING)"),
        }
    }

    /// That a pattern is found in a text, or is not.
    pub fn matches(self, text: &str, pattern: &str, is_found: bool) -> String {
        match (self, is_found) {
            // In a group: without one the engine makes a LIKE of a pattern that is a plain text, where backslashes mean something
            // else.
            (Self::DataFusion, true) => format!("{text} ~ {}", self.text(&format!("({pattern})"))),
            (Self::DataFusion, false) => format!("{text} !~ {}", self.text(&format!("({pattern})"))),
            // A point is no line feed elsewhere. Of what stands in no group, old servers look for the letters first, as they are
            // written, whatever `(?i)` says.
            (Self::ClickHouse, _) => {
                format!("match({text}, {}) = {}", self.text(&format!("(?-s:{pattern})")), u8::from(is_found))
            }
            (Self::Spark, true) => format!("{text} RLIKE {}", self.text(pattern)),
            (Self::Spark, false) => format!("NOT {text} RLIKE {}", self.text(pattern)),
        }
    }

    /// That a text stands in a column.
    pub fn contains(self, column: &str, text: &str) -> String {
        let function = match self {
            Self::DataFusion => "strpos",
            Self::ClickHouse => "position",
            Self::Spark => "instr",
        };
        format!("{function}({column}, {}) > 0", self.text(text))
    }

    /// What stands in a column behind `start`, which is no pattern, up to the end of its line; nothing where `start` does not.
    pub fn rest_of_line(self, column: &str, start: &str) -> String {
        match self {
            Self::DataFusion | Self::Spark => {
                format!("split_part(split_part({column}, {}, 2), {}, 1)", self.text(start), self.text("\n"))
            }
            Self::ClickHouse => {
                format!("extract({column}, {})", self.text(&format!("{}([^\n]*)", regex::escape(start))))
            }
        }
    }

    /// A point in time, in microseconds since 1970-01-01 UTC.
    pub fn time(self, micros: i64) -> String {
        match self {
            Self::DataFusion => format!("arrow_cast({micros}, 'Timestamp(Microsecond, Some(\"UTC\"))')"),
            Self::ClickHouse => micros.to_string(),
            Self::Spark => format!("timestamp_micros({micros})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Dialect; 3] = [Dialect::DataFusion, Dialect::ClickHouse, Dialect::Spark];

    #[test]
    fn plain_names_stay_readable() {
        for dialect in ALL {
            assert_eq!(dialect.text("n1.example/a_b"), "'n1.example/a_b'");
            assert_eq!(dialect.text(""), "''");
        }
        assert_eq!(Dialect::ClickHouse.text("it's"), "unhex('69742773')");
        assert_eq!(Dialect::Spark.text("\\"), "CAST(X'5c' AS STRING)");
        assert_eq!(Dialect::DataFusion.text("ü"), "CAST(X'c3bc' AS VARCHAR)");
        assert_eq!(
            Dialect::ClickHouse.matches("comm", "a.b", false),
            "match(comm, unhex('283f2d733a612e6229')) = 0"
        );
        assert_eq!(Dialect::DataFusion.matches("comm", "a", true), "comm ~ CAST(X'286129' AS VARCHAR)");
        assert_eq!(Dialect::Spark.contains("labels", "a=1"), "instr(labels, 'a=1') > 0");
        assert_eq!(
            Dialect::ClickHouse.rest_of_line("labels", "a="),
            "extract(labels, unhex('613d285b5e0a5d2a29'))"
        );
    }

    proptest! {
        /// Whatever a value is: between the quotes stands nothing that could end them or escape from them.
        #[test]
        fn no_value_leaves_its_quotes(value in any::<String>()) {
            for dialect in ALL {
                let text = dialect.text(&value);
                let inside: Vec<&str> = text.split('\'').collect();
                prop_assert_eq!(inside.len(), 3, "{}", &text);
                let is_plain = |c: char| c.is_ascii_alphanumeric() || PLAIN.contains(c);
                prop_assert!(inside[1].chars().all(is_plain), "{}", &text);
                prop_assert!(["", "CAST(X", "unhex("].contains(&inside[0]), "{}", &text);
                prop_assert!(["", " AS VARCHAR)", ")", " AS STRING)"].contains(&inside[2]), "{}", &text);
            }
        }
    }
}
