//! What a page may have beside the call tree.

use crate::report::annotate::{Annotation, Sources};
use crate::report::tree::CallTree;
use crate::symbolize::Symbols;

/// What a page may have beside the call tree.
#[derive(Default)]
pub struct Extras<'a> {
    /// The symbols of the profile, with lines, to tell what each line of a function took.
    pub symbols: Option<&'a Symbols>,
    /// Where the text of these lines is found.
    pub sources: Option<&'a mut Sources>,
    /// The functions that took most, with their machine code.
    pub code: Option<&'a Annotation>,
    /// An older recording to compare with.
    pub older: Option<&'a CallTree<'a>>,
}
