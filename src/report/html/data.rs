//! What the page's script works on.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::label::Label;
use crate::profile::TimeSlice;
use crate::report::frames::FrameClass;
use crate::report::heading::{heading, provenance};
use crate::report::tree::{CallTree, CellPath};
use crate::report::walk::TreeFrame;
use crate::report::{Report, ReportError, Weight};
use crate::units::{Joules, Timestamp};

/// Branches lighter than this share of the whole are part of their parent.
const LIGHTEST: f64 = 2e-4;
/// At most so many points in time; a screen has not many more columns.
const MOST_SLICES: u64 = 400;
/// Units per joule of the weights in the page: microjoules.
const MICROJOULES: f64 = 1e6;

/// The page's data. All weights of nodes are whole microjoules, or samples.
#[derive(Serialize)]
pub(super) struct Page<'a> {
    heading: String,
    how: String,
    /// Units per joule; 1 where samples weigh.
    unit: f64,
    weight: &'static str,
    warnings: &'a [Label],
    balance: Vec<(&'static str, Joules)>,
    modules: Vec<&'a str>,
    frames: Vec<Frame<'a>>,
    /// Of each node of the call tree, parents first: its parent and its frame. Node 0 is all.
    parents: Vec<u32>,
    node_frames: Vec<u32>,
    domains: Vec<&'a Label>,
    slices: Vec<Slice>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    module: Option<u32>,
    /// As in flamegraphs: k kernel, i inlined, j compiled at run time, n native, a no code.
    class: char,
}

/// A piece of time: seconds from the start, joules of the counted domains, and pairs of node and weight.
#[derive(Serialize)]
struct Slice {
    start: f64,
    end: f64,
    measured: Vec<Joules>,
    own: Vec<u64>,
}

impl<'a> Page<'a> {
    pub fn new(tree: &'a CallTree<'_>, report: &'a Report) -> Result<Self, ReportError> {
        let nodes = Nodes::new(tree)?;
        let mut modules: Vec<&str> = Vec::new();
        let mut module_ids: FxHashMap<&str, u32> = FxHashMap::default();
        let everything = Frame { name: "all", module: None, class: 'a' };
        let named = nodes.frames.iter().map(|&frame| {
            let (name, module) = tree.label(frame);
            let module = module.map(|module| {
                *module_ids.entry(module.as_str()).or_insert_with(|| {
                    modules.push(module.as_str());
                    modules.len() as u32 - 1
                })
            });
            Frame { name: name.as_str(), module, class: class(tree, frame) }
        });
        let frames = [everything].into_iter().chain(named).collect();
        let has_joules = tree.weight == Weight::Joules;
        let unit = if has_joules { MICROJOULES } else { 1.0 };
        let balance = &report.summary.balance;
        let mut parts = vec![("program", balance.attributed)];
        parts.extend(balance.unattributed().map(|(name, joules)| (name.trim_matches(['[', ']']), joules)));
        let slices = slices(tree, &nodes, unit);
        let counted = tree.summary.domains.iter().filter(|domain| domain.counted);
        Ok(Self {
            heading: heading(tree),
            how: provenance(&tree.summary, tree.weight),
            unit,
            weight: tree.weight.name(),
            warnings: &report.warnings,
            balance: if has_joules { parts } else { Vec::new() },
            modules,
            frames,
            parents: nodes.parents,
            node_frames: nodes.node_frames,
            domains: counted.map(|domain| &domain.name).collect(),
            slices,
        })
    }
}

fn class(tree: &CallTree<'_>, frame: TreeFrame) -> char {
    match tree.class(frame) {
        None => 'a',
        Some(FrameClass::Native) => 'n',
        Some(FrameClass::Inlined) => 'i',
        Some(FrameClass::Jit) => 'j',
        Some(FrameClass::Kernel) => 'k',
    }
}

/// The nodes of the call tree that are heavy enough to be drawn.
struct Nodes {
    parents: Vec<u32>,
    node_frames: Vec<u32>,
    frames: Vec<TreeFrame>,
    children: FxHashMap<(u32, TreeFrame), u32>,
}

impl Nodes {
    fn new(tree: &CallTree<'_>) -> Result<Self, ReportError> {
        let mut nodes = Self {
            parents: vec![0],
            // Frame 0 is not among `frames`: it is everything.
            node_frames: vec![0],
            frames: Vec::new(),
            children: FxHashMap::default(),
        };
        let mut frame_ids: FxHashMap<TreeFrame, u32> = FxHashMap::default();
        let mut frame_id = |frames: &mut Vec<TreeFrame>, frame| {
            *frame_ids.entry(frame).or_insert_with(|| {
                frames.push(frame);
                frames.len() as u32
            })
        };
        tree.for_each_own(tree.total() * LIGHTEST, |path, _| {
            let mut node = 0;
            for &frame in path {
                let next = nodes.parents.len() as u32;
                let child = *nodes.children.entry((node, frame)).or_insert(next);
                if child == next {
                    nodes.parents.push(node);
                    nodes.node_frames.push(frame_id(&mut nodes.frames, frame));
                }
                node = child;
            }
            Ok::<(), ReportError>(())
        })?;
        Ok(nodes)
    }

