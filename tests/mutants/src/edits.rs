//! Faults are written into a source text, as expressions that look up which fault is active.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A fault: one way in which one place of the program is wrong.
pub type Id = u32;

/// Where the copy's switch of faults lies, below the copy.
pub const SWITCH_FILE: &str = "src/faults_of_tests.rs";

/// What says which fault is active, in the copy: read from the environment once. In a process that is to tell which faults
/// it passes by, each leaves a mark, and these are written at its end.
pub const SWITCH: &str = include_str!("switch.rs.txt");

/// A piece of text that stands for a stretch of the original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text as it is.
    Text(String),
    /// What happens while the fault is active, an expression or a statement. Text follows for the case that it is not.
    Fault(Id, String),
}

/// On which side of other edits at the same place an edit stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    /// It ends an expression: inner ones end first.
    End(std::cmp::Reverse<usize>),
    /// It replaces what is between expressions.
    Between,
    /// It begins an expression: outer ones begin first.
    Begin(usize),
}

#[derive(Debug, Clone)]
struct Edit {
    replaced: Range<usize>,
    side: Side,
    group: usize,
    parts: Vec<Part>,
}

/// All faults of one expression: they come and go together with what is written around it.
#[derive(Debug, Clone)]
struct Group {
    faults: Vec<Id>,
}

/// The faults of one file.
#[derive(Debug, Default)]
pub struct Edits {
    edits: Vec<Edit>,
    groups: Vec<Group>,
    functions: Vec<(Range<usize>, Vec<Id>)>,
}

/// A text with faults, and where each is in it.
#[derive(Debug, Default)]
pub struct Written {
    /// The text.
    pub text: String,
    /// Where in the text each fault stands, and the whole of what its group wraps.
    places: Vec<(Range<usize>, Vec<Id>)>,
}

impl Edits {
    /// A new group of faults at an expression; its edits name it.
    pub fn group(&mut self, faults: Vec<Id>) -> usize {
        self.groups.push(Group { faults });
        self.groups.len() - 1
    }

    /// The faults of one function, so that an error that names none of them can be laid on all.
    pub fn function(&mut self, place: Range<usize>, faults: Vec<Id>) {
        self.functions.push((place, faults));
    }

    fn push(&mut self, group: usize, replaced: Range<usize>, side: Side, parts: Vec<Part>) {
        self.edits.push(Edit { replaced, side, group, parts });
    }

    /// Text in front of what begins at `at`.
    pub fn begin(&mut self, group: usize, at: usize, parts: Vec<Part>) {
        self.push(group, at..at, Side::Begin(group), parts);
    }

    /// Text in place of what an expression begins with, such as its operator.
    pub fn begin_in_place_of(&mut self, group: usize, replaced: Range<usize>, text: &str) {
        self.push(group, replaced, Side::Begin(group), vec![Part::Text(text.to_owned())]);
    }

    /// Text in place of what stands between two expressions.
    pub fn between(&mut self, group: usize, replaced: Range<usize>, text: &str) {
        self.push(group, replaced, Side::Between, vec![Part::Text(text.to_owned())]);
    }

    /// Text behind what ends at `at`.
    pub fn end(&mut self, group: usize, at: usize, parts: Vec<Part>) {
        self.push(group, at..at, Side::End(std::cmp::Reverse(group)), parts);
    }

