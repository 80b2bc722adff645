//! What several recordings have to say to their reader.

use std::collections::BTreeMap;

use crate::profile::Profile;

/// The warnings of all, those that differ in numbers alone once, with the name of the recording where not all have it.
pub(super) fn of(parts: &[Profile]) -> Vec<String> {
    let mut found: Vec<(String, &str, usize)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for part in parts {
        let title = title(part);
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

/// Recordings that have no joules among others that do, such as perf's.
pub(super) fn without_joules(parts: &[Profile]) -> Vec<String> {
    let has_joules = |part: &&Profile| !part.domains.is_empty();
    if !parts.iter().any(|part| has_joules(&part)) {
        return Vec::new();
    }
    let warning = |part| {
        format!(
            "{} has no joules: its functions have none (what they took is other processes' where others recorded their machine), and watts \
             are those of the others' joules over the time of all",
            title(part)
        )
    };
    parts.iter().filter(|part| !has_joules(part)).map(warning).collect()
}

/// What a recording is called.
pub(super) fn title(part: &Profile) -> &str {
    part.recordings.first().map_or("a recording", |origin| origin.title())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Origin;

    fn part(name: &str, warnings: &[&str]) -> Profile {
        let origin = Origin { name: Some(name.to_owned()), ..Origin::default() };
        let warnings = warnings.iter().map(|warning| (*warning).to_owned()).collect();
        Profile { recordings: vec![origin], warnings, ..Profile::default() }
    }

    /// Numbers differ from recording to recording; a warning that differs in them alone is one.
    #[test]
    fn warnings_are_told_once_with_who_has_them() {
        let parts = [
            part("a", &["lost 5 of 900", "slow", "lost 6 of 900", "alone"]),
            part("b", &["slow", "lost 7 of 12"]),
            part("c", &["lost 3 of 4", "other"]),
            part("d", &["lost 1 of 2", "other"]),
        ];
        let expected = ["lost 5 of 900", "a and 1 more: slow", "a: alone", "c and 1 more: other"];
        assert_eq!(of(&parts), expected);
        // In one recording alone there is nobody else to be told apart from.
        assert_eq!(of(&parts[1..2]), ["slow", "lost 7 of 12"]);
        assert_eq!(of(&[]), [""; 0]);
    }
}
