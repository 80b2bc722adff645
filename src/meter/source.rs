//! The interfaces that tell energy, by name.

use std::fmt;

/// The interfaces that tell energy, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The kernel's PMU `power`: RAPL counters, 64 bits wide, all domains in one read.
    PowerPmu,
    /// AMD's PMU `power_core`: one counter per core.
    PowerCorePmu,
    /// RAPL counters as files in `/sys/class/powercap`.
    Powercap,
    /// RAPL registers through `/dev/cpu/N/msr`.
    Msr,
    /// Sensors of boards, cards and firmware in `/sys/class/hwmon`.
    Hwmon,
    /// The battery's own measurement while it discharges.
    Battery,
    /// NVIDIA's management library: graphics cards.
    Nvml,
    /// CPU time and assumed watts. It is the worst, so it stays the last.
    Estimate,
}

impl Source {
    /// All of them, best first. One that is missing here does not compile.
    pub const ALL: [Self; Self::Estimate as usize + 1] = [
        Self::PowerPmu,
        Self::PowerCorePmu,
        Self::Powercap,
        Self::Msr,
        Self::Hwmon,
        Self::Battery,
        Self::Nvml,
        Self::Estimate,
    ];

    /// The name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::PowerPmu => "power",
            Self::PowerCorePmu => "power-core",
            Self::Powercap => "powercap",
            Self::Msr => "msr",
            Self::Hwmon => "hwmon",
            Self::Battery => "battery",
            Self::Nvml => "nvml",
            Self::Estimate => "estimate",
        }
    }

    /// The source of this name. A PMU may be called one.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.strip_suffix("-pmu").unwrap_or(name);
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PowerPmu => "power PMU",
            Self::PowerCorePmu => "power_core PMU",
            Self::Powercap => "powercap",
            Self::Msr => "MSR",
            Self::Hwmon => "hwmon",
            Self::Battery => "battery",
            Self::Nvml => "NVML",
            Self::Estimate => "estimate",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_is_found_by_its_name() {
        assert!(Source::ALL.is_sorted(), "the best first");
        assert!(Source::ALL.into_iter().all(|source| Source::named(source.name()) == Some(source)));
        assert_eq!(Source::named("power-core-pmu"), Some(Source::PowerCorePmu));
        assert_eq!(Source::named("moon"), None);
    }
}
