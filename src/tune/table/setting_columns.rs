//! Which columns are settings, and the search space their values make.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::TuneError;
use super::super::levels::{role_of_name, split_unit, to_role_unit};
use super::super::runs::Run;
use super::super::space::{Level, Role, Space, Variable};
use super::meanings::Meaning;
use super::options::TableOptions;
use super::response_columns::ResponseColumns;
use super::sheet::Sheet;
use crate::tables::Number;

/// A column that is a variable.
pub(super) struct SettingColumn {
    column: usize,
    name: String,
    role: Role,
    /// The unit in the column's name.
    unit: String,
    /// The user's own levels are names.
    given_names: bool,
}

impl SettingColumn {
    /// Whether some value is no number, or no positive one where only such make sense.
    pub(super) fn is_unordered(&self, table: &Sheet, rows: &[usize]) -> bool {
        let is_name = |row: usize| match table.table.quantity(row, self.column) {
            Some(Number { value, unit }) => {
                to_role_unit(value, unit, self.role).is_err() || (self.role != Role::Other && value <= 0.0)
            }
            None => !table.table.cell(row, self.column).is_empty(),
        };
        self.given_names || rows.iter().any(|row| is_name(*row))
    }

    pub(super) fn level(&self, table: &Sheet, row: usize, unordered: bool) -> Result<Level, String> {
        let number = table.table.quantity(row, self.column);
        let cell = table.table.cell(row, self.column);
        match number {
            _ if cell.is_empty() => Err(format!("`{}` is empty", self.name)),
            // A power cap of 0 or -1 is how tables write that there is none.
            Some(Number { value, unit: "" }) if unordered && self.role == Role::PowerCap && value <= 0.0 => {
                Ok(Level::Label("none".into()))
            }
            _ if unordered => Ok(Level::Label(cell.to_string())),
            Some(Number { value, unit }) => {
                let unit = if unit.is_empty() { &self.unit } else { unit };
                Ok(Level::Number(to_role_unit(value, unit, self.role)?))
            }
            None => Err(table.table.error(row, self.column, "no number").problem()),
        }
    }
}

pub(super) fn find_settings(
    table: &Sheet,
    rows: &[usize],
    options: &TableOptions,
    columns: &ResponseColumns,
) -> Result<Vec<SettingColumn>, TuneError> {
    let as_setting = |column: usize, name: &str, role: Role, given_names: bool| SettingColumn {
        column,
        name: name.to_string(),
        role,
        unit: table.table.headings()[column].unit().to_owned(),
        given_names,
    };
    let mut settings: Vec<SettingColumn> = Vec::new();
    for variable in &options.space {
        let by_role = || match variable.role {
            Role::Other => None,
            role => table.meaning(Meaning::Setting(role)).next().map(|(column, ..)| column),
        };
        let column = match table.table.find(&variable.name) {
            Ok(column) => column,
            Err(error) => by_role().ok_or(error)?,
        };
        settings.push(as_setting(column, &variable.name, variable.role, variable.is_categorical()));
    }
    for name in &options.variables {
        let column = table.table.find(name)?;
        if !settings.iter().any(|setting| setting.column == column) {
            let heading = table.name(column);
            settings.push(as_setting(column, heading, role_of_name(heading), false));
        }
    }
    if settings.is_empty() {
        for (column, heading, meant) in table.columns() {
            if let Meaning::Setting(role) = meant.meaning {
                let conditioned = options.conditions.iter().any(|(name, _)| heading.is_called(name));
                if !conditioned && !columns.uses(column) && can_be(role, table, rows, column) {
                    settings.push(as_setting(column, heading.name(), role, false));
                }
            }
        }
    }
    if settings.is_empty() {
        let reason = format!(
            "no column is known to be a setting (name them with --var COLUMN); {}",
            table.table.columns()
        );
        return Err(TuneError::Table { reason });
    }
    Ok(settings)
}

/// Threads and nodes are whole: a column `Core` with fractions is RAPL's energy of the cores.
fn can_be(role: Role, table: &Sheet, rows: &[usize], column: usize) -> bool {
    !matches!(role, Role::Threads | Role::Nodes)
        || rows
            .iter()
            .filter_map(|&row| table.table.quantity(row, column))
            .all(|number| number.value.fract() == 0.0)
}

/// Refuses to mix different programs: names that differ between runs of one setting, but are none.
/// Returns the other columns that differ so.
pub(super) fn check_hidden_factors(
    table: &Sheet,
    rows: &[usize],
    settings: &[SettingColumn],
    columns: &ResponseColumns,
    notes: &mut Vec<String>,
) -> Result<Vec<String>, TuneError> {
    let key = |row: usize| -> Vec<&str> {
        settings.iter().map(|setting| table.table.cell(row, setting.column)).collect()
    };
    let mut unused = Vec::new();
    for (column, heading, meant) in table.columns() {
        let role = settings.iter().any(|setting| setting.column == column);
        if role || columns.uses(column) {
            continue;
        }
        let mut of_setting: FxHashMap<Vec<&str>, &str> = FxHashMap::default();
        let differs = rows.iter().any(|&row| {
            let cell = table.table.cell(row, column);
            *of_setting.entry(key(row)).or_insert(cell) != cell
        });
        if !differs {
            continue;
        }
        let values = table.values(rows, column);
        // Whatever begins with a number is no name: dates and sizes differ from run to run.
        let names = values.iter().all(|value| split_unit(value).is_none());
        // A value of its own in almost every row (a date, an id) tells runs apart, not programs.
        if names && values.len() * 2 <= rows.len() {
            let shown: Vec<&str> = values.iter().copied().take(6).collect();
            let reason = format!(
                "runs of one setting differ in `{0}` ({1}{2}): choose one with --where {0}={3}, or make it a variable \
                 with --var {0}",
                heading.name(),
                shown.join(", "),
                if values.len() > shown.len() { ", ..." } else { "" },
                shown.first().unwrap_or(&""),
            );
            return Err(TuneError::Table { reason });
        }
        if matches!(meant.meaning, Meaning::Unknown | Meaning::Setting(_)) {
            unused.push(heading.name().to_owned());
        }
    }
    if !unused.is_empty() {
        notes.push(format!("not used: {} (--var COLUMN makes a column a variable)", unused.join(", ")));
    }
    Ok(unused)
}

/// The given space, or one of the values that the runs have.
pub(super) fn make_space(
    settings: &[SettingColumn],
    given: &[Variable],
    runs: &[Run],
) -> Result<Space, TuneError> {
    let mut variables = Vec::with_capacity(settings.len());
    for (index, setting) in settings.iter().enumerate() {
        if let Some(variable) = given.iter().find(|variable| variable.name == setting.name) {
            variables.push(variable.clone());
            continue;
        }
        let mut seen = FxHashSet::default();
        let levels = runs.iter().filter_map(|run| run.setting.0.get(index));
        let levels: Vec<Level> = levels.filter(|level| seen.insert(level.to_string())).cloned().collect();
        variables.push(Variable::new(setting.name.clone(), setting.role, levels)?);
    }
    Space::new(variables)
}
