//! The call tree with names and weights: what flamegraphs and folded stacks are written from.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::error::ReportError;
use super::frames::{Detail, FrameClass, FrameTable, UNKNOWN};
use super::parallel::in_parallel;
use super::select::{Selected, Selection, Weight};
use super::summary::Summary;
use super::value::stacks_of;
pub use super::walk::Direction;
use super::walk::{Node, TreeFrame, TreeShape, WeighedStack, walk};
use crate::label::Label;
use crate::profile::{Profile, StackId, Thread};
use crate::symbolize::Symbols;

/// What a call tree is made of.
#[derive(Debug, Clone, Default)]
pub struct TreeOptions {
    /// What was recorded, for people.
    pub subject: Option<String>,
    /// Which samples, and what weighs.
    pub selection: Selection,
    /// Leave out inlined functions.
    pub no_inline: bool,
    /// The frame above all stacks.
    pub root: Root,
    /// From which end stacks are read.
    pub direction: Direction,
    /// Frames for what was measured but not attributed: static energy, other processes, eprof, lost.
    pub whole: bool,
}

/// What stands above the outermost functions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Root {
    /// The name of the process if the profile has processes of several names, else nothing.
    #[default]
    Automatic,
    /// Nothing.
    None,
    /// The name of the process.
    Command,
    /// The process.
    Process,
    /// The process's name and the thread.
    Thread,
}

/// What a frame of a flamegraph is, as its name's ending says it to inferno.
pub(super) fn mark(class: FrameClass) -> &'static str {
    match class {
        FrameClass::Native => "",
        FrameClass::Inlined => "_[i]",
        FrameClass::Jit => "_[j]",
        FrameClass::Kernel => "_[k]",
    }
}

/// A call tree.
pub struct CallTree<'a> {
    profile: &'a Profile,
    frames: FrameTable,
    stacks: Vec<WeighedStack>,
    /// Place of each key among all keys in the order of names.
    rank: Vec<u32>,
    direction: Direction,
    /// Names of the frames above all stacks.
    roots: Vec<Label>,
    /// Frames beside all stacks (indices of `roots`), and their weights.
    beside: Vec<(u32, f64)>,
    small: TreeFrame,
    selected: Selected,
    /// Which stacks count.
    taken: Vec<bool>,
    root_of_thread: Vec<Option<u32>>,
    /// What weighs.
    pub weight: Weight,
    /// What the whole profile is about.
    pub summary: Summary,
}

impl<'a> CallTree<'a> {
    /// Makes a call tree.
    ///
    /// # Errors
    /// If the options name something that the profile does not have, or nothing is selected.
    pub fn new(profile: &'a Profile, symbols: &Symbols, options: &TreeOptions) -> Result<Self, ReportError> {
        let selected = Selected::resolve(&options.selection, profile)?;
        let (mut roots, root_of_thread) = roots(profile, options.root);
        let (frames, (taken, stacks)) = in_parallel(
            || FrameTable::new(profile, symbols, Detail::ClassedFunction, !options.no_inline),
            || {
                let taken: Vec<bool> = match options.selection.through {
                    None => selected.stacks(profile),
                    Some(_) => stacks_of(profile, symbols, &selected, &options.selection)
                        .iter()
                        .map(|totals| !totals.is_empty())
                        .collect(),
                };
                let stacks = weigh(profile, &selected, &taken, &root_of_thread);
                (taken, stacks)
            },
        );
        let summary = Summary::new(profile, &selected, options.subject.as_deref());
        let mut beside = Vec::new();
        if options.whole && selected.weight == Weight::Joules {
            for (name, joules) in summary.balance.unattributed() {
                beside.push((roots.len() as u32, joules.as_joules()));
                roots.push(Label::new(name));
            }
        }
        // What is too light to be drawn even at the lowest level.
        let small = TreeFrame::Above(roots.len() as u32);
        roots.push(Label::new("[small]"));
        let tree = Self {
            profile,
            rank: ranks(&frames),
            frames,
            stacks,
            direction: options.direction,
            roots,
            beside,
            small,
            weight: selected.weight,
            summary,
            selected,
            taken,
            root_of_thread,
        };
        if tree.total() > 0.0 { Ok(tree) } else { Err(ReportError::NothingSelected) }
    }

