//! By which models the joules of several recordings were divided.

use crate::profile::{BucketReason, Division, EventTotals, Profile};
use crate::units::Joules;

/// What holds for all: each recording's own coefficients do not. `None` if no recording's joules were divided.
pub(super) fn of(parts: &[Profile], columns: usize, events: &[EventTotals]) -> Option<Division> {
    let divisions: Vec<(&Profile, &Division)> =
        parts.iter().filter_map(|part| Some((part, part.division.as_ref()?))).collect();
    let (_, first) = *divisions.first()?;
    let listed = |of: &dyn Fn(&Division) -> &str| {
        let mut names: Vec<&str> = divisions.iter().map(|(_, division)| of(division)).collect();
        names.sort_unstable();
        names.dedup();
        names.join(", ")
    };
    let all = |of: &dyn Fn(&Division) -> bool| divisions.iter().all(|(_, division)| of(division));
    // An event was left out if it was wherever it was sampled.
    let left_out = |event: &EventTotals| {
        let mut reasons = divisions.iter().filter_map(|(part, division)| {
            let index = part.events.iter().position(|known| known.name == event.name)?;
            Some(division.left_out.get(index)?.as_ref())
        });
        let first = reasons.next()??;
        reasons.all(|reason| reason.is_some()).then(|| first.clone())
    };
    let has_one_reason = all(&|division| division.bucket_reason == first.bucket_reason);
    Some(Division {
        model: listed(&|division| &division.model),
        source: listed(&|division| &division.source),
        is_exact: all(&|division| division.is_exact),
        left_out: events.iter().map(left_out).collect(),
        domains: vec![None; columns],
        bucket: divisions.iter().map(|(_, division)| division.bucket).fold(Joules::ZERO, Joules::max),
        bucket_reason: if has_one_reason { first.bucket_reason } else { BucketReason::Usual },
        is_by_time: all(&|division| division.is_by_time),
        static_is_spread: all(&|division| division.static_is_spread),
    })
}
