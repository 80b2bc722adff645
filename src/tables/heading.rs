//! Names of columns, and the units in them.

use super::unit::{Quantity, known};

/// A column's name, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    text: String,
    name: String,
    unit: String,
}

impl Heading {
    /// Reads a column's name: `Time[s]`, `time (ms)`, `time/s`, `energy_kWh`.
    pub fn read(text: &str) -> Self {
        let text = text.trim().trim_matches(['"', '\'']).trim();
        let (name, unit) = split(text.trim_start_matches('#').trim());
        Self { text: text.to_owned(), name: name.to_owned(), unit: unit.to_owned() }
    }

    /// The name as it is in the table, without quotes.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name without unit and decoration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The unit in the name; empty if there is none. In brackets it can be anything.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// The name up to the first bracket: `power.draw` of `power.draw [W]`.
    pub fn before_bracket(&self) -> &str {
        self.text.split(['[', '(']).next().unwrap_or_default().trim()
    }

    /// How much of a quantity's own unit one of the column's is, where its name says: by the unit, or by
    /// being one, as `seconds` or `kWh`.
    pub fn factor(&self, quantity: Quantity) -> Option<f64> {
        [&self.unit, &self.name]
            .into_iter()
            .find_map(|text| known(text).filter(|unit| unit.quantity == quantity))
            .map(|unit| unit.factor)
    }

    /// Whether somebody who writes `wanted` means this column: its name without regard to case,
    /// decoration and unit, or all of it.
    pub fn is_called(&self, wanted: &str) -> bool {
        let wanted = plain(wanted);
        !wanted.is_empty() && (plain(&self.name) == wanted || plain(&self.text) == wanted)
    }
}

/// The column that somebody means who writes `wanted`: the very name before the same in other case, that
/// before one without regard to decoration and unit.
pub(super) fn find(headings: &[Heading], wanted: &str) -> Option<usize> {
    let position = |is_meant: &dyn Fn(&Heading) -> bool| headings.iter().position(is_meant);
    let exact = position(&|heading| heading.text == wanted);
    let wanted = wanted.trim().trim_matches(['"', '\'']).trim();
    exact
        .or_else(|| position(&|heading| heading.text == wanted))
        .or_else(|| position(&|heading| heading.text.eq_ignore_ascii_case(wanted)))
        .or_else(|| position(&|heading| heading.before_bracket() == wanted && !wanted.is_empty()))
        .or_else(|| position(&|heading| heading.is_called(wanted)))
}

/// Letters and digits in lower case.
pub fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The name and its unit.
fn split(text: &str) -> (&str, &str) {
    for (open, close) in [('[', ']'), ('(', ')'), ('<', '>')] {
        if let Some((name, rest)) = text.split_once(open)
            && let Some((unit, _)) = rest.split_once(close)
        {
            return (name.trim(), unit.trim());
        }
    }
    for separator in ['/', '_', ' ', '-', '.'] {
        if let Some((name, unit)) = text.rsplit_once(separator) {
            // `gflops/w` is work per joule, not gflops in watts.
            let is_rate = separator == '/' && is_work(&plain(name));
            if is_unit_of_names(unit.trim()) && !name.is_empty() && !is_rate {
                return (name.trim(), unit.trim());
            }
        }
    }
    (text, "")
}

/// Units that are told from the last letters of a name without brackets around them: a `V` or `A` there
/// is more often a letter.
fn is_unit_of_names(unit: &str) -> bool {
    known(unit).is_some_and(|unit| {
        matches!(unit.quantity, Quantity::Time | Quantity::Energy | Quantity::Power | Quantity::Frequency)
    })
}

/// What is done, of which so much per second or per joule is a rate.
pub(crate) fn is_work(plain: &str) -> bool {
    plain.ends_with("flops")
        || plain.ends_with("flop")
        || matches!(
            plain,
            "ops"
                | "updates"
                | "iterations"
                | "gups"
                | "bytes"
                | "mb"
                | "gb"
                | "perf"
                | "performance"
                | "work"
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_and_units() {
        for (text, name, unit) in [
            ("#Procs", "Procs", ""),
            ("freq_MHz", "freq", "MHz"),
            ("Time[s]", "Time", "s"),
            ("Energy [Wh]", "Energy", "Wh"),
            ("power (mW)", "power", "mW"),
            ("power/W", "power", "W"),
            ("power_limit_w", "power_limit", "w"),
            ("elapsed_time", "elapsed_time", ""),
            ("GFLOPS/W", "GFLOPS/W", ""),
            ("power.draw [W]", "power.draw", "W"),
            ("utilization.gpu [%]", "utilization.gpu", "%"),
            ("'AMD RAPL PCKG'", "AMD RAPL PCKG", ""),
            ("volt_A", "volt_A", ""),
            ("", "", ""),
        ] {
            let heading = Heading::read(text);
            assert_eq!((heading.name(), heading.unit()), (name, unit), "{text}");
        }
        assert_eq!(Heading::read("time_us").factor(Quantity::Time), Some(1e-6));
        assert_eq!(Heading::read("kWh").factor(Quantity::Energy), Some(3.6e6));
        assert_eq!(Heading::read("e_pkg_j").factor(Quantity::Power), None);
        assert_eq!(Heading::read("power.draw [W]").before_bracket(), "power.draw");
    }

    #[test]
    fn users_need_not_write_the_decoration() {
        let headings: Vec<Heading> = ["#Avg Power [W]", "avg power limit", "Power", "power", "core_time_s"]
            .map(Heading::read)
            .to_vec();
        let find = |wanted| find(&headings, wanted);
        assert_eq!(find("avg_power"), Some(0));
        assert_eq!(find("AvgPower[W]"), Some(0));
        assert_eq!(find("power"), Some(3), "the very name comes first");
        assert_eq!(find("POWER"), Some(2));
        assert_eq!(find("core time"), Some(4));
        assert_eq!(find("'Power'"), Some(2));
        assert_eq!((find("volts"), find(""), find("-")), (None, None, None));
    }

    proptest! {
        #[test]
        fn every_column_is_found_by_its_own_name(texts in prop::collection::vec("\\PC{0,12}", 1..6)) {
            let headings: Vec<Heading> = texts.iter().map(|text| Heading::read(text)).collect();
            for heading in &headings {
                let found = find(&headings, heading.text());
                prop_assert_eq!(found.map(|found| headings[found].text()), Some(heading.text()));
            }
        }
    }
}
