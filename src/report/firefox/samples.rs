//! Samples: each when it was taken; or, of long recordings, of those that were read in parts and of several, what each stack of
//! each thread spent in each stretch of time.
//!
//! The meters tell joules apart by buckets: the samples of a call path in one share evenly what that had there. In stretches of
//! time each stack of a thread is one sample, and they stand behind each other, each in the middle of its share of the stretch.
//! Where a thread spent nothing, samples without a stack and without weight say so: the Firefox Profiler would take each sample
//! to last until the next.

use std::collections::BTreeMap;

use super::code::Code;
use super::nodes::Nodes;
use super::own_times::shares_of_cells;
use super::thread_samples::{Spent, ThreadSamples, Threads};
use super::timeline::Timeline;
use crate::profile::{InSlice, Profile, ProfileParts};
use crate::report::ReportError;
use crate::report::select::{Selected, Selection, Weight};
use crate::report::stack_filter::StackFilter;
use crate::symbolize::Symbols;

/// What a node of the tree of stacks takes, with its place in the index.
const BYTES_PER_STACK: usize = 64;

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
    /// Nanoseconds that samples at their own times stand for, all together, and how many they are.
    lengths: (u64, u64),
}

impl Samples {
    /// How many nanoseconds a sample stands for on average; `None` where they are not told one by one.
    pub fn usual_length(&self) -> Option<u64> {
        let (sum, count) = self.lengths;
        sum.checked_div(count)
    }

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
            threads: Threads { by_index: BTreeMap::new(), factor: units_per_weight(selected.weight) },
            without_time: BTreeMap::new(),
            cut_paths: 0,
            lengths: (0, 0),
        };
        parts.for_each_part(&mut |part| collector.add_part(part, &selected, &filter));
        Ok(collector.finish())
    }
}

/// Units of whole numbers per weight: nanojoules of joules.
fn units_per_weight(weight: Weight) -> f64 {
    let numbers = if weight == Weight::Joules { 1e6 } else { 1.0 };
    numbers * units_per_number(weight) as f64
}

/// Units per number that is written: nanojoules per microjoule.
pub fn units_per_number(weight: Weight) -> u64 {
    match weight {
        Weight::Joules => 1000,
        Weight::Samples | Weight::Count => 1,
    }
}

/// A thread, by its index in the profile, and a node of its tree.
type Place = (u32, Option<u32>);

struct Collector<'a> {
    code: &'a Code<'a>,
    timeline: &'a Timeline,
    weight: Weight,
    /// Nodes of trees of stacks that there is still memory for.
    room: usize,
    threads: Threads,
    /// By thread and node.
    without_time: BTreeMap<Place, f64>,
    cut_paths: u64,
    lengths: (u64, u64),
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
        let mut has_own_times = vec![false; part.cells.len()];
        part.sample_times.iter().for_each(|sample| has_own_times[sample.cell as usize] = true);
        let mut per_joule = vec![Spent::default(); part.cells.len()];
        let mut of_samples = per_joule.clone();
        let (mut wanted, mut without_time) = (Vec::new(), Vec::new());
        for (index, cell, totals) in selected.cells(part) {
            let weight = totals.weight(self.weight);
            if weight <= 0.0 || !taken[cell.stack.0 as usize] {
                continue;
            }
            wanted.push(index as u32);
            let busy = totals.time.as_nanos() as f64;
            if has_own_times[index] {
                of_samples[index] = Spent { weight, busy };
            } else if in_slices[index] > 0.0 {
                per_joule[index] = Spent { weight: weight / in_slices[index], busy: busy / in_slices[index] };
            } else {
                without_time.push((index as u32, weight));
            }
        }
        let mut nodes = Nodes::of(part, wanted);
        nodes.find(self.code, &mut self.threads, &mut self.room);
        self.cut_paths += nodes.cut_paths;
        let place = |cell: u32| (part.cells[cell as usize].thread.0, nodes.of_cell(cell));
        for (cell, weight) in without_time {
            *self.without_time.entry(place(cell)).or_default() += weight;
        }
        for (sample, share) in part.sample_times.iter().zip(self.shares(part)) {
            let Spent { weight, busy } = of_samples[sample.cell as usize];
            if weight > 0.0 {
                let (thread, node) = place(sample.cell);
                let [start, end] = [sample.start, sample.end].map(|time| self.timeline.time_of(time));
                let spent = Spent { weight: weight * share, busy: busy * share };
                self.lengths.0 += end.saturating_sub(start);
                self.lengths.1 += 1;
                self.threads.thread(thread).add_sample(start.min(end), end, node, spent);
            }
        }
        let mut spent: Vec<(Place, Spent)> = Vec::new();
        let mut current = None;
        for slice in &part.slices {
            let stretch = self.timeline.index_of(slice.start);
            if stretch != current {
                self.flush(current, &mut spent);
                current = stretch;
            }
            for &InSlice { cell, joules, .. } in &slice.by_cell {
                let joules = f64::from(joules.max(0.0));
                let Spent { weight, busy } = per_joule[cell as usize];
                if joules * weight > 0.0 {
                    spent.push((place(cell), Spent { weight: joules * weight, busy: joules * busy }));
                }
            }
        }
        self.flush(current, &mut spent);
    }

    /// Of each sample the share that it has of its cell. Samples and events are as many in each.
    fn shares(&self, part: &Profile) -> Vec<f64> {
        if self.weight == Weight::Joules {
            return shares_of_cells(part);
        }
        let mut samples = vec![0.0; part.cells.len()];
        part.sample_times.iter().for_each(|sample| samples[sample.cell as usize] += 1.0);
        part.sample_times.iter().map(|sample| 1.0 / samples[sample.cell as usize]).collect()
    }

    /// Makes samples of what was spent in a stretch, and empties it.
    fn flush(&mut self, stretch: Option<usize>, spent: &mut Vec<(Place, Spent)>) {
        // Stable: sums of equal places do not depend on how they are sorted.
        spent.sort_by_key(|&(place, _)| place);
        spent.dedup_by(|(place, more), (of, spent)| {
            let is_same = place == of;
            if is_same {
                spent.weight += more.weight;
                spent.busy += more.busy;
            }
            is_same
        });
        if let Some(stretch) = stretch.and_then(|index| self.timeline.stretches().get(index)) {
            for of_thread in spent.chunk_by(|((a, _), _), ((b, _), _)| a == b) {
                let stacks: Vec<_> = of_thread.iter().map(|&((_, node), spent)| (node, spent)).collect();
                self.threads.thread(of_thread[0].0.0).add_stretch(stretch, &stacks);
            }
        }
        spent.clear();
    }

    fn finish(mut self) -> Samples {
        let duration = self.timeline.duration().as_nanos();
        for thread in self.threads.by_index.values_mut() {
            thread.finish(duration);
        }
        let without_time = std::mem::take(&mut self.without_time);
        let total = without_time.values().sum();
        let rest: Vec<_> = without_time.into_iter().collect();
        for of_thread in rest.chunk_by(|((a, _), _), ((b, _), _)| a == b) {
            let spent: Vec<(Option<u32>, Spent)> =
                of_thread.iter().map(|&((_, node), weight)| (node, Spent { weight, busy: 0.0 })).collect();
            let thread = self.threads.thread(of_thread[0].0.0);
            thread.add(0, duration, &spent);
            thread.samples.sort_by_key(|sample| sample.time);
        }
        let threads = self.threads.by_index;
        Samples {
            threads,
            without_time: total,
            cut_paths: self.cut_paths,
            weight: self.weight,
            lengths: self.lengths,
        }
    }
}
