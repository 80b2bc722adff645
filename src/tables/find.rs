//! Columns and rows of a table by what users call them.

use rustc_hash::FxHashSet;

use super::heading;
use super::number::Number;
use super::table::Table;
use super::table_error::TableError;
use super::unit::{self, Quantity};

impl Table {
    /// The column of this name, which need not be written in every detail.
    ///
    /// # Errors
    /// [`TableError::NoSuchColumn`], and [`TableError::SameName`] if several columns of that name differ.
    pub fn find(&self, wanted: &str) -> Result<usize, TableError> {
        let found = heading::find(self.headings(), wanted);
        self.only(
            found
                .ok_or_else(|| TableError::NoSuchColumn { wanted: wanted.to_owned(), found: self.names() })?,
        )
    }

    /// This column, unless another one of the same name says something else.
    fn only(&self, column: usize) -> Result<usize, TableError> {
        let name = self.headings()[column].text();
        let says_else =
            |other: usize| (0..self.len()).any(|row| self.cell(row, other) != self.cell(row, column));
        let of_name = self.headings().iter().enumerate().filter(|(_, heading)| heading.text() == name);
        match of_name.map(|(other, _)| other).find(|other| says_else(*other)) {
            Some(_) => Err(TableError::SameName { name: name.to_owned() }),
            None => Ok(column),
        }
    }

    /// The columns of several names, each of which may be a list with commas.
    ///
    /// # Errors
    /// As [`Table::find`].
    pub fn find_each(&self, wanted: &[String]) -> Result<Vec<usize>, TableError> {
        let mut found = Vec::with_capacity(wanted.len());
        for text in wanted {
            match self.headings().iter().position(|heading| heading.text() == text.trim()) {
                Some(column) => found.push(self.only(column)?),
                None => {
                    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                        found.push(self.find(name)?);
                    }
                }
            }
        }
        Ok(found)
    }

    /// Those of several columns that are there, as [`Table::find_each`] would find them, and the names that
    /// no column has.
    pub fn find_present(&self, wanted: &[String]) -> (Vec<usize>, Vec<String>) {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for text in wanted {
            match self.find_each(std::slice::from_ref(text)) {
                Ok(columns) => found.extend(columns),
                Err(_) => {
                    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                        match self.find(name) {
                            Ok(column) => found.push(column),
                            // All of them are meant.
                            Err(TableError::SameName { name }) => {
                                let columns = self.headings().iter().enumerate();
                                let of_name = columns.filter(|(_, heading)| heading.text() == name);
                                found.extend(of_name.map(|(column, _)| column));
                            }
                            Err(_) => missing.push(name.to_owned()),
                        }
                    }
                }
            }
        }
        (found, missing)
    }

    /// The column that `NAME` or `NAME:UNIT` means, and how much of the quantity's own unit one of its
    /// unit is, where that or the heading tells.
    ///
    /// # Errors
    /// [`TableError::NoSuchColumn`], or [`TableError::WrongUnit`] that says what was `expected`.
    pub fn find_with_unit(
        &self,
        text: &str,
        quantity: Quantity,
        expected: &'static str,
    ) -> Result<(usize, Option<f64>), TableError> {
        let told = |column: usize| (column, self.headings()[column].factor(quantity));
        let is_name = self.headings().iter().any(|heading| heading.text().eq_ignore_ascii_case(text.trim()));
        let Some((name, unit)) = text.rsplit_once(':').filter(|_| !is_name) else {
            return self.find(text).map(told);
        };
        let unit = unit.trim();
        match unit::factor(unit, quantity) {
            Some(factor) => Ok((self.find(name)?, Some(factor))),
            None => self.find(text).map(told).map_err(|_| TableError::WrongUnit {
                text: text.to_owned(),
                unit: unit.to_owned(),
                expected,
            }),
        }
    }

    /// The rows in which these columns have these values, as text or as numbers.
    ///
    /// # Errors
    /// [`TableError::NoSuchColumn`] or [`TableError::NoRowWith`].
    pub fn matching(&self, conditions: &[(String, String)]) -> Result<Vec<usize>, TableError> {
        let mut rows: Vec<usize> = (0..self.len()).collect();
        for (name, value) in conditions {
            let column = self.find(name)?;
            let number = Number::read(value, self.marks(column));
            let before = rows.clone();
            rows.retain(|row| {
                let cell = self.cell(*row, column);
                cell == value.trim() || (number.is_some() && Number::read(cell, self.marks(column)) == number)
            });
            if rows.is_empty() {
                let mut known = FxHashSet::default();
                let cells = before.iter().map(|row| self.cell(*row, column));
                let found = cells.filter(|cell| known.insert(*cell)).map(str::to_owned).collect();
                return Err(TableError::NoRowWith { column: name.clone(), value: value.clone(), found });
            }
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        Table::read(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn columns_are_found_with_their_units() {
        let table = table("took,energy_Wh,cpu:cycles\n1,2,3\n");
        let find = |text| table.find_with_unit(text, Quantity::Time, "s or ms");
        assert_eq!(find("took:ms"), Ok((0, Some(1e-3))));
        assert_eq!(find("took"), Ok((0, None)));
        assert_eq!(find("cpu:cycles"), Ok((2, None)));
        assert_eq!(table.find_with_unit("Energy", Quantity::Energy, "J"), Ok((1, Some(3600.0))));
        assert!(find("took:parsec").expect_err("no unit").to_string().contains("expected s or ms"));
        assert!(find("took:J").expect_err("no time").to_string().contains("unit `J`"));
        let names = ["took, Energy".to_owned(), "cpu:cycles".to_owned()];
        assert_eq!(table.find_each(&names), Ok(vec![0, 1, 2]));
        assert!(table.find_each(&["took,volts".to_owned()]).is_err());
    }

    #[test]
    fn rows_are_chosen_by_text_and_by_number() {
        let table = table("lang,freq,x\nC,2.10GHz,1\nAda,2.1GHz,2\nC,1.2GHz,3\n");
        let rows = |conditions: &[(&str, &str)]| {
            let owned = |(column, value): &(&str, &str)| ((*column).to_owned(), (*value).to_owned());
            table.matching(&conditions.iter().map(owned).collect::<Vec<_>>())
        };
        assert_eq!(rows(&[]), Ok(vec![0, 1, 2]));
        assert_eq!(rows(&[("Freq", "2.1GHz")]), Ok(vec![0, 1]));
        assert_eq!(rows(&[("freq", "2.1GHz"), ("lang", "C")]), Ok(vec![0]));
        assert_eq!(
            rows(&[("lang", "Go")]).expect_err("none").to_string(),
            "no row has lang=Go; its values are: C, Ada"
        );
        // Of the rows that the conditions before it leave.
        assert_eq!(
            rows(&[("lang", "Ada"), ("x", "3")]).expect_err("none").to_string(),
            "no row has x=3; its values are: 2"
        );
        assert!(rows(&[("x2", "1")]).is_err());
    }
}
