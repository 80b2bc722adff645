//! Folded stacks: one line per call path, frames apart by `;`, then a blank and a whole number.

use std::io::Write;

use super::error::ReportError;
use super::exporter::{Exported, Exporter};
use super::frame_names::FrameNames;
use super::select::Weight;
use super::tree::CallTree;
use super::walk::TreeFrame;

/// Units per joule of the numbers: microjoules.
const MICROJOULES: f64 = 1e6;

/// Folded stacks, as an export.
pub struct Collapsed;

impl Exporter for Collapsed {
    fn name(&self) -> &'static str {
        "collapsed"
    }

    fn about(&self) -> &'static str {
        "Folded stacks in microjoules: for flamegraph.pl, inferno, speedscope"
    }

    fn is_of_functions(&self) -> bool {
        true
    }

    fn write(&self, exported: &Exported<'_>, out: &mut dyn Write) -> Result<(), ReportError> {
        write(&exported.tree()?, out)
    }
}

/// Writes a call tree as folded stacks. The numbers are microjoules, or samples, or events. They are
/// rounded so that their sum is the tree's total to one unit; paths that round to 0 are left out. Where joules are
/// estimated, a frame below all others says so: a line that is no stack would keep readers that look at the first line
/// from knowing the format, and others warn of it.
///
/// # Errors
/// If writing fails.
pub fn write(tree: &CallTree<'_>, mut out: impl Write) -> Result<(), ReportError> {
    let mut whole = WholeNumbers::new(unit_factor(tree.weight));
    let names = tree.names();
    let mark = tree.summary.estimate_mark().filter(|_| tree.weight == Weight::Joules);
    let root = mark.map(|mark| format!("[{mark}];")).unwrap_or_default();
    let join = |paths: &mut JoinedPaths, path: &[TreeFrame], weight: f64| paths.add(&names, path, weight);
    tree.for_each_own_at_once(0.0, join, |paths| {
        paths.iter().try_for_each(|(path, weight)| match whole.next(weight) {
            0 => Ok(()),
            number => writeln!(out, "{root}{path} {number}"),
        })
    })?;
    out.flush()?;
    Ok(())
}

/// Some paths by their names, with what each weighs.
#[derive(Debug, Default)]
struct JoinedPaths {
    text: String,
    /// Where each path ends in the text.
    ends: Vec<(usize, f64)>,
}

impl JoinedPaths {
    fn add(&mut self, names: &FrameNames<'_>, path: &[TreeFrame], weight: f64) {
        names.add_joined(path, &mut self.text);
        self.ends.push((self.text.len(), weight));
    }

    fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        let mut from = 0;
        self.ends.iter().map(move |&(end, weight)| {
            let path = &self.text[from..end];
            from = end;
            (path, weight)
        })
    }
}

fn unit_factor(weight: Weight) -> f64 {
    if weight == Weight::Joules { MICROJOULES } else { 1.0 }
}

/// Turns weights into whole numbers whose sum is the sum of the weights, rounded: what one number is
/// rounded by, the next makes good.
pub(super) struct WholeNumbers {
    factor: f64,
    exact: f64,
    given: u64,
}

impl WholeNumbers {
    /// `factor`: units per weight.
    pub fn new(factor: f64) -> Self {
        Self { factor, exact: 0.0, given: 0 }
    }

    /// The whole number for the next weight.
    pub fn next(&mut self, weight: f64) -> u64 {
        self.exact += weight * self.factor;
        let number = (self.exact.round() as u64).saturating_sub(self.given);
        self.given += number;
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roundings_make_each_other_good() {
        let mut whole = WholeNumbers::new(1.0);
        let numbers: Vec<u64> = (0..8).map(|_| whole.next(0.375)).collect();
        assert_eq!(numbers.iter().sum::<u64>(), 3);
        assert_eq!(numbers, [0, 1, 0, 1, 0, 0, 1, 0]);
    }
}
