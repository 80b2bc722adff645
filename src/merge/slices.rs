//! What cells have in time, kept to what they have in all.
//!
//! Views of time (the page, speedscope, the Firefox profiler) add up what cells had of each piece of it. So whoever takes joules
//! from cells, or scales them, has to do the same here.

use crate::profile::{Balance, Cell, Profile, TimeSlice};
use crate::units::{Joules, Nanoseconds};

/// What cells that are empty now had of each stretch of time is other processes' there.
pub(super) fn leave_empty_cells_out(profile: &mut Profile) {
    if profile.slices.is_empty() {
        return;
    }
    let is_empty: Vec<bool> = (0..profile.cells.len()).map(|cell| has_nothing(profile, cell)).collect();
    if !is_empty.contains(&true) {
        return;
    }
    for TimeSlice { balance, by_cell, .. } in &mut profile.slices {
        let mut taken = 0.0;
        by_cell.retain(|of_cell| {
            let is_empty = is_empty.get(of_cell.cell as usize).is_some_and(|is_empty| *is_empty);
            taken += if is_empty { f64::from(of_cell.joules) } else { 0.0 };
            !is_empty
        });
        give_to_others(balance, taken);
    }
}

/// So many joules of a stretch of time are no functions' there any more.
pub(super) fn give_to_others(balance: &mut Balance, joules: f64) {
    let taken = Joules::from_joules(joules).min(balance.attributed);
    balance.attributed -= taken;
    balance.other_processes += taken;
}

fn has_nothing(profile: &Profile, index: usize) -> bool {
    let Cell { samples, count, time, .. } = profile.cells[index];
    let joules = profile.joules(index);
    (samples, count, time) == (0, 0, Nanoseconds::ZERO) && joules.iter().all(|joules| *joules == Joules::ZERO)
}

/// The joules of each cell in all top-level domains together.
pub(super) fn joules_of_cells(profile: &Profile) -> Vec<f64> {
    let top: Vec<usize> = profile.top_domains().map(|(domain, _)| domain).collect();
    let of_cell = |index: usize| {
        let joules = profile.joules(index);
        top.iter().filter_map(|&domain| joules.get(domain)).sum::<Joules>().as_joules()
    };
    (0..profile.cells.len()).map(of_cell).collect()
}

/// Follows cells whose joules were `before`, and are others now.
pub(super) fn follow_cells(profile: &mut Profile, before: &[f64]) {
    let now = joules_of_cells(profile);
    for of_cell in profile.slices.iter_mut().flat_map(|slice| &mut slice.by_cell) {
        let cell = of_cell.cell as usize;
        if let (Some(&before), Some(&now)) = (before.get(cell), now.get(cell))
            && before > 0.0
        {
            of_cell.joules = (f64::from(of_cell.joules) * now / before) as f32;
        }
    }
}
