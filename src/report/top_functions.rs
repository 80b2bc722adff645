//! Which function spent most in each slice of time.

use rustc_hash::FxHashMap;

use super::frames::{FrameTable, UNKNOWN};
use crate::label::Label;
use crate::profile::{InSlice, Profile, ProfileParts, TimeSlice};

/// The sum of a function in a slice: 16 bytes in a table of which three eighths are taken.
const BYTES_PER_SUM: usize = 48;

/// The function that spent most in each slice, and its share.
pub(super) fn top_functions(parts: &dyn ProfileParts, frames: &FrameTable) -> Vec<Option<(Label, f64)>> {
    if let Some(profile) = parts.whole() {
        let of_slice = |slice| {
            let mut sums = FunctionSums::default();
            sums.add(profile, frames, slice);
            sums.top(frames)
        };
        return profile.slices.iter().map(of_slice).collect();
    }
    // A part does not tell when nothing more comes to a slice: sums of all slices are kept, or of as many as there
    // is memory for, and those of the next ones are found by another look at the parts.
    let slices = parts.profile().slices.len();
    let mut found = Vec::with_capacity(slices);
    while found.len() < slices {
        let most = parts.spare_bytes() / BYTES_PER_SUM;
        let mut sums = SliceSums::new(&parts.profile().slices[found.len()..], most);
        parts.for_each_part(&mut |part| sums.add(part, frames));
        found.extend(sums.by_slice.into_iter().map(|sums| sums.top(frames)));
    }
    found
}

/// Sums of as many of the first slices as have no more functions than they may.
struct SliceSums<'a> {
    slices: &'a [TimeSlice],
    by_slice: Vec<FunctionSums>,
    sums: usize,
    most_sums: usize,
}

impl<'a> SliceSums<'a> {
    fn new(slices: &'a [TimeSlice], most_sums: usize) -> Self {
        let by_slice = slices.iter().map(|_| FunctionSums::default()).collect();
        Self { slices, by_slice, sums: 0, most_sums }
    }

    fn add(&mut self, part: &Profile, frames: &FrameTable) {
        for slice in &part.slices {
            let at = self.slices.partition_point(|whole| whole.start < slice.start);
            let is_it = self.slices.get(at).is_some_and(|whole| whole.start == slice.start);
            let Some(sums) = self.by_slice.get_mut(at).filter(|_| is_it) else { continue };
            let before = sums.by_key.len();
            sums.add(part, frames, slice);
            self.sums += sums.by_key.len() - before;
            // One is always there, so that each look finds something.
            while self.sums > self.most_sums
                && self.by_slice.len() > 1
                && let Some(dropped) = self.by_slice.pop()
            {
                self.sums -= dropped.by_key.len();
            }
        }
    }
}

/// Joules of functions in one slice.
#[derive(Default)]
struct FunctionSums {
    by_key: FxHashMap<u32, f64>,
    whole: f64,
}

impl FunctionSums {
    fn add(&mut self, profile: &Profile, frames: &FrameTable, slice: &TimeSlice) {
        for InSlice { cell, joules, .. } in &slice.by_cell {
            let Some(cell) = profile.cells.get(*cell as usize) else { continue };
            let key = frames.of_stack(profile, cell.stack).next().unwrap_or(UNKNOWN);
            *self.by_key.entry(key).or_default() += f64::from(*joules);
            self.whole += f64::from(*joules);
        }
    }

    fn top(self, frames: &FrameTable) -> Option<(Label, f64)> {
        let (key, joules) = self.by_key.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
        (self.whole > 0.0).then(|| (frames.function(key).name.clone(), joules / self.whole))
    }
}
