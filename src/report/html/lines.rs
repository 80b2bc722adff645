//! Which lines of the source took how much, and what they say.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::label::Label;
use crate::report::annotate::Sources;
use crate::report::nodes::Nodes;
use crate::report::tree::CallTree;
use crate::report::walk::TreeFrame;
use crate::symbolize::Symbols;

/// So many lines are told of a function.
const MOST_LINES: usize = 60;
/// Lines that are shown around each one that took something.
const CONTEXT: u32 = 3;
/// All texts of sources in a page.
const MOST_BYTES: usize = 300_000;
/// A line is shown so far.
const LONGEST: usize = 200;

/// Lines by function.
#[derive(Default, Serialize)]
pub struct Lines {
    files: Vec<Label>,
    /// Of functions by their numbers: file, line and weight of each line, one behind the other, the heaviest first.
    functions: BTreeMap<u32, Vec<u64>>,
    /// By file: numbers of lines, and what they say.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    texts: BTreeMap<u32, BTreeMap<u32, Label>>,
}

impl Lines {
    /// Of the functions of a page.
    pub fn new(tree: &CallTree<'_>, symbols: &Symbols, nodes: &mut Nodes, unit: f64) -> Self {
        let mut weights: FxHashMap<TreeFrame, BTreeMap<(&str, u32), f64>> = FxHashMap::default();
        for (address, frame, own) in tree.own_by_address() {
            let place = symbols.frames(address).last().and_then(|at| Some((at.file?, at.line?)));
            if let Some((file, line)) = place.filter(|(_, line)| *line > 0) {
                *weights.entry(frame).or_default().entry((symbols.file(file), line)).or_default() += own;
            }
        }
        let mut lines = Self::default();
        let mut file_ids: BTreeMap<&str, u64> = BTreeMap::new();
        let by_number: BTreeMap<u32, _> =
            weights.into_iter().map(|(frame, lines)| (nodes.frame(frame), lines)).collect();
        for (function, of_lines) in by_number {
            let mut heaviest: Vec<((&str, u32), f64)> = of_lines.into_iter().collect();
            heaviest.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
            let mut row = Vec::new();
            for ((file, line), weight) in heaviest.into_iter().take(MOST_LINES) {
                let number = *file_ids.entry(file).or_insert_with(|| {
                    lines.files.push(Label::new(file));
                    lines.files.len() as u64 - 1
                });
                row.extend([number, u64::from(line), (weight * unit).round() as u64]);
            }
            lines.functions.insert(function, row);
        }
        lines
    }

    /// With what the lines say, and those around them, where their files are here; of the heaviest functions, where a
    /// page has no room for all.
    pub fn add_texts(&mut self, sources: &mut Sources) {
        let mut by_weight: Vec<&Vec<u64>> = self.functions.values().collect();
        let weight = |row: &[u64]| row.chunks(3).map(|line| line[2]).sum::<u64>();
        by_weight.sort_by_key(|row| std::cmp::Reverse(weight(row)));
        let mut bytes = 0;
        for row in by_weight {
            let mut wanted: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
            for line in row.chunks(3) {
                let number = line[1] as u32;
                let around = number.saturating_sub(CONTEXT).max(1)..=number.saturating_add(CONTEXT);
                wanted.entry(line[0] as u32).or_default().extend(around);
            }
            for (file, numbers) in wanted {
                let Some(text) = sources.lines(self.files[file as usize].as_str()) else { continue };
                let known = self.texts.entry(file).or_default();
                for number in numbers {
                    let Some(line) = text.get(number as usize - 1) else { continue };
                    known.entry(number).or_insert_with(|| {
                        let line: String = line.chars().take(LONGEST).collect();
                        bytes += line.len() + 12;
                        Label::new(&line)
                    });
                }
            }
            if bytes > MOST_BYTES {
                break;
            }
        }
    }
}