    /// From which end stacks are read.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// What the whole tree weighs: joules, samples or events.
    pub fn total(&self) -> f64 {
        let beside: f64 = self.beside.iter().map(|(_, weight)| weight).sum();
        beside + self.stacks.iter().map(|stack| stack.weight).sum::<f64>()
    }

    /// Calls `visit` with the frames from the root to each one that has weight of its own, and that
    /// weight. Branches lighter than `threshold` are their parent's own. The order is always the same.
    ///
    /// # Errors
    /// Those of `visit`.
    pub(super) fn for_each_own<E>(
        &self,
        threshold: f64,
        mut visit: impl FnMut(&[TreeFrame], f64) -> Result<(), E>,
    ) -> Result<(), E> {
        for &(frame, weight) in self.beside.iter().filter(|(_, weight)| *weight > 0.0) {
            visit(&[TreeFrame::Above(frame)], weight)?;
        }
        let shape = TreeShape { direction: self.direction, threshold, rank: &self.rank };
        walk(self.profile, &self.frames, &self.stacks, shape, |node: Node<'_>| match node.path {
            _ if node.own <= 0.0 => Ok(()),
            [] => visit(&[self.small], node.own),
            path => visit(path, node.own),
        })
    }

    /// The cells that the tree is made of, their weights, and the frames that each ends a path of.
    pub(super) fn cells(&self) -> impl Iterator<Item = (usize, f64, CellPath)> + '_ {
        let is_taken = |stack: StackId| self.taken[stack.0 as usize];
        self.selected.cells(self.profile).filter(move |(_, cell, _)| is_taken(cell.stack)).map(
            |(index, cell, totals)| {
                let root = self.root_of_thread[cell.thread.0 as usize];
                (index, totals.weight(self.weight), CellPath { root, stack: cell.stack })
            },
        )
    }

    /// The frames of a path, the one nearest to the root first.
    pub(super) fn frames_of(&self, path: CellPath) -> Vec<TreeFrame> {
        let mut frames: Vec<TreeFrame> =
            self.frames.of_stack(self.profile, path.stack).map(TreeFrame::Key).collect();
        if frames.is_empty() {
            frames.push(TreeFrame::Key(UNKNOWN));
        }
        if self.direction == Direction::FromOutermost {
            frames.reverse();
        }
        path.root.map(TreeFrame::Above).into_iter().chain(frames).collect()
    }

    /// The profile that the tree is of.
    pub(super) fn profile(&self) -> &'a Profile {
        self.profile
    }

    /// All joules count, not those of one domain alone.
    pub(super) fn is_of_all_domains(&self) -> bool {
        self.weight == Weight::Joules && !self.selected.is_of_one_domain
    }

    /// What kind of code a frame is; `None` for frames that are no code.
    pub(super) fn class(&self, frame: TreeFrame) -> Option<FrameClass> {
        match frame {
            TreeFrame::Above(_) => None,
            TreeFrame::Key(key) => Some(self.frames.keys[key as usize].class),
        }
    }

    /// The names of all frames, as folded stacks have them.
    pub(super) fn names(&self) -> FrameNames<'_> {
        let name = |key: usize| {
            let name = self.frames.function(key as u32).name.folded();
            match mark(self.frames.keys[key].class) {
                "" => name,
                mark => Cow::Owned(format!("{name}{mark}")),
            }
        };
        FrameNames {
            keys: (0..self.frames.keys.len()).map(name).collect(),
            roots: self.roots.iter().map(Label::folded).collect(),
        }
    }

    /// A frame's name without mark, and its module.
    pub(super) fn label(&self, frame: TreeFrame) -> (&Label, Option<&Label>) {
        match frame {
            TreeFrame::Above(root) => (&self.roots[root as usize], None),
            TreeFrame::Key(key) => {
                let function = self.frames.function(key);
                (&function.name, Some(&function.module))
            }
        }
    }
}

/// Where a cell lies in a call tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CellPath {
    root: Option<u32>,
    stack: StackId,
}

