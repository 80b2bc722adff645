//! Rows of counters whose power is to be predicted: measured or not.

use super::blend::Blend;
use super::columns::{BELOW_ZERO, Sheet, positive_time, power, power_column, run_time};
use super::table::{Roles, Table, TableError};
use crate::tables::unit::{self, Quantity, Unit};
use crate::tables::{self, Heading};

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
    pub fn read(text: &str, roles: &Roles, wanted: Wanted) -> Result<Self, TableError> {
        let Wanted { columns, time, counts, power: is_power_wanted } = wanted;
        let sheet = Sheet::read(text)?;
        let table = &sheet.table;
        let mut notes = table.notes();
        let find = |(at, name): (usize, &String)| -> Result<(usize, f64), TableError> {
            let (column, factor) = match &roles.time {
                Some(text) if time == Some(at) => run_time(table, text)?,
                _ => (find(table, name)?, 1.0),
            };
            let (unit, note) = conversion(&table.headings()[column], name)?;
            notes.extend(note);
            Ok((column, factor * unit))
        };
        let places: Vec<(usize, f64)> = columns.iter().enumerate().map(find).collect::<Result<_, _>>()?;
        let target = match power_column(table, roles) {
            // A counter of the model is not what is predicted.
            Ok(target) => Some(target).filter(|(column, _)| !places.iter().any(|(place, _)| place == column)),
            Err(error) if roles.target.is_some() || is_power_wanted => return Err(error),
            // Nothing was said of it, and there may be none.
            Err(_) => None,
        };
        let group = table.find_each(&roles.group)?;
        let mut found = Self { notes, ..Self::default() };
        let mut left_out = Vec::new();
        for (index, row) in table.matching(&roles.only)?.into_iter().enumerate() {
            let number = |(at, (column, factor)): (usize, &(usize, f64))| {
                let number = match time == Some(at) {
                    true => positive_time(table, row, *column)?,
                    false => table.try_count(row, *column)?,
                };
                match number < 0.0 && counts.contains(&at) {
                    true => Err(table.error(row, *column, BELOW_ZERO)),
                    false => Ok(number * factor),
                }
            };
            let numbers = places.iter().enumerate().map(number).collect::<Result<Vec<f64>, _>>();
            let measured = target.map(|target| power(table, target, row)).transpose();
            let measured = measured.or_else(|error| if is_power_wanted { Err(error) } else { Ok(None) });
            match numbers.and_then(|numbers| Ok((numbers, measured?))) {
                Ok((numbers, measured)) => {
                    found
                        .groups
                        .push(sheet.label(&group, row).unwrap_or_else(|| format!("row {}", index + 1)));
                    found.rows.push(numbers);
                    found.power.push(measured);
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

    /// The rows whose power was measured, with the columns of the model that they were read for.
    pub fn measured(self, model: &Blend) -> Table {
        let rows = self.rows.into_iter().zip(self.groups).zip(self.power);
        let measured = rows.filter_map(|((row, group), power)| Some((row, group, power?)));
        let mut table = Table {
            columns: model.columns().to_vec(),
            time: model.time(),
            counts: model.counts().to_vec(),
            ..Table::default()
        };
        for (row, group, power) in measured {
            table.rows.push(row);
            table.groups.push(group);
            table.power.push(power);
        }
        table
    }
}

/// What a model needs of a row.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Its columns, in order.
    pub columns: &'a [String],
    /// Which of them is the run time, above 0.
    pub time: Option<usize>,
    /// Which are counts, not below 0.
    pub counts: &'a [usize],
    /// The measured power is wanted, too.
    pub power: bool,
}

impl<'a> Wanted<'a> {
    /// What this model needs.
    pub fn by(model: &'a Blend) -> Self {
        Self { columns: model.columns(), time: model.time(), counts: model.counts(), power: false }
    }

    /// The same of rows whose power was measured: others are left out.
    pub fn with_power(self) -> Self {
        Self { power: true, ..self }
    }
}

/// The column of a model in a table.
fn find(table: &tables::Table, name: &str) -> Result<usize, TableError> {
    // Names in models of earlier versions have their decoration.
    let bare = name.trim_start_matches('#').trim_matches('\'');
    let is_called = |heading: &str| heading == name || heading == bare;
    let exact = table.headings().iter().position(|heading| is_called(heading.text()));
    exact.map_or_else(|| Ok(table.find(name).or_else(|error| by_name(table, name).ok_or(error))?), Ok)
}

/// The only column whose name is that of the model's but for the unit: `time_ms` of a model with `time_s`.
fn by_name(table: &tables::Table, name: &str) -> Option<usize> {
    let wanted = Heading::read(name);
    let mut of_name = (0..table.headings().len()).filter(|at| table.headings()[*at].is_called(wanted.name()));
    let first = of_name.next()?;
    of_name.next().is_none().then_some(first)
}

/// By what values below a heading are to be multiplied where a model has learnt from those below another, by the units in
/// both; and what a reader should know of it. Times of which nothing is said are in seconds.
fn conversion(found: &Heading, name: &str) -> Result<(f64, Option<String>), TableError> {
    let wanted = Heading::read(name);
    let unit_of = |heading: &Heading| [heading.unit(), heading.name()].into_iter().find_map(unit::known);
    let (of_found, of_wanted) = (unit_of(found), unit_of(&wanted));
    let second = Unit { quantity: Quantity::Time, factor: 1.0 };
    let is_time = |unit: &Option<Unit>| unit.is_some_and(|unit| unit.quantity == Quantity::Time);
    let (from, to) = match (of_found, of_wanted) {
        (Some(from), Some(to)) => (from, to),
        (None, to) if is_time(&to) => (second, to.unwrap_or(second)),
        (from, None) if is_time(&from) => (from.unwrap_or(second), second),
        _ => return Ok((1.0, None)),
    };
    if from.quantity != to.quantity {
        return Err(TableError::OtherQuantity { found: found.text().to_owned(), wanted: name.to_owned() });
    }
    let factor = from.factor / to.factor;
    let told = |unit: Option<Unit>| {
        if unit.is_some() { "" } else { ", which tells no unit and is taken for seconds" }
    };
    let note = (factor != 1.0).then(|| {
        format!(
            "`{}`{} is converted to the unit of `{name}` of the model{}: times {factor}",
            found.text(),
            told(of_found),
            told(of_wanted)
        )
    });
    Ok((factor, note))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [&str; 2] = ["reads", "clock"];

    fn read(text: &str, roles: &Roles) -> Result<CounterRows, TableError> {
        let columns = COLUMNS.map(String::from);
        CounterRows::read(text, roles, Wanted { columns: &columns, time: None, counts: &[], power: false })
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

    #[test]
    fn rows_without_power_are_left_out_where_it_is_wanted() {
        let columns = COLUMNS.map(String::from);
        let wanted = Wanted { columns: &columns, time: None, counts: &[], power: false }.with_power();
        let read = |text: &str| CounterRows::read(text, &Roles::default(), wanted);
        let found = read("clock,power_w,reads\n1000,50,1\n900,0,2\n").expect("one row");
        assert_eq!((found.power, found.groups), (vec![Some(50.0)], vec!["row 1".to_owned()]));
        assert!(found.notes[0].contains("1 rows"), "{:?}", found.notes);
        let none = read("clock,reads\n1000,1\n").expect_err("no power").to_string();
        assert!(none.contains("power"), "{none}");
    }
}
