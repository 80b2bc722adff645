//! Values as people write them: `1..16`, `1.2..2.2GHz:0.1`, `-O2,-O3`.

use super::TuneError;
use super::space::{Level, Role, Variable};

/// The most levels one variable may have.
const MOST_LEVELS: usize = 10_000;

/// Reads `NAME=VALUES`, as `--space` and `--var` take it; well-known names get their role.
///
/// # Errors
/// No `=`, no name, or values that [`parse_variable`] refuses.
pub fn parse_named_variable(text: &str) -> Result<Variable, TuneError> {
    let Some((name, values)) = text.split_once('=') else {
        return Err(TuneError::Levels {
            variable: text.into(),
            reason: "expected NAME=VALUES, as in threads=1..16 or flags=-O2,-O3".into(),
        });
    };
    let name = name.trim();
    if name.is_empty() {
        return Err(TuneError::Levels {
            variable: text.into(),
            reason: "the name is missing before `=`".into(),
        });
    }
    parse_variable(name, role_of_name(name), values)
}

/// Reads values separated by commas, where numbers may be ranges `FROM..TO` or `FROM..TO:STEP`.
///
/// Without a step, whole numbers go up by 1, frequencies by 0.1 GHz and power caps by 5 W. A unit
/// counts for all numbers that have none, so `1.2..3.0GHz` and `1.2,1.8,2.2GHz` mean what they say.
///
/// # Errors
/// A number that cannot be read, an empty or endless range, a unit the role does not have, or names
/// where the role needs numbers.
pub fn parse_variable(name: &str, role: Role, values: &str) -> Result<Variable, TuneError> {
    let refuse = |reason: String| TuneError::Levels { variable: name.into(), reason };
    let items: Vec<&str> = values.split(',').map(str::trim).filter(|item| !item.is_empty()).collect();
    let mut quantities = Vec::new();
    for item in &items {
        match parse_item(item) {
            Some(item) => quantities.push(item),
            None if role == Role::Other => {
                return Variable::new(
                    name,
                    role,
                    items.iter().map(|&label| Level::Label(label.into())).collect(),
                );
            }
            None => {
                return Err(refuse(format!("`{item}` is no number or range such as 1..16 or 1.2..2.2:0.1")));
            }
        }
    }
    let last_unit = quantities
        .iter()
        .flat_map(|item| [Some(item.from), item.to, item.step])
        .flatten()
        .map(|quantity| quantity.unit)
        .rfind(|unit| !unit.is_empty())
        .unwrap_or("");

    let mut levels = Vec::new();
    for item in quantities {
        let convert = |quantity: Quantity<'_>| {
            let unit = if quantity.unit.is_empty() { last_unit } else { quantity.unit };
            to_role_unit(quantity.value, unit, role).map_err(refuse)
        };
        let from = convert(item.from)?;
        let Some(to) = item.to.map(convert).transpose()? else {
            levels.push(Level::Number(from));
            continue;
        };
        let step = match item.step.map(convert).transpose()? {
            Some(step) => step,
            None => default_step(role, from, to)
                .ok_or_else(|| refuse("a range of fractions needs a step, as in 0.5..2:0.5".into()))?,
        };
        levels.extend(range(from, to, step).map_err(refuse)?);
    }
    if levels.len() > MOST_LEVELS {
        return Err(refuse(format!("more than {MOST_LEVELS} values")));
    }
    if role != Role::Other && levels.iter().any(|level| level.number().is_some_and(|number| number <= 0.0)) {
        return Err(refuse("values must be above 0".into()));
    }
    Variable::new(name, role, levels)
}

/// The role that a variable's or a column's name tells.
pub fn role_of_name(name: &str) -> Role {
    let plain: String = name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    match plain.as_str() {
        "threads" | "thread" | "nthreads" | "numthreads" | "ompnumthreads" | "cores" | "core" | "ncores"
        | "numcores" | "cpus" | "ncpus" | "workers" | "threadcount" | "corecount" | "cpucount" => {
            Role::Threads
        }
        "nodes" | "node" | "nnodes" | "numnodes" | "ranks" | "nranks" | "procs" | "nprocs" | "processes"
        | "np" => Role::Nodes,
        "freq" | "frequency" | "f" | "ghz" | "mhz" | "khz" | "clock" | "cpufreq" | "corefreq" | "gpufreq"
        | "gpuclock" | "coreclock" | "smclock" | "cpufrequency" | "corefrequency" | "frequencyghz"
        | "frequencymhz" | "frequencykhz" | "freqghz" | "freqmhz" | "freqkhz" | "clockmhz" => Role::Frequency,
        "cap" | "powercap" | "powerlimit" | "limit" | "pl" | "capw" | "powercapw" | "powerlimitw" | "tdp" => {
            Role::PowerCap
        }
        _ => Role::Other,
    }
}

