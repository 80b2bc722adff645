//! Samples: what each stack of each thread spent in each stretch of time.
//!
//! The meters tell joules apart by buckets, and so do the samples: within a stretch of time each stack of a thread is
//! one sample, and they stand behind each other, each in the middle of its share of the stretch. Where a thread spent
//! nothing for a stretch or more, samples without a stack and without weight say so: the Firefox Profiler would take
//! each sample to last until the next.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::code::{Code, Frame};
use super::tables::Tables;
use super::timeline::{Stretch, Timeline};
use crate::profile::{AddressId, CallersId, InSlice, Profile, ProfileParts, StackId};
use crate::report::ReportError;
use crate::report::folded::WholeNumbers;
use crate::report::select::{Selected, Selection, Weight};
use crate::report::stack_filter::StackFilter;
use crate::symbolize::Symbols;

/// What a node of the tree of stacks takes, with its place in the index.
const BYTES_PER_STACK: usize = 64;

/// Callers whose nodes are remembered, so that what that takes does not grow with a recording: some 12 MB. Those that most
/// stacks share come first.
const MOST_CALLERS: usize = 1 << 18;

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Nanoseconds since the recording's start.
    pub time: u64,
    /// Its node in the thread's tree; `None` where the thread did nothing.
    pub stack: Option<u32>,
    /// In the profile's units: microjoules, samples or events.
    pub weight: u64,
}

/// What a stack of a thread spent.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    /// In the profile's weight.
    weight: f64,
    /// CPU time in nanoseconds.
    busy: f64,
}

/// A stretch of time in which a thread spent something.
#[derive(Debug, Clone, Copy)]
struct Busy {
    start: u64,
    end: u64,
    /// CPU time in nanoseconds.
    time: f64,
}

impl Busy {
    /// The CPU time until then, as if it had been spent evenly.
    fn until(&self, time: u64) -> f64 {
        let length = (self.end - self.start).max(1) as f64;
        self.time * (time.saturating_sub(self.start) as f64 / length).min(1.0)
    }
}

/// What is known of one thread.
pub struct ThreadSamples {
    pub tables: Tables,
    pub samples: Vec<Sample>,
    /// Sum of the samples' weights, before they were rounded.
    pub weight: f64,
    whole: WholeNumbers,
    /// When it spent something, in the order of time.
    busy: Vec<Busy>,
}

impl Default for ThreadSamples {
    fn default() -> Self {
        Self::new(1.0)
    }
}

impl ThreadSamples {
    fn new(factor: f64) -> Self {
        let whole = WholeNumbers::new(factor);
        Self { tables: Tables::default(), samples: Vec::new(), weight: 0.0, whole, busy: Vec::new() }
    }

    /// What its stacks spent between two times.
    fn add(&mut self, start: u64, end: u64, spent: &[(Option<u32>, Spent)]) {
        let total: f64 = spent.iter().map(|(_, spent)| spent.weight).sum();
        let mut before = 0.0;
        for &(stack, Spent { weight, .. }) in spent {
            let share = (before + weight / 2.0) / total;
            before += weight;
            self.weight += weight;
            let number = self.whole.next(weight);
            if number > 0 {
                let time = start + ((end - start) as f64 * share) as u64;
                self.samples.push(Sample { time, stack, weight: number });
            }
        }
    }

    /// As [`ThreadSamples::add`], of a stretch; it did nothing since it was last busy.
    fn add_stretch(&mut self, stretch: &Stretch, spent: &[(Option<u32>, Spent)]) {
        let &Stretch { start, end, .. } = stretch;
        let idle_since = self.busy.last().map_or(0, |busy| busy.end);
        if idle_since < start {
            self.idle(idle_since, start);
        }
        self.busy.push(Busy { start, end, time: spent.iter().map(|(_, spent)| spent.busy).sum() });
        self.add(start, end, spent);
    }

    fn idle(&mut self, from: u64, to: u64) {
        self.samples.extend([from, to].map(|time| Sample { time, stack: None, weight: 0 }));
    }

    fn finish(&mut self, end: u64) {
        if let Some(busy) = self.busy.last().filter(|busy| busy.end < end) {
            self.idle(busy.end, end);
        }
        self.samples.sort_by_key(|sample| sample.time);
    }

    /// CPU time from each sample's predecessor to itself, in nanoseconds; from the beginning to the first.
    pub fn cpu_times(&self) -> Vec<u64> {
        let mut stretches = self.busy.iter().peekable();
        let (mut ended, mut last) = (0.0, 0);
        let time = |sample: &Sample| {
            while let Some(busy) = stretches.next_if(|busy| busy.end <= sample.time) {
                ended += busy.time;
            }
            let until = (ended + stretches.peek().map_or(0.0, |busy| busy.until(sample.time))).round() as u64;
            let since = until.saturating_sub(last);
            last = last.max(until);
            since
        };
        self.samples.iter().map(time).collect()
    }
}

