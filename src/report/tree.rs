//! The call tree with names and weights: what flamegraphs and folded stacks are written from.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::call_path_check::CallPathCheck;
use super::error::ReportError;
use super::frame_names::FrameNames;
use super::frames::{Detail, FrameClass, FrameTable, UNKNOWN};
use super::kept_tree::KeptTree;
use super::nothing_selected;
use super::parallel::in_parallel;
use super::rows::FrameSums;
use super::select::{Selected, Selection, Totals, Weight};
use super::stack_filter::StackFilter;
use super::summary::Summary;
pub use super::walk::Direction;
use super::walk::{Node, TreeFrame, TreeShape, WeighedStack, walk, walk_at_once};
use crate::identity::Dimension;
use crate::label::Label;
use crate::profile::{AddressId, Profile, ProfileParts, StackId, Thread};
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
    /// What tells recordings apart: the frame above all stacks is of these.
    pub dimensions: Vec<Dimension>,
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
        FrameClass::Native | FrameClass::CppOrRust => "",
        FrameClass::Inlined => "_[i]",
        FrameClass::Jit => "_[j]",
        FrameClass::Kernel | FrameClass::InlinedKernel => "_[k]",
    }
}

/// A call tree.
pub struct CallTree<'a> {
    parts: &'a dyn ProfileParts,
    symbols: &'a Symbols,
    frames: FrameTable,
    stacks: Stacks<'a>,
    /// Place of each key among all keys in the order of names.
    rank: Vec<u32>,
    direction: Direction,
    /// Names of the frames above all stacks.
    roots: Vec<Label>,
    /// Frames beside all stacks (indices of `roots`), and their weights.
    beside: Vec<(u32, f64)>,
    small: TreeFrame,
    /// What there was no memory for.
    folded: TreeFrame,
    selected: Selected,
    filter: StackFilter,
    paths: CallPathCheck,
    root_of_thread: Vec<Option<u32>>,
    /// What weighs.
    pub weight: Weight,
    /// What the whole profile is about.
    pub summary: Summary,
}

/// The stacks that a call tree is made of.
enum Stacks<'a> {
    /// All that a whole profile has.
    All(&'a Profile, Vec<WeighedStack>),
    /// Of a profile in parts: the tree, as far as there is memory for it.
    Kept(KeptTree),
}

impl<'a> CallTree<'a> {
    /// Makes a call tree of a profile. If that is in parts and the tree takes too much memory, the lightest
    /// subtrees are folded, see [`CallTree::folded_share`].
    ///
    /// # Errors
    /// If the options name something that the profile does not have, or nothing is selected.
    pub fn new(
        parts: &'a dyn ProfileParts,
        symbols: &'a Symbols,
        options: &TreeOptions,
    ) -> Result<Self, ReportError> {
        let profile = parts.profile();
        let selected = Selected::resolve(&options.selection, profile)?;
        let (mut roots, root_of_thread) = roots(profile, options);
        let frame_table = || FrameTable::new(profile, symbols, Detail::ClassedFunction, !options.no_inline);
        let mut paths = CallPathCheck::new(profile, symbols);
        let new_filter = || StackFilter::new(profile, symbols, &options.selection);
        let (frames, filter, stacks) = match parts.whole() {
            Some(profile) => {
                let ((frames, ends), (filter, stacks)) = in_parallel(
                    || (frame_table(), paths.paths(profile)),
                    || {
                        let filter = new_filter();
                        let taken = filter.taken(profile, &selected);
                        (filter, weigh(profile, &selected, &taken, &root_of_thread))
                    },
                );
                paths.add_on(&ends, profile, stacks.iter().map(|stack| (stack.stack, stack.weight)));
                (frames, filter, Stacks::All(profile, stacks))
            }
            None => {
                let (frames, filter) = (frame_table(), new_filter());
                let tree = kept_tree(parts, |part, tree| {
                    let taken = filter.taken(part, &selected);
                    let mut path = Vec::new();
                    let stacks = weigh(part, &selected, &taken, &root_of_thread);
                    paths.add(part, stacks.iter().map(|stack| (stack.stack, stack.weight)));
                    for stack in stacks {
                        frames_of(&frames, part, options.direction, stack.above, stack.stack, &mut path);
                        tree.add(&path, stack.weight);
                    }
                });
                (frames, filter, Stacks::Kept(tree))
            }
        };
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
        let folded = TreeFrame::Above(roots.len() as u32);
        roots.push(Label::new("[folded]"));
        let tree = Self {
            parts,
            symbols,
            rank: ranks(&frames),
            frames,
            stacks,
            direction: options.direction,
            roots,
            beside,
            small,
            folded,
            weight: selected.weight,
            summary,
            selected,
            filter,
            paths,
            root_of_thread,
        };
        if tree.total() > 0.0 {
            return Ok(tree);
        }
        Err(ReportError::NothingSelected(nothing_selected::why(&options.selection, profile, symbols)))
    }

