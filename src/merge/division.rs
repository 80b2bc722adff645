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
        in_place_of_time: first
            .in_place_of_time
            .clone()
            .filter(|_| all(&|division| division.in_place_of_time == first.in_place_of_time)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str) -> EventTotals {
        EventTotals { name: name.to_owned(), samples: 1, count: 1, ..EventTotals::default() }
    }

    fn division(model: &str, bucket: f64) -> Division {
        Division {
            model: model.to_owned(),
            source: format!("of {model}"),
            is_exact: true,
            left_out: Vec::new(),
            domains: Vec::new(),
            bucket: Joules::from_joules(bucket),
            bucket_reason: BucketReason::ShortRecording,
            is_by_time: true,
            static_is_spread: true,
            in_place_of_time: None,
        }
    }

    fn part(events: &[&str], division: Option<Division>) -> Profile {
        Profile { events: events.iter().copied().map(event).collect(), division, ..Profile::default() }
    }

    #[test]
    fn what_holds_of_every_recording_holds_of_all() {
        let parts = [
            part(&[], None),
            part(&[], Some(division("b", 0.5))),
            part(&[], Some(division("a", 2.0))),
            part(&[], Some(division("b", 1.0))),
        ];
        let all = of(&parts, 2, &[]).expect("three were divided");
        let expected = Division {
            model: "a, b".to_owned(),
            source: "of a, of b".to_owned(),
            domains: vec![None, None],
            ..division("", 2.0)
        };
        assert_eq!(all, expected);
        assert_eq!(of(&parts[..1], 2, &[]), None);
        // One of which it does not hold.
        let mut changed = parts.clone();
        changed[2].division = Some(Division { is_exact: false, ..division("a", 2.0) });
        assert_eq!(of(&changed, 2, &[]), Some(Division { is_exact: false, ..expected.clone() }));
        changed[2].division = Some(Division { is_by_time: false, ..division("a", 2.0) });
        assert_eq!(of(&changed, 2, &[]), Some(Division { is_by_time: false, ..expected.clone() }));
        changed[2].division = Some(Division { static_is_spread: false, ..division("a", 2.0) });
        assert_eq!(of(&changed, 2, &[]), Some(Division { static_is_spread: false, ..expected.clone() }));
        changed[2].division = Some(Division { bucket_reason: BucketReason::Asked, ..division("a", 2.0) });
        assert_eq!(of(&changed, 2, &[]), Some(Division { bucket_reason: BucketReason::Usual, ..expected }));
    }

    #[test]
    fn an_event_is_left_out_if_it_was_wherever_it_was_sampled() {
        let of_events = |events: &[&str], left_out: &[Option<&str>]| {
            let left_out = left_out.iter().map(|reason| reason.map(str::to_owned)).collect();
            part(events, Some(Division { left_out, ..division("a", 1.0) }))
        };
        let parts = [
            of_events(&["cycles", "misses", "rare"], &[None, Some("few"), Some("hardly")]),
            of_events(&["rare", "cycles"], &[Some("other"), Some("odd")]),
            of_events(&["misses"], &[None]),
        ];
        let events = ["cycles", "misses", "rare", "nowhere"].map(event);
        let all = of(&parts, 0, &events).expect("divided");
        assert_eq!(all.left_out, [None, None, Some("hardly".to_owned()), None]);
    }
}