/// The samples of all threads.
pub struct Samples {
    /// By the threads' indices in the profile.
    pub threads: BTreeMap<u32, ThreadSamples>,
    /// What is known to have been spent but not when, in the profile's weight.
    pub without_time: f64,
    /// Call paths that end at callers of the code that spent it, since there was no memory for more.
    pub cut_paths: u64,
    /// What weighs.
    pub weight: Weight,
}

impl Samples {
    /// Finds the samples of a profile, whole or in parts.
    ///
    /// # Errors
    /// If the selection names something that the profile does not have.
    pub fn new(
        parts: &dyn ProfileParts,
        symbols: &Symbols,
        selection: &Selection,
        code: &Code<'_>,
        timeline: &Timeline,
    ) -> Result<Self, ReportError> {
        let profile = parts.profile();
        let selected = Selected::resolve(selection, profile)?;
        let filter = StackFilter::new(profile, symbols, selection);
        let mut collector = Collector {
            code,
            timeline,
            weight: selected.weight,
            room: parts.spare_bytes() / BYTES_PER_STACK,
            threads: BTreeMap::new(),
            without_time: BTreeMap::new(),
            cut_paths: 0,
        };
        parts.for_each_part(&mut |part| collector.add_part(part, &selected, &filter));
        Ok(collector.finish())
    }
}

/// Units of whole numbers per weight: microjoules of joules.
pub fn units_per_weight(weight: Weight) -> f64 {
    match weight {
        Weight::Joules => 1e6,
        Weight::Samples | Weight::Count => 1.0,
    }
}

/// A place in a thread's tree of stacks.
#[derive(Debug, Clone, Copy, Default)]
struct Node {
    /// `None` above all frames.
    number: Option<u32>,
    /// There was no memory for what it calls.
    is_cut: bool,
}

/// The nodes of a part of the profile that were found so far, by thread.
#[derive(Default)]
struct Nodes {
    of_stacks: FxHashMap<(u32, StackId), Option<u32>>,
    of_callers: FxHashMap<(u32, CallersId), Node>,
    path: Vec<(CallersId, AddressId)>,
}

struct Collector<'a> {
    code: &'a Code<'a>,
    timeline: &'a Timeline,
    weight: Weight,
    /// Nodes of trees of stacks that there is still memory for.
    room: usize,
    threads: BTreeMap<u32, ThreadSamples>,
    /// By thread and node.
    without_time: BTreeMap<(u32, Option<u32>), f64>,
    cut_paths: u64,
}