    /// The node that a path ends in, or the last of its ancestors that is drawn.
    fn of(&self, path: &[TreeFrame]) -> u32 {
        let mut node = 0;
        for &frame in path {
            match self.children.get(&(node, frame)) {
                Some(&child) => node = child,
                None => break,
            }
        }
        node
    }
}

/// The profile's pieces of time, so many that they can be seen apart; one for all where it has none.
fn slices(tree: &CallTree<'_>, nodes: &Nodes, unit: f64) -> Vec<Slice> {
    let profile = tree.profile();
    let counted: Vec<usize> =
        (0..profile.domains.len()).filter(|&index| tree.summary.domains[index].counted).collect();
    let mut own = Weights::new(nodes.parents.len(), unit);
    let mut node_of_path: FxHashMap<CellPath, u32> = FxHashMap::default();
    let mut node_of_cell = vec![None; profile.cells.len()];
    let is_timed = !profile.slices.is_empty() && tree.is_of_all_domains();
    for (cell, weight, path) in tree.cells() {
        let node = *node_of_path.entry(path).or_insert_with(|| nodes.of(&tree.frames_of(path)));
        node_of_cell[cell] = Some(node);
        if !is_timed {
            own.add(node, weight);
        }
    }
    if !is_timed {
        let measured = counted.iter().map(|&domain| profile.domains[domain].balance.measured).collect();
        return vec![Slice { start: 0.0, end: profile.duration.as_secs_f64(), measured, own: own.take() }];
    }

    let seconds = |time: Timestamp| time.since(profile.start).as_secs_f64();
    let shortest = profile.duration.as_nanos() / MOST_SLICES;
    let mut slices = Vec::new();
    let mut pending: Option<(Timestamp, Vec<Joules>)> = None;
    let last = profile.slices.len() - 1;
    for (index, TimeSlice { start, end, measured, by_cell, .. }) in profile.slices.iter().enumerate() {
        let (start, sums) = pending.get_or_insert_with(|| (*start, vec![Joules::ZERO; counted.len()]));
        for (sum, &domain) in sums.iter_mut().zip(&counted) {
            *sum += measured[domain];
        }
        for &(cell, joules) in by_cell {
            if let Some(Some(node)) = node_of_cell.get(cell as usize) {
                own.add(*node, f64::from(joules));
            }
        }
        if end.since(*start).as_nanos() >= shortest || index == last {
            let (start, end, measured) = (seconds(*start), seconds(*end), std::mem::take(sums));
            slices.push(Slice { start, end, measured, own: own.take() });
            pending = None;
        }
    }
    slices
}

/// Weights of nodes, gathered and given out as whole numbers.
struct Weights {
    unit: f64,
    by_node: Vec<f64>,
    /// Nodes that have been given weight, each once.
    touched: Vec<u32>,
}

impl Weights {
    fn new(nodes: usize, unit: f64) -> Self {
        Self { unit, by_node: vec![0.0; nodes], touched: Vec::new() }
    }

    fn add(&mut self, node: u32, weight: f64) {
        if weight > 0.0 {
            let sum = &mut self.by_node[node as usize];
            if *sum == 0.0 {
                self.touched.push(node);
            }
            *sum += weight * self.unit;
        }
    }

    /// Pairs of node and weight. What is rounded away stays for the next time.
    fn take(&mut self) -> Vec<u64> {
        let mut pairs = Vec::new();
        let by_node = &mut self.by_node;
        self.touched.sort_unstable();
        self.touched.retain(|&node| {
            let sum = &mut by_node[node as usize];
            let whole = sum.round();
            if whole >= 1.0 {
                pairs.extend([u64::from(node), whole as u64]);
                *sum -= whole;
            }
            // A rest of exactly nothing must not be listed: it would be listed again when it grows.
            *sum != 0.0
        });
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_rounded_over_time() {
        let mut weights = Weights::new(3, 1.0);
        let mut sum = 0;
        for _ in 0..10 {
            weights.add(1, 0.3);
            weights.add(2, 1.0);
            sum += weights.take().chunks(2).filter(|pair| pair[0] == 1).map(|pair| pair[1]).sum::<u64>();
        }
        assert_eq!(sum, 3);
    }
}
