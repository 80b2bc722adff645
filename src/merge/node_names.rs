//! What machines are called beside each other.
//!
//! Recordings of one boot are of one machine, which has one name, though each container on it has a host name of its own. And
//! machines that were made of one image often share a host name: they are told apart by their machine ids. A machine that was
//! started anew is the same one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::identity::Identity;
use crate::profile::{Origin, Profile};

/// Whose name counts, the smallest first: one that is not told by a job or cluster comes later, and so does one that is not of everything.
type Rank = (Reverse<bool>, Reverse<bool>);

/// Letters of a machine id at least, where names need them.
const LEAST_OF_ID: usize = 4;

/// Names by machine. `machine_of` is the machine of each profile.
pub(super) fn of(parts: &[Profile], machine_of: &[usize]) -> Vec<String> {
    let count = machine_of.iter().max().map_or(0, |last| last + 1);
    let mut names: Vec<BTreeMap<Rank, BTreeSet<String>>> = vec![BTreeMap::new(); count];
    let mut ids: Vec<Option<String>> = vec![None; count];
    for (part, &machine) in parts.iter().zip(machine_of) {
        let Some(origin) = part.recordings.first() else { continue };
        let identity = origin.identity.as_ref();
        // A job or a cluster calls its nodes by one name, and whoever records everything is seldom in a container.
        let rank = (Reverse(identity.is_some_and(|it| it.node().is_some())), Reverse(origin.is_of_system));
        names[machine].entry(rank).or_default().insert(origin.node());
        ids[machine] = ids[machine].take().or_else(|| id(identity));
    }
    let first = |names: BTreeMap<Rank, BTreeSet<String>>| names.into_values().next()?.into_iter().next();
    let names: Vec<String> =
        names.into_iter().map(|names| first(names).unwrap_or_else(|| Origin::default().node())).collect();
    names.iter().zip(&ids).map(|(name, id)| told_apart(name, id.as_deref(), &names, &ids)).collect()
}

fn id(identity: Option<&Identity>) -> Option<String> {
    Some(identity?.machine.as_ref()?.to_string())
}

/// A name with as much of its machine's id as tells it from other machines of that name, if there are such.
fn told_apart(name: &str, id: Option<&str>, names: &[String], ids: &[Option<String>]) -> String {
    let Some(id) = id else { return name.to_owned() };
    let others =
        names.iter().zip(ids).filter(|(other, _)| *other == name).filter_map(|(_, id)| id.as_deref());
    let common = |other: &str| id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    match others.filter(|other| *other != id).map(common).max() {
        None => name.to_owned(),
        Some(common) => {
            let shown: String = id.chars().take(LEAST_OF_ID.max(common + 1)).collect();
            format!("{name} (machine {shown})")
        }
    }
}

/// Says which machines have several names.
pub(super) fn warnings(parts: &[Profile], machine_of: &[usize], names: &[String]) -> Vec<String> {
    let mut told: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for (part, &machine) in parts.iter().zip(machine_of) {
        told.entry(machine).or_default().extend(part.recordings.first().map(Origin::node));
    }
    let several = told.into_iter().filter(|(_, told)| told.len() > 1);
    several
        .map(|(machine, told)| {
            let told: Vec<String> = told.into_iter().collect();
            let name = names.get(machine).map_or("one", String::as_str);
            format!("recordings of one boot call their machine {}: it is {name} here", told.join(" and "))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Job, MachineId};

    fn machine(number: u32) -> MachineId {
        MachineId::of_file(&format!("{number:032x}")).expect("an id")
    }

    fn part(host: &str, number: Option<u32>, node: Option<&str>, is_of_system: bool) -> Profile {
        let identity = Identity {
            machine: number.map(machine),
            job: Job { node: node.map(str::to_owned), ..Job::default() },
            ..Identity::default()
        };
        let hostname = host.to_owned();
        let origin = Origin { hostname, identity: Some(identity), is_of_system, ..Origin::default() };
        Profile { recordings: vec![origin], ..Profile::default() }
    }

    #[test]
    fn a_machine_has_one_name() {
        let name = |parts: &[Profile]| of(parts, &vec![0; parts.len()]).remove(0);
        let (a, b) = (part("vm", None, None, false), part("pod", None, None, false));
        assert_eq!(
            (name(&[a.clone(), b.clone()]), name(&[b.clone(), a.clone()])),
            ("pod".into(), "pod".into())
        );
        let everything = part("vm", None, None, true);
        assert_eq!(name(&[b.clone(), everything.clone()]), "vm");
        let of_job = part("pod2", None, Some("node7"), false);
        assert_eq!(name(&[b.clone(), everything, of_job]), "node7");
        let said = warnings(&[a.clone(), b.clone()], &[0, 0], &["pod".to_owned()]);
        assert_eq!(said, ["recordings of one boot call their machine pod and vm: it is pod here"]);
        assert_eq!(warnings(&[a.clone(), a, b], &[0, 0, 1], &[]), Vec::<String>::new());
    }

    #[test]
    fn machines_of_one_name_are_told_apart_by_their_ids() {
        let mut parts: Vec<Profile> = [1, 2, 1].map(|number| part("vm", Some(number), None, false)).to_vec();
        parts.push(part("other", Some(3), None, false));
        parts.push(part("vm", None, None, false));
        let name = |number: u32| format!("vm (machine {})", &machine(number).to_string()[..LEAST_OF_ID]);
        // The third was started anew.
        let expected = [name(1), name(2), name(1), "other".to_owned(), "vm".to_owned()];
        assert_eq!(of(&parts, &[0, 1, 2, 3, 4]), expected);
        assert_eq!(of(&parts[..1], &[0]), ["vm"]);
        // As many of its digits as it takes.
        let names = ["vm".to_owned(), "vm".to_owned()];
        let ids = ["aaaabb", "aaaabc"].map(|id| Some(id.to_owned()));
        assert_eq!(told_apart("vm", Some("aaaabb"), &names, &ids), "vm (machine aaaabb)");
        assert_eq!(
            told_apart("vm", Some("aaaabb"), &names, &[ids[0].clone(), Some("abc".into())]),
            "vm (machine aaaa)"
        );
    }
}
