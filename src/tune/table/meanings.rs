//! What the columns of a table of runs mean, told by their names and units.

use super::super::levels::role_of_name;
use super::super::space::Role;
use crate::tables::unit::{Quantity, factor};
use crate::tables::{Heading, is_work, plain};

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

/// What a column's name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meant {
    /// What it holds.
    pub meaning: Meaning,
    /// Whether the name says just that, or merely contains a word that hints at it.
    pub exact: bool,
}

impl Meant {
    /// Reads a column's name.
    pub fn by(heading: &Heading) -> Self {
        // What ends in a unit otherwise has it in its name here: `perf_per_watt`.
        if is_efficiency(&plain(heading.text())) {
            return Self { meaning: Meaning::Efficiency, exact: true };
        }
        let (meaning, exact) = meaning(heading.name(), heading.unit());
        Self { meaning, exact }
    }
}

fn is_efficiency(plain: &str) -> bool {
    matches!(
        plain,
        "efficiency"
            | "energyefficiency"
            | "perfperwatt"
            | "performanceperwatt"
            | "workperjoule"
            | "gflopsperwatt"
            | "flopsperwatt"
            | "flopsperjoule"
    )
}

fn meaning(name: &str, unit: &str) -> (Meaning, bool) {
    let plain_name = plain(name);
    let lower = name.to_lowercase();
    if let Some((work, per)) = lower.split_once('/')
        && is_work(&plain(work))
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
        name if is_efficiency(name) => return (Meaning::Efficiency, true),
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
        let quantity = if meaning == Meaning::Energy { Quantity::Energy } else { Quantity::Time };
        let fits = unit.is_empty() || factor(unit, quantity).is_some();
        if fits && words.iter().any(|word| plain_name.contains(word)) {
            return (meaning, false);
        }
    }
    if plain_name.contains("power")
        && (unit.is_empty() || factor(unit, Quantity::Power).is_some())
        && !plain_name.contains("limit")
    {
        return (Meaning::Power, false);
    }
    (Meaning::Unknown, true)
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
            ("Energy efficiency", "Energy efficiency", "", Meaning::Efficiency),
            ("efficiency [GFLOPS/W]", "efficiency", "GFLOPS/W", Meaning::Efficiency),
            ("perf_per_watt", "perf_per", "watt", Meaning::Efficiency),
            ("GFLOPS per watt", "GFLOPS per", "watt", Meaning::Efficiency),
            ("PerfPerWatt", "PerfPerWatt", "", Meaning::Efficiency),
            ("energy_per_s", "energy_per", "s", Meaning::Unknown),
            ("MFlops/s", "MFlops/s", "", Meaning::Performance),
            ("start_time", "start_time", "", Meaning::Unknown),
            ("Language", "Language", "", Meaning::Unknown),
        ];
        for (text, name, unit, meaning) in cases {
            let heading = Heading::read(text);
            assert_eq!(
                (heading.name(), heading.unit(), Meant::by(&heading).meaning),
                (name, unit, meaning),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in "\\PC{0,30}") {
            let _ = Meant::by(&Heading::read(&text));
        }
    }
}
