//! Columns that a meter wrote: power, energy, voltage and current beside the power that is to be
//! explained. As counters they would let a model read the answer instead of learning it.

use super::heading::{Heading, plain};
use super::unit::{Quantity, known};

/// Parts of names that say it wherever they stand, also within words (`powerWatts`, `e_pkgJoules`).
const ANYWHERE: [&str; 6] = ["power", "watt", "joule", "energy", "voltage", "ampere"];

/// Words of names that say it alone, and would say something else within another word.
const WORDS: [&str; 18] = [
    "pwr", "psu", "pdu", "rapl", "ipmi", "vdd", "vcc", "vcore", "volt", "volts", "amp", "amps", "wall",
    "mains", "current", "currents", "edp", "ed2p",
];

/// Words that turn the name of a measured quantity into that of a setting, which somebody chose and which
/// may well explain power: `power_limit`, `energy_performance_preference`.
const SETTINGS: [&str; 11] = [
    "limit",
    "limits",
    "powerlimit",
    "cap",
    "powercap",
    "mode",
    "state",
    "bias",
    "preference",
    "policy",
    "profile",
];

/// Words beside which `current` means "now", and `wall` a kind of clock.
const OTHER_QUANTITIES: [&str; 16] = [
    "clock",
    "clocks",
    "freq",
    "frequency",
    "temp",
    "temperature",
    "pstate",
    "util",
    "utilization",
    "fan",
    "speed",
    "gen",
    "width",
    "time",
    "memory",
    "threads",
];

/// Signs of units behind a name, in the case in which they are written. All others are more often letters.
const SIGNS: [&str; 29] = [
    "W", "mW", "uW", "µW", "kW", "w", "mw", "uw", "kw", "J", "mJ", "uJ", "µJ", "kJ", "MJ", "j", "mj", "uj",
    "kj", "Wh", "mWh", "kWh", "kwh", "V", "mV", "uV", "A", "mA", "uA",
];

/// Letters that are units or numbers of things: where the second stands behind the same name in another
/// column, the first is no unit (`counter_A` beside `counter_B`, `dram_w` beside `dram_r`).
const SERIES: [(&str, &str); 5] = [("A", "B"), ("W", "R"), ("w", "r"), ("j", "i"), ("J", "I")];

/// Whether a column, by its name among those of its table, holds what a meter measured or what was
/// computed of that: power, energy, voltage, current, work per joule.
pub fn is_of_a_meter(heading: &Heading, all: &[Heading]) -> bool {
    let text = heading.text();
    let words = words(text);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if has(&SETTINGS) {
        return false;
    }
    let plain = plain(text);
    if ANYWHERE.iter().any(|part| plain.contains(part)) {
        return true;
    }
    let is_other = has(&OTHER_QUANTITIES) || known(heading.unit()).is_some_and(is_no_meters);
    (has(&WORDS) && !is_other) || has_unit_of_a_meter(heading, all)
}

fn is_no_meters(unit: super::unit::Unit) -> bool {
    !matches!(unit.quantity, Quantity::Power | Quantity::Energy | Quantity::Voltage | Quantity::Current)
}

/// The name ends in a unit of a meter: in brackets, behind a separator, or as the whole of it.
fn has_unit_of_a_meter(heading: &Heading, all: &[Heading]) -> bool {
    let text = heading.text();
    if text.contains(['[', '(', '<']) {
        return known(heading.unit()).is_some_and(|unit| !is_no_meters(unit));
    }
    let Some(at) = text.rfind(['/', '_', ' ', '-', '.']) else { return SIGNS.contains(&text) };
    let (stem, unit) = (&text[..=at], &text[at + 1..]);
    let is_letter = SERIES
        .iter()
        .filter(|(letter, _)| *letter == unit)
        .any(|(_, next)| all.iter().any(|other| other.text().strip_prefix(stem) == Some(next)));
    SIGNS.contains(&unit) && !is_letter
}

/// The words of a name in lower case, without numbers behind them: `pkgPwr_mW` is `pkg`, `pwr`, `m`, `w`, and
/// `vdd0.core` is `vdd`, `core`.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in text.chars() {
        if !c.is_alphanumeric() || (before.is_lowercase() && c.is_uppercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.iter().map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_meters(names: &[&str]) -> Vec<String> {
        let all: Vec<Heading> = names.iter().map(|name| Heading::read(name)).collect();
        let found = all.iter().filter(|heading| is_of_a_meter(heading, &all));
        found.map(|heading| heading.text().to_owned()).collect()
    }

    #[test]
    fn names_of_what_meters_measure() {
        let names = [
            "energy_j",
            "package_energy",
            "voltage",
            "gpu_power_W",
            "joules",
            "psu_mW",
            "pkg_pwr",
            "wall",
            "volt",
            "amps",
            "VDD_core",
            "vdd0",
            "e_pkg_j",
            "x_uJ",
            "rail_mV",
            "rail_A",
            "powerWatts",
            "pkgPwr",
            "power.draw.instant [W]",
            "CORE10_VOLT (V)",
            "rail [A]",
            "W",
            "GFLOPS/W",
            "gflops_per_watt",
            "Power A15",
            "input current",
            "'AMD RAPL PCKG'",
        ];
        assert_eq!(of_meters(&names).len(), names.len(), "{:?}", of_meters(&names));
    }

    #[test]
    fn settings_counters_and_clocks_are_none() {
        let none = of_meters(&[
            "power_limit",
            "PowerLimit",
            "enforced.power.limit [W]",
            "power_cap_w",
            "energy_performance_preference",
            "clocks.current.sm [MHz]",
            "concurrent_kernels",
            "wall_time",
            "walltime_s",
            "wallclock",
            "L1_WH",
            "L1_WM",
            "L2_RH",
            "instructions",
            "temperature",
            "time_ms",
            "wallace_multiplies",
            "example",
            "sampled",
            "revolts",
            "counter_A",
            "counter_B",
            "dram_w",
            "dram_r",
            "freq_MHz",
            "Core_0",
            "amplitude",
            "",
        ]);
        assert!(none.is_empty(), "{none:?}");
    }
}
