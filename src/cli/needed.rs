//! What verbs need of a recording.

use eprof::analyze::{Dimensions, FunctionsOfStacks};

/// What a verb needs of a recording; less is faster.
#[derive(Clone, Copy)]
pub struct Needed {
    /// What must be told apart.
    pub dimensions: Dimensions,
    /// Inlined functions, if the user does not say.
    pub inline: bool,
    /// Lines of the source.
    pub lines: bool,
    /// Pieces of time.
    pub slices: bool,
    /// Of code, no more than its functions, and what of them: neither addresses nor, unless the user says so, what is
    /// inlined.
    pub functions: Option<FunctionsOfStacks>,
}

impl Needed {
    /// Whole stacks by thread.
    pub const STACKS: Self = Self {
        dimensions: Dimensions { stacks: true, threads: true, cpus: false },
        inline: true,
        lines: false,
        slices: false,
        functions: None,
    };
}
