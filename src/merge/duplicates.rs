//! What more than one recording has.

use std::collections::BTreeMap;

use super::machines::{Machines, overlap, times};
use crate::profile::{Origin, Profile};
use crate::units::{Joules, Nanoseconds};

/// Leaves out recordings that are there already: copies of a file.
pub(super) fn drop_repeated(numbered: &mut Vec<(usize, Profile)>) -> Vec<String> {
    let identity = |profile: &Profile| {
        let Origin { hostname, identity, started_unix_ns, recorder_pid, .. } = profile.recordings.first()?;
        let boot = identity.as_ref().and_then(|identity| identity.boot.clone());
        Some((boot, hostname.clone(), (*started_unix_ns)?, (*recorder_pid)?, profile.start))
    };
    let mut warnings = Vec::new();
    let mut seen = BTreeMap::new();
    numbered.retain(|(_, profile)| {
        let Some(identity) = identity(profile) else { return true };
        let title = profile.recordings.first().map(|origin| origin.title().to_owned()).unwrap_or_default();
        let first = seen.get(&identity);
        warnings.extend(
            first.map(|first: &String| {
                format!("{title} is the same recording as {first}, and is counted once")
            }),
        );
        let is_new = first.is_none();
        if is_new {
            seen.insert(identity, title);
        }
        is_new
    });
    warnings
}

/// A thread of one machine.
type Task = (usize, Option<u64>, u32, u32);

/// Takes threads that recordings of one time share from one of them: from that which charged them with most time. In
/// the others their joules are other processes', as the joules of all that is not recorded.
pub(super) fn take_once(parts: &mut [Profile], machines: &Machines) -> Vec<String> {
    leave_recorders_out(parts, machines);
    let mut holders: BTreeMap<Task, Vec<(usize, u32, Nanoseconds)>> = BTreeMap::new();
    for (number, part) in parts.iter().enumerate() {
        let identity = part.recordings.first().and_then(|origin| origin.identity.as_ref());
        // Numbers of processes mean nothing in another namespace, or on a machine that is not known to be the same.
        let Some(namespace) = identity.map(|identity| identity.pid_namespace) else { continue };
        let mut time = vec![(false, Nanoseconds::ZERO); part.threads.len()];
        for cell in &part.cells {
            let (is_there, sum) = &mut time[cell.thread.0 as usize];
            *is_there |= cell.samples > 0;
            *sum += cell.time;
        }
        for (index, (thread, (is_there, time))) in part.threads.iter().zip(time).enumerate() {
            if is_there {
                let task = (machines.of_part[number], namespace, thread.pid, thread.tid);
                holders.entry(task).or_default().push((number, index as u32, time));
            }
        }
    }
    let mut taken_away: BTreeMap<(usize, usize), (u32, u32)> = BTreeMap::new();
    for ((_, _, pid, _), holders) in holders {
        let mut kept: Vec<usize> = Vec::new();
        let mut holders = holders;
        holders.sort_by_key(|(number, _, time)| (std::cmp::Reverse(*time), *number));
        let mut done: Vec<(usize, u32)> = Vec::new();
        for (number, thread, _) in holders {
            // The same thread in another name, in one recording.
            let is_kept_here = kept.contains(&number);
            let rival = kept
                .iter()
                .find(|&&other| other != number && overlap(times(&parts[other]), times(&parts[number])));
            match rival.copied().filter(|_| !is_kept_here) {
                None => kept.push(number),
                Some(other) => {
                    done.push((number, thread));
                    let (count, _) = taken_away.entry((other, number)).or_insert((0, pid));
                    *count += 1;
                }
            }
        }
        for (number, thread) in done {
            empty(&mut parts[number], thread);
        }
    }
    let name = |part: usize| parts[part].recordings.first().map_or("a recording", Origin::title);
    let sentence = |((other, number), (count, pid)): ((usize, usize), (u32, u32))| {
        let windows = (times(&parts[other]), times(&parts[number]));
        let beyond = windows.1.0 < windows.0.0 || windows.1.1 > windows.0.1;
        let beyond = if beyond {
            "; what only the latter may have seen of them stands with other processes"
        } else {
            ""
        };
        format!(
            "{} and {} both have {count} thread(s) of one time, such as of process {pid}: these are taken from the \
             former alone{beyond}",
            name(other),
            name(number)
        )
    };
    let mut warnings: Vec<String> = taken_away.into_iter().map(sentence).collect();
    warnings.extend(strangers(parts, machines));
    warnings
}

