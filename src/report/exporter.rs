//! What a format of another tool is.

use std::io::Write;
use std::time::SystemTime;

use super::error::ReportError;
use super::nothing_selected;
use super::select::Selected;
use super::stack_filter::StackFilter;
use super::tree::{CallTree, TreeOptions};
use crate::profile::ProfileParts;
use crate::symbolize::Symbols;

/// What is exported: a profile, and which part of it in which form.
#[derive(Clone, Copy)]
pub struct Exported<'a> {
    /// Where the joules went.
    pub profile: &'a dyn ProfileParts,
    /// Names of its code.
    pub symbols: &'a Symbols,
    /// When the recording began, on the wall clock, if that is known.
    pub started: Option<SystemTime>,
    /// What is selected, and how call paths are made of it.
    pub options: &'a TreeOptions,
    /// Is told what the reader of the export must know and the format has no place for.
    pub warn: &'a dyn Fn(&str),
}

impl<'a> Exported<'a> {
    /// Refuses to export nothing, as the formats of call trees do.
    ///
    /// # Errors
    /// If no sample is selected, or the options name something that the profile does not have.
    pub(super) fn check_something(&self) -> Result<(), ReportError> {
        let (profile, selection) = (self.profile.profile(), &self.options.selection);
        let selected = Selected::resolve(selection, profile)?;
        let filter = StackFilter::new(profile, self.symbols, selection);
        let mut has_some = false;
        self.profile.for_each_part(&mut |part| {
            has_some = has_some || filter.totals(part, &selected).iter().any(|totals| !totals.is_empty());
        });
        if has_some {
            return Ok(());
        }
        Err(ReportError::NothingSelected(nothing_selected::why(selection, profile, self.symbols)))
    }

    /// Its call paths, with a warning if some of them are folded.
    ///
    /// # Errors
    /// If the options name something that the profile does not have.
    pub fn tree(&self) -> Result<CallTree<'a>, ReportError> {
        let tree = CallTree::new(self.profile, self.symbols, self.options)?;
        tree.warning().into_iter().chain(tree.warning_of_paths()).for_each(|warning| (self.warn)(&warning));
        Ok(tree)
    }
}

/// A format of another tool.
pub trait Exporter: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What it is and who reads it: a line of the help.
    fn about(&self) -> &'static str;

    /// Source lines are needed, which take longer to look up than names.
    fn needs_lines(&self) -> bool {
        false
    }

    /// Of code it has functions alone, and no addresses.
    fn is_of_functions(&self) -> bool {
        false
    }

    /// What reads it takes it compressed by gzip as well, which makes it many times smaller.
    fn may_be_packed(&self) -> bool {
        false
    }

    /// It is no text, and nothing for a terminal.
    fn is_binary(&self) -> bool {
        false
    }

    /// Pieces of time are needed, in which the samples are told in their order.
    fn needs_slices(&self) -> bool {
        false
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// If the options name something that the profile does not have, or if writing fails.
    fn write(&self, exported: &Exported<'_>, out: &mut dyn Write) -> Result<(), ReportError>;
}
