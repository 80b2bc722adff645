//! The rows of a table as observations.

use super::ObservationError;
use super::order::in_order;
use super::table::{Table, TableColumns};
use crate::power_model::dataset::{Dataset, Observation};
use crate::tables::unit::Quantity;
use crate::tables::{self, CellError, TableError};

/// Rows that could not be used.
#[derive(Default)]
pub(super) struct LeftOut {
    /// How many.
    pub(super) rows: usize,
    first: Option<String>,
    /// The first table of which no row has the values that were asked for.
    without_match: Option<ObservationError>,
}

impl LeftOut {
    pub(super) fn add(&mut self, table: &Table, why: &CellError) {
        self.rows += 1;
        self.first.get_or_insert_with(|| format!("{}, {why}", table.name));
    }

    /// A table has no row with the values that were asked for; another may have some.
    pub(super) fn add_table(&mut self, why: ObservationError) {
        self.without_match.get_or_insert(why);
    }

    /// Why there is nothing at all, if it is because no row was asked for.
    pub(super) fn nothing_matches(&self) -> Option<&ObservationError> {
        self.without_match.as_ref().filter(|_| self.rows == 0)
    }

    /// Why the first of them could not be used, to be put behind a sentence.
    pub(super) fn first(&self) -> String {
        self.first.as_ref().map(|first| format!(", the first: {first}")).unwrap_or_default()
    }
}

/// Where a table has what.
pub(super) struct Found {
    /// Column, and watts or joules per unit of it.
    power: (usize, f64),
    is_energy: bool,
    events: Vec<usize>,
    workload: Vec<usize>,
    /// Column, and seconds per unit of it.
    duration: Option<(usize, f64)>,
    time: Option<usize>,
    frequency: Option<usize>,
}

impl Found {
    pub(super) fn new(
        table: &Table,
        columns: &TableColumns,
        events: &[String],
    ) -> Result<Self, ObservationError> {
        let find = |name: &Option<String>| name.as_deref().map(|name| table.find(name)).transpose();
        let with_unit = |text: &str, quantity, expected| {
            let found = table.table.find_with_unit(text, quantity, expected);
            found.map(|(column, unit)| (column, unit.unwrap_or(1.0))).map_err(|problem| table.refuse(problem))
        };
        let power = match columns.power_is_energy {
            true => with_unit(&columns.power, Quantity::Energy, "J, mJ, uJ, kJ, Wh or kWh")?,
            false => with_unit(&columns.power, Quantity::Power, "W, mW, uW or kW")?,
        };
        let duration = columns.duration.as_deref();
        let duration = duration.map(|text| with_unit(text, Quantity::Time, "s, ms, us, ns, min or h"));
        let events: Vec<usize> = events.iter().map(|event| table.find(event)).collect::<Result<_, _>>()?;
        if events.contains(&power.0) {
            let column = table.table.headings()[power.0].text().to_owned();
            return Err(ObservationError::PowerIsEvent { file: table.name.clone(), column });
        }
        Ok(Self {
            power,
            is_energy: columns.power_is_energy,
            events,
            workload: table.find_each(&columns.workload)?,
            duration: duration.transpose()?,
            time: find(&columns.time)?,
            frequency: find(&columns.frequency)?,
        })
    }

    /// All columns but those of events.
    pub(super) fn all(&self) -> Vec<usize> {
        let single = [self.duration.map(|(column, _)| column), self.time, self.frequency, Some(self.power.0)];
        self.workload.iter().copied().chain(single.into_iter().flatten()).collect()
    }

    /// The length of a row in seconds, 1 where no column tells, and its mean power in watts.
    fn measured(&self, table: &tables::Table, row: usize) -> Result<(f64, f64), CellError> {
        let positive = |(column, factor): (usize, f64), quantity: Quantity| {
            let value = table.value(row, column, quantity, factor);
            let value = value.ok_or_else(|| table.error(row, column, "no number"))?;
            if value > 0.0 { Ok(value) } else { Err(table.error(row, column, "not above 0")) }
        };
        let seconds = self.duration.map_or(Ok(1.0), |column| positive(column, Quantity::Time))?;
        let watts = match self.is_energy {
            true => positive(self.power, Quantity::Energy)? / seconds,
            false => positive(self.power, Quantity::Power)?,
        };
        Ok((seconds, watts))
    }

    /// Adds a row to the data, unless a number is missing in it.
    fn add(&self, table: &Table, row: usize, data: &mut Dataset) -> Result<(), CellError> {
        let values = &table.table;
        let (seconds, watts) = self.measured(values, row)?;
        let rate = |event: &usize| Ok(values.try_count(row, *event)? / seconds);
        let rates: Vec<f64> = self.events.iter().map(rate).collect::<Result<_, CellError>>()?;
        let frequency = self.frequency.map(|column| values.try_number(row, column)).transpose()?;
        let label: Vec<&str> = self.workload.iter().map(|column| values.cell(row, *column)).collect();
        let label = label.join(" ");
        let workload = if label.trim().is_empty() { &table.workload } else { &label };
        match data.push(Observation { rates: &rates, watts, workload, frequency }) {
            true => Ok(()),
            // Numbers whose quotient is none: rows of almost no time.
            false => Err(values.error(row, self.power.0, "no power together with the row's length")),
        }
    }
}

/// Adds the rows of a table that can be used to the data.
pub(super) fn add_rows(
    table: &Table,
    columns: &TableColumns,
    events: &[String],
    data: &mut Dataset,
    left_out: &mut LeftOut,
) -> Result<(), ObservationError> {
    let found = Found::new(table, columns, events)?;
    let mut rows = match table.table.matching(&columns.only) {
        Ok(rows) => rows,
        Err(problem @ TableError::NoRowWith { .. }) => {
            left_out.add_table(table.refuse(problem));
            return Ok(());
        }
        Err(problem) => return Err(table.refuse(problem)),
    };
    if let Some(time) = found.time {
        rows = in_order(&table.table, &rows, time, |error| left_out.add(table, error))
            .map_err(|cell| ObservationError::NoTime { file: table.name.clone(), cell })?;
    }
    for row in rows {
        if let Err(error) = found.add(table, row, data) {
            left_out.add(table, &error);
        }
    }
    Ok(())
}
