//! What a page may have beside the call tree.

use crate::report::annotate::Sources;
use crate::report::tree::CallTree;
use crate::symbolize::Symbols;

/// What a page may have beside the call tree.
#[derive(Default)]
pub struct Extras<'a> {
    /// The symbols of the profile, with lines, to tell what each line of a function took.
    pub symbols: Option<&'a Symbols>,
    /// Where the text of these lines is found.
    pub sources: Option<Sources>,
    /// An older recording to compare with.
    pub older: Option<&'a CallTree<'a>>,
}
