//! What more than one recording has.

use std::collections::BTreeMap;

use super::holders::{self, Shared};
use super::machines::{Machines, overlap, times};
use super::notes::title;
use super::{chance, slices, taking};
use crate::profile::{Origin, Profile};

/// Leaves out recordings that are there already: copies of a file. Of copies that are not equally long, as one that was cut off,
/// the longest stays.
pub(super) fn drop_repeated(numbered: &mut Vec<(usize, Profile)>) -> Vec<String> {
    let identity = |profile: &Profile| {
        let Origin { hostname, identity, started_unix_ns, recorder_pid, .. } = profile.recordings.first()?;
        let boot = identity.as_ref().and_then(|identity| identity.boot.clone());
        Some((boot, hostname.clone(), (*started_unix_ns)?, (*recorder_pid)?, profile.start))
    };
    let length = |profile: &Profile| {
        let samples: u64 = profile.events.iter().map(|event| event.samples).sum();
        (profile.duration, samples, !profile.is_partial)
    };
    let mut kept = BTreeMap::new();
    for (at, (_, profile)) in numbered.iter().enumerate() {
        let Some(identity) = identity(profile) else { continue };
        let kept = kept.entry(identity).or_insert(at);
        if length(profile) > length(&numbered[*kept].1) {
            *kept = at;
        }
    }
    let title = |profile: &Profile| {
        profile.recordings.first().map(|origin| origin.title().to_owned()).unwrap_or_default()
    };
    let instead_of =
        |at: usize, profile: &Profile| Some(kept[&identity(profile)?]).filter(|kept| *kept != at);
    let instead: Vec<Option<usize>> =
        numbered.iter().enumerate().map(|(at, (_, profile))| instead_of(at, profile)).collect();
    let warning = |(at, kept): (usize, &Option<usize>)| {
        let (of, kept) = (&numbered[at].1, &numbered[(*kept)?].1);
        let (a_part_of, counted) = match length(of) < length(kept) {
            true => ("a part of ", "left out"),
            false => ("", "counted once"),
        };
        Some(format!("{} is {a_part_of}the same recording as {}, and is {counted}", title(of), title(kept)))
    };
    let warnings = instead.iter().enumerate().filter_map(warning).collect();
    let mut instead = instead.iter();
    numbered.retain(|_| instead.next().is_none_or(Option::is_none));
    warnings
}

/// What was taken away from recordings, since others have it.
pub(super) struct Taken {
    pub warnings: Vec<String>,
    /// By part, of processes that another one recorded until its recorder was killed: which part that is.
    pub chosen: Vec<BTreeMap<u32, usize>>,
    /// By part and domain, how far chance may have put the sum of all recordings' functions off, in square joules: what is left of
    /// chosen threads, and what is no longer among those of everything.
    pub variances: Vec<Vec<f64>>,
}

/// Takes threads that recordings of one time share from one of them where it recorded, and from the others where it did not. In
/// those their joules are other processes' else, as the joules of all that is not recorded.
pub(super) fn take_once(parts: &mut [Profile], machines: &Machines) -> Taken {
    leave_recorders_out(parts, machines);
    let mut variances: Vec<Vec<f64>> = parts.iter().map(|part| vec![0.0; part.domains.len()]).collect();
    let shared = holders::shared(parts, machines, &of_system(parts));
    let sentences = shared.iter().enumerate().flat_map(|(part, shared)| told(parts, part, shared));
    let warnings = sentences.chain(strangers(parts, machines)).collect();
    for ((part, shared), variances) in parts.iter_mut().zip(&shared).zip(&mut variances) {
        taking::take(part, shared, variances);
        slices::leave_empty_cells_out(part);
    }
    count_functions_alone(parts, machines);
    // Of a recording of everything the sum is what was measured, whichever of its threads chance gave more.
    for (part, variances) in parts.iter().zip(&mut variances).filter(|(part, _)| !is_of_system(part)) {
        for (index, cell) in part.cells.iter().enumerate() {
            for (variance, joules) in variances.iter_mut().zip(part.joules(index)) {
                *variance += chance::variance(joules.as_joules(), cell.samples);
            }
        }
    }
    Taken { warnings, chosen: chosen_processes(parts, machines), variances }
}

/// Which of some profiles have to tell their joules in time to be put together, and do not: those that share threads with another
/// one, and cover some time alone.
pub(super) fn lacking_slices(parts: &[Profile], machines: &Machines) -> Vec<usize> {
    let shared = holders::shared(parts, machines, &of_system(parts));
    let lacks = |&at: &usize| parts[at].slices.is_empty() && shared[at].reaches_beyond(&parts[at]);
    (0..parts.len()).filter(lacks).collect()
}

