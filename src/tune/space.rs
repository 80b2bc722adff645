//! The search space: what can be set, to which values, and the settings these make together.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::TuneError;

/// The most settings a space may have; every one of them is predicted.
pub const MOST_SETTINGS: usize = 200_000;

/// One value of one variable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Level {
    /// A number in the variable's unit.
    Number(f64),
    /// A name, such as a compiler flag.
    Label(String),
}

impl Level {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Level::Number(number) => Some(*number),
            Level::Label(_) => None,
        }
    }

    /// Equal labels, or numbers that differ by no more than rounding.
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Level::Number(a), Level::Number(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
            (Level::Label(a), Level::Label(b)) => a == b,
            _ => false,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Level::Number(number) => f.pad(&number.to_string()),
            Level::Label(label) => f.pad(label),
        }
    }
}

/// What a variable is physically; it decides the unit and the variable's part in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Compute nodes, or MPI ranks.
    Nodes,
    /// Threads or cores within a node.
    Threads,
    /// Clock frequency, in GHz.
    Frequency,
    /// Power limit, in watts.
    PowerCap,
    /// Anything else: a tile size, a compiler flag.
    Other,
}

impl Role {
    /// The unit of the variable's numbers, as it is written behind them.
    pub const fn unit(self) -> &'static str {
        match self {
            Role::Frequency => "GHz",
            Role::PowerCap => "W",
            Role::Nodes | Role::Threads | Role::Other => "",
        }
    }
}

/// Something that can be set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Variable {
    /// The name in tables, formulas and `{placeholders}`.
    pub name: String,
    /// What it is.
    pub role: Role,
    levels: Vec<Level>,
}

impl Variable {
    /// A variable with these levels: numbers are sorted, repeated levels dropped.
    ///
    /// # Errors
    /// No level at all, a number that is not finite, or numbers and labels mixed.
    pub fn new(name: impl Into<String>, role: Role, mut levels: Vec<Level>) -> Result<Self, TuneError> {
        let name = name.into();
        let numbers = levels.iter().filter(|level| level.number().is_some()).count();
        if levels.is_empty() {
            return Err(TuneError::Levels { variable: name, reason: "it has no values".into() });
        }
        if levels.iter().any(|level| level.number().is_some_and(|number| !number.is_finite())) {
            return Err(TuneError::Levels {
                variable: name,
                reason: "a value is not a finite number".into(),
            });
        }
        if numbers != 0 && numbers != levels.len() {
            return Err(TuneError::Levels { variable: name, reason: "numbers and names are mixed".into() });
        }
        if numbers != 0 {
            levels.sort_by(|a, b| f64::total_cmp(&a.number().unwrap_or(0.0), &b.number().unwrap_or(0.0)));
            levels.dedup_by(|a, b| a.same(b));
        } else {
            let mut distinct: Vec<Level> = Vec::new();
            for level in levels {
                if !distinct.contains(&level) {
                    distinct.push(level);
                }
            }
            levels = distinct;
        }
        Ok(Self { name, role, levels })
    }

    /// Numbers in ascending order, or labels in the order given.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Whether the levels are names without an order.
    pub fn is_categorical(&self) -> bool {
        self.levels.iter().any(|level| level.number().is_none())
    }

    /// The level the program runs at when nobody tunes: the most, or the first name.
    pub fn usual_level(&self) -> &Level {
        // The constructor refuses a variable without levels.
        &self.levels[if self.is_categorical() { 0 } else { self.levels.len() - 1 }]
    }

    /// The position of a level, if the variable has it.
    pub fn position(&self, level: &Level) -> Option<usize> {
        self.levels.iter().position(|own| own.same(level))
    }

    /// A level with the variable's unit.
    pub fn show(&self, level: &Level) -> String {
        match level {
            Level::Number(number) => format!("{number}{}", self.role.unit()),
            Level::Label(label) => label.clone(),
        }
    }
}

/// One value for every variable of a space, in the space's order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Setting(pub Vec<Level>);