/// A value in the role's own unit: GHz for frequencies, watts for power caps.
///
/// A frequency without a unit is taken for what it must be by its size: GHz below 50, MHz below
/// 50,000, kHz below 50 million, else Hz.
///
/// # Errors
/// A unit that the role does not have.
pub fn to_role_unit(value: f64, unit: &str, role: Role) -> Result<f64, String> {
    let factor = match (role, unit.to_ascii_lowercase().as_str()) {
        (Role::Frequency, "ghz") => 1.0,
        (Role::Frequency, "mhz") => 1e-3,
        (Role::Frequency, "khz") => 1e-6,
        (Role::Frequency, "hz") => 1e-9,
        (Role::Frequency, "") => match value.abs() {
            size if size < 50.0 => 1.0,
            size if size < 50e3 => 1e-3,
            size if size < 50e6 => 1e-6,
            _ => 1e-9,
        },
        (Role::PowerCap, "w" | "watt" | "watts" | "") => 1.0,
        (Role::PowerCap, "mw") => 1e-3,
        (Role::PowerCap, "kw") => 1e3,
        (_, "") => 1.0,
        (_, other) => {
            let known = match role {
                Role::Frequency => "kHz, MHz or GHz",
                Role::PowerCap => "mW, W or kW",
                _ => "no unit",
            };
            return Err(format!("unit `{other}` where {known} is expected"));
        }
    };
    Ok(tidy(value * factor))
}

/// A number and what stands behind it; `None` where no finite number starts the text.
pub fn split_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|&(at, c)| {
            let exponent = matches!(c, 'e' | 'E')
                && text[at + 1..]
                    .trim_start_matches(['+', '-'])
                    .starts_with(|next: char| next.is_ascii_digit());
            let sign = matches!(c, '+' | '-') && (at == 0 || text[..at].ends_with(['e', 'E']));
            !(c.is_ascii_digit() || c == '.' || exponent || sign)
        })
        .map_or(text.len(), |(at, _)| at);
    let value: f64 = text[..end].parse().ok()?;
    value.is_finite().then(|| (value, text[end..].trim()))
}

#[derive(Clone, Copy)]
struct Quantity<'a> {
    value: f64,
    unit: &'a str,
}

struct Item<'a> {
    from: Quantity<'a>,
    to: Option<Quantity<'a>>,
    step: Option<Quantity<'a>>,
}

fn parse_item(text: &str) -> Option<Item<'_>> {
    let Some((from, rest)) = text.split_once("..") else {
        return Some(Item { from: parse_quantity(text)?, to: None, step: None });
    };
    let (to, step) = match rest.split_once(':') {
        Some((to, step)) => (to, Some(parse_quantity(step)?)),
        None => (rest, None),
    };
    Some(Item { from: parse_quantity(from)?, to: Some(parse_quantity(to.trim_start_matches('='))?), step })
}

fn parse_quantity(text: &str) -> Option<Quantity<'_>> {
    let (value, unit) = split_unit(text)?;
    unit.chars().all(|c| c.is_ascii_alphabetic()).then_some(Quantity { value, unit })
}

fn default_step(role: Role, from: f64, to: f64) -> Option<f64> {
    match role {
        Role::Frequency => Some(0.1),
        Role::PowerCap => Some(5.0),
        _ => (from.fract() == 0.0 && to.fract() == 0.0).then_some(1.0),
    }
}

/// From, from + step, ...; the end belongs to the range even where the steps miss it.
fn range(from: f64, to: f64, step: f64) -> Result<Vec<Level>, String> {
    if from > to {
        return Err(format!("the range {from}..{to} goes downwards"));
    }
    if step <= 0.0 {
        return Err(format!("the step {step} must be above 0"));
    }
    let steps = ((to - from) / step + 1e-6).floor();
    if steps >= MOST_LEVELS as f64 {
        return Err(format!("the range {from}..{to} has more than {MOST_LEVELS} values"));
    }
    let mut values: Vec<f64> = (0..=steps as usize).map(|n| tidy(from + n as f64 * step)).collect();
    if values.last().is_some_and(|&last| to - last > 1e-6 * step) {
        values.push(to);
    }
    Ok(values.into_iter().map(Level::Number).collect())
}

