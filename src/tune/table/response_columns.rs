//! Which columns hold time and energy, or performance and efficiency.

use super::super::TuneError;
use super::super::runs::Responses;
use super::meanings::Meaning;
use super::options::TableOptions;
use super::sheet::Sheet;
use crate::tables::unit::{self, Quantity};
use crate::tables::{CellError, Heading, plain};

/// Which columns hold the two responses, and how.
pub(super) struct ResponseColumns {
    pub(super) responses: Responses,
    speed: (usize, f64),
    /// Added up, each times its factor; watts are multiplied by the time.
    energy: Vec<(usize, f64)>,
    energy_is_power: bool,
}

impl ResponseColumns {
    pub(super) fn find(
        table: &Sheet,
        options: &TableOptions,
        notes: &mut Vec<String>,
    ) -> Result<Self, TuneError> {
        let wants_rates = options.performance.is_some() || options.efficiency.is_some();
        let best = |meaning: Meaning, option: &str| find_best(table, meaning, option);
        let time = match &options.time {
            Some(text) => Some(named(table, text, Quantity::Time, "s, ms, us, ns, min or h")?),
            None if wants_rates => None,
            None => {
                best(Meaning::Time, "--duration")?.map(|column| with_factor(table, column, Quantity::Time))
            }
        };
        let energy: Option<Vec<(usize, f64)>> = match &options.energy {
            Some(text) => {
                let parts =
                    text.split('+').map(|part| named(table, part, Quantity::Energy, "J, mJ, kJ, Wh or kWh"));
                Some(parts.collect::<Result<_, _>>()?)
            }
            None if wants_rates => None,
            None => find_energy(table, notes)?,
        };
        let power = match energy {
            None if !wants_rates => {
                best(Meaning::Power, "--energy")?.map(|column| with_factor(table, column, Quantity::Power))
            }
            _ => None,
        };
        if let Some(speed) = time {
            if let Some(energy) = energy {
                return Ok(Self { responses: Responses::Totals, speed, energy, energy_is_power: false });
            }
            if let Some(power) = power {
                notes.push(format!("energy is {} times time", table.name(power.0)));
                return Ok(Self {
                    responses: Responses::Totals,
                    speed,
                    energy: vec![power],
                    energy_is_power: true,
                });
            }
        }
        let find = |given: &Option<String>, meaning, option| match given {
            Some(name) => Ok(Some(table.table.find(name)?)),
            None => best(meaning, option),
        };
        let performance = find(&options.performance, Meaning::Performance, "--performance")?;
        let efficiency = find(&options.efficiency, Meaning::Efficiency, "--efficiency")?;
        if let (Some(performance), Some(efficiency)) = (performance, efficiency) {
            return Ok(Self {
                responses: Responses::Rates,
                speed: (performance, 1.0),
                energy: vec![(efficiency, 1.0)],
                energy_is_power: false,
            });
        }
        let missing = match time {
            None => "no column is the time (name it with --duration COLUMN)",
            Some(_) => "no column is the energy (name it with --energy COLUMN, or COLUMN:Wh, or A+B)",
        };
        Err(TuneError::Table { reason: format!("{missing}; {}", table.table.columns()) })
    }

    /// The two values of a row: seconds and joules, or performance and efficiency.
    pub(super) fn values(&self, table: &Sheet, row: usize) -> Result<[f64; 2], CellError> {
        let is_rate = self.responses == Responses::Rates;
        let value = |(column, factor): (usize, f64), quantity: Quantity| {
            let value = match is_rate {
                true => table.table.number(row, column),
                false => table.table.value(row, column, quantity, factor),
            };
            value.ok_or_else(|| table.table.error(row, column, "no number"))
        };
        let speed = value(self.speed, Quantity::Time)?;
        let quantity = if self.energy_is_power { Quantity::Power } else { Quantity::Energy };
        let mut energy = 0.0;
        for column in &self.energy {
            energy += value(*column, quantity)?;
        }
        if self.energy_is_power {
            energy *= speed;
        }
        for (value, column) in [(speed, self.speed.0), (energy, self.energy[0].0)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(table.table.error(row, column, "not above 0"));
            }
        }
        Ok([speed, energy])
    }

    pub(super) fn uses(&self, column: usize) -> bool {
        self.speed.0 == column || self.energy.iter().any(|(used, _)| *used == column)
    }
}

fn with_factor(table: &Sheet, column: usize, quantity: Quantity) -> (usize, f64) {
    (column, table.table.headings()[column].factor(quantity).unwrap_or(1.0))
}

/// `NAME` or `NAME:UNIT` as an option gives it.
fn named(
    table: &Sheet,
    text: &str,
    quantity: Quantity,
    known: &'static str,
) -> Result<(usize, f64), TuneError> {
    let (column, factor) = table.table.find_with_unit(text.trim(), quantity, known)?;
    Ok((column, factor.unwrap_or(1.0)))
}

/// The column with this meaning; exact names before hints.
fn find_best(table: &Sheet, meaning: Meaning, option: &str) -> Result<Option<usize>, TuneError> {
    let of = |wanted: bool| -> Vec<usize> {
        table.meaning(meaning).filter(|(.., exact)| *exact == wanted).map(|(column, ..)| column).collect()
    };
    let (exact, hinted) = (of(true), of(false));
    if let Some(&first) = exact.first() {
        // The same figure in another unit is no other figure.
        return Ok(Some(first));
    }
    match hinted.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        several => {
            let names: Vec<&str> = several.iter().map(|&column| table.name(column)).collect();
            let reason =
                format!("several columns may be meant: {}; choose with {option} COLUMN", names.join(", "));
            Err(TuneError::Table { reason })
        }
    }
}

/// The energy: in joules before other units; RAPL's package and DRAM columns are added up.
fn find_energy(table: &Sheet, notes: &mut Vec<String>) -> Result<Option<Vec<(usize, f64)>>, TuneError> {
    let in_joules = table
        .meaning(Meaning::Energy)
        .find(|(_, heading, exact)| *exact && unit::factor(heading.unit(), Quantity::Energy) == Some(1.0));
    if let Some((column, ..)) = in_joules {
        return Ok(Some(vec![(column, 1.0)]));
    }
    if let Some(column) = find_best(table, Meaning::Energy, "--energy")? {
        return Ok(Some(vec![with_factor(table, column, Quantity::Energy)]));
    }
    let called = |names: &[&str]| {
        let is_called = |heading: &Heading| names.contains(&plain(heading.name()).as_str());
        table.table.headings().iter().position(is_called)
    };
    let Some(package) = called(&["package", "pkg", "package0", "energypackage"]) else {
        return Ok(None);
    };
    let mut columns = vec![with_factor(table, package, Quantity::Energy)];
    if let Some(dram) = called(&["dram", "ram", "memoryenergy", "energydram"]) {
        columns.push(with_factor(table, dram, Quantity::Energy));
    }
    let names: Vec<&str> = columns.iter().map(|(column, _)| table.name(*column)).collect();
    notes.push(format!("energy is {} (choose with --energy)", names.join(" + ")));
    Ok(Some(columns))
}
