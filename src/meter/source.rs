//! Where energy can be read, and the steps from a place found to a meter that is read.

use std::fmt;
use std::path::{Path, PathBuf};

use super::EnergyMeter;
use super::watch::Observation;
use crate::hardware::DomainInfo;
use crate::machine::permissions::Permissions;
use crate::machine::repair::{self, Repairs};

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
    /// CPU time and assumed watts.
    Estimate,
}

impl Source {
    /// All of them, best first.
    pub const ALL: [Self; 7] = [
        Self::PowerPmu,
        Self::PowerCorePmu,
        Self::Powercap,
        Self::Msr,
        Self::Hwmon,
        Self::Battery,
        Self::Estimate,
    ];
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
            Self::Estimate => "estimate",
        })
    }
}

/// A source or a domain that is not used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The interface.
    pub source: String,
    /// Its domain or device, where only that is meant.
    pub what: Option<String>,
    /// Why not.
    pub why: String,
    /// It is there, but this user may not read it.
    pub is_closed: bool,
    /// What would make it usable.
    pub repair: Option<String>,
}

impl Rejected {
    pub(super) fn new(source: impl fmt::Display, why: impl Into<String>) -> Self {
        Self { source: source.to_string(), what: None, why: why.into(), is_closed: false, repair: None }
    }

    pub(super) fn of(mut self, what: impl Into<String>) -> Self {
        self.what = Some(what.into());
        self
    }

    fn closed(mut self, repairs: &Repairs) -> Self {
        self.is_closed = true;
        self.with_repair(repairs.one_line())
    }

    pub(super) fn with_repair(mut self, repair: impl Into<String>) -> Self {
        self.repair = Some(repair.into());
        self
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if let Some(what) = &self.what {
            write!(f, " {what}")?;
        }
        write!(f, ": {}", self.why)?;
        match &self.repair {
            Some(repair) => write!(f, "; {repair}"),
            None => Ok(()),
        }
    }
}

/// What one must be allowed to do to use a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Needs {
    /// Nothing special.
    Nothing,
    /// To open events that count all tasks of a CPU.
    CpuWideEvents,
    /// To read these files.
    Files(Vec<PathBuf>),
}

/// The refusal of events that count all tasks of a CPU.
pub(super) fn cpu_wide_events_refused(source: Source, rights: &Permissions) -> Rejected {
    Rejected::new(source, "this user may not count whole CPUs").closed(&rights.cpu_wide_repairs())
}

/// The refusal of a file that only root may read.
pub(super) fn closed_file(source: Source, path: &Path) -> Rejected {
    let repairs = match source {
        Source::Msr => repair::msr(),
        _ => repair::powercap(),
    };
    let why = format!("{} may be read by root only", path.display());
    Rejected::new(source, why).closed(&repairs)
}

/// A source that the machine's files show. Nothing has been opened yet.
pub(super) trait Finding {
    fn source(&self) -> Source;
    fn domains(&self) -> &[DomainInfo];
    fn needs(&self) -> Needs;
    /// Opens its counters; those that cannot be opened are rejected.
    fn open(self: Box<Self>, rejected: &mut Vec<Rejected>) -> Option<Box<dyn Candidate>>;
}

/// What looking for a source gave.
#[derive(Default)]
pub(super) struct Search {
    pub found: Vec<Box<dyn Finding>>,
    pub rejected: Vec<Rejected>,
}

impl Search {
    pub fn rejecting(rejected: Rejected) -> Self {
        Self { found: Vec::new(), rejected: vec![rejected] }
    }

    pub fn of(finding: impl Finding + 'static, rejected: Vec<Rejected>) -> Self {
        Self { found: vec![Box::new(finding)], rejected }
    }
}

/// An open meter some of whose domains may turn out to be of no use.
pub(super) trait Candidate: EnergyMeter {
    fn source(&self) -> Source;
    /// Forgets the domains for which `keep` says no, and no longer reads them.
    fn retain(&mut self, keep: &mut dyn FnMut(&DomainInfo) -> bool);
    fn domains_mut(&mut self) -> &mut [DomainInfo];
    /// Takes resolution and refresh period of a domain from what was seen of it.
    fn learn(&mut self, domain: usize, seen: &Observation);
    /// Whether raw readings count since boot, so that zero means that the counter never moved.
    fn counts_since_boot(&self) -> bool;
}
