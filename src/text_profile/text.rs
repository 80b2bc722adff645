//! A profile as it was told by a text.

use crate::profile::Profile;
use crate::symbolize::Symbols;

/// A kind of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// What `perf script` prints, and tools that print as it does.
    PerfScript,
    /// One line for each call path and its weight, as flamegraph tools take them.
    Collapsed,
    /// What `simpleperf report-sample` prints.
    Simpleperf,
}

impl TextKind {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::PerfScript => "text of `perf script`",
            Self::Collapsed => "collapsed stacks",
            Self::Simpleperf => "text of `simpleperf report-sample`",
        }
    }
}

/// What a text told.
#[derive(Debug)]
pub struct TextProfile {
    /// Which tool's text it is.
    pub kind: TextKind,
    /// Samples by stack, thread and event, without joules.
    pub profile: Profile,
    /// The names of its addresses.
    pub symbols: Symbols,
    /// CPUs of the machine: as the text says, else those that were seen, at least one.
    pub cpus: u32,
    /// The text says how many there are: else they are as many as were seen, by the highest number.
    pub cpus_are_told: bool,
}

/// What is to be told apart beside stacks, threads and events.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextOptions {
    /// CPUs.
    pub cpus: bool,
}
