//! Why an interface is not used, and what would help.

use std::fmt;
use std::path::Path;

use super::source::Source;
use crate::machine::permissions::Permissions;
use crate::machine::repair::{self, Repairs};

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

/// The refusal of events that count all tasks of a CPU.
pub(super) fn cpu_wide_events_refused(source: Source, rights: &Permissions) -> Rejected {
    Rejected::new(source, "this user may not count whole CPUs").closed(&rights.cpu_wide_repairs())
}

/// The refusal of a file that only root may read.
pub(super) fn closed_file(source: Source, path: &Path) -> Rejected {
    let repairs = match source {
        Source::Msr => repair::msr(),
        Source::PowerPmu
        | Source::PowerCorePmu
        | Source::Powercap
        | Source::Hwmon
        | Source::Battery
        | Source::Nvml
        | Source::Estimate => repair::powercap(),
    };
    let why = format!("{} may be read by root only", path.display());
    Rejected::new(source, why).closed(&repairs)
}
