//! What rows stand for, and what they are cut down to.

use clap::ValueEnum;
use eprof::identity::Dimension;
use eprof::report::{Grouping, Options, Selection, SortKey};

use super::zoom::Zoom;

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    Function,
    Module,
    Process,
    Thread,
    Cgroup,
    Core,
    Line,
}

impl By {
    pub const ALL: [Self; 7] =
        [Self::Function, Self::Module, Self::Process, Self::Thread, Self::Cgroup, Self::Core, Self::Line];

    pub fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Line => "line",
            Self::Module => "module",
            Self::Process => "process",
            Self::Thread => "thread",
            Self::Cgroup => "cgroup",
            Self::Core => "core",
        }
    }

    /// Several of them.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Function => "functions",
            Self::Line => "lines",
            Self::Module => "modules",
            Self::Process => "processes",
            Self::Thread => "threads",
            Self::Cgroup => "control groups",
            Self::Core => "cores",
        }
    }

    /// Whether source lines are to be looked up.
    pub fn tells_lines(self) -> bool {
        self == Self::Line
    }

    fn grouping(self) -> (Grouping, Vec<Dimension>) {
        match self {
            Self::Function => (Grouping::Function, Vec::new()),
            Self::Line => (Grouping::Line, Vec::new()),
            Self::Module => (Grouping::Module, Vec::new()),
            Self::Process => (Grouping::Process, Vec::new()),
            Self::Thread => (Grouping::Thread, Vec::new()),
            Self::Cgroup => (Grouping::Recording, vec![Dimension::Cgroup]),
            Self::Core => (Grouping::Core, Vec::new()),
        }
    }
}

/// The rows of a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    pub by: By,
    /// Of this process or thread alone.
    pub zoom: Option<Zoom>,
}

impl Rows {
    /// The report that has them.
    pub fn options(&self) -> Options {
        let (by, dimensions) = self.by.grouping();
        let selection = self.zoom.as_ref().map_or_else(Selection::default, Zoom::selection);
        Options { by, dimensions, selection, inline: false, sort: SortKey::Own, ..Options::default() }
    }
}
