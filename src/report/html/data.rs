//! What the page's script works on.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::label::Label;
use crate::profile::{Profile, ProfileParts, TimeSlice};
use crate::report::frames::FrameClass;
use crate::report::heading::{heading, provenance};
use crate::report::summary::whole_title;
use crate::report::tree::{CallTree, CellPath};
use crate::report::walk::TreeFrame;
use crate::report::{Report, ReportError, Weight};
use crate::units::{Joules, Timestamp};

/// Branches lighter than this share of the whole are part of their parent.
const LIGHTEST: f64 = 2e-4;
/// At most so many points in time; a screen has not many more columns.
const MOST_SLICES: u64 = 400;
/// However little memory there is: time is still seen to pass.
const FEWEST_SLICES: u64 = 10;
/// What a node has in a slice, while it is added up in a tree and when it is written down.
const BYTES_PER_WEIGHT: usize = 48;
/// Units per joule of the weights in the page: microjoules.
const MICROJOULES: f64 = 1e6;

/// The page's data. All weights of nodes are whole microjoules, or samples.
#[derive(Serialize)]
pub(super) struct Page<'a> {
    heading: String,
    how: String,
    /// What the joules of all domains are: measured, estimated, or some of each.
    whole: &'static str,
    /// Units per joule; 1 where samples weigh.
    unit: f64,
    weight: &'static str,
    warnings: Vec<Label>,
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
            whole: whole_title(tree.summary.method),
            unit,
            weight: tree.weight.name(),
            warnings: report
                .warnings
                .iter()
                .cloned()
                .chain(tree.warning().map(|it| Label::new(&it)))
                .collect(),
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
    let parts = tree.parts();
    let profile = parts.profile();
    let counted: Vec<usize> =
        (0..profile.domains.len()).filter(|&index| tree.summary.domains[index].counted).collect();
    let mut own = Weights::new(nodes.parents.len(), unit);
    if profile.slices.is_empty() || !tree.is_of_all_domains() {
        parts.for_each_part(&mut |part| {
            for_each_cell(tree, nodes, part, |_, weight, node| own.add(node, weight));
        });
        let measured = counted.iter().map(|&domain| profile.domains[domain].balance.measured).collect();
        return vec![Slice { start: 0.0, end: profile.duration.as_secs_f64(), measured, own: own.take() }];
    }

    let of_part = |part: &Profile| {
        let mut node_of_cell = vec![None; part.cells.len()];
        for_each_cell(tree, nodes, part, |cell, _, node| node_of_cell[cell] = Some(node));
        node_of_cell
    };
    let seconds = |time: Timestamp| time.since(profile.start).as_secs_f64();
    let drawn = Drawn::new(profile, most_slices(parts, nodes));
    let mut slices: Vec<Slice> = Vec::new();
    let mut add = |slice: usize, whole: &TimeSlice, weights: &mut dyn Iterator<Item = (u32, f64)>| {
        let (begins, ends) = drawn.ends_of(slice);
        if begins {
            let measured = vec![Joules::ZERO; counted.len()];
            slices.push(Slice { start: seconds(whole.start), end: 0.0, measured, own: Vec::new() });
        }
        let Some(last) = slices.last_mut() else { return };
        last.measured.iter_mut().zip(&counted).for_each(|(sum, &domain)| *sum += whole.measured[domain]);
        weights.for_each(|(node, weight)| own.add(node, weight));
        if ends {
            (last.end, last.own) = (seconds(whole.end), own.take());
        }
    };
    match parts.whole() {
        Some(profile) => {
            let node_of_cell = of_part(profile);
            for (index, slice) in profile.slices.iter().enumerate() {
                let weight = |&(cell, joules): &(u32, f32)| {
                    Some(((*node_of_cell.get(cell as usize)?)?, f64::from(joules)))
                };
                add(index, slice, &mut slice.by_cell.iter().filter_map(weight));
            }
        }
        None => {
            // Slices of one part may reach into the next; of each that is drawn the sums are gathered.
            let mut by_slice = vec![BTreeMap::<u32, f64>::new(); profile.slices.len()];
            parts.for_each_part(&mut |part| {
                let node_of_cell = of_part(part);
                for slice in &part.slices {
                    let drawn = drawn.slice_at(profile, slice.start);
                    for &(cell, joules) in &slice.by_cell {
                        if let Some(Some(node)) = node_of_cell.get(cell as usize) {
                            *by_slice[drawn].entry(*node).or_default() += f64::from(joules);
                        }
                    }
                }
            });
            for ((index, slice), weights) in profile.slices.iter().enumerate().zip(by_slice) {
                add(index, slice, &mut weights.into_iter());
            }
        }
    }
    slices
}

/// How many slices are drawn. Those of a profile in parts are added up all at once, beside the call tree, which has most
/// of the spare memory.
fn most_slices(parts: &dyn ProfileParts, nodes: &Nodes) -> u64 {
    let slice = BYTES_PER_WEIGHT * nodes.parents.len();
    let fit = parts.spare_bytes() / 4 / slice.max(1);
    if parts.whole().is_some() { MOST_SLICES } else { (fit as u64).clamp(FEWEST_SLICES, MOST_SLICES) }
}

