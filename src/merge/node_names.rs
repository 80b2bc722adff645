//! What machines are called beside each other.
//!
//! Recordings of one boot are of one machine, which has one name, though each container on it has a host name of its own. What a job
//! or a cluster calls a node stays, also where several nodes are one machine. And machines that were made of one image often
//! share a host name: they are told apart by their machine ids. A machine that was started anew is the same one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::identity::Identity;
use crate::profile::{Origin, Profile};

/// Whose name counts, the smallest first: one that is not told by a job or cluster comes later, and so does one that is not of everything.
type Rank = (Reverse<bool>, Reverse<bool>);

/// Letters of a machine id at least, where names need them.
const LEAST_OF_ID: usize = 4;

/// What is called how.
#[derive(Debug, PartialEq)]
pub(super) struct NodeNames {
    pub of_machine: Vec<String>,
    /// The nodes that profiles are of.
    pub of_part: Vec<String>,
}

/// Names of machines and their parts. `machine_of` is the machine of each profile.
pub(super) fn of(parts: &[Profile], machine_of: &[usize]) -> NodeNames {
    let count = machine_of.iter().max().map_or(0, |last| last + 1);
    let mut names: Vec<BTreeMap<Rank, BTreeSet<String>>> = vec![BTreeMap::new(); count];
    let mut ids: Vec<Option<String>> = vec![None; count];
    for (part, &machine) in parts.iter().zip(machine_of) {
        let Some(origin) = part.recordings.first() else { continue };
        // A job or a cluster calls its nodes by one name, and whoever records everything is seldom in a container.
        let rank = (Reverse(of_cluster(part).is_some()), Reverse(origin.is_of_system));
        names[machine].entry(rank).or_default().insert(origin.node());
        ids[machine] = ids[machine].take().or_else(|| id(origin.identity.as_ref()));
    }
    let first = |names: BTreeMap<Rank, BTreeSet<String>>| names.into_values().next()?.into_iter().next();
    let of_machine: Vec<String> =
        names.into_iter().map(|names| first(names).unwrap_or_else(|| Origin::default().node())).collect();
    let of_part: Vec<String> = parts
        .iter()
        .zip(machine_of)
        .map(|(part, &machine)| of_cluster(part).unwrap_or_else(|| of_machine[machine].clone()))
        .collect();
    let mut beside: Vec<(&str, Option<&str>)> =
        of_machine.iter().zip(&ids).map(|(name, id)| (name.as_str(), id.as_deref())).collect();
    beside.extend(
        of_part.iter().zip(machine_of).map(|(name, &machine)| (name.as_str(), ids[machine].as_deref())),
    );
    let mut told = beside.iter().map(|&(name, id)| told_apart(name, id, &beside));
    NodeNames { of_machine: told.by_ref().take(count).collect(), of_part: told.collect() }
}

/// What the job or the cluster of a recording calls the machine.
fn of_cluster(part: &Profile) -> Option<String> {
    part.recordings.first()?.identity.as_ref()?.node()
}

fn id(identity: Option<&Identity>) -> Option<String> {
    Some(identity?.machine.as_ref()?.to_string())
}

