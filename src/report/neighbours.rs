//! Who called a function, and what it called.
//!
//! A recursive function has several frames on a stack. Its caller is the frame before the outermost
//! of them and what it called the frame after the innermost, so that neither is the function itself,
//! each stack counts once, and the rows of either side add up to the function's total.

use std::collections::BTreeMap;

use super::call_path_check::{CallPathCheck, PathEnd};
use super::error::ReportError;
use super::frames::{FrameTable, FunctionLabel};
use super::select::Totals;
use crate::label::Label;
use crate::pattern::pattern;
use crate::profile::{Profile, StackId};

/// A side of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The functions that called it.
    Callers,
    /// The functions that it called.
    Callees,
}

impl Side {
    /// The name of the side in texts and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Callers => "callers",
            Self::Callees => "callees",
        }
    }

    /// The row for stacks that have nothing on this side of the function, by how their paths end.
    pub(super) fn end(self, of_path: PathEnd, paths: Option<&CallPathCheck>) -> Label {
        let of_path = paths.map_or(of_path, |paths| paths.end_as_recorded(of_path));
        let name = match (self, of_path) {
            (Self::Callees, _) => "[itself]",
            (Self::Callers, PathEnd::Whole) => "[nobody: outermost frame]",
            (Self::Callers, PathEnd::CutOff) => "[unknown: deeper than the kernel follows]",
            (Self::Callers, PathEnd::NotRecorded) => "[unknown: no callers were recorded]",
            (Self::Callers, PathEnd::Broken(module)) => {
                let module = module.and_then(|module| paths?.module_name(module));
                return Label::new(&match module {
                    Some(module) => format!("[unknown: the path breaks off in {}]", module.file_name()),
                    None => "[unknown: the path breaks off]".to_owned(),
                });
            }
        };
        Label::new(name)
    }
}

/// The neighbours of a function.
#[derive(Debug, Clone)]
pub struct Neighbours {
    /// Which ones.
    pub side: Side,
    /// Of which function.
    pub function: FunctionChoice,
}

/// The functions that are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionChoice {
    /// All of this exact name or, if there is none, all that match it as a regular expression.
    Named(String),
    /// The one of this name in this module, and no other.
    One {
        /// The name.
        name: Label,
        /// The module; any where it is not known.
        module: Option<Label>,
    },
}

impl FunctionChoice {
    /// As it was named.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::One { name, .. } => name.as_str(),
        }
    }
}

/// The stacks of a part of a profile.
pub(super) struct Stacks<'a> {
    pub profile: &'a Profile,
    /// Of each stack.
    pub totals: &'a [Totals],
    /// How the path of each ends.
    pub ends: &'a [PathEnd],
}

/// Adds sums by the key on one side of the marked keys, and of stacks that begin with them (callers) or end in them (callees) by
/// how their paths end.
pub(super) fn add(
    part: &Stacks<'_>,
    frames: &FrameTable,
    side: Side,
    marked: &[bool],
    by_key: &mut [Totals],
    at_end: &mut BTreeMap<PathEnd, Totals>,
) {
    let Stacks { profile, totals: stacks, ends } = part;
    let mut keys: Vec<u32> = Vec::new();
    for (index, totals) in stacks.iter().enumerate().filter(|(_, totals)| !totals.is_empty()) {
        keys.clear();
        keys.extend(frames.of_stack(profile, StackId(index as u32)));
        keys.reverse();
        let is_marked = |key: &u32| marked[*key as usize];
        let neighbour = match side {
            Side::Callers => keys.iter().position(is_marked).map(|at| at.checked_sub(1)),
            Side::Callees => keys.iter().rposition(is_marked).map(|at| Some(at + 1)),
        };
        let Some(neighbour) = neighbour else { continue };
        match neighbour.and_then(|at| keys.get(at)) {
            Some(&key) => by_key[key as usize] += *totals,
            None => *at_end.entry(ends[index]).or_default() += *totals,
        }
    }
}

/// The keys of the functions that are meant.
pub(super) fn mark(frames: &FrameTable, choice: &FunctionChoice) -> Result<Vec<bool>, ReportError> {
    let name = match choice {
        FunctionChoice::Named(name) => name,
        FunctionChoice::One { name, module } => {
            return Ok(frames.flags(|function: &FunctionLabel| {
                function.name == *name && module.as_ref().is_none_or(|module| function.module == *module)
            }));
        }
    };
    let exact = frames.flags(|function: &FunctionLabel| function.name.as_str() == *name);
    if exact.contains(&true) {
        return Ok(exact);
    }
    let pattern = pattern(name).map_err(|why| ReportError::NoNameNorPattern { name: name.clone(), why })?;
    Ok(frames.flags(|function| pattern.is_match(function.name.as_str())))
}
