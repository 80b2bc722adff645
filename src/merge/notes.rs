//! What several recordings have to say to their reader.

use std::collections::BTreeMap;

use crate::profile::Profile;

/// The warnings of all, those that differ in numbers alone once, with the name of the recording where not all have it.
pub(super) fn of(parts: &[Profile]) -> Vec<String> {
    let mut found: Vec<(String, &str, usize)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for part in parts {
        let title = part.recordings.first().map_or("a recording", |origin| origin.title());
        let mut own: Vec<usize> = Vec::new();
        for warning in &part.warnings {
            let shape: String = warning.chars().filter(|letter| !letter.is_ascii_digit()).collect();
            let place = *places.entry(shape).or_insert_with(|| {
                found.push((warning.clone(), title, 0));
                found.len() - 1
            });
            if !own.contains(&place) {
                own.push(place);
                found[place].2 += 1;
            }
        }
    }
    let sentence = |(warning, title, count): (String, &str, usize)| match count {
        _ if count == parts.len() => warning,
        1 => format!("{title}: {warning}"),
        _ => format!("{title} and {} more: {warning}", count - 1),
    };
    found.into_iter().map(sentence).collect()
}
