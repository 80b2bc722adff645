//! The recordings that a profile was made from.

use super::meter_curve::MeterCurve;
use crate::hardware::CpuInfo;
use crate::identity::{Dimension, Identity};

/// A recording that a profile was made from, or is a part of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origin {
    /// The recording's file.
    pub name: Option<String>,
    /// Host name of the machine.
    pub hostname: String,
    /// What the machine is called beside those of other recordings; `None` if it was not looked at beside others.
    pub node: Option<String>,
    /// Release of its kernel.
    pub kernel: String,
    /// What the recording says of where it comes from; `None` of recorders that do not.
    pub identity: Option<Identity>,
    /// When it started on the wall, in nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: Option<u64>,
    /// Times are those of `CLOCK_MONOTONIC`, which is the same for all recordings of one boot.
    pub is_monotonic: bool,
    /// The recorder's process id.
    pub recorder_pid: Option<u32>,
    /// Everything that ran was recorded.
    pub is_of_system: bool,
    /// CPUs of the machine, where known.
    pub cpus: Vec<CpuInfo>,
    /// What the meter of each domain of the recording counted over time.
    pub meters: Vec<MeterCurve>,
    /// The machine that it is of, by its number among the profile's.
    pub machine: u32,
}

impl Origin {
    /// What tells it from others in a report that is by `dimension`.
    pub fn value(&self, dimension: &Dimension) -> String {
        self.value_in(None, dimension)
    }

    /// The same, where it says so.
    pub fn told(&self, dimension: &Dimension) -> Option<String> {
        self.told_in(None, dimension)
    }

    /// The same of those of its threads that samples told to be in the control group of this path, which may tell more.
    pub fn value_in(&self, cgroup: Option<&str>, dimension: &Dimension) -> String {
        self.told_in(cgroup, dimension).unwrap_or_else(|| format!("[no {dimension}]"))
    }

    fn told_in(&self, cgroup: Option<&str>, dimension: &Dimension) -> Option<String> {
        let beside_others = self.node.clone().filter(|_| *dimension == Dimension::Node);
        beside_others.or_else(|| dimension.told(self.identity.as_ref(), &self.hostname, cgroup))
    }

    /// What it is called in messages.
    pub fn title(&self) -> &str {
        self.name.as_deref().unwrap_or("a recording")
    }

    /// What its machine is called.
    pub fn node(&self) -> String {
        self.value(&Dimension::Node)
    }
}
