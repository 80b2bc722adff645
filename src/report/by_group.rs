//! Sums of recordings, or of threads in them, that are told apart.

use std::sync::Arc;

use super::call_path_check::CallPathCheck;
use super::error::ReportError;
use super::groups::Groups;
use super::row_sums::RowsWanted;
use super::rows::Row;
use super::select::{Selected, Selection, Totals};
use super::stack_filter::StackFilter;
use super::sums::{Found, Sums, beyond};
use crate::profile::{ProfileParts, StackId};
use crate::symbolize::Symbols;

/// The sums of each group on its own, all in one list of rows.
pub(super) fn sums_by_group(
    parts: &dyn ProfileParts,
    symbols: &Symbols,
    selected: &Selected,
    selection: &Selection,
    wanted: RowsWanted<'_>,
) -> Result<Found, ReportError> {
    let profile = parts.profile();
    let groups = Groups::of(profile, wanted.dimensions);
    // Of hundreds of control groups few may have run. And what is wrong with call paths is said of all together.
    let mut has_samples = vec![false; groups.values.len()];
    let filter = StackFilter::new(profile, symbols, selection);
    let mut paths = CallPathCheck::new(profile, symbols);
    parts.for_each_part(&mut |part| {
        for cell in &part.cells {
            has_samples[groups.of_thread[cell.thread.0 as usize]] = true;
        }
        let stacks = filter.totals(part, selected);
        paths.add(part, (0..).map(StackId).zip(stacks.iter().map(|totals| totals.weight(selected.weight))));
    });
    let frames = Arc::new(wanted.frames(profile, symbols));
    let mut all: Option<Found> = None;
    let mut whole = Totals::default();
    let sampled = groups.values.iter().enumerate().filter(|(group, _)| has_samples[*group]);
    for (group, values) in sampled {
        let of_group = selected.of_threads(|thread| groups.of_thread[thread] == group);
        let mut sums = Sums::of_frames(profile, symbols, &of_group, selection, wanted, Arc::clone(&frames))?;
        parts.for_each_part(&mut |part| sums.add(part));
        let mut found = match sums.finish() {
            // Not all of them have a function whose callers are asked for.
            Err(ReportError::NoSuchFunction(_)) if group + 1 < groups.values.len() || all.is_some() => {
                continue;
            }
            found => found?,
        };
        found.rows.iter_mut().for_each(|row| row.values.clone_from(values));
        whole = found.chosen;
        whole += found.not_selected;
        match &mut all {
            None => all = Some(found),
            Some(all) => {
                all.rows.append(&mut found.rows);
                all.chosen += found.chosen;
            }
        }
    }
    let mut all = all.unwrap_or_default();
    // Who looks for the rank that did nothing finds it. Of a part of the samples, or of callers, there is nothing to find.
    if !selected.partial && wanted.neighbours.is_none() {
        let is_idle = |&group: &usize| groups.of_recording[group] && !has_samples[group];
        all.rows.extend(
            (0..groups.values.len()).filter(is_idle).map(|group| Row::without_samples(&groups.values[group])),
        );
    }
    all.paths = paths.warning(selected.weight);
    all.not_selected = if selected.partial { beyond(whole, all.chosen) } else { Totals::default() };
    Ok(all)
}