    /// The text with all faults but those that were taken out.
    pub fn write(&self, original: &str, without: &BTreeSet<Id>) -> Written {
        let is_kept =
            |edit: &&Edit| self.groups[edit.group].faults.iter().any(|fault| !without.contains(fault));
        let mut edits: Vec<&Edit> = self.edits.iter().filter(is_kept).collect();
        edits.sort_by_key(|edit| (edit.replaced.start, edit.side));
        let mut written = Written::default();
        let mut from = 0;
        // Where the text behind each edit has come to stand, by where the edit began.
        let mut behind: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        let mut spans: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for edit in edits {
            written.text.push_str(&original[from..edit.replaced.start]);
            from = edit.replaced.end;
            let start = written.text.len();
            for part in &edit.parts {
                match part {
                    Part::Text(text) => written.text.push_str(text),
                    Part::Fault(fault, text) if !without.contains(fault) => {
                        let at = written.text.len();
                        written
                            .text
                            .push_str(&format!("if crate::faults_of_tests::is({fault}) {{ {text} }} else "));
                        written.places.push((at..written.text.len(), vec![*fault]));
                    }
                    Part::Fault(..) => {}
                }
            }
            let end = written.text.len();
            behind.insert(edit.replaced.start, (edit.replaced.end, end));
            let span = spans.entry(edit.group).or_insert((start, end));
            *span = (span.0.min(start), span.1.max(end));
        }
        written.text.push_str(&original[from..]);
        for (group, (start, end)) in spans {
            written.places.push((start..end, self.groups[group].faults.clone()));
        }
        let moved = |at: usize, last: Option<(&usize, &(usize, usize))>| {
            last.map_or(at, |(_, (old, new))| new + at.saturating_sub(*old))
        };
        for (place, faults) in &self.functions {
            let start = moved(place.start, behind.range(..place.start).next_back());
            let end = moved(place.end, behind.range(..=place.end).next_back());
            written.places.push((start..end, faults.clone()));
        }
        written
    }
}

impl Written {
    /// Faults that an error at this place of the text is laid on: those of the smallest piece around it.
    pub fn blamed(&self, place: &Range<usize>, without: &BTreeSet<Id>) -> Vec<Id> {
        let around = self.places.iter().filter(|(range, faults)| {
            range.start <= place.start
                && place.start <= range.end
                && faults.iter().any(|fault| !without.contains(fault))
        });
        let smallest = around.min_by_key(|(range, _)| range.len());
        smallest
            .map(|(_, faults)| faults.iter().copied().filter(|fault| !without.contains(fault)).collect())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum() -> Edits {
        let mut edits = Edits::default();
        let outer = edits.group(vec![1]);
        edits.begin(outer, 0, vec![Part::Text("match (".into())]);
        let inner = edits.group(vec![2, 3]);
        edits.begin(inner, 0, vec![Part::Text("(".into())]);
        edits.end(
            inner,
            1,
            vec![Part::Fault(2, "0".into()), Part::Fault(3, "1".into()), Part::Text("a)".into())],
        );
        edits.between(outer, 1..4, ", ");
        edits.end(
            outer,
            5,
            vec![Part::Text(") ".into()), Part::Fault(1, "l - r".into()), Part::Text("{ l + r }".into())],
        );
        edits.function(0..5, vec![1, 2, 3]);
        edits
    }

    #[test]
    fn faults_are_nested_as_their_expressions_are() {
        let written = sum().write("a + b", &BTreeSet::new());
        let is = |fault| format!("if crate::faults_of_tests::is({fault})");
        let expected = format!(
            "match ((a{} {{ 0 }} else {} {{ 1 }} else a), b) {} {{ l - r }} else {{ l + r }}",
            is(2),
            is(3),
            is(1)
        );
        assert_eq!(written.text, expected);
    }

    #[test]
    fn what_was_taken_out_leaves_nothing_and_a_group_without_faults_is_as_it_was() {
        let edits = sum();
        let written = edits.write("a + b", &BTreeSet::from([1, 2]));
        assert_eq!(written.text, "(aif crate::faults_of_tests::is(3) { 1 } else a) + b");
        assert_eq!(edits.write("a + b", &BTreeSet::from([1, 2, 3])).text, "a + b");
    }

    #[test]
    fn an_error_is_laid_on_the_smallest_piece_around_it() {
        let edits = sum();
        let none = BTreeSet::new();
        let written = edits.write("a + b", &none);
        let at = |text: &str| written.text.find(text).expect("is there");
        assert_eq!(written.blamed(&(at("l - r")..at("l - r") + 5), &none), [1]);
        assert_eq!(written.blamed(&(at("0 }")..at("0 }") + 1), &none), [2]);
        assert_eq!(written.blamed(&(at("l + r")..at("l + r") + 1), &none), [1]);
        assert_eq!(written.blamed(&(at("l + r")..at("l + r") + 1), &BTreeSet::from([1])), [2, 3]);
    }
}
