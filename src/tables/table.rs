//! Rows of values below the names of their columns.

use std::cell::OnceCell;

use serde::de::IgnoredAny;

use super::cell_error::CellError;
use super::evidence::Evidence;
use super::grid::Grid;
use super::heading::Heading;
use super::marks::Marks;
use super::number::Number;
use super::table_error::{self, TableError};
use super::unit::{self, Quantity, known};

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    grid: Grid,
    /// The grid's first row of values.
    first: usize,
    headings: Vec<Heading>,
    marks: Vec<Marks>,
    /// The unit in which a column's numbers are given, found when they are first asked for.
    units: Vec<OnceCell<String>>,
}

impl Table {
    /// Reads a text whose first row names the columns.
    ///
    /// # Errors
    /// [`TableError::Json`], [`TableError::Empty`] or [`TableError::NoRows`].
    pub fn read(text: &str) -> Result<Self, TableError> {
        let table = Self::read_or_empty(text)?;
        if table.is_empty() { Err(TableError::NoRows) } else { Ok(table) }
    }

    /// The same of a text that may have no other row.
    ///
    /// # Errors
    /// [`TableError::Json`] or [`TableError::Empty`].
    pub fn read_or_empty(text: &str) -> Result<Self, TableError> {
        if is_json(text) {
            return Err(TableError::Json);
        }
        Self::with_heading(Grid::read(text))
    }

    /// The table of a grid whose first row names the columns; there may be no other. Names that are empty
    /// at the end are none.
    ///
    /// # Errors
    /// [`TableError::Empty`].
    pub fn with_heading(grid: Grid) -> Result<Self, TableError> {
        let names = grid.row(0).ok_or(TableError::Empty)?;
        let headings = names.cells().take(names.filled()).map(Heading::read).collect();
        Ok(Self::new(grid, 1, headings))
    }

