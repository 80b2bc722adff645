//! What rows stand for, and what they are cut down to.

use std::borrow::Cow;

use clap::ValueEnum;
use eprof::identity::Dimension;
use eprof::label::Label;
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

    /// How names of its rows are cut: what tells a process from others of its name stays.
    pub fn short_name(self) -> fn(&Label, usize) -> Cow<'_, str> {
        match self {
            Self::Process | Self::Thread => short_before_ids,
            Self::Module => short_module,
            _ => Label::short_name,
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

/// A module as tables call it.
fn short_module(name: &Label, columns: usize) -> Cow<'_, str> {
    Cow::Owned(Label::new(name.module_name()).short_name(columns).into_owned())
}

/// `name (ids)` in at most so many columns, with all of the ids.
fn short_before_ids(name: &Label, columns: usize) -> Cow<'_, str> {
    let Some((before, ids)) = name.as_str().rsplit_once(" (") else { return name.short_name(columns) };
    let ids = format!(" ({ids}");
    let before = Label::new(before);
    Cow::Owned(before.short_name(columns.saturating_sub(ids.len())).into_owned() + &ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_keep_their_numbers_where_their_names_are_cut() {
        let name = Label::new("kworker/u9:3-events_unbound (71234)");
        let short = By::Process.short_name();
        assert_eq!(short(&name, 40), "kworker/u9:3-events_unbound (71234)");
        let cut = short(&name, 24);
        assert!(cut.ends_with(" (71234)") && cut.starts_with("kworker/"), "{cut}");
        assert_eq!(cut.chars().count(), 24, "{cut}");
        assert_eq!(By::Function.short_name()(&Label::new("f(int, int)"), 5), "f(…)");
    }
}
