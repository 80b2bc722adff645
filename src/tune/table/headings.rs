//! What the columns of a table of runs mean, told by their names and units.

use super::super::levels::{role_of_name, split_unit};
use super::super::space::Role;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Seconds of a run.
    Time,
    /// Joules of a run.
    Energy,
    /// Mean watts of a run.
    Power,
    /// Work per second.
    Performance,
    /// Work per joule.
    Efficiency,
    /// Something that was set.
    Setting(Role),
    /// None of these.
    Unknown,
}

/// A column's name, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Heading {
    /// The name without unit and decoration.
    pub name: String,
    /// The unit in the name, as in `Time[s]`, `time (ms)` or `energy_kWh`; empty if there is none.
    pub unit: String,
    /// What the name says.
    pub meaning: Meaning,
    /// Whether the name says just that, or merely contains a word that hints at it.
    pub exact: bool,
}

impl Heading {
    /// Reads a column's name.
    pub fn read(text: &str) -> Self {
        let text = text.trim().trim_start_matches('#').trim().trim_matches('\'').trim();
        let (name, unit) = split_heading(text);
        let (meaning, exact) = meaning(name, unit);
        Self { name: name.to_string(), unit: unit.to_string(), meaning, exact }
    }

    /// Whether a user who writes `wanted` means this column: its name without regard to case,
    /// decoration and unit, or all of it.
    pub fn is_called(&self, wanted: &str) -> bool {
        plain(&self.name) == plain(wanted) || plain(&format!("{}{}", self.name, self.unit)) == plain(wanted)
    }
}

/// The factor that turns a value in this unit into seconds.
pub fn seconds_per(unit: &str) -> Option<f64> {
    Some(match unit {
        "s" | "sec" | "secs" | "second" | "seconds" | "S" => 1.0,
        "ms" | "msec" | "millisecond" | "milliseconds" => 1e-3,
        "us" | "µs" | "μs" | "usec" | "microseconds" => 1e-6,
        "ns" | "nsec" | "nanoseconds" => 1e-9,
        "min" | "minutes" => 60.0,
        "h" | "hours" => 3600.0,
        _ => return None,
    })
}

/// The factor that turns a value in this unit into joules. Case tells milli from mega.
pub fn joules_per(unit: &str) -> Option<f64> {
    Some(match unit {
        "J" | "j" | "joule" | "joules" | "Joule" | "Joules" => 1.0,
        "mJ" | "mj" | "millijoules" => 1e-3,
        "uJ" | "µJ" | "μJ" | "uj" | "microjoules" => 1e-6,
        "nJ" | "nj" => 1e-9,
        "kJ" | "KJ" | "kj" => 1e3,
        "MJ" => 1e6,
        "Wh" | "wh" | "WH" => 3600.0,
        "mWh" | "mwh" => 3.6,
        "kWh" | "kwh" | "KWh" | "KWH" => 3.6e6,
        "Ws" | "ws" => 1.0,
        _ => return None,
    })
}

/// The factor that turns a value in this unit into watts.
pub fn watts_per(unit: &str) -> Option<f64> {
    Some(match unit {
        "W" | "w" | "watt" | "watts" | "Watt" | "Watts" => 1.0,
        "mW" | "mw" | "milliwatts" => 1e-3,
        "uW" | "uw" | "µW" | "μW" => 1e-6,
        "kW" | "KW" | "kw" => 1e3,
        _ => return None,
    })
}

/// Letters and digits in lower case.
pub fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// `Time[s]`, `Time (s)`, `time/s`, `time_s` become `Time` and `s`.
fn split_heading(text: &str) -> (&str, &str) {
    for (open, close) in [('[', ']'), ('(', ')'), ('<', '>')] {
        if let Some((name, rest)) = text.split_once(open)
            && let Some((unit, _)) = rest.split_once(close)
        {
            return (name.trim(), unit.trim());
        }
    }
    let known = |unit: &str| {
        seconds_per(unit).is_some()
            || joules_per(unit).is_some()
            || watts_per(unit).is_some()
            || matches!(unit.to_ascii_lowercase().as_str(), "hz" | "khz" | "mhz" | "ghz")
    };
    for separator in ['/', '_', ' ', '-', '.'] {
        if let Some((name, unit)) = text.rsplit_once(separator) {
            // `gflops/w` is work per joule, not gflops in watts.
            if known(unit.trim()) && !name.is_empty() && !(separator == '/' && is_rate(&plain(name))) {
                return (name.trim(), unit.trim());
            }
        }
    }
    (text, "")
}

