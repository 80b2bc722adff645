//! Takes from a recording what others have of its threads.
//!
//! When in a recording a cell's samples were taken its slices tell, and within a slice that others cover in part the times of
//! the samples, where they are known; else it is shared out evenly. A recording without slices keeps nothing of a thread that
//! another one has.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::chance;
use super::covered::Window;
use super::holders::{Elsewhere, Shared};
use super::slices::give_to_others;
use crate::profile::{Cell, InSlice, Profile, ThreadIndex};
use crate::units::Nanoseconds;

/// Leaves to a recording what no other one has of its threads; the rest is other processes' there, as the joules of all that is not
/// recorded. `variances` grows by what the joules that are taken may be off by chance, in square joules.
pub(super) fn take(part: &mut Profile, shared: &Shared, variances: &mut [f64]) {
    if shared.threads.is_empty() {
        return;
    }
    let left = Left::of(part, shared);
    left.apply_to_slices(part);
    for index in 0..part.cells.len() {
        if let Some(kept) = left.of_cell(&part.cells[index], index) {
            keep(part, index, kept, variances);
        }
    }
}

/// Takes all of some threads.
pub(super) fn take_all(part: &mut Profile, is_taken: impl Fn(ThreadIndex) -> bool, variances: &mut [f64]) {
    for index in 0..part.cells.len() {
        if is_taken(part.cells[index].thread) {
            keep(part, index, Kept::NOTHING, variances);
        }
    }
}

/// Shares of what a cell has, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Kept {
    joules: f64,
    time: f64,
}

impl Kept {
    const NOTHING: Self = Self { joules: 0.0, time: 0.0 };
}

/// Sums of what is kept, and of all.
#[derive(Clone, Copy, Default)]
struct Sums {
    joules: [f64; 2],
    seconds: [f64; 2],
}

impl Sums {
    fn add(&mut self, of: &InSlice, share: f64) {
        let (joules, seconds) = (f64::from(of.joules), f64::from(of.seconds));
        self.add_all(&Self { joules: [joules * share, joules], seconds: [seconds * share, seconds] });
    }

    fn add_all(&mut self, other: &Self) {
        for at in 0..2 {
            self.joules[at] += other.joules[at];
            self.seconds[at] += other.seconds[at];
        }
    }

    /// Where the one says nothing, the other does.
    fn kept(&self) -> Option<Kept> {
        let share = |[kept, all]: [f64; 2]| (all > 0.0).then(|| kept / all);
        let (joules, time) = (share(self.joules), share(self.seconds));
        Some(Kept { joules: joules.or(time)?, time: time.or(joules)? })
    }
}

/// What is left of shared threads.
struct Left<'s> {
    shared: &'s Shared,
    /// Of slices that are covered in part, how long a cell's samples in them lie outside, and how long in all, in nanoseconds.
    at_edges: FxHashMap<(usize, u32), [u64; 2]>,
    /// Of each cell.
    of_cells: Vec<Sums>,
    /// Of each shared thread.
    of_threads: BTreeMap<u32, Kept>,
}

impl<'s> Left<'s> {
    fn of(part: &Profile, shared: &'s Shared) -> Self {
        let at_edges = at_edges(part, shared);
        let mut left = Self { shared, at_edges, of_cells: Vec::new(), of_threads: BTreeMap::new() };
        let mut of_cells = vec![Sums::default(); part.cells.len()];
        for (number, slice) in part.slices.iter().enumerate() {
            for of_cell in &slice.by_cell {
                let thread = part.cells[of_cell.cell as usize].thread;
                let Some(elsewhere) = shared.threads.get(&thread.0) else { continue };
                let share = left.share(elsewhere, (slice.start, slice.end), number, of_cell.cell);
                of_cells[of_cell.cell as usize].add(of_cell, share);
            }
        }
        let mut of_threads: BTreeMap<u32, (Sums, f64)> = BTreeMap::new();
        for (cell, sums) in part.cells.iter().zip(&of_cells) {
            if shared.threads.contains_key(&cell.thread.0) {
                let (sum, samples) = of_threads.entry(cell.thread.0).or_default();
                sum.add_all(sums);
                *samples += sums.kept().map_or(0.0, |kept| kept.time * cell.samples as f64);
            }
        }
        let kept = |(thread, (sums, samples)): (u32, (Sums, f64))| {
            let kept = sums.kept().unwrap_or(Kept::NOTHING);
            // So few samples may have been taken at the other recording's edge.
            let is_nothing = shared.threads[&thread].is_expected
                && chance::explains(1.0, chance::variance(1.0, samples.round() as u64));
            (thread, if is_nothing { Kept::NOTHING } else { kept })
        };
        left.of_threads = of_threads.into_iter().map(kept).collect();
        left.of_cells = of_cells;
        left
    }