/// Without the last digits that steps like 0.1 leave behind.
fn tidy(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // Twelve significant digits.
    let text = format!("{value:.11e}");
    text.parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(name: &str, text: &str) -> Vec<f64> {
        let variable = parse_variable(name, role_of_name(name), text).expect("valid");
        variable.levels().iter().filter_map(Level::number).collect()
    }

    #[test]
    fn ranges_with_and_without_a_step() {
        assert_eq!(values("threads", "1..4"), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(values("threads", "4..44:4").len(), 11);
        assert_eq!(values("threads", "1..16:4"), [1.0, 5.0, 9.0, 13.0, 16.0]);
        assert_eq!(values("threads", "1,2,4..6"), [1.0, 2.0, 4.0, 5.0, 6.0]);
        assert_eq!(values("tile", "0.5..2:0.5"), [0.5, 1.0, 1.5, 2.0]);
    }

    #[test]
    fn units_count_for_the_numbers_before_them() {
        let steps = [1.2, 1.3, 1.4, 1.5];
        assert_eq!(values("freq", "1.2..1.5GHz"), steps);
        assert_eq!(values("freq", "1200..1500MHz:100MHz"), steps);
        assert_eq!(values("freq", "1200000,1300000,1400000,1500000"), steps);
        assert_eq!(values("clock", "1005,1110"), [1.005, 1.11]);
        assert_eq!(values("cap", "150..160W"), [150.0, 155.0, 160.0]);
        assert_eq!(values("cap", "0.5kW"), [500.0]);
    }

    #[test]
    fn names_are_categories() {
        let flags = parse_named_variable("flags=-O2,-O3 -march=native").expect("valid");
        assert!(flags.is_categorical());
        assert_eq!(flags.levels().len(), 2);
        let numbers = parse_named_variable("tile=16,32").expect("valid");
        assert!(!numbers.is_categorical());
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_reason() {
        for (text, reason) in [
            ("threads=4..1", "downwards"),
            ("threads=1..16:0", "above 0"),
            ("threads=1..1e9", "more than"),
            ("threads=two", "no number"),
            ("threads=0..4", "above 0"),
            ("freq=1.2..2V", "unit `v`"),
            ("tile=0.5..2", "needs a step"),
            ("threads", "NAME=VALUES"),
            ("=1", "name is missing"),
            ("threads=", "no values"),
        ] {
            let error = parse_named_variable(text).expect_err(text).to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn numbers_and_units_come_apart() {
        assert_eq!(split_unit("2.10GHz"), Some((2.1, "GHz")));
        assert_eq!(split_unit(" -1 "), Some((-1.0, "")));
        assert_eq!(split_unit("1e3 J"), Some((1000.0, "J")));
        assert_eq!(split_unit("1.5e-2"), Some((0.015, "")));
        assert_eq!(split_unit("-O2"), None);
        assert_eq!(split_unit("1e999"), None);
    }

    #[test]
    fn units_by_hand() {
        let of = |value: f64, unit: &str, role| to_role_unit(value, unit, role).ok();
        // A frequency without a unit is what it must be by its size.
        for (value, ghz) in [
            (49.9, 49.9),
            (50.0, 0.05),
            (49_999.0, 49.999),
            (50_000.0, 0.05),
            (49_999_999.0, 49.999999),
            (50_000_000.0, 0.05),
            (2_400_000_000.0, 2.4),
            (-1200.0, -1.2),
        ] {
            assert_eq!(of(value, "", Role::Frequency), Some(ghz), "{value}");
        }
        for (value, unit, ghz) in
            [(2.0, "GHz", 2.0), (70.0, "mhz", 0.07), (3e6, "KHZ", 3.0), (5e8, "Hz", 0.5)]
        {
            assert_eq!(of(value, unit, Role::Frequency), Some(ghz), "{unit}");
        }
        for (value, unit, watts) in [
            (7.0, "", 7.0),
            (7.0, "W", 7.0),
            (7.0, "watt", 7.0),
            (7.0, "Watts", 7.0),
            (1500.0, "mW", 1.5),
            (0.25, "kW", 250.0),
        ] {
            assert_eq!(of(value, unit, Role::PowerCap), Some(watts), "{unit}");
        }
        assert_eq!((of(4.0, "", Role::Threads), of(-4.5, "", Role::Other)), (Some(4.0), Some(-4.5)));
        for (unit, role) in [
            ("W", Role::Frequency),
            ("GHz", Role::PowerCap),
            ("s", Role::Threads),
            ("s", Role::Other),
            ("GHz", Role::Nodes),
        ] {
            assert_eq!(of(1.0, unit, role), None, "{unit}");
        }
        // Twelve digits are kept.
        assert_eq!(tidy(0.1 + 0.2), 0.3);
        assert_eq!((tidy(123456789.0125), tidy(0.0), tidy(-1.5)), (123456789.013, 0.0, -1.5));
    }

    #[test]
    fn as_many_values_as_may_be_and_no_more() {
        let count = |text: &str| parse_named_variable(text).map(|variable| variable.levels().len()).ok();
        assert_eq!(count("threads=1..10000"), Some(10_000));
        assert_eq!(count("threads=1..10001"), None);
        // It is refused before it is written out.
        let error = parse_named_variable("threads=1..10001").expect_err("too many").to_string();
        assert!(error.contains("the range 1..10001 has more than 10000 values"), "{error}");
        assert_eq!(count("threads=1..9999,20000"), Some(10_000));
        assert_eq!(count("threads=1..10000,20000"), None);
        // The end belongs to a range, but not twice.
        assert_eq!(values("freq", "1..1.3"), [1.0, 1.1, 1.2, 1.3]);
        assert_eq!(values("freq", "1..1.35"), [1.0, 1.1, 1.2, 1.3, 1.35]);
        assert_eq!(
            (values("threads", "3..3"), values("cap", "100..109")),
            (vec![3.0], vec![100.0, 105.0, 109.0])
        );
        assert_eq!(values("tile", "-2..0:1"), [-2.0, -1.0, 0.0], "zero and less mean something there");
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,40}") {
            let _ = parse_named_variable(&text);
            let _ = parse_named_variable(&format!("threads={text}"));
            let _ = parse_named_variable(&format!("freq={text}"));
        }
    }
}
