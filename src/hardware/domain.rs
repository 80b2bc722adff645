//! Energy domains: parts of the machine whose joules are counted together.

use serde::{Deserialize, Serialize};

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
            bus_id: None,
            cuda_ordinal: None,
        }
    }
}

/// What a domain counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DomainKind {
    /// The whole machine or board.
    Platform,
    /// A CPU package (socket or die).
    Package,
    /// All cores of a package.
    Cores,
    /// One core.
    Core,
    /// The integrated graphics or other uncore part.
    Uncore,
    /// Memory.
    Dram,
    /// A graphics card.
    Gpu,
    /// The battery's discharge.
    Battery,
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
