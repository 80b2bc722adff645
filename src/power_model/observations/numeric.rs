//! Which columns of tables hold enough numbers to be events.

use super::table::Table;

/// A column that has numbers in every table.
pub(super) struct NumericColumn {
    name: String,
    /// For each row of all tables, one after the other: there is a number.
    has_number: Vec<bool>,
}

impl NumericColumn {
    /// The column of this name; `None` if one of the tables lacks it or has rows and no number in it.
    pub(super) fn of(name: &str, tables: &[Table]) -> Option<Self> {
        let mut has_number = Vec::new();
        for table in tables {
            let column = table.find(name).ok()?;
            let of_table: Vec<bool> = (0..table.rows()).map(|row| table.has_number(row, column)).collect();
            if !of_table.is_empty() && !of_table.contains(&true) {
                return None;
            }
            has_number.extend(of_table);
        }
        Some(Self { name: name.to_owned(), has_number })
    }

    fn filled(&self) -> usize {
        self.has_number.iter().filter(|has| **has).count()
    }
}

/// The columns without those that would cost more rows than they are worth, and what is to be said of
/// these.
///
/// A row counts only with a number in every column. So the emptiest column is given up as long as less
/// than half of its cells are numbers, or as together they leave less than half of the rows.
pub(super) fn filled(mut columns: Vec<NumericColumn>) -> (Vec<String>, Vec<String>) {
    let mut notes = Vec::new();
    loop {
        let rows = columns.first().map_or(0, |column| column.has_number.len());
        let complete = (0..rows).filter(|row| columns.iter().all(|column| column.has_number[*row])).count();
        let emptiest = (0..columns.len()).min_by_key(|index| columns[*index].filled());
        let Some(emptiest) = emptiest.filter(|_| 2 * complete < rows) else { break };
        let column = columns.remove(emptiest);
        notes.push(format!(
            "`{}` is not used: it has a number in {} of {rows} rows only",
            column.name,
            column.filled()
        ));
    }
    (columns.into_iter().map(|column| column.name).collect(), notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, rows: &str) -> NumericColumn {
        NumericColumn { name: name.to_owned(), has_number: rows.chars().map(|c| c == 'x').collect() }
    }

    #[test]
    fn half_of_the_rows_must_be_left() {
        let kept = |columns: &[(&str, &str)]| {
            filled(columns.iter().map(|(name, rows)| column(name, rows)).collect()).0
        };
        assert_eq!(kept(&[("a", "xxxxxx"), ("b", "xxx---")]), ["a", "b"]);
        assert_eq!(kept(&[("a", "xxxxxx"), ("b", "xx----")]), ["a"]);
        // Each alone would do, together they leave two of six.
        assert_eq!(kept(&[("a", "xxxx--"), ("b", "--xxx-"), ("c", "xxxxxx")]), ["a", "c"]);
        assert_eq!(kept(&[]), [""; 0]);
    }
}