    /// The table of a grid without a heading.
    ///
    /// # Errors
    /// [`TableError::Empty`].
    pub fn with_names<'a>(grid: Grid, names: impl IntoIterator<Item = &'a str>) -> Result<Self, TableError> {
        if grid.is_empty() {
            return Err(TableError::Empty);
        }
        let headings = names.into_iter().map(Heading::read).collect();
        Ok(Self::new(grid, 0, headings))
    }

    fn new(grid: Grid, first: usize, headings: Vec<Heading>) -> Self {
        let mut table = Self { grid, first, headings, marks: Vec::new(), units: Vec::new() };
        table.marks = table.find_marks();
        table.units = vec![OnceCell::new(); table.headings.len()];
        table
    }

    /// The names of the columns.
    pub fn headings(&self) -> &[Heading] {
        &self.headings
    }

    /// The names of the columns as they are in the table.
    pub fn names(&self) -> Vec<String> {
        self.headings.iter().map(|heading| heading.text().to_owned()).collect()
    }

    /// `the columns are: a, b`, for messages.
    pub fn columns(&self) -> String {
        table_error::columns(&self.names())
    }

    /// Number of rows of values.
    pub fn len(&self) -> usize {
        self.grid.len() - self.first
    }

    /// There are no rows of values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The line in which a row begins, from 1.
    pub fn line(&self, row: usize) -> usize {
        self.grid.row(self.first + row).map_or(0, |row| row.line())
    }

    /// The text of a cell; empty where the row has none.
    pub fn cell(&self, row: usize, column: usize) -> &str {
        self.grid.row(self.first + row).map_or("", |row| row.cell(column))
    }

    /// All cells of a row, beyond the last heading too.
    pub fn cells(&self, row: usize) -> impl Iterator<Item = &str> {
        self.grid.row(self.first + row).into_iter().flat_map(|row| row.cells())
    }

    /// How numbers of a column are read.
    pub fn marks(&self, column: usize) -> Marks {
        self.marks.get(column).copied().unwrap_or(self.grid.default_marks())
    }

    /// The number in a cell with the unit behind it, as they are.
    pub fn quantity(&self, row: usize, column: usize) -> Option<Number<'_>> {
        Number::read(self.cell(row, column), self.marks(column))
    }

    /// The number in a cell, in the unit of its column: that of the heading, or else the first that a
    /// cell of it has. `None` where there is no number, or one in a unit that has nothing to do with it.
    pub fn number(&self, row: usize, column: usize) -> Option<f64> {
        let number = self.quantity(row, column)?;
        if number.unit.is_empty() {
            return Some(number.value);
        }
        let of_column = self.unit(column);
        if number.unit == of_column {
            return Some(number.value);
        }
        let (unit, of_column) = (known(number.unit)?, known(of_column)?);
        (unit.quantity == of_column.quantity).then(|| number.value * (unit.factor / of_column.factor))
    }

    /// The number in a cell, in the unit of its column.
    ///
    /// # Errors
    /// [`CellError`] that says which cell it is and what is in it.
    pub fn try_number(&self, row: usize, column: usize) -> Result<f64, CellError> {
        self.number(row, column).ok_or_else(|| self.error(row, column, "no number"))
    }

    /// As [`Table::try_number`], of a counter: numbers that only a difference below 0 is when its sign is lost, from half of
    /// the range of 64 bits to all of it, are none.
    ///
    /// # Errors
    /// [`CellError`].
    pub fn try_count(&self, row: usize, column: usize) -> Result<f64, CellError> {
        const SIGN: f64 = 9_223_372_036_854_775_808.0;
        let number = self.try_number(row, column)?;
        match (SIGN..=2.0 * SIGN).contains(&number) {
            true => Err(self.error(row, column, "what 64 bits make of a number below 0, and no count")),
            false => Ok(number),
        }
    }

    /// The value of a cell in a quantity's own unit: as the cell's unit says, or times `factor` where it
    /// has none of that quantity.
    pub fn value(&self, row: usize, column: usize, quantity: Quantity, factor: f64) -> Option<f64> {
        let number = self.quantity(row, column)?;
        match unit::factor(number.unit, quantity) {
            Some(factor) => Some(number.value * factor),
            None => self.number(row, column).map(|value| value * factor),
        }
    }

    /// What is wrong with a cell.
    pub fn error(&self, row: usize, column: usize, fault: &'static str) -> CellError {
        CellError {
            line: self.line(row),
            column: self.headings.get(column).map_or_else(String::new, |heading| heading.text().to_owned()),
            cell: self.cell(row, column).to_owned(),
            fault,
        }
    }

    /// What a reader of results should know: rows with more cells than there are columns.
    pub fn notes(&self) -> Vec<String> {
        let width = self.headings.len();
        let mut overlong =
            (0..self.len()).filter(|row| self.cells(*row).skip(width).any(|cell| !cell.is_empty()));
        let Some(first) = overlong.next() else { return Vec::new() };
        let rows = match overlong.count() {
            0 => "a row has".to_owned(),
            more => format!("{} rows have", more + 1),
        };
        vec![format!(
            "{rows} more cells than there are columns, the first in line {}: what is beyond was not read",
            self.line(first)
        )]
    }

    /// The unit in which a column's numbers are given.
    fn unit(&self, column: usize) -> &str {
        let Some(unit) = self.units.get(column) else { return "" };
        unit.get_or_init(|| self.find_unit(column))
    }

    /// That of the heading, unless the cells have one that has nothing to do with it.
    fn find_unit(&self, column: usize) -> String {
        let in_heading = self.headings[column].unit();
        let units = (0..self.len()).filter_map(|row| self.quantity(row, column)).map(|number| number.unit);
        let in_cells = units.into_iter().find(|unit| !unit.is_empty()).unwrap_or_default();
        let are_related = match (known(in_heading), known(in_cells)) {
            (Some(heading), Some(cells)) => heading.quantity == cells.quantity,
            _ => in_cells.is_empty(),
        };
        if are_related { in_heading.to_owned() } else { in_cells.to_owned() }
    }

    /// How each column's numbers are read.
    fn find_marks(&self) -> Vec<Marks> {
        let default = self.grid.default_marks();
        let values = || (0..self.len()).flat_map(|row| self.cells(row).take(self.headings.len()).enumerate());
        let could_matter = |cell: &str| cell.contains(',') || cell.matches('.').count() > 1;
        if !values().any(|(_, cell)| could_matter(cell)) {
            return vec![default; self.headings.len()];
        }
        let mut columns = vec![Evidence::default(); self.headings.len()];
        for (column, cell) in values() {
            if let Some(column) = columns.get_mut(column) {
                column.add(cell);
            }
        }
        let mut table = Evidence::default();
        columns.iter().for_each(|column| table.include(*column));
        columns.into_iter().map(|column| column.marks(table, default)).collect()
    }
}