impl Setting {
    /// Whether all values are the same but for rounding.
    pub fn same(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| a.same(b))
    }

    /// A text that equal settings share, to find them by.
    pub fn key(&self) -> String {
        let mut key = String::new();
        for level in &self.0 {
            match level {
                // Ten significant digits, as rounding may differ in the last ones; -0 is 0.
                Level::Number(number) => key.push_str(&format!("{:.9e}\n", number + 0.0)),
                Level::Label(label) => key.push_str(&format!("={label}\n")),
            }
        }
        key
    }
}

/// All settings that can be chosen: every combination of the variables' levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Space {
    variables: Vec<Variable>,
}

impl Space {
    /// The space of these variables.
    ///
    /// # Errors
    /// No variable, two of one name, or more than [`MOST_SETTINGS`] settings.
    pub fn new(variables: Vec<Variable>) -> Result<Self, TuneError> {
        if variables.is_empty() {
            return Err(TuneError::EmptySpace);
        }
        for (index, variable) in variables.iter().enumerate() {
            if variables[..index].iter().any(|other| other.name == variable.name) {
                return Err(TuneError::TwiceTheSameVariable(variable.name.clone()));
            }
        }
        let size =
            variables.iter().try_fold(1usize, |size, variable| size.checked_mul(variable.levels.len()));
        match size {
            Some(size) if size <= MOST_SETTINGS => Ok(Self { variables }),
            _ => Err(TuneError::SpaceTooLarge { most: MOST_SETTINGS }),
        }
    }

    /// The variables, in the order of every setting's values.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// Number of settings.
    pub fn size(&self) -> usize {
        self.variables.iter().map(|variable| variable.levels.len()).product()
    }

    /// The setting at a position of [`Space::settings`]; the last variable changes fastest.
    pub fn setting(&self, mut position: usize) -> Setting {
        let mut levels: Vec<Level> = Vec::with_capacity(self.variables.len());
        for variable in self.variables.iter().rev() {
            let count = variable.levels.len();
            levels.push(variable.levels[position % count].clone());
            position /= count;
        }
        levels.reverse();
        Setting(levels)
    }