/// What the reader has to know of threads that a recording shares.
fn told(parts: &[Profile], part: usize, shared: &Shared) -> Vec<String> {
    let how = match (shared.reaches_beyond(&parts[part]), parts[part].slices.is_empty()) {
        (false, _) => "these are taken from the former alone",
        (true, false) => {
            "these are taken from the former, and from the latter where the former did not record"
        }
        (true, true) => {
            "these are taken from the former alone; what only the latter may have seen of them stands with other processes"
        }
    };
    let sentence = |(&other, &(count, pid)): (&usize, &(usize, u32))| {
        format!(
            "{} and {} both have {count} thread(s) of one time, such as of process {pid}: {how}",
            title(&parts[other]),
            title(&parts[part])
        )
    };
    shared.told.iter().map(sentence).collect()
}

/// Recordings of one machine and one time are sampled side by side: what one of them has of other processes is no sample of its own, and
/// may be a function's in another one. Totals of events are those of functions there.
fn count_functions_alone(parts: &mut [Profile], machines: &Machines) {
    let is_beside = |part: usize| {
        (0..parts.len()).any(|other| {
            other != part
                && machines.of_part[other] == machines.of_part[part]
                && overlap(times(&parts[other]), times(&parts[part]))
        })
    };
    let beside: Vec<bool> = (0..parts.len()).map(is_beside).collect();
    let has_cells = |part: &&mut Profile| !part.cells.is_empty();
    let of_these = parts.iter_mut().zip(beside).filter_map(|(part, is_beside)| is_beside.then_some(part));
    for part in of_these.filter(has_cells) {
        for event in &mut part.events {
            (event.samples, event.count) = (0, 0);
        }
        for cell in &part.cells {
            if let Some(event) = part.events.get_mut(cell.event as usize) {
                event.samples += cell.samples;
                event.count = event.count.saturating_add(cell.count);
            }
        }
    }
}

/// Of recordings of everything, whose the processes are that outlived their own recorder: what a node's recording alone has of a rank
/// after that was killed is the rank's all the same, and has its labels.
fn chosen_processes(parts: &[Profile], machines: &Machines) -> Vec<BTreeMap<u32, usize>> {
    let namespace = |part: &Profile| part.recordings.first()?.identity.as_ref()?.pid_namespace;
    let chosen_in = |system: usize| {
        let mut chosen = BTreeMap::new();
        let others = parts.iter().enumerate().filter(|(other, part)| {
            part.is_partial
                && !is_of_system(part)
                && machines.of_part[*other] == machines.of_part[system]
                && namespace(part).is_some_and(|of| Some(of) == namespace(&parts[system]))
                && overlap(times(part), times(&parts[system]))
        });
        for (other, part) in others {
            part.threads.iter().for_each(|thread| {
                chosen.entry(thread.pid).or_insert(other);
            });
        }
        chosen
    };
    let of_part = |(number, part)| if is_of_system(part) { chosen_in(number) } else { BTreeMap::new() };
    parts.iter().enumerate().map(of_part).collect()
}

fn is_of_system(part: &Profile) -> bool {
    part.recordings.first().is_some_and(|origin| origin.is_of_system)
}

fn of_system(parts: &[Profile]) -> Vec<bool> {
    parts.iter().map(is_of_system).collect()
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
            let is_recorder: Vec<bool> = parts[part].threads.iter().map(|thread| thread.pid == pid).collect();
            if !is_recorder.contains(&true) {
                continue;
            }
            // It is told exactly elsewhere.
            let mut ignored = vec![0.0; parts[part].domains.len()];
            taking::take_all(&mut parts[part], |thread| is_recorder[thread.0 as usize], &mut ignored);
        }
    }
}

/// A recording of everything has what others of its time have, too; in another namespace it cannot be told which of its
/// processes these are.
fn strangers(parts: &[Profile], machines: &Machines) -> Option<String> {
    let namespace = |part: usize| {
        parts[part].recordings.first().and_then(|origin| origin.identity.as_ref()?.pid_namespace)
    };
    let pairs = (0..parts.len()).flat_map(|a| (0..parts.len()).map(move |b| (a, b)));
    let (system, other) = pairs.into_iter().find(|&(a, b)| {
        a != b
            && is_of_system(&parts[a])
            && machines.of_part[a] == machines.of_part[b]
            && (namespace(a).is_none() || namespace(a) != namespace(b))
            && overlap(times(&parts[a]), times(&parts[b]))
    })?;
    Some(format!(
        "{} recorded everything on the machine of {}, whose processes have other numbers: what the latter has \
         is in the former, too, and is counted twice. Report them apart",
        title(&parts[system]),
        title(&parts[other])
    ))
}

#[cfg(test)]
#[path = "duplicates_tests.rs"]
mod tests;