/// A text in brackets or braces can be a table; one that ends as it should is none.
fn is_json(text: &str) -> bool {
    matches!(text.trim_start().chars().next(), Some('{' | '['))
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        Table::read(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn column(text: &str, name: &str) -> Vec<Option<f64>> {
        let table = table(text);
        let column = table.find(name).expect("a column");
        (0..table.len()).map(|row| table.number(row, column)).collect()
    }

    #[test]
    fn one_table_in_many_ways() {
        for text in [
            "time,power [W]\n0.1,1030.5\n0.2,31.25\n",
            "time;power [W]\n0,1;1030,5\n0,2;31,25\n",
            "time;power [W]\n0,1;1.030,5\n0,2;31,25\n",
            "time\tpower (W)\n0.1\t\"1,030.5\"\n0.2\t31.25\n",
            "time | power/W |\n0.1 | 1030.5 |\n0.2 | 31.25 |\n",
            "time  power_W\n0,1  1030,5\n0,2  31,25\n",
            "\"time\",\"power\"\n\"0,1\",\"1030,5 W\"\n\"0,2\",\"31250 mW\"\n",
            "# measured by hand\n# time, power\n0.1, 1030.5 W\n# a break\n0.2, 31.25 W\n",
            "Measured by hand\n\ntime,power\n0.1,1.0305 kW\n0.2,0.03125 kW\n",
        ] {
            let table = table(text);
            let (time, power) = (table.find("time").expect("time"), table.find("power").expect("power"));
            let factor = table.headings()[power].factor(Quantity::Power).unwrap_or(1.0);
            let watts = |row| table.value(row, power, Quantity::Power, factor);
            assert_eq!((table.number(0, time), table.number(1, time)), (Some(0.1), Some(0.2)), "{text}");
            assert_eq!((watts(0), watts(1)), (Some(1030.5), Some(31.25)), "{text}");
        }
    }

    #[test]
    fn numbers_are_in_the_unit_of_their_column() {
        assert_eq!(
            column("n,clock\na,1530 MHz\nb,1.5 GHz\nc,\n", "clock"),
            [Some(1530.0), Some(1500.0), None]
        );
        assert_eq!(column("n,clock [GHz]\na,1530 MHz\nb,1.5\n", "clock"), [Some(1.53), Some(1.5)]);
        assert_eq!(column("n,reads\na,12.5GB/s\nb,850MB/s\n", "reads"), [Some(12.5), Some(0.85)]);
        assert_eq!(column("n,load\na,99 %\nb,7 %\n", "load"), [Some(99.0), Some(7.0)]);
        assert_eq!(column("n,util [%]\na,99 pct\nb,7\n", "util"), [Some(99.0), Some(7.0)]);
        // Names that begin with digits are no numbers in different units.
        assert_eq!(column("k,x\n2mm,1\n3dconv,2\n", "k"), [Some(2.0), None]);
        assert_eq!(column("k,x\n1a,1\n1b,2\n", "k"), [Some(1.0), None]);
    }

    #[test]
    fn missing_values_are_no_numbers() {
        let text = "a,b,c\n1,N/A,3\n[Not Supported],2,<not counted>\n,-,nan\n4\n";
        assert_eq!(column(text, "a"), [Some(1.0), None, None, Some(4.0)]);
        assert_eq!(column(text, "b"), [None, Some(2.0), None, None]);
        assert_eq!(column(text, "c"), [Some(3.0), None, None, None]);
        let table = table(text);
        let error = |row, column| table.try_number(row, column).expect_err("no number").to_string();
        assert_eq!(error(0, 1), "line 2: `b` is missing (`N/A`)");
        assert_eq!(error(3, 2), "line 5: `c` is empty");
    }

    #[test]
    fn uneven_rows() {
        assert_eq!(Table::read(" \n").expect_err("nothing"), TableError::Empty);
        assert_eq!(Table::read("a,b\n").expect_err("no rows"), TableError::NoRows);
        for json in ["[{\"a\": 1, \"b\": 2}]", " {\"runs\": [1, 2]}"] {
            assert_eq!(Table::read(json).expect_err("JSON"), TableError::Json);
        }
        assert!(Table::read("[a],b\n1,2\n").is_ok());
        assert!(table("a,b,\n1,2,\n3\n").notes().is_empty());
        let long = table("a,b\n1,2,3\n4,5\n6,7,8,9\n");
        assert_eq!(
            long.notes(),
            [
                "2 rows have more cells than there are columns, the first in line 2: what is beyond was not read"
            ]
        );
        let bare = Table::with_names(Grid::read("1,2\n3,4\n"), ["x", "y"]).expect("a table");
        assert_eq!((bare.len(), bare.number(1, 1), bare.line(0)), (2, Some(4.0), 1));
    }

    /// A table with more columns than a line of a screen is as any other.
    #[test]
    fn thousands_of_columns() {
        const COLUMNS: usize = 5000;
        let line = |cell: &dyn Fn(usize) -> String| (0..COLUMNS).map(cell).collect::<Vec<_>>().join(";");
        let mut text = line(&|column| format!("event {column}"));
        for row in 0..3 {
            text += &format!("\n{}", line(&|column| format!("{row},{column:04}5")));
        }
        let table = table(&text);
        assert_eq!((table.headings().len(), table.len()), (COLUMNS, 3));
        assert_eq!(table.number(2, 4999), Some(2.49995));
    }
}
