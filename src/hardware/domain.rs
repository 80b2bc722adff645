//! Energy domains: parts of the machine whose joules are counted together.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::named_values::named_values;
use crate::units::{Joules, Nanoseconds, Watts};

/// One energy domain: a part of the machine whose joules are counted together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DomainInfo {
    /// Unique name, also in the event's name: `package-0`, `package-0-cores`, `dram-0`, `gpu-0`.
    pub name: String,
    /// What is counted.
    pub kind: DomainKind,
    /// The domain that contains this one: a sum over domains must never take both.
    pub parent: Option<String>,
    /// Where the readings come from: `power PMU`, `powercap`, `estimate`, ...
    pub source: String,
    /// Measured by hardware, or estimated.
    pub method: Method,
    /// Package whose CPUs this domain feeds; `None` when it is the whole machine or no CPU.
    pub package: Option<u32>,
    /// CPUs fed by this domain where that is narrower than a package (a die, one core).
    pub cpus: Vec<u32>,
    /// Smallest step of the counter.
    pub resolution: Option<Joules>,
    /// How often the counter moves, as measured at the start.
    pub refresh: Option<Nanoseconds>,
    /// Constant part of the power that no program causes, where known: an estimate's idle watts.
    pub static_power: Option<Watts>,
    /// What it drew just before the program started, where the machine was at rest then.
    #[serde(default)]
    pub rest: Option<RestPower>,
    /// Address on the PCI bus, of a graphics card.
    #[serde(default)]
    pub bus_id: Option<String>,
    /// The number that the recorded program knows a graphics card by, where that is certain.
    #[serde(default)]
    pub cuda_ordinal: Option<u32>,
}

impl DomainInfo {
    /// A domain that feeds the whole machine and lies in no other; nothing more is known of it.
    pub fn new(name: impl Into<String>, kind: DomainKind, source: impl Into<String>, method: Method) -> Self {
        Self {
            name: name.into(),
            kind,
            parent: None,
            source: source.into(),
            method,
            package: None,
            cpus: Vec::new(),
            resolution: None,
            refresh: None,
            static_power: None,
            rest: None,
            bus_id: None,
            cuda_ordinal: None,
        }
    }
}

/// The power of a domain while nothing ran.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RestPower {
    /// The mean.
    pub power: Watts,
    /// Its standard error: of the meter, and of what may have run all the same.
    pub std_error: Watts,
}

named_values! {
    /// What a domain counts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum DomainKind {
        /// The whole machine or board.
        Platform = "platform",
        /// A CPU package (socket or die).
        Package = "package",
        /// All cores of a package.
        Cores = "cores",
        /// One core.
        Core = "core",
        /// The integrated graphics or other uncore part.
        Uncore = "uncore",
        /// Memory.
        Dram = "dram",
        /// A graphics card.
        Gpu = "gpu",
        /// The battery's discharge.
        Battery = "battery",
    }
}

impl DomainKind {
    /// The kinds whose coefficients in a power model tell what events cost in this one, the best first.
    ///
    /// A package and its cores stand for each other, since most of what a package draws beyond its static
    /// power is drawn by its cores; so do they for what contains them. **Memory, the uncore and graphics cards have
    /// only coefficients of their own.** The joules of memory follow the traffic with it: by a package's
    /// coefficients a loop of arithmetic would be charged for memory that it never touches. Who finds nothing
    /// here takes proportions of which no scale is claimed ([`crate::power_model::presets`]).
    pub fn modelled_by(self) -> &'static [Self] {
        match self {
            Self::Cores | Self::Core => &[Self::Cores, Self::Package],
            Self::Package | Self::Platform | Self::Battery => &[Self::Package, Self::Cores],
            Self::Dram => &[Self::Dram],
            Self::Uncore => &[Self::Uncore],
            // No event of a CPU says what a graphics card does.
            Self::Gpu => &[],
        }
    }
}

/// By name, so that files list domains alphabetically.
impl Ord for DomainKind {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl PartialOrd for DomainKind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Whether a number of joules was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Counted by a meter.
    Measured,
    /// Computed from time and assumed watts.
    Estimated,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_options_call_kinds_the_same() {
        for kind in DomainKind::ALL {
            assert_eq!(serde_json::to_string(&kind).expect("text"), format!("\"{kind}\""));
            assert_eq!(DomainKind::named(kind.name()), Some(kind));
        }
        assert_eq!(DomainKind::named("moon"), None);
    }

    #[test]
    fn memory_is_not_charged_by_what_cores_do() {
        assert_eq!(DomainKind::Dram.modelled_by(), [DomainKind::Dram]);
        assert_eq!(DomainKind::Core.modelled_by(), [DomainKind::Cores, DomainKind::Package]);
        assert!(DomainKind::ALL.iter().all(|kind| !kind.modelled_by().contains(&DomainKind::Gpu)));
    }
}
