//! Events that are counted by samples of another: groups that are read, as by `perf record -e '{cycles,instructions}:S'`.

use perf_data::EventDesc;

use crate::profile::EventTotals;

/// What must be known of events that were not sampled themselves: their counts stand in samples of their group's leader, and
/// belong to no sample of their own that joules or rows could be of.
pub(super) fn warning(events: &[EventDesc], totals: &[EventTotals]) -> Option<String> {
    let has_none = |name: &str| totals.iter().any(|event| event.name == name && event.samples == 0);
    let is_only_read = |event: &&EventDesc| {
        event.attr.reads_group() && event.attr.sample_period == 0 && has_none(&event.name)
    };
    let names: Vec<&str> = events.iter().filter(is_only_read).map(|event| event.name.as_str()).collect();
    let (are, names) = match names.len() {
        0 => return None,
        1 => ("was", names[0].to_owned()),
        _ => ("were", names.join(", ")),
    };
    Some(format!(
        "{names} {are} not sampled: samples of the group's leader have the counts (`:S`), which are not used. To see where they \
         come from, sample each event itself: -e A,B in place of -e '{{A,B}}:S'"
    ))
}

#[cfg(test)]
mod tests {
    use perf_data::attr::EventAttr;
    use perf_data::format::{read_format, sample_type};

    use super::*;

    #[test]
    fn members_of_a_group_that_is_read_are_named() {
        let said = |members: &[(&str, u64, u64)]| {
            let event = |&(name, sample_period, sample_type): &(&str, u64, u64)| {
                let read_format = read_format::GROUP;
                let attr = EventAttr { sample_period, sample_type, read_format, ..EventAttr::default() };
                EventDesc { name: name.to_owned(), attr, ids: Vec::new() }
            };
            let events: Vec<EventDesc> = members.iter().map(event).collect();
            let totals = |&(name, ..): &(&str, u64, u64)| EventTotals {
                name: name.to_owned(),
                samples: u64::from(name == "cycles"),
                ..EventTotals::default()
            };
            let totals: Vec<EventTotals> = members.iter().map(totals).collect();
            warning(&events, &totals)
        };
        let read = sample_type::READ;
        let one = said(&[("cycles", 4000, read), ("instructions", 0, read)]).expect("it was not sampled");
        assert!(one.starts_with("instructions was not sampled: "), "{one}");
        assert!(one.ends_with("-e A,B in place of -e '{A,B}:S'"), "{one}");
        let two = said(&[("cycles", 4000, read), ("instructions", 0, read), ("misses", 0, read)]);
        assert!(two.expect("as before").starts_with("instructions, misses were not sampled: "));
        // Sampled, though never; or the only one.
        assert_eq!(said(&[("cycles", 4000, read), ("faults", 1, read)]), None);
        assert_eq!(said(&[("cycles", 4000, 0), ("faults", 0, 0)]), None);
        assert_eq!(said(&[("cycles", 0, read)]), None);
    }
}