fn is_rate(plain: &str) -> bool {
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

fn meaning(name: &str, unit: &str) -> (Meaning, bool) {
    let plain_name = plain(name);
    let lower = name.to_lowercase();
    if let Some((work, per)) = lower.split_once('/')
        && is_rate(&plain(work))
    {
        match plain(per).as_str() {
            "s" | "sec" | "second" => return (Meaning::Performance, true),
            "j" | "joule" | "w" | "watt" => return (Meaning::Efficiency, true),
            _ => {}
        }
    }
    match plain_name.as_str() {
        "time" | "seconds" | "sec" | "secs" | "duration" | "elapsed" | "elapsedtime" | "runtime"
        | "walltime" | "wall" | "wallclock" | "realtime" | "real" | "totaltime" | "exectime"
        | "executiontime" | "t" | "milliseconds" => {
            return (Meaning::Time, true);
        }
        "energy" | "joules" | "joule" | "j" | "totalenergy" | "pkgenergy" | "packageenergy" | "energypkg" => {
            return (Meaning::Energy, true);
        }
        "power" | "watts" | "avgpower" | "averagepower" | "meanpower" | "poweravg" => {
            return (Meaning::Power, true);
        }
        "performance" | "perf" | "throughput" | "rate" | "speed" | "bandwidth" | "gflops" | "mflops"
        | "tflops" | "flops" => {
            return (Meaning::Performance, true);
        }
        "efficiency" | "energyefficiency" | "perfperwatt" | "performanceperwatt" | "workperjoule"
        | "gflopsperwatt" | "flopsperwatt" | "flopsperjoule" => return (Meaning::Efficiency, true),
        _ => {}
    }
    let role = role_of_name(name);
    if role != Role::Other {
        return (Meaning::Setting(role), true);
    }
    if matches!(plain_name.as_str(), "timestamp" | "starttime" | "endtime" | "datetime" | "temperature") {
        return (Meaning::Unknown, true);
    }
    let hints = [
        (["energy", "joule"].as_slice(), Meaning::Energy),
        (["time", "elapsed", "duration", "seconds"].as_slice(), Meaning::Time),
    ];
    for (words, meaning) in hints {
        let factor = if meaning == Meaning::Energy { joules_per(unit) } else { seconds_per(unit) };
        if words.iter().any(|word| plain_name.contains(word)) && (unit.is_empty() || factor.is_some()) {
            return (meaning, false);
        }
    }
    if plain_name.contains("power")
        && (unit.is_empty() || watts_per(unit).is_some())
        && !plain_name.contains("limit")
    {
        return (Meaning::Power, false);
    }
    (Meaning::Unknown, true)
}

/// A number in a cell, with the unit behind it. A comma is the decimal point where the table's
/// fields are not separated by commas and the number has no point.
pub fn read_number(cell: &str, comma_is_point: bool) -> Option<(f64, String)> {
    let cell = cell.trim().trim_matches('"').trim();
    if comma_is_point && cell.matches(',').count() == 1 && !cell.contains('.') {
        return split_unit(&cell.replace(',', ".")).map(|(value, unit)| (value, unit.to_string()));
    }
    split_unit(cell).map(|(value, unit)| (value, unit.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headings_of_real_tables() {
        let cases = [
            ("#Procs", "Procs", "", Meaning::Setting(Role::Nodes)),
            ("Cores", "Cores", "", Meaning::Setting(Role::Threads)),
            ("Freq", "Freq", "", Meaning::Setting(Role::Frequency)),
            ("freq_MHz", "freq", "MHz", Meaning::Setting(Role::Frequency)),
            ("Time[s]", "Time", "s", Meaning::Time),
            ("Energy[Wh]", "Energy", "Wh", Meaning::Energy),
            ("AvgPower[W]", "AvgPower", "W", Meaning::Power),
            ("PowerLimit", "PowerLimit", "", Meaning::Setting(Role::PowerCap)),
            ("power_limit_w", "power_limit", "w", Meaning::Setting(Role::PowerCap)),
            ("time_ms", "time", "ms", Meaning::Time),
            ("elapsed_time", "elapsed_time", "", Meaning::Time),
            ("gpu0_energy", "gpu0_energy", "", Meaning::Energy),
            ("time_per_epoch", "time_per_epoch", "", Meaning::Time),
            ("average_power", "average_power", "", Meaning::Power),
            ("GFLOPS/W", "GFLOPS/W", "", Meaning::Efficiency),
            ("MFlops/s", "MFlops/s", "", Meaning::Performance),
            ("start_time", "start_time", "", Meaning::Unknown),
            ("Language", "Language", "", Meaning::Unknown),
        ];
        for (text, name, unit, meaning) in cases {
            let heading = Heading::read(text);
            assert_eq!(
                (heading.name.as_str(), heading.unit.as_str(), heading.meaning),
                (name, unit, meaning),
                "{text}"
            );
        }
    }

    #[test]
    fn users_need_not_write_the_decoration() {
        let heading = Heading::read("#Avg Power [W]");
        assert!(heading.is_called("avg_power") && heading.is_called("AvgPower[W]"));
        assert!(!heading.is_called("power"));
    }

    #[test]
    fn case_tells_milli_from_mega() {
        assert_eq!(joules_per("mJ"), Some(1e-3));
        assert_eq!(joules_per("MJ"), Some(1e6));
        assert_eq!(joules_per("Wh"), Some(3600.0));
        assert_eq!(joules_per("W"), None);
    }

    #[test]
    fn commas_and_units_within_cells() {
        assert_eq!(read_number("3,25", true), Some((3.25, String::new())));
        assert_eq!(read_number("2.10GHz", true), Some((2.1, "GHz".into())));
        assert_eq!(read_number(" \"12 J\"", false), Some((12.0, "J".into())));
        assert_eq!(read_number("n/a", false), None);
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in "\\PC{0,30}") {
            let _ = Heading::read(&text);
            let _ = read_number(&text, true);
        }
    }
}
