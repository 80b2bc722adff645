//! What an annotated function is: a plain value, which the text and the page only write.

use super::find::FoundBy;
use crate::label::Label;
use crate::report::select::{Totals, Weight};

/// Functions with what each of their lines and instructions took.
#[derive(Debug, Clone)]
pub struct Annotation {
    /// The functions, the heaviest first.
    pub functions: Vec<AnnotatedFunction>,
    /// What was asked for, and by what functions were found; `None` where the heaviest were.
    pub asked: Option<(String, FoundBy)>,
    /// What was asked for is nowhere but inlined into others: that is what is annotated.
    pub only_inlined: bool,
    /// Those that were meant too, and for which there was no room: their names, and what they took.
    pub left_out: (Vec<Label>, Totals),
    /// What weighs.
    pub weight: Weight,
    /// All that was selected.
    pub whole: Totals,
    /// Joules follow time alone: all code has the same watts, which say nothing of it.
    pub is_by_time: bool,
    /// Says so where joules are not measured.
    pub estimate_mark: Option<&'static str>,
}

/// A function with what each of its lines and instructions took.
#[derive(Debug, Clone)]
pub struct AnnotatedFunction {
    /// Its name.
    pub name: Label,
    /// Where it lies.
    pub module: Label,
    /// What it took itself, as a row of a report by function.
    pub own: Totals,
    /// What it took where it was inlined into others, which is not among its own.
    pub elsewhere: Totals,
    /// Its instructions by address; without code only those that took something.
    pub instructions: Vec<AnnotatedInstruction>,
    /// The lines that these are of, by file and line; those of no line come first.
    pub lines: Vec<AnnotatedLine>,
    /// Why there is no code.
    pub no_code: Option<Label>,
}

/// A line of the source, and what it took.
#[derive(Debug, Clone)]
pub struct AnnotatedLine {
    /// File and line; `None` for instructions of which neither is known.
    pub place: Option<(Label, u32)>,
    /// What it took.
    pub own: Totals,
    /// Its instructions, by their places in the function's list.
    pub instructions: Vec<usize>,
}

/// An instruction and what it took.
#[derive(Debug, Clone)]
pub struct AnnotatedInstruction {
    /// Bytes from its function's start; where that is not known, its address.
    pub at: u64,
    /// What it says, if its code is here.
    pub text: Option<Label>,
    /// Where in the function's source it comes from.
    pub place: Option<(Label, u32)>,
    /// The function that was inlined here.
    pub inlined: Option<Label>,
    /// Of an inlined function, which has copies in several: the function that this copy was put into.
    pub within: Option<Label>,
    /// What it took.
    pub own: Totals,
}