    /// From which end stacks are read.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// What the whole tree weighs: joules, samples or events.
    pub fn total(&self) -> f64 {
        let beside: f64 = self.beside.iter().map(|(_, weight)| weight).sum();
        let of_stacks = match &self.stacks {
            Stacks::All(_, stacks) => stacks.iter().map(|stack| stack.weight).sum::<f64>(),
            Stacks::Kept(tree) => tree.total(),
        };
        beside + of_stacks
    }

    /// The share of the whole that stands in frames called `[folded]`, since there was no memory for the subtrees
    /// there; `None` if there was memory for all. What other frames weigh does not depend on it.
    pub fn folded_share(&self) -> Option<f64> {
        match &self.stacks {
            Stacks::Kept(tree) if tree.folded() > 0.0 => Some(tree.folded() / self.total()),
            _ => None,
        }
    }

    /// What the reader must know of broken call paths and missing symbols, and the repair. A [`Report`](super::Report)
    /// of the same profile says the same.
    pub fn warning_of_paths(&self) -> Option<String> {
        self.paths.warning(self.weight)
    }

    /// What the reader of a picture must know of it, beside the profile's warnings.
    pub fn warning(&self) -> Option<String> {
        let share = self.folded_share()? * 100.0;
        Some(format!(
            "there was no memory for all call paths: the lightest, {share:.1} % of all {}, are folded into frames \
             called [folded]; the others are exact. More is shown with more memory (--memory)",
            self.weight.name()
        ))
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
        let visit_own = |path: &[TreeFrame], own: f64| match path {
            _ if own <= 0.0 => Ok(()),
            [] => visit(&[self.small], own),
            path => visit(path, own),
        };
        self.walk(threshold, visit_own)
    }