/// The names of the frames of a call tree.
pub(super) struct FrameNames<'a> {
    keys: Vec<Cow<'a, str>>,
    roots: Vec<Cow<'a, str>>,
}

impl FrameNames<'_> {
    /// A frame's name, with inferno's mark for what it is.
    pub fn of(&self, frame: TreeFrame) -> &str {
        match frame {
            TreeFrame::Above(root) => &self.roots[root as usize],
            TreeFrame::Key(key) => &self.keys[key as usize],
        }
    }

    /// The names of a path, apart by `;`.
    pub fn join(&self, path: &[TreeFrame]) -> String {
        let separators = path.len().saturating_sub(1);
        let mut text =
            String::with_capacity(path.iter().map(|&frame| self.of(frame).len()).sum::<usize>() + separators);
        for (depth, &frame) in path.iter().enumerate() {
            if depth > 0 {
                text.push(';');
            }
            text += self.of(frame);
        }
        text
    }
}

/// The names of the frames above all stacks, and which one each thread has.
fn roots(profile: &Profile, root: Root) -> (Vec<Label>, Vec<Option<u32>>) {
    let several_commands =
        || profile.threads.windows(2).any(|pair| pair[0].process_name != pair[1].process_name);
    let name = |thread: &Thread| match root {
        Root::None => None,
        Root::Automatic => several_commands().then(|| thread.process_name.clone()),
        Root::Command => Some(thread.process_name.clone()),
        Root::Process => Some(format!("{} ({})", thread.process_name, thread.pid)),
        Root::Thread => Some(format!("{} ({}/{})", thread.name, thread.pid, thread.tid)),
    };
    let mut labels: Vec<Label> = Vec::new();
    let mut known: FxHashMap<Label, u32> = FxHashMap::default();
    let of_thread = profile.threads.iter().map(|thread| {
        let label = Label::new(&name(thread)?);
        Some(*known.entry(label).or_insert_with_key(|label| {
            labels.push(label.clone());
            labels.len() as u32 - 1
        }))
    });
    let of_thread = of_thread.collect();
    (labels, of_thread)
}

/// The weight of each stack below each root.
fn weigh(
    profile: &Profile,
    selected: &Selected,
    taken: &[bool],
    root_of_thread: &[Option<u32>],
) -> Vec<WeighedStack> {
    let cells = || {
        let weighed = selected.cells(profile).filter(|(_, cell, _)| taken[cell.stack.0 as usize]);
        weighed
            .map(|(_, cell, totals)| WeighedStack {
                above: root_of_thread[cell.thread.0 as usize],
                stack: cell.stack,
                weight: totals.weight(selected.weight),
            })
            .filter(|stack| stack.weight > 0.0)
    };
    if root_of_thread.windows(2).all(|pair| pair[0] == pair[1]) {
        // As most often: then there is nothing to sort, and the cells need not be in memory once more.
        let mut weights = vec![0.0; profile.stacks.len()];
        cells().for_each(|stack| weights[stack.stack.0 as usize] += stack.weight);
        let above = root_of_thread.first().copied().flatten();
        let stacks = (0..).map(StackId).zip(weights);
        let weighed = stacks.map(|(stack, weight)| WeighedStack { above, stack, weight });
        return weighed.filter(|stack| stack.weight > 0.0).collect();
    }
    let mut stacks: Vec<WeighedStack> = cells().collect();
    let key = |stack: &WeighedStack| (stack.above, stack.stack);
    stacks.sort_by_key(key);
    stacks.dedup_by(|next, first| {
        let same = key(next) == key(first);
        if same {
            first.weight += next.weight;
        }
        same
    });
    stacks
}

/// The place of each key in the order of names.
fn ranks(frames: &FrameTable) -> Vec<u32> {
    let mut order: Vec<u32> = (0..frames.keys.len() as u32).collect();
    let sort_key = |key: &u32| {
        let function = frames.function(*key);
        (&function.name, &function.module, function.address, frames.keys[*key as usize].class)
    };
    order.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    let mut ranks = vec![0; order.len()];
    for (place, key) in order.into_iter().enumerate() {
        ranks[key as usize] = place as u32;
    }
    ranks
}
