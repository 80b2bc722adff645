//! Which columns are settings, and the search space their values make.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::TuneError;
use super::super::levels::{role_of_name, to_role_unit};
use super::super::runs::Run;
use super::super::space::{Level, Role, Space, Variable};
use super::TableOptions;
use super::headings::{Meaning, read_number};
use super::raw::RawTable;
use super::response_columns::ResponseColumns;

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
    pub(super) fn is_unordered(&self, table: &RawTable, rows: &[usize]) -> bool {
        self.given_names
            || rows.iter().map(|&row| table.cell(row, self.column)).filter(|cell| !cell.is_empty()).any(
                |cell| match read_number(cell, table.comma_is_point) {
                    Some((value, unit)) => {
                        to_role_unit(value, &unit, self.role).is_err()
                            || (self.role != Role::Other && value <= 0.0)
                    }
                    None => true,
                },
            )
    }

    pub(super) fn level(&self, table: &RawTable, row: usize, unordered: bool) -> Result<Level, String> {
        let cell = table.cell(row, self.column);
        if cell.is_empty() {
            return Err(format!("`{}` is empty", self.name));
        }
        if !unordered {
            let (value, unit) = table.number(row, self.column)?;
            let unit = if unit.is_empty() { &self.unit } else { &unit };
            return Ok(Level::Number(to_role_unit(value, unit, self.role)?));
        }
        // A power cap of 0 or -1 is how tables write that there is none.
        let capless = self.role == Role::PowerCap
            && read_number(cell, table.comma_is_point)
                .is_some_and(|(value, unit)| value <= 0.0 && unit.is_empty());
        Ok(Level::Label(if capless { "none".into() } else { cell.to_string() }))
    }
}

pub(super) fn find_settings(
    table: &RawTable,
    rows: &[usize],
    options: &TableOptions,
    columns: &ResponseColumns,
) -> Result<Vec<SettingColumn>, TuneError> {
    let as_setting = |column: usize, name: &str, role: Role, given_names: bool| SettingColumn {
        column,
        name: name.to_string(),
        role,
        unit: table.headings[column].unit.clone(),
        given_names,
    };
    let mut settings: Vec<SettingColumn> = Vec::new();
    for variable in &options.space {
        let by_role = || {
            let mut same = table.headings.iter().enumerate().filter(|(_, heading)| {
                variable.role != Role::Other && heading.meaning == Meaning::Setting(variable.role)
            });
            same.next().map(|(column, _)| column)
        };
        let column = match table.headings.iter().position(|heading| heading.is_called(&variable.name)) {
            Some(column) => Some(column),
            None => by_role(),
        };
        match column {
            Some(column) => {
                settings.push(as_setting(column, &variable.name, variable.role, variable.is_categorical()));
            }
            None => return table.find(&variable.name).map(|_| Vec::new()),
        }
    }
    for name in &options.variables {
        let column = table.find(name)?;
        if !settings.iter().any(|setting| setting.column == column) {
            let heading = &table.headings[column].name;
            settings.push(as_setting(column, heading, role_of_name(heading), false));
        }
    }
    if settings.is_empty() {
        for (column, heading) in table.headings.iter().enumerate() {
            if let Meaning::Setting(role) = heading.meaning {
                let conditioned = options.conditions.iter().any(|(name, _)| heading.is_called(name));
                if !conditioned && !columns.uses(column) && can_be(role, table, rows, column) {
                    settings.push(as_setting(column, &heading.name, role, false));
                }
            }
        }
    }
    if settings.is_empty() {
        let reason =
            format!("no column is known to be a setting (name them with --var COLUMN); {}", table.columns());
        return Err(TuneError::Table { reason });
    }
    Ok(settings)
}

/// Threads and nodes are whole: a column `Core` with fractions is RAPL's energy of the cores.
fn can_be(role: Role, table: &RawTable, rows: &[usize], column: usize) -> bool {
    !matches!(role, Role::Threads | Role::Nodes)
        || rows
            .iter()
            .filter_map(|&row| read_number(table.cell(row, column), table.comma_is_point))
            .all(|(value, _)| value.fract() == 0.0)
}

/// Refuses to mix different programs: names that differ between runs of one setting, but are none.
/// Returns the other columns that differ so.
pub(super) fn check_hidden_factors(
    table: &RawTable,
    rows: &[usize],
    settings: &[SettingColumn],
    columns: &ResponseColumns,
    notes: &mut Vec<String>,
) -> Result<Vec<String>, TuneError> {
    let key = |row: usize| -> Vec<&str> {
        settings.iter().map(|setting| table.cell(row, setting.column)).collect()
    };
    let mut unused = Vec::new();
    for (column, heading) in table.headings.iter().enumerate() {
        let role = settings.iter().any(|setting| setting.column == column);
        if role || columns.uses(column) {
            continue;
        }
        let mut of_setting: FxHashMap<Vec<&str>, &str> = FxHashMap::default();
        let differs = rows.iter().any(|&row| {
            let cell = table.cell(row, column);
            *of_setting.entry(key(row)).or_insert(cell) != cell
        });
        if !differs {
            continue;
        }
        let values = table.values(rows, column, rows.len());
        let names = values.iter().all(|value| read_number(value, table.comma_is_point).is_none());
        // A value of its own in almost every row (a date, an id) tells runs apart, not programs.
        if names && values.len() * 2 <= rows.len() {
            let shown: Vec<&str> = values.iter().copied().take(6).collect();
            let reason = format!(
                "runs of one setting differ in `{0}` ({1}{2}): choose one with --where {0}={3}, or make it a variable \
                 with --var {0}",
                heading.name,
                shown.join(", "),
                if values.len() > shown.len() { ", ..." } else { "" },
                shown.first().unwrap_or(&""),
            );
            return Err(TuneError::Table { reason });
        }
        if heading.meaning == Meaning::Unknown || matches!(heading.meaning, Meaning::Setting(_)) {
            unused.push(heading.name.clone());
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
