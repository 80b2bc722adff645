//! The steps from a kind of meter to one that is read: where it is looked for, what is found, what is open.

use std::path::PathBuf;

use super::EnergyMeter;
use super::options::MeterOptions;
use super::rejected::Rejected;
use super::source::Source;
use super::watch::Observation;
use crate::hardware::{DomainInfo, MachineInfo};
use crate::machine::roots::Roots;

/// Where meters are looked for, and what the user wishes of them.
pub(super) struct Site<'a> {
    pub roots: &'a Roots,
    pub machine: &'a MachineInfo,
    pub options: &'a MeterOptions,
}

/// Looks for meters of one kind.
pub(super) type Find = fn(&Site<'_>) -> Search;

/// What looking for a source gave.
#[derive(Default)]
pub(super) struct Search {
    pub found: Vec<Box<dyn Finding>>,
    pub rejected: Vec<Rejected>,
    /// What a reader must know of what was found.
    pub warnings: Vec<String>,
}

impl Search {
    pub fn rejecting(rejected: Rejected) -> Self {
        Self { rejected: vec![rejected], ..Self::default() }
    }

    pub fn of(finding: impl Finding + 'static, rejected: Vec<Rejected>) -> Self {
        Self { found: vec![Box::new(finding)], rejected, ..Self::default() }
    }
}

/// A meter that was found. Where files show it, nothing has been opened yet.
pub(super) trait Finding {
    fn source(&self) -> Source;
    fn domains(&self) -> &[DomainInfo];
    fn needs(&self) -> Needs;
    /// Opens its counters; those that cannot be opened are rejected.
    fn open(self: Box<Self>, rejected: &mut Vec<Rejected>) -> Option<Box<dyn Candidate>>;
}

/// What one must be allowed to do to use a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: it is open already.
    IsOpen,
    /// Nothing special.
    Nothing,
    /// To open events that count all tasks of a CPU.
    CpuWideEvents,
    /// To read these files.
    Files(Vec<PathBuf>),
}

/// An open meter some of whose domains may turn out to be of no use.
pub(super) trait Candidate: EnergyMeter {
    fn source(&self) -> Source;
    /// Forgets the domains for which `keep` says no, and no longer reads them.
    fn retain(&mut self, keep: &mut dyn FnMut(&DomainInfo) -> bool);
    fn domains_mut(&mut self) -> &mut [DomainInfo];
    /// Takes resolution and refresh period of a domain from what was seen of it.
    fn learn(&mut self, domain: usize, seen: &Observation);
    /// Whether it is known to work. One that is not is watched, and used if its counters move.
    fn is_proven(&self) -> bool {
        false
    }
    /// Whether raw readings count since boot, so that zero means that the counter never moved.
    fn counts_since_boot(&self) -> bool;
}

/// What is found in this tree of files, for tests.
#[cfg(test)]
pub(super) fn find_under(find: Find, roots: &Roots, machine: &MachineInfo) -> Search {
    find(&Site { roots, machine, options: &MeterOptions::default() })
}
