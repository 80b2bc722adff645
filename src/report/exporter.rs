//! What a format of another tool is.

use std::io::Write;

use super::error::ReportError;
use super::tree::{CallTree, TreeOptions};
use crate::profile::Profile;
use crate::symbolize::Symbols;

/// What is exported: a profile, and which part of it in which form.
#[derive(Clone, Copy)]
pub struct Exported<'a> {
    /// Where the joules went.
    pub profile: &'a Profile,
    /// Names of its code.
    pub symbols: &'a Symbols,
    /// What is selected, and how call paths are made of it.
    pub options: &'a TreeOptions,
}

impl<'a> Exported<'a> {
    /// Its call paths.
    ///
    /// # Errors
    /// If the options name something that the profile does not have.
    pub fn tree(&self) -> Result<CallTree<'a>, ReportError> {
        CallTree::new(self.profile, self.symbols, self.options)
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

    /// Writes all of it.
    ///
    /// # Errors
    /// If the options name something that the profile does not have, or if writing fails.
    fn write(&self, exported: &Exported<'_>, out: &mut dyn Write) -> Result<(), ReportError>;
}
