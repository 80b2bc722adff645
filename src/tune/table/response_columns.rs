//! Which columns hold time and energy, or performance and efficiency.

use super::super::TuneError;
use super::super::runs::Responses;
use super::TableOptions;
use super::headings::{Meaning, joules_per, plain, seconds_per, watts_per};
use super::raw::RawTable;

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
        table: &RawTable,
        options: &TableOptions,
        notes: &mut Vec<String>,
    ) -> Result<Self, TuneError> {
        let wants_rates = options.performance.is_some() || options.efficiency.is_some();
        let best = |meaning: Meaning, option: &str| find_best(table, meaning, option);
        let time = match &options.time {
            Some(text) => Some(named(table, text, seconds_per, "s, ms, us, ns, min or h")?),
            None if wants_rates => None,
            None => best(Meaning::Time, "--time")?.map(|column| with_factor(table, column, seconds_per)),
        };
        let energy: Option<Vec<(usize, f64)>> = match &options.energy {
            Some(text) => {
                let parts =
                    text.split('+').map(|part| named(table, part, joules_per, "J, mJ, kJ, Wh or kWh"));
                Some(parts.collect::<Result<_, _>>()?)
            }
            None if wants_rates => None,
            None => find_energy(table, notes)?,
        };
        let power = match energy {
            None if !wants_rates => {
                best(Meaning::Power, "--energy")?.map(|column| with_factor(table, column, watts_per))
            }
            _ => None,
        };
        if let Some(speed) = time {
            if let Some(energy) = energy {
                return Ok(Self { responses: Responses::Totals, speed, energy, energy_is_power: false });
            }
            if let Some(power) = power {
                notes.push(format!("energy is {} times time", table.headings[power.0].name));
                return Ok(Self {
                    responses: Responses::Totals,
                    speed,
                    energy: vec![power],
                    energy_is_power: true,
                });
            }
        }
        let find = |given: &Option<String>, meaning, option| match given {
            Some(name) => table.find(name).map(Some),
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
            None => "no column is the time (name it with --time COLUMN)",
            Some(_) => "no column is the energy (name it with --energy COLUMN, or COLUMN:Wh, or A+B)",
        };
        Err(TuneError::Table { reason: format!("{missing}; {}", table.columns()) })
    }

    /// The two values of a row: seconds and joules, or performance and efficiency.
    pub(super) fn values(&self, table: &RawTable, row: usize) -> Result<[f64; 2], String> {
        let value = |column: usize, factor: f64, units: fn(&str) -> Option<f64>| {
            let (value, unit) = table.number(row, column)?;
            let factor = if unit.is_empty() { factor } else { units(&unit).unwrap_or(factor) };
            Ok::<f64, String>(value * factor)
        };
        let none = |_: &str| None;
        let totals = self.responses == Responses::Totals;
        let speed = value(self.speed.0, self.speed.1, if totals { seconds_per } else { none })?;
        let units = match (totals, self.energy_is_power) {
            (true, false) => joules_per,
            (true, true) => watts_per,
            (false, _) => none,
        };
        let mut energy = 0.0;
        for &(column, factor) in &self.energy {
            energy += value(column, factor, units)?;
        }
        if self.energy_is_power {
            energy *= speed;
        }
        for (value, column) in [(speed, self.speed.0), (energy, self.energy[0].0)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(format!("`{}` is {value}, which is not above 0", table.headings[column].name));
            }
        }
        Ok([speed, energy])
    }

    pub(super) fn uses(&self, column: usize) -> bool {
        self.speed.0 == column || self.energy.iter().any(|(used, _)| *used == column)
    }
}

fn with_factor(table: &RawTable, column: usize, units: fn(&str) -> Option<f64>) -> (usize, f64) {
    let heading = &table.headings[column];
    // A column may be called by its unit alone: `seconds`, `milliseconds`, `kWh`.
    let factor = units(&heading.unit).or_else(|| units(&heading.name)).unwrap_or(1.0);
    (column, factor)
}

/// `NAME` or `NAME:UNIT` as an option gives it.
fn named(
    table: &RawTable,
    text: &str,
    units: fn(&str) -> Option<f64>,
    known: &str,
) -> Result<(usize, f64), TuneError> {
    match text.trim().rsplit_once(':') {
        None => Ok(with_factor(table, table.find(text.trim())?, units)),
        Some((name, unit)) => match units(unit.trim()) {
            Some(factor) => Ok((table.find(name.trim())?, factor)),
            None => Err(TuneError::Table { reason: format!("unit `{unit}` in `{text}`: expected {known}") }),
        },
    }
}

/// The column with this meaning; exact names before hints.
fn find_best(table: &RawTable, meaning: Meaning, option: &str) -> Result<Option<usize>, TuneError> {
    let of = |exact: bool| -> Vec<usize> {
        let heads = table.headings.iter().enumerate();
        heads
            .filter(|(_, heading)| heading.meaning == meaning && heading.exact == exact)
            .map(|(column, _)| column)
            .collect()
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
            let names: Vec<&str> =
                several.iter().map(|&column| table.headings[column].name.as_str()).collect();
            let reason =
                format!("several columns may be meant: {}; choose with {option} COLUMN", names.join(", "));
            Err(TuneError::Table { reason })
        }
    }
}

/// The energy: in joules before other units; RAPL's package and DRAM columns are added up.
fn find_energy(table: &RawTable, notes: &mut Vec<String>) -> Result<Option<Vec<(usize, f64)>>, TuneError> {
    let heads = || table.headings.iter().enumerate();
    let in_joules = heads().find(|(_, heading)| {
        heading.meaning == Meaning::Energy && heading.exact && joules_per(&heading.unit) == Some(1.0)
    });
    if let Some((column, _)) = in_joules {
        return Ok(Some(vec![(column, 1.0)]));
    }
    if let Some(column) = find_best(table, Meaning::Energy, "--energy")? {
        return Ok(Some(vec![with_factor(table, column, joules_per)]));
    }
    let called = |names: &[&str]| heads().find(|(_, heading)| names.contains(&plain(&heading.name).as_str()));
    let Some((package, _)) = called(&["package", "pkg", "package0", "energypackage"]) else {
        return Ok(None);
    };
    let mut columns = vec![with_factor(table, package, joules_per)];
    if let Some((dram, _)) = called(&["dram", "ram", "memoryenergy", "energydram"]) {
        columns.push(with_factor(table, dram, joules_per));
    }
    let names: Vec<&str> = columns.iter().map(|(column, _)| table.headings[*column].name.as_str()).collect();
    notes.push(format!("energy is {} (choose with --energy)", names.join(" + ")));
    Ok(Some(columns))
}