    /// All settings.
    pub fn settings(&self) -> impl Iterator<Item = Setting> + '_ {
        (0..self.size()).map(|position| self.setting(position))
    }

    /// For each variable, which of its levels the setting at this position has.
    pub fn coordinates(&self, mut position: usize) -> Vec<usize> {
        let mut coordinates = Vec::with_capacity(self.variables.len());
        for variable in self.variables.iter().rev() {
            coordinates.push(position % variable.levels.len());
            position /= variable.levels.len();
        }
        coordinates.reverse();
        coordinates
    }

    /// The position of the setting with these levels (the reverse of [`Space::coordinates`]).
    pub fn position_at(&self, coordinates: &[usize]) -> usize {
        self.variables.iter().zip(coordinates).fold(0, |position, (variable, &coordinate)| {
            position * variable.levels.len() + coordinate.min(variable.levels.len() - 1)
        })
    }

    /// The position of a setting, if the space has it.
    pub fn position(&self, setting: &Setting) -> Option<usize> {
        if setting.0.len() != self.variables.len() {
            return None;
        }
        let coordinates: Option<Vec<usize>> =
            self.variables.iter().zip(&setting.0).map(|(variable, level)| variable.position(level)).collect();
        Some(self.position_at(&coordinates?))
    }

    /// The setting a program runs at when nobody tunes: the highest of each number (all threads at
    /// full frequency), the first of each name.
    pub fn usual_setting(&self) -> Setting {
        Setting(self.variables.iter().map(|variable| variable.usual_level().clone()).collect())
    }

    /// Whether the values lie within the range that the space spans, on one of its levels or between.
    pub fn spans(&self, setting: &Setting) -> bool {
        setting.0.len() == self.variables.len()
            && self.variables.iter().zip(&setting.0).all(|(variable, level)| match level.number() {
                Some(number) if !variable.is_categorical() => {
                    let bounds = (variable.levels.first(), variable.levels.last());
                    let (Some(low), Some(high)) =
                        (bounds.0.and_then(Level::number), bounds.1.and_then(Level::number))
                    else {
                        return false;
                    };
                    let slack = 1e-9 * high.abs().max(low.abs());
                    (low - slack..=high + slack).contains(&number)
                }
                _ => variable.position(level).is_some(),
            })
    }

    /// The setting as `name=value name=value`, without the variables that cannot be chosen.
    pub fn show(&self, setting: &Setting) -> String {
        let parts: Vec<String> = self
            .variables
            .iter()
            .zip(&setting.0)
            .filter(|(variable, _)| variable.levels.len() > 1 || self.variables.len() == 1)
            .map(|(variable, level)| format!("{}={}", variable.name, variable.show(level)))
            .collect();
        parts.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn numbers(values: &[f64]) -> Vec<Level> {
        values.iter().copied().map(Level::Number).collect()
    }

    fn sample() -> Space {
        let flags = ["-O2", "-O3"].iter().map(|flag| Level::Label((*flag).into())).collect();
        Space::new(vec![
            Variable::new("threads", Role::Threads, numbers(&[8.0, 4.0, 4.0, 1.0])).expect("valid"),
            Variable::new("freq", Role::Frequency, numbers(&[1.2, 1.8])).expect("valid"),
            Variable::new("flags", Role::Other, flags).expect("valid"),
        ])
        .expect("valid")
    }

    #[test]
    fn numbers_are_sorted_and_distinct() {
        assert_eq!(sample().variables()[0].levels(), numbers(&[1.0, 4.0, 8.0]));
    }

    #[test]
    fn the_usual_setting_is_the_most_of_all_and_the_first_name() {
        let space = sample();
        let usual = space.usual_setting();
        assert_eq!(space.show(&usual), "threads=8 freq=1.8GHz flags=-O2");
        assert_eq!(space.position(&usual), Some(10));
    }

    #[test]
    fn a_level_beyond_the_last_is_the_last() {
        let space = sample();
        assert_eq!(space.position_at(&[2, 1, 1]), 11);
        assert_eq!(space.position_at(&[0, 9, 0]), space.position_at(&[0, 1, 0]));
        assert_eq!(space.position_at(&[3, 2, 2]), 11);
    }

    #[test]
    fn spans_what_lies_between_its_levels() {
        let space = sample();
        let at = |threads: f64| {
            Setting(vec![Level::Number(threads), Level::Number(1.3), Level::Label("-O3".into())])
        };
        assert!(space.spans(&at(2.0)));
        assert!(!space.spans(&at(9.0)));
        assert_eq!(space.position(&at(2.0)), None);
    }

    #[test]
    fn hostile_spaces_are_refused() {
        let variable = |name: &str, count: usize| {
            Variable::new(name, Role::Other, (0..count).map(|n| Level::Number(n as f64)).collect())
                .expect("valid")
        };
        assert!(Variable::new("x", Role::Other, vec![]).is_err());
        assert!(Variable::new("x", Role::Other, numbers(&[f64::NAN])).is_err());
        assert!(Variable::new("x", Role::Other, vec![Level::Number(1.0), Level::Label("a".into())]).is_err());
        assert!(Space::new(vec![]).is_err());
        assert!(Space::new(vec![variable("x", 2), variable("x", 2)]).is_err());
        let many = (0..20).map(|n| variable(&format!("v{n}"), 10_000)).collect();
        assert!(matches!(Space::new(many), Err(TuneError::SpaceTooLarge { .. })));
    }

    proptest! {
        #[test]
        fn positions_and_settings_are_each_others_reverse(position in 0usize..12) {
            let space = sample();
            prop_assert_eq!(space.position(&space.setting(position)), Some(position));
            prop_assert_eq!(space.position_at(&space.coordinates(position)), position);
        }
    }

    #[test]
    fn settings_are_the_same_but_for_rounding() {
        let setting = |values: &[f64]| Setting(numbers(values));
        assert!(setting(&[1.0, 0.3]).same(&setting(&[1.0, 0.1 + 0.2])));
        assert!(!setting(&[1.0, 0.3]).same(&setting(&[1.0, 0.4])));
        assert!(!setting(&[1.0]).same(&setting(&[1.0, 0.3])) && !setting(&[1.0, 0.3]).same(&setting(&[1.0])));
    }
}