/// A name with as much of its machine's id as tells it from other machines of that name, if there are such.
fn told_apart(name: &str, id: Option<&str>, beside: &[(&str, Option<&str>)]) -> String {
    let Some(id) = id else { return name.to_owned() };
    let others = beside.iter().filter(|(other, _)| *other == name).filter_map(|(_, id)| *id);
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
pub(super) fn warnings(parts: &[Profile], machine_of: &[usize], names: &NodeNames) -> Vec<String> {
    let mut of_hosts: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    let mut of_nodes: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for (part, &machine) in parts.iter().zip(machine_of) {
        match (of_cluster(part), part.recordings.first()) {
            (Some(node), _) => drop(of_nodes.entry(machine).or_default().insert(node)),
            (None, Some(origin)) => drop(of_hosts.entry(machine).or_default().insert(origin.node())),
            (None, None) => {}
        }
    }
    let name = |machine: usize| names.of_machine.get(machine).map_or("one", String::as_str);
    let nodes = of_nodes.iter().filter(|(_, nodes)| nodes.len() > 1).map(|(&machine, nodes)| {
        format!(
            "{} are nodes of one machine (one boot): what no function took is told once, as of {}",
            listed(nodes),
            name(machine)
        )
    });
    let nodes: Vec<String> = nodes.collect();
    let hosts = of_hosts.into_iter().filter_map(|(machine, mut told)| {
        told.extend(of_nodes.get(&machine).and_then(|nodes| nodes.first()).cloned());
        let name = name(machine);
        (told.len() > 1).then(|| {
            format!("recordings of one boot call their machine {}: it is {name} here", listed(&told))
        })
    });
    hosts.chain(nodes).collect()
}

fn listed(names: &BTreeSet<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
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
        let name = |parts: &[Profile]| of(parts, &vec![0; parts.len()]).of_machine.remove(0);
        let (a, b) = (part("vm", None, None, false), part("pod", None, None, false));
        assert_eq!(
            (name(&[a.clone(), b.clone()]), name(&[b.clone(), a.clone()])),
            ("pod".into(), "pod".into())
        );
        let everything = part("vm", None, None, true);
        assert_eq!(name(&[b.clone(), everything.clone()]), "vm");
        let of_job = part("pod2", None, Some("node7"), false);
        assert_eq!(name(&[b.clone(), everything, of_job]), "node7");
        let said =
            |parts: &[Profile], machine_of: &[usize]| warnings(parts, machine_of, &of(parts, machine_of));
        assert_eq!(
            said(&[a.clone(), b.clone()], &[0, 0]),
            ["recordings of one boot call their machine pod and vm: it is pod here"]
        );
        assert_eq!(said(&[a.clone(), a, b], &[0, 0, 1]), Vec::<String>::new());
    }

    #[test]
    fn nodes_of_a_job_keep_their_names_where_they_are_one_machine() {
        let parts = [
            part("vm", Some(1), Some("n2"), false),
            part("vm", Some(1), Some("n1"), false),
            part("vm", Some(1), None, false),
            part("vm", Some(2), Some("n2"), false),
        ];
        let machine_of = [0, 0, 0, 1];
        let names = of(&parts, &machine_of);
        let n2 = |number: u32| format!("n2 (machine {})", &machine(number).to_string()[..LEAST_OF_ID]);
        assert_eq!(names.of_part, [n2(1), "n1".to_owned(), "n1".to_owned(), n2(2)]);
        assert_eq!(names.of_machine, ["n1".to_owned(), n2(2)]);
        let said = warnings(&parts, &machine_of, &names);
        assert_eq!(
            said,
            [
                "recordings of one boot call their machine n1 and vm: it is n1 here",
                "n1 and n2 are nodes of one machine (one boot): what no function took is told once, as of n1"
            ]
        );
    }

    #[test]
    fn machines_of_one_name_are_told_apart_by_their_ids() {
        let mut parts: Vec<Profile> = [1, 2, 1].map(|number| part("vm", Some(number), None, false)).to_vec();
        parts.push(part("other", Some(3), None, false));
        parts.push(part("vm", None, None, false));
        let name = |number: u32| format!("vm (machine {})", &machine(number).to_string()[..LEAST_OF_ID]);
        // The third was started anew.
        let expected = [name(1), name(2), name(1), "other".to_owned(), "vm".to_owned()];
        let names = of(&parts, &[0, 1, 2, 3, 4]);
        assert_eq!((&names.of_machine[..], &names.of_part[..]), (&expected[..], &expected[..]));
        assert_eq!(of(&parts[..1], &[0]).of_machine, ["vm"]);
        // As many of its digits as it takes.
        let told = |other| told_apart("vm", Some("aaaabb"), &[("vm", Some("aaaabb")), ("vm", Some(other))]);
        assert_eq!((told("aaaabc"), told("abc")), ("vm (machine aaaabb)".into(), "vm (machine aaaa)".into()));
    }
}