/// Calls `visit` with the cells of a part that the tree is made of: number, weight, and the node that each lies in.
fn for_each_cell(tree: &CallTree<'_>, nodes: &Nodes, part: &Profile, mut visit: impl FnMut(usize, f64, u32)) {
    let mut node_of_path: FxHashMap<CellPath, u32> = FxHashMap::default();
    for (cell, weight, path) in tree.cells(part) {
        let node = *node_of_path.entry(path).or_insert_with(|| nodes.of(&tree.frames_of(part, path)));
        visit(cell, weight, node);
    }
}

/// Which slices of a profile are drawn as one.
struct Drawn {
    /// For each slice the first of those that it is drawn with.
    first: Vec<usize>,
}

impl Drawn {
    fn new(profile: &Profile, most: u64) -> Self {
        let shortest = profile.duration.as_nanos() / most;
        let mut first: Vec<usize> = Vec::with_capacity(profile.slices.len());
        let mut begin = 0;
        for (index, slice) in profile.slices.iter().enumerate() {
            first.push(begin);
            if slice.end.since(profile.slices[begin].start).as_nanos() >= shortest {
                begin = index + 1;
            }
        }
        Self { first }
    }

    /// Whether something drawn begins with a slice, and whether it ends with it.
    fn ends_of(&self, slice: usize) -> (bool, bool) {
        let next = self.first.get(slice + 1);
        (self.first[slice] == slice, next.is_none_or(|&first| first == slice + 1))
    }

    /// The first of the slices that the one that starts then is drawn with.
    fn slice_at(&self, profile: &Profile, start: Timestamp) -> usize {
        let at = profile.slices.partition_point(|slice| slice.start < start);
        self.first.get(at).copied().unwrap_or_default()
    }
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
    use crate::report::fixture::{Divided, sample_profile};
    use crate::report::tree::TreeOptions;
    use crate::units::Nanoseconds;

    /// What each drawn slice weighs, and what each node does.
    fn sums(slices: &[Slice], nodes: usize) -> (Vec<u64>, Vec<u64>) {
        let mut by_node = vec![0; nodes];
        let weight = |slice: &Slice| {
            slice
                .own
                .chunks(2)
                .map(|pair| {
                    by_node[pair[0] as usize] += pair[1];
                    pair[1]
                })
                .sum()
        };
        (slices.iter().map(weight).collect(), by_node)
    }

    #[test]
    fn slices_of_parts_are_slices_of_the_whole() {
        let (mut profile, symbols) = sample_profile();
        let start = profile.start;
        // Joules of the five cells in slices that are too short to be drawn one by one.
        profile.slices = (0..1000)
            .map(|at| TimeSlice {
                start: start + Nanoseconds::from_millis(2 * at),
                end: start + Nanoseconds::from_millis(2 * at + 2),
                measured: vec![Joules::from_joules(0.03), Joules::ZERO, Joules::from_joules(0.004)],
                modelled: Joules::ZERO,
                by_cell: (0..5).map(|cell| (cell, 0.001 * ((at + u64::from(cell)) % 4) as f32)).collect(),
            })
            .collect();
        let whole = CallTree::new(&profile, &symbols, &TreeOptions::default()).expect("a tree");
        let nodes = Nodes::new(&whole).expect("nodes");
        let of_whole = slices(&whole, &nodes, MICROJOULES);
        assert_eq!(of_whole.len(), 334);
        let narrow = Divided::new(&profile, 2, |cell| cell % 2).within(0);
        let tree = CallTree::new(&narrow, &symbols, &TreeOptions::default()).expect("a tree");
        assert_eq!(
            slices(&tree, &Nodes::new(&tree).expect("nodes"), MICROJOULES).len() as u64,
            FEWEST_SLICES
        );
        for parts in 1..5 {
            let divided = Divided::new(&profile, parts, |cell| cell % parts);
            let tree = CallTree::new(&divided, &symbols, &TreeOptions::default()).expect("a tree");
            let of_parts = slices(&tree, &Nodes::new(&tree).expect("nodes"), MICROJOULES);
            assert_eq!(of_parts.len(), of_whole.len());
            for (a, b) in of_whole.iter().zip(&of_parts) {
                assert_eq!((a.start, a.end, &a.measured), (b.start, b.end, &b.measured));
            }
            let [(slices, nodes), (others, other_nodes)] =
                [&of_whole, &of_parts].map(|slices| sums(slices, nodes.parents.len()));
            let near = |a: &[u64], b: &[u64]| a.iter().zip(b).all(|(a, b)| a.abs_diff(*b) <= 6);
            assert!(near(&slices, &others) && near(&nodes, &other_nodes), "{nodes:?} and {other_nodes:?}");
        }
    }

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
