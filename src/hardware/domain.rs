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
    /// The counter begins anew after so many joules; `None` where it practically never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Joules>,
    /// Constant part of the power that no program causes, where known: an estimate's idle watts.
    pub static_power: Option<Watts>,
    /// What it drew just before the program started, where the machine was at rest then.
    #[serde(default)]
    pub rest: Option<RestPower>,
    /// Of an estimate: the standard error of the watts that were assumed, as a share of them; 0 where the user told
    /// them. `None` of what is measured, and where a recording does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watts_error: Option<f64>,
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
            range: None,
            static_power: None,
            rest: None,
            watts_error: None,
            bus_id: None,
            cuda_ordinal: None,
        }
    }

    /// What its watts may be off by, one standard error as a share of them: 0 of what a meter counts.
    pub fn error_of_watts(&self) -> f64 {
        match self.method {
            Method::Measured => 0.0,
            Method::Estimated => self.watts_error.unwrap_or(TYPICAL_WATTS_ERROR),
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

/// One standard error of watts that are typical of a kind of machine, as a share of them.
///
/// A busy hardware thread of ten generations of servers takes 1.7 to 8.6 W ([`BUSY_WATTS_OF_SERVERS`]) where 3.5 W are
/// assumed: seven of the ten lie within 60 % of that, as of a standard error.
pub const TYPICAL_WATTS_ERROR: f64 = 0.6;

/// Watts of a busy hardware thread by generation of server: what the Cloud Carbon Footprint methodology takes from
/// SPECpower results (its tables of coefficients for Azure and Google Cloud).
pub const BUSY_WATTS_OF_SERVERS: [(&str, f64); 10] = [
    ("Sandy Bridge", 8.55),
    ("Ivy Bridge", 8.20),
    ("Haswell", 6.01),
    ("Broadwell", 3.69),
    ("Skylake", 4.19),
    ("Cascade Lake", 3.97),
    ("Coffee Lake", 5.42),
    ("EPYC, first generation", 2.55),
    ("EPYC, second generation", 1.69),
    ("EPYC, third generation", 2.02),
];

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
        assert_eq!(
            DomainKind::Package.modelled_by(),
            [DomainKind::Package, DomainKind::Cores],
            "its own first"
        );
        assert!(DomainKind::ALL.iter().all(|kind| !kind.modelled_by().contains(&DomainKind::Gpu)));
    }
}
