//! Command templates: `{threads}` and the like stand for the values of a setting.

use super::error::TuningError;
use crate::tune::space::{Level, Role, Setting, Space};

/// How a value is written into a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueForm {
    /// As it is, in the variable's own unit.
    Plain,
    /// Times this, as a whole number: a frequency in MHz, kHz or Hz.
    Times(u32),
}

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    /// Position of the variable in the space.
    Value(usize, ValueForm),
}

impl Template {
    /// Finds the placeholders of a text. `{name}` is one if `name` looks like a name (letters, digits
    /// and `_`); other braces, as in `awk '{print $1}'`, are text. `{{name}}` is the text `{name}`.
    ///
    /// # Errors
    /// A name that is no variable of the space.
    pub fn parse(text: &str, space: &Space) -> Result<Self, TuningError> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            plain.push_str(&rest[..open]);
            rest = &rest[open..];
            let doubled = rest.starts_with("{{");
            let inside = &rest[if doubled { 2 } else { 1 }..];
            let name_length =
                inside.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inside.len());
            let (name, after) = inside.split_at(name_length);
            let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic());
            match after.strip_prefix(if doubled { "}}" } else { "}" }) {
                Some(after) if is_name && doubled => {
                    plain.push_str(&format!("{{{name}}}"));
                    rest = after;
                }
                Some(after) if is_name => {
                    let (variable, form) = find(name, space).ok_or_else(|| TuningError::Placeholder {
                        name: name.into(),
                        text: text.into(),
                        known: known(space),
                    })?;
                    if !plain.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut plain)));
                    }
                    parts.push(Part::Value(variable, form));
                    rest = after;
                }
                _ => {
                    plain.push('{');
                    rest = &rest[1..];
                }
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() || parts.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self { parts })
    }

    /// The text for a setting.
    pub fn fill(&self, setting: &Setting) -> String {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.clone(),
                Part::Value(variable, form) => match (setting.0.get(*variable), form) {
                    (Some(Level::Number(number)), ValueForm::Times(factor)) => {
                        (number * f64::from(*factor)).round().to_string()
                    }
                    (Some(level), _) => level.to_string(),
                    (None, _) => String::new(),
                },
            })
            .collect()
    }

    /// Whether a variable's value is somewhere in the text.
    pub fn mentions(&self, wanted: usize) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Value(variable, _) if *variable == wanted))
    }
}

/// The variable of a placeholder: by its name, or by a usual name of its role or unit.
fn find(name: &str, space: &Space) -> Option<(usize, ValueForm)> {
    let variables = || space.variables().iter().enumerate();
    if let Some((index, _)) = variables().find(|(_, variable)| variable.name == name) {
        return Some((index, ValueForm::Plain));
    }
    let (role, form) = match name {
        "threads" | "cores" => (Role::Threads, ValueForm::Plain),
        "nodes" => (Role::Nodes, ValueForm::Plain),
        "freq" | "ghz" => (Role::Frequency, ValueForm::Plain),
        "mhz" => (Role::Frequency, ValueForm::Times(1_000)),
        "khz" => (Role::Frequency, ValueForm::Times(1_000_000)),
        "hz" => (Role::Frequency, ValueForm::Times(1_000_000_000)),
        "cap" | "watts" => (Role::PowerCap, ValueForm::Plain),
        _ => return None,
    };
    variables().find(|(_, variable)| variable.role == role).map(|(index, _)| (index, form))
}

fn known(space: &Space) -> String {
    let mut names: Vec<String> =
        space.variables().iter().map(|variable| format!("{{{}}}", variable.name)).collect();
    if space.variables().iter().any(|variable| variable.role == Role::Frequency) {
        names.extend(["{ghz}", "{mhz}", "{khz}", "{hz}"].map(String::from));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::levels::parse_named_variable;
    use proptest::prelude::*;

    fn space() -> Space {
        let variables = ["nodes=2,4", "threads=8,16", "freq=1.8,2.1GHz", "flags=-O2,-O3"];
        Space::new(variables.map(|text| parse_named_variable(text).expect("valid")).into()).expect("valid")
    }

    fn filled(text: &str) -> String {
        let space = space();
        Template::parse(text, &space).expect("valid").fill(&space.setting(space.size() - 1))
    }

    #[test]
    fn placeholders_become_values() {
        assert_eq!(
            filled("srun -N {nodes} -c {threads} --cpu-freq={khz} ./app {ghz}GHz"),
            "srun -N 4 -c 16 --cpu-freq=2100000 ./app 2.1GHz"
        );
        assert_eq!(filled("{cores}{mhz}{flags}"), "162100-O3");
    }

    #[test]
    fn other_braces_are_text() {
        for text in ["awk '{print $1}'", "{\"a\": 1}", "{}", "${HOME}x{", "{{", "a{{b c}}", "{0}"] {
            let expected = if text == "${HOME}x{" { continue } else { text };
            assert_eq!(filled(text), expected);
        }
        assert_eq!(filled("{{threads}} {threads}"), "{threads} 16");
    }

    #[test]
    fn a_name_that_is_no_variable_is_refused() {
        let error = Template::parse("./app {thread}", &space()).expect_err("a typing error").to_string();
        assert!(
            error.contains("`{thread}`") && error.contains("{threads}") && error.contains("`{{thread}}`"),
            "{error}"
        );
    }

    #[test]
    fn knows_what_it_mentions() {
        let template = Template::parse("./app {khz}", &space()).expect("valid");
        assert_eq!(
            (0..4).map(|index| template.mentions(index)).collect::<Vec<_>>(),
            [false, false, true, false]
        );
    }

    proptest! {
        #[test]
        fn never_panics(text in "[{}a-z \\PC]{0,30}") {
            if let Ok(template) = Template::parse(&text, &space()) {
                template.fill(&space().setting(0));
            }
        }
    }
}