    /// The same nodes in the same order, of which several threads each make of some in a row what `digest` makes of them; `take` is
    /// given that in order.
    ///
    /// # Errors
    /// Those of `take`.
    pub(super) fn for_each_own_at_once<T: Default + Send, E>(
        &self,
        threshold: f64,
        digest: impl Fn(&mut T, &[TreeFrame], f64) + Sync,
        mut take: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        let Stacks::All(profile, stacks) = &self.stacks else {
            return self.for_each_own(threshold, |path, own| {
                let mut made = T::default();
                digest(&mut made, path, own);
                take(made)
            });
        };
        let mut made = T::default();
        let beside = self.beside.iter().filter(|(_, weight)| *weight > 0.0);
        beside.for_each(|&(frame, weight)| digest(&mut made, &[TreeFrame::Above(frame)], weight));
        take(made)?;
        let shape = TreeShape { direction: self.direction, threshold, rank: &self.rank };
        let small = self.small;
        let digest = |made: &mut T, node: Node<'_>| match node.path {
            [] => digest(made, &[small], node.own),
            path => digest(made, path, node.own),
        };
        walk_at_once(profile, &self.frames, stacks, shape, digest, take)
    }

    fn walk<E>(
        &self,
        threshold: f64,
        mut visit: impl FnMut(&[TreeFrame], f64) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.stacks {
            Stacks::All(profile, stacks) => {
                let shape = TreeShape { direction: self.direction, threshold, rank: &self.rank };
                walk(profile, &self.frames, stacks, shape, |node: Node<'_>| visit(node.path, node.own))
            }
            Stacks::Kept(tree) => tree.walk(threshold, &self.rank, self.folded, visit),
        }
    }

    /// The cells of a part of the profile that the tree is made of, what each had, and the frames that it ends a
    /// path of.
    pub(super) fn cells<'p>(
        &'p self,
        part: &'p Profile,
    ) -> impl Iterator<Item = (usize, Totals, CellPath)> + 'p {
        let taken = self.filter.taken(part, &self.selected);
        let cells = self.selected.cells(part).filter(move |(_, cell, _)| taken[cell.stack.0 as usize]);
        cells.map(|(index, cell, totals)| {
            let root = self.root_of_thread[cell.thread.0 as usize];
            (index, totals, CellPath { root, stack: cell.stack })
        })
    }

    /// The frames that the tree has of a code address, the one nearest to the root first, if it has all frames of all paths
    /// and reads stacks from their outermost frames on.
    pub(super) fn frames_at(
        &self,
        address: AddressId,
    ) -> Option<impl DoubleEndedIterator<Item = TreeFrame> + Clone> {
        let is_whole = matches!(self.stacks, Stacks::All(..)) && self.direction == Direction::FromOutermost;
        is_whole.then(|| self.frames.of_address(address).iter().copied().map(TreeFrame::Key))
    }

    /// The frames beside all stacks, and their weights.
    pub(super) fn beside(&self) -> impl Iterator<Item = (TreeFrame, f64)> {
        self.beside.iter().map(|&(frame, weight)| (TreeFrame::Above(frame), weight))
    }

    /// The frames that the tree has of a path in a part of the profile, the one nearest to the root first.
    pub(super) fn frames_of(&self, part: &Profile, path: CellPath) -> Vec<TreeFrame> {
        let mut frames = Vec::new();
        self.find_frames_of(part, path, &mut frames);
        frames
    }

    /// Puts the same in the place of what `frames` holds.
    pub(super) fn find_frames_of(&self, part: &Profile, path: CellPath, frames: &mut Vec<TreeFrame>) {
        frames_of(&self.frames, part, self.direction, path.root, path.stack, frames);
        if let Stacks::Kept(tree) = &self.stacks {
            let kept = tree.kept(frames);
            if kept < frames.len() {
                frames.truncate(kept);
                frames.push(self.folded);
            }
        }
    }

    /// The frames that may stand above all stacks.
    pub(super) fn frames_above(&self) -> impl Iterator<Item = TreeFrame> {
        (0..self.roots.len() as u32).map(TreeFrame::Above)
    }

    /// The profile that the tree is of.
    pub(super) fn parts(&self) -> &'a dyn ProfileParts {
        self.parts
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

    /// What the code of each frame took itself, with its error, and with all that it called. Frames above all stacks
    /// have none.
    pub(super) fn sums(&self) -> FxHashMap<TreeFrame, (Totals, Totals)> {
        self.sums_by(&self.frames)
    }

    /// The same if code that the compiler put into a function is that function's, which is what
    /// [`TreeOptions::no_inline`] makes of it; `None` if the tree has no such code, or reads stacks from their innermost
    /// frames on, where functions lie in what was put into them.
    pub(super) fn sums_without_inlined(&self) -> Option<FxHashMap<TreeFrame, (Totals, Totals)>> {
        self.has_inlined().then(|| self.sums_by(&self.frames.without_inlined()))
    }

    /// Whether functions that were put into others are told apart from these, and lie in them.
    pub(super) fn has_inlined(&self) -> bool {
        self.direction == Direction::FromOutermost && self.frames.has_inlined()
    }

    fn sums_by(&self, frames: &FrameTable) -> FxHashMap<TreeFrame, (Totals, Totals)> {
        let mut sums = FrameSums::new(self.parts.profile(), self.symbols, &self.selected, frames.keys.len());
        self.parts.for_each_part(&mut |part| {
            sums.add(part, frames, &self.filter.totals(part, &self.selected));
        });
        (0..).map(TreeFrame::Key).zip(sums.finish()).collect()
    }

    /// The function that the innermost code of a path was put into; `None` if it is no inlined function's.
    pub(super) fn put_into(&self, part: &Profile, path: CellPath) -> Option<TreeFrame> {
        let keys = self.frames.of_address(part.stacks.innermost(path.stack)?);
        let (outermost, innermost) = (keys.first()?, keys.last()?);
        let is_inlined = self.frames.keys[*innermost as usize].class.is_inlined();
        (is_inlined && self.direction == Direction::FromOutermost).then_some(TreeFrame::Key(*outermost))
    }

    /// What each code address took itself, and the frame of that code.
    pub(super) fn own_by_address(&self) -> impl Iterator<Item = (AddressId, TreeFrame, f64)> {
        let mut own = vec![0.0; self.parts.profile().addresses.len()];
        self.parts.for_each_part(&mut |part| {
            let stacks = self.filter.totals(part, &self.selected);
            for (stack, totals) in (0..).map(StackId).zip(stacks) {
                let at = part.stacks.innermost(stack).and_then(|at| own.get_mut(at.0 as usize));
                if let Some(sum) = at {
                    *sum += totals.weight(self.weight);
                }
            }
        });
        (0..).map(AddressId).zip(own).filter(|(_, own)| *own > 0.0).map(|(address, own)| {
            let key = self.frames.of_address(address).last().copied().unwrap_or(UNKNOWN);
            (address, TreeFrame::Key(key), own)
        })
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

impl CellPath {
    /// The frame above the stack, if there is one.
    pub fn root(self) -> Option<TreeFrame> {
        self.root.map(TreeFrame::Above)
    }

    /// The stack in its part of the profile.
    pub fn stack(self) -> StackId {
        self.stack
    }
}

/// The names of the frames above all stacks, and which one each thread has.
fn roots(profile: &Profile, options: &TreeOptions) -> (Vec<Label>, Vec<Option<u32>>) {
    let (root, dimensions) = (options.root, &options.dimensions[..]);
    let several_commands = root == Root::Automatic
        && dimensions.is_empty()
        && profile.threads.windows(2).any(|pair| pair[0].process_name != pair[1].process_name);
    let of_thread = |thread: &Thread| match root {
        Root::None => None,
        Root::Automatic => several_commands.then(|| thread.process_name.clone()),
        Root::Command => Some(thread.process_name.clone()),
        Root::Process => Some(thread.process_title()),
        Root::Thread => Some(thread.title()),
    };
    let name = |thread: &Thread| {
        let origin = profile.recordings.get(thread.recording.0 as usize);
        let of_recording = origin
            .into_iter()
            .flat_map(|origin| dimensions.iter().map(|by| origin.value_in(thread.cgroup.as_deref(), by)));
        let names: Vec<String> = of_recording.chain(of_thread(thread)).collect();
        (!names.is_empty()).then(|| names.join(" "))
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

/// A tree of all parts, of which `add` adds one.
fn kept_tree(parts: &dyn ProfileParts, mut add: impl FnMut(&Profile, &mut KeptTree)) -> KeptTree {
    let mut tree = KeptTree::within(parts.spare_bytes());
    parts.for_each_part(&mut |part| add(part, &mut tree));
    if tree.has_folded() {
        tree.fix();
        parts.for_each_part(&mut |part| add(part, &mut tree));
        tree.fold_lightest();
    }
    tree
}

/// The frames of a stack, the one nearest to the root first.
fn frames_of(
    frames: &FrameTable,
    profile: &Profile,
    direction: Direction,
    above: Option<u32>,
    stack: StackId,
    path: &mut Vec<TreeFrame>,
) {
    path.clear();
    path.extend(above.map(TreeFrame::Above));
    let first = path.len();
    // One by one: an iterator of iterators is asked for its length again and again where it extends a list.
    frames.of_stack(profile, stack).for_each(|key| path.push(TreeFrame::Key(key)));
    if path.len() == first {
        path.push(TreeFrame::Key(UNKNOWN));
    }
    if direction == Direction::FromOutermost {
        path[first..].reverse();
    }
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