    /// How much of what a cell has of a slice is left, 0 to 1.
    fn share(&self, elsewhere: &Elsewhere, slice: Window, number: usize, cell: u32) -> f64 {
        match self.at_edges.get(&(number, cell)) {
            Some(&[outside, all]) if all > 0 => outside as f64 / all as f64,
            _ => elsewhere.covered.share_outside(slice),
        }
    }

    /// What is kept of a cell; `None` of a thread that is not shared.
    fn of_cell(&self, cell: &Cell, index: usize) -> Option<Kept> {
        let of_thread = *self.of_threads.get(&cell.thread.0)?;
        let is_nothing = of_thread == Kept::NOTHING;
        // Of cells that no slice has, as those of an event that no joules follow, their thread tells.
        Some(if is_nothing { of_thread } else { self.of_cells[index].kept().unwrap_or(of_thread) })
    }

    fn apply_to_slices(&self, part: &mut Profile) {
        let Profile { slices, cells, .. } = part;
        for (number, slice) in slices.iter_mut().enumerate() {
            let window = (slice.start, slice.end);
            let mut taken = 0.0;
            for of_cell in &mut slice.by_cell {
                let thread = cells[of_cell.cell as usize].thread.0;
                let Some(elsewhere) = self.shared.threads.get(&thread) else { continue };
                let share = match self.of_threads.get(&thread) {
                    Some(&Kept::NOTHING) | None => 0.0,
                    Some(_) => self.share(elsewhere, window, number, of_cell.cell),
                };
                taken += f64::from(of_cell.joules) * (1.0 - share);
                of_cell.joules = (f64::from(of_cell.joules) * share) as f32;
                of_cell.seconds = (f64::from(of_cell.seconds) * share) as f32;
            }
            give_to_others(&mut slice.balance, taken);
        }
    }
}

/// Of samples of shared threads in slices that are covered in part, by slice and cell, how long they lie outside, and how long in all.
fn at_edges(part: &Profile, shared: &Shared) -> FxHashMap<(usize, u32), [u64; 2]> {
    let mut found: FxHashMap<(usize, u32), [u64; 2]> = FxHashMap::default();
    for sample in &part.sample_times {
        let Some(elsewhere) = shared.threads.get(&part.cells[sample.cell as usize].thread.0) else {
            continue;
        };
        let first = part.slices.partition_point(|slice| slice.end <= sample.start);
        for (number, slice) in part.slices.iter().enumerate().skip(first) {
            if slice.start >= sample.end {
                break;
            }
            let share = elsewhere.covered.share_outside((slice.start, slice.end));
            if share <= 0.0 || share >= 1.0 {
                continue;
            }
            let within = (sample.start.max(slice.start), sample.end.min(slice.end));
            let [outside, all] = found.entry((number, sample.cell)).or_default();
            *outside += elsewhere.covered.outside(within);
            *all += within.1.as_nanos().saturating_sub(within.0.as_nanos());
        }
    }
    found
}

/// Leaves these shares of a cell; others get the rest of its joules.
fn keep(part: &mut Profile, index: usize, kept: Kept, variances: &mut [f64]) {
    let columns = part.domains.len();
    let cell = &mut part.cells[index];
    let scaled = |number: u64| (number as f64 * kept.time).round() as u64;
    let samples = scaled(cell.samples);
    let taken_samples = cell.samples - samples;
    (cell.samples, cell.count) = (samples, scaled(cell.count));
    cell.time = Nanoseconds::from_nanos(scaled(cell.time.as_nanos()));
    let joules = &mut part.cell_joules[index * columns..][..columns];
    for ((joules, domain), variance) in joules.iter_mut().zip(&mut part.domains).zip(variances) {
        let taken = *joules * (1.0 - kept.joules);
        *variance += chance::variance(taken.as_joules(), taken_samples);
        domain.balance.attributed -= taken;
        domain.balance.other_processes += taken;
        *joules -= taken;
    }
    if let Some(variances) = part.cell_variances.get_mut(index * columns..(index + 1) * columns) {
        variances.iter_mut().for_each(|variance| *variance *= kept.joules.powi(2));
    }
    let width = part.errors.as_ref().map_or(0, |errors| errors.parameters) * columns;
    if let Some(errors) = &mut part.errors
        && let Some(row) = errors.sensitivities.get_mut(index * width..(index + 1) * width)
    {
        row.iter_mut().for_each(|sensitivity| *sensitivity *= kept.joules as f32);
    }
}

#[cfg(test)]
#[path = "taking_tests.rs"]
mod tests;
