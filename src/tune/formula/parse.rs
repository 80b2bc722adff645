//! Formulas as people write them.

use super::{DEGREE, FREEDOM, Factor, Formula, Scale, amdahl, categories, linear, spline};
use crate::tune::TuneError;
use crate::tune::space::Space;

impl Formula {
    /// Reads a formula such as `bs(threads) + freq + bs(threads):freq + C(flags)`.
    ///
    /// `a*b` is short for `a + b + a:b`; `bs(x, df=4)` sets the number of functions; `bs(log(x))` is a
    /// spline over logarithms; `amdahl(x, serial=0.05)` is Amdahl's law. The word `paper` alone is [`Formula::as_in_the_paper`].
    ///
    /// # Errors
    /// A term that cannot be read or names a variable that the space does not have.
    pub fn parse(text: &str, space: &Space) -> Result<Self, TuneError> {
        if text.trim() == "paper" {
            return Ok(Self::as_in_the_paper(space));
        }
        let right = text.split_once('~').map_or(text, |(_, right)| right);
        let mut formula = Self { terms: Vec::new() };
        for term in split_outside_brackets(right, '+') {
            if term.trim() == "1" {
                continue; // The intercept is always there.
            }
            let crossed = split_outside_brackets(term, '*');
            let mut choices: Vec<Vec<Factor>> = vec![Vec::new()];
            for part in &crossed {
                let mut factors = Vec::new();
                for factor in split_outside_brackets(part, ':') {
                    factors.push(parse_factor(factor.trim(), space)?);
                }
                let with: Vec<Vec<Factor>> =
                    choices.iter().map(|choice| [choice.as_slice(), &factors].concat()).collect();
                if crossed.len() > 1 {
                    choices.extend(with);
                } else {
                    choices = with;
                }
                if choices.len() > 256 {
                    return Err(TuneError::Formula {
                        text: term.trim().into(),
                        reason: "too many products".into(),
                    });
                }
            }
            for choice in choices {
                if !choice.is_empty() && !formula.terms.contains(&choice) {
                    formula.terms.push(choice);
                }
            }
        }
        if formula.coefficients() > 1000 {
            return Err(TuneError::Formula {
                text: text.into(),
                reason: "more than 1000 coefficients".into(),
            });
        }
        Ok(formula)
    }
}

fn parse_factor(text: &str, space: &Space) -> Result<Factor, TuneError> {
    let refuse = |reason: &str| TuneError::Formula { text: text.into(), reason: reason.into() };
    let find = |name: &str| {
        let place = space.variables().iter().position(|variable| variable.name == name);
        place.map(|index| (index, &space.variables()[index])).ok_or_else(|| {
            let names: Vec<&str> = space.variables().iter().map(|variable| variable.name.as_str()).collect();
            refuse(&format!("there is no variable `{name}`; there are: {}", names.join(", ")))
        })
    };
    let Some((function, rest)) = text.split_once('(') else {
        let (index, variable) = find(text)?;
        return Ok(if variable.is_categorical() {
            categories(index, variable)
        } else {
            linear(index, variable)
        });
    };
    let arguments = rest.strip_suffix(')').ok_or_else(|| refuse("the closing bracket is missing"))?;
    let mut arguments = arguments.split(',').map(str::trim);
    let mut name = arguments.next().unwrap_or_default();
    let mut scale = Scale::Plain;
    if let Some(inner) = name.strip_prefix("log(").and_then(|rest| rest.strip_suffix(')')) {
        (name, scale) = (inner.trim(), Scale::Logarithmic);
    }
    let (index, variable) = find(name)?;
    match function.trim() {
        "C" => Ok(categories(index, variable)),
        "amdahl" => {
            let serial = match (arguments.next(), arguments.next()) {
                (Some(argument), None) => argument.strip_prefix("serial").map(str::trim_start),
                _ => None,
            };
            let serial =
                serial.and_then(|rest| rest.strip_prefix('=')).and_then(|value| value.trim().parse().ok());
            serial.and_then(|serial| amdahl(index, variable, serial)).ok_or_else(|| {
                refuse("Amdahl's law needs numbers of cores, from 1, and a share below 1, as in amdahl(threads, serial=0.05)")
            })
        }
        "bs" => {
            if variable.is_categorical() {
                return Err(refuse("a spline needs numbers, and these values are names: use C()"));
            }
            let mut freedom = FREEDOM;
            for argument in arguments {
                let value =
                    argument.strip_prefix("df").map(str::trim_start).and_then(|rest| rest.strip_prefix('='));
                freedom = match value.map(|value| value.trim().parse()) {
                    Some(Ok(value)) if (DEGREE..=100).contains(&value) => value,
                    _ => return Err(refuse("after the name only df=2..100 may follow")),
                };
            }
            spline(index, variable, scale, freedom)
                .ok_or_else(|| refuse("a spline needs at least three values"))
        }
        _ => Err(refuse("only bs(x), amdahl(x, serial=s), C(x) and x itself are known")),
    }
}

fn split_outside_brackets(text: &str, separator: char) -> Vec<&str> {
    let mut depth = 0usize;
    text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == separator && depth == 0
    })
    .collect()
}
