//! Rows of counters whose power is to be predicted: measured or not.

use super::columns::{Sheet, power, power_column};
use super::table::{Roles, TableError};

/// Rows with the columns that a model needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CounterRows {
    /// Values in the model's order.
    pub rows: Vec<Vec<f64>>,
    /// Which rows belong together.
    pub groups: Vec<String>,
    /// What was measured, in watts, where the table tells.
    pub power: Vec<Option<f64>>,
    /// What a reader of results should know.
    pub notes: Vec<String>,
}

impl CounterRows {
    /// Reads the rows of a table that have a number in each of these columns. The power need not be there.
    ///
    /// # Errors
    /// [`TableError`] if a column is missing, the power among them where `roles` name it, or if no row has all numbers.
    pub fn read(text: &str, roles: &Roles, columns: &[String]) -> Result<Self, TableError> {
        let sheet = Sheet::read(text)?;
        let table = &sheet.table;
        let places: Vec<usize> = columns
            .iter()
            .map(|name| {
                // Names in models of earlier versions have their decoration.
                let bare = name.trim_start_matches('#').trim_matches('\'');
                let is_called = |heading: &str| heading == name || heading == bare;
                let exact = table.headings().iter().position(|heading| is_called(heading.text()));
                exact.map_or_else(|| table.find(name), Ok)
            })
            .collect::<Result<_, _>>()?;
        let target = match power_column(table, roles) {
            // A counter of the model is not what is predicted.
            Ok(target) => Some(target).filter(|(column, _)| !places.contains(column)),
            Err(error) if roles.target.is_some() => return Err(error),
            // Nothing was said of it, and there may be none.
            Err(_) => None,
        };
        let group = table.find_each(&roles.group)?;
        let mut found = Self { notes: table.notes(), ..Self::default() };
        let mut left_out = Vec::new();
        for (index, row) in table.matching(&roles.only)?.into_iter().enumerate() {
            match places.iter().map(|column| table.try_number(row, *column)).collect::<Result<Vec<f64>, _>>()
            {
                Ok(numbers) => {
                    found
                        .groups
                        .push(sheet.label(&group, row).unwrap_or_else(|| format!("row {}", index + 1)));
                    found.rows.push(numbers);
                    found.power.push(target.and_then(|target| power(table, target, row).ok()));
                }
                Err(error) => left_out.push(error),
            }
        }
        let first = left_out.first().map(ToString::to_string);
        if found.rows.is_empty() {
            return Err(TableError::NoRates(first.map(|first| format!("; {first}")).unwrap_or_default()));
        }
        if let Some(first) = first {
            found.notes.push(format!(
                "{} rows with missing numbers were skipped, the first in {first}",
                left_out.len()
            ));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [&str; 2] = ["reads", "clock"];

    fn read(text: &str, roles: &Roles) -> Result<CounterRows, TableError> {
        CounterRows::read(text, roles, &COLUMNS.map(String::from))
    }

    #[test]
    fn power_need_not_be_there() {
        let text = "kernel;clock;reads\na;1000;1,5\nb;900;n/a\nc;800;2,5\n";
        let roles = Roles { group: vec!["kernel".into()], ..Roles::default() };
        let found = read(text, &roles).expect("two rows");
        assert_eq!(found.rows, [[1.5, 1000.0], [2.5, 800.0]]);
        assert_eq!((found.groups.join(" "), found.power), ("a c".into(), vec![None, None]));
        assert_eq!(
            found.notes,
            ["1 rows with missing numbers were skipped, the first in line 3: `reads` is missing (`n/a`)"]
        );
    }

    #[test]
    fn power_that_is_there_is_read() {
        let text = "clock,power_mw,reads\n1000,50000,1\n900,0,2\n";
        let found =
            read(text, &Roles { target: Some("power_mw:mW".into()), ..Roles::default() }).expect("two");
        assert_eq!(found.power, [Some(50.0), None]);
        assert_eq!(found.groups, ["row 1", "row 2"]);
    }

    #[test]
    fn what_is_missing_is_said() {
        let error = |text: &str, roles: &Roles| read(text, roles).expect_err("refused").to_string();
        let none = Roles::default();
        assert!(error("clock,writes\n1,2\n", &none).contains("there is no column `reads`"));
        assert!(error("clock,reads\n1,x\n", &none).contains("line 2"));
        let roles = Roles { target: Some("watts".into()), ..Roles::default() };
        assert!(error("clock,reads\n1,2\n", &roles).contains("`watts`"));
    }
}