impl Collector<'_> {
    fn add_part(&mut self, part: &Profile, selected: &Selected, filter: &StackFilter) {
        let taken = filter.taken(part, selected);
        // What a cell has for each of its joules in slices, which are those of all domains.
        let mut in_slices = vec![0.0; part.cells.len()];
        for slice in &part.slices {
            for &InSlice { cell, joules, .. } in &slice.by_cell {
                in_slices[cell as usize] += f64::from(joules.max(0.0));
            }
        }
        let mut per_joule = vec![Spent::default(); part.cells.len()];
        let mut nodes = Nodes::default();
        for (index, cell, totals) in selected.cells(part) {
            let weight = totals.weight(self.weight);
            if weight <= 0.0 || !taken[cell.stack.0 as usize] {
                continue;
            }
            if in_slices[index] > 0.0 {
                let busy = totals.time.as_nanos() as f64;
                per_joule[index] = Spent { weight: weight / in_slices[index], busy: busy / in_slices[index] };
            } else {
                let node = self.node(part, cell.thread.0, cell.stack, &mut nodes);
                *self.without_time.entry((cell.thread.0, node)).or_default() += weight;
            }
        }
        let mut spent: BTreeMap<(u32, StackId), Spent> = BTreeMap::new();
        let mut current = None;
        for slice in &part.slices {
            let stretch = self.timeline.index_of(slice.start);
            if stretch != current {
                self.flush(part, current, &mut spent, &mut nodes);
                current = stretch;
            }
            for &InSlice { cell, joules, .. } in &slice.by_cell {
                let joules = f64::from(joules.max(0.0));
                let Spent { weight, busy } = per_joule[cell as usize];
                if joules * weight > 0.0 {
                    let cell = &part.cells[cell as usize];
                    let sum = spent.entry((cell.thread.0, cell.stack)).or_default();
                    sum.weight += joules * weight;
                    sum.busy += joules * busy;
                }
            }
        }
        self.flush(part, current, &mut spent, &mut nodes);
    }

    /// Makes samples of what was spent in a stretch.
    fn flush(
        &mut self,
        part: &Profile,
        stretch: Option<usize>,
        spent: &mut BTreeMap<(u32, StackId), Spent>,
        nodes: &mut Nodes,
    ) {
        let spent: Vec<((u32, StackId), Spent)> = std::mem::take(spent).into_iter().collect();
        let Some(stretch) = stretch.and_then(|index| self.timeline.stretches().get(index)) else { return };
        for of_thread in spent.chunk_by(|((a, _), _), ((b, _), _)| a == b) {
            let thread = of_thread[0].0.0;
            let of_thread: Vec<(Option<u32>, Spent)> = of_thread
                .iter()
                .map(|&((_, stack), spent)| (self.node(part, thread, stack, nodes), spent))
                .collect();
            self.thread(thread).add_stretch(stretch, &of_thread);
        }
    }

    fn thread(&mut self, thread: u32) -> &mut ThreadSamples {
        let factor = units_per_weight(self.weight);
        self.threads.entry(thread).or_insert_with(|| ThreadSamples::new(factor))
    }

    /// The node of a stack in its thread's tree, or of as many of its callers as there is memory for.
    fn node(&mut self, part: &Profile, thread: u32, stack: StackId, nodes: &mut Nodes) -> Option<u32> {
        if let Some(&node) = nodes.of_stacks.get(&(thread, stack)) {
            return node;
        }
        let callers = self.node_of_callers(part, thread, part.stacks.callers(stack), nodes);
        let mut node = self.below(thread, callers, part.stacks.innermost(stack));
        if node.number.is_none() {
            // Without a frame it would say that nothing ran.
            node = self.add(thread, node, Frame::UNKNOWN);
        }
        self.cut_paths += u64::from(node.is_cut);
        nodes.of_stacks.insert((thread, stack), node.number);
        node.number
    }

    /// The same of callers, of which those that many stacks share are looked up once for each thread.
    fn node_of_callers(
        &mut self,
        part: &Profile,
        thread: u32,
        callers: CallersId,
        nodes: &mut Nodes,
    ) -> Node {
        let (mut at, mut inner) = (callers, std::mem::take(&mut nodes.path));
        let mut node = loop {
            let Some((address, outer)) = part.stacks.caller(at) else { break Node::default() };
            if let Some(&known) = nodes.of_callers.get(&(thread, at)) {
                break known;
            }
            inner.push((at, address));
            at = outer;
        };
        for (at, address) in inner.drain(..).rev() {
            node = self.below(thread, node, Some(address));
            if nodes.of_callers.len() < MOST_CALLERS {
                nodes.of_callers.insert((thread, at), node);
            }
        }
        nodes.path = inner;
        node
    }

    /// The node of code that another one calls.
    fn below(&mut self, thread: u32, node: Node, address: Option<AddressId>) -> Node {
        let code = self.code;
        let frames = address.into_iter().flat_map(|address| code.of_address(address));
        frames.fold(node, |node, frame| self.add(thread, node, frame))
    }

    /// The node of a frame, if there is memory for it and for what it is called by; the outermost frame always has a place.
    fn add(&mut self, thread: u32, node: Node, frame: Frame) -> Node {
        if node.is_cut {
            return node;
        }
        let (code, has_room) = (self.code, self.room > 0 || node.number.is_none());
        let tables = &mut self.thread(thread).tables;
        let before = tables.stack_count();
        let next = tables.stack(code, node.number, frame, has_room);
        let more = tables.stack_count() - before;
        self.room = self.room.saturating_sub(more);
        match next {
            Some(next) => Node { number: Some(next), is_cut: false },
            None => Node { is_cut: true, ..node },
        }
    }

    fn finish(mut self) -> Samples {
        let duration = self.timeline.duration().as_nanos();
        for thread in self.threads.values_mut() {
            thread.finish(duration);
        }
        let without_time = std::mem::take(&mut self.without_time);
        let total = without_time.values().sum();
        let rest: Vec<_> = without_time.into_iter().collect();
        for of_thread in rest.chunk_by(|((a, _), _), ((b, _), _)| a == b) {
            let spent: Vec<(Option<u32>, Spent)> =
                of_thread.iter().map(|&((_, node), weight)| (node, Spent { weight, busy: 0.0 })).collect();
            let thread = self.thread(of_thread[0].0.0);
            thread.add(0, duration, &spent);
            thread.samples.sort_by_key(|sample| sample.time);
        }
        Samples { threads: self.threads, without_time: total, cut_paths: self.cut_paths, weight: self.weight }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(weight: f64, busy: f64) -> Spent {
        Spent { weight, busy }
    }

    #[test]
    fn stacks_of_a_stretch_stand_behind_each_other_and_idle_threads_say_so() {
        let stretch = |start, end| Stretch { start, end, measured: Vec::new(), slices: 0..0 };
        let mut thread = ThreadSamples::new(1e6);
        thread.add_stretch(&stretch(0, 100), &[(Some(0), spent(3.0, 60.0)), (Some(1), spent(1.0, 20.0))]);
        thread.add_stretch(&stretch(300, 400), &[(Some(1), spent(1e-9, 1.0)), (Some(2), spent(2.0, 99.0))]);
        thread.finish(1_000);
        let found: Vec<_> =
            thread.samples.iter().map(|sample| (sample.time, sample.stack, sample.weight)).collect();
        let idle = |time| (time, None, 0);
        let expected = [
            (37, Some(0), 3_000_000),
            (87, Some(1), 1_000_000),
            idle(100),
            idle(300),
            // What rounds to nothing is made good by the next.
            (350, Some(2), 2_000_000),
            idle(400),
            idle(1_000),
        ];
        assert_eq!(found, expected);
        assert_eq!(thread.cpu_times(), [30, 40, 10, 0, 50, 50, 0]);
    }
}