/// A recorder's work is in its own recording, as eprof's; another recording that has it as functions does not keep it.
fn leave_recorders_out(parts: &mut [Profile], machines: &Machines) {
    let recorders: Vec<(usize, usize, Option<u64>, u32)> = (0..parts.len())
        .filter_map(|part| {
            let origin = parts[part].recordings.first()?;
            let namespace = origin.identity.as_ref()?.pid_namespace;
            Some((part, machines.of_part[part], namespace, origin.recorder_pid?))
        })
        .collect();
    for &(recorded, machine, namespace, pid) in &recorders {
        for &(part, of_machine, of_namespace, _) in &recorders {
            let is_there = part != recorded && (machine, namespace) == (of_machine, of_namespace);
            if !is_there || !overlap(times(&parts[part]), times(&parts[recorded])) {
                continue;
            }
            let threads = (0..).zip(&parts[part].threads).filter(|(_, thread)| thread.pid == pid);
            for thread in threads.map(|(index, _)| index).collect::<Vec<u32>>() {
                empty(&mut parts[part], thread);
            }
        }
    }
}

/// A recording of everything has what others of its time have, too; in another namespace it cannot be told which of its
/// processes these are.
fn strangers(parts: &[Profile], machines: &Machines) -> Option<String> {
    let namespace = |part: usize| {
        parts[part].recordings.first().and_then(|origin| origin.identity.as_ref()?.pid_namespace)
    };
    let is_of_system = |part: usize| parts[part].recordings.first().is_some_and(|origin| origin.is_of_system);
    let pairs = (0..parts.len()).flat_map(|a| (0..parts.len()).map(move |b| (a, b)));
    let (system, other) = pairs.into_iter().find(|&(a, b)| {
        a != b
            && is_of_system(a)
            && machines.of_part[a] == machines.of_part[b]
            && (namespace(a).is_none() || namespace(a) != namespace(b))
            && overlap(times(&parts[a]), times(&parts[b]))
    })?;
    let name = |part: usize| parts[part].recordings.first().map_or("a recording", Origin::title);
    Some(format!(
        "{} recorded everything on the machine of {}, whose processes have other numbers: what the latter has \
         is in the former, too, and is counted twice. Report them apart",
        name(system),
        name(other)
    ))
}

/// A thread's cells have nothing any more, and others its joules.
fn empty(part: &mut Profile, thread: u32) {
    let columns = part.domains.len();
    for (index, cell) in part.cells.iter_mut().enumerate().filter(|(_, cell)| cell.thread.0 == thread) {
        (cell.samples, cell.count, cell.time) = (0, 0, Nanoseconds::ZERO);
        for (domain, joules) in part.cell_joules[index * columns..][..columns].iter_mut().enumerate() {
            let balance = &mut part.domains[domain].balance;
            balance.attributed -= *joules;
            balance.other_processes += *joules;
            *joules = Joules::ZERO;
        }
        if let Some(variances) = part.cell_variances.get_mut(index * columns..(index + 1) * columns) {
            variances.fill(0.0);
        }
        let width = part.errors.as_ref().map_or(0, |errors| errors.parameters) * columns;
        if let Some(errors) = &mut part.errors
            && let Some(row) = errors.sensitivities.get_mut(index * width..(index + 1) * width)
        {
            row.fill(0.0);
        }
    }
}
