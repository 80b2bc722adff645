//! Sums of recordings that are told apart.

use super::error::ReportError;
use super::groups::Groups;
use super::select::{Selected, Selection, Totals};
use super::sums::{Found, RowsWanted, Sums, beyond};
use crate::profile::ProfileParts;
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
    let mut all: Option<Found> = None;
    let mut whole = Totals::default();
    for (group, values) in groups.values.iter().enumerate() {
        let of_group = selected.of_recordings(profile, |recording| groups.of_recording[recording] == group);
        let mut sums = Sums::new(profile, symbols, &of_group, selection, wanted)?;
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
                all.paths = all.paths.take().or(found.paths);
            }
        }
    }
    let mut all = all.unwrap_or_default();
    all.not_selected = if selected.partial { beyond(whole, all.chosen) } else { Totals::default() };
    Ok(all)
}
