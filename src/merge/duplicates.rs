//! What more than one recording has.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::chance;
use super::machines::{Machines, overlap, times};
use super::notes::title;
use super::slices;
use crate::profile::{Cell, Origin, Profile};
use crate::units::{Joules, Nanoseconds, Timestamp};

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

/// A thread of one machine.
type Task = (usize, Option<u64>, u32, u32);

/// What was taken away from recordings, since others have it.
pub(super) struct Taken {
    pub warnings: Vec<String>,
    /// By part, of processes that another one recorded until its recorder was killed: which part that is.
    pub chosen: Vec<BTreeMap<u32, usize>>,
    /// By part and domain, how far chance may have put the sum of all recordings' functions off, in square joules: what is left of
    /// chosen threads, and what is no longer among those of everything.
    pub variances: Vec<Vec<f64>>,
}

/// A recording that has a thread.
#[derive(Clone, Copy)]
struct Holder {
    part: usize,
    /// The thread, by its number there.
    thread: u32,
    seen: Seen,
}

/// What samples say of the time that a thread ran.
#[derive(Clone, Copy, Default)]
struct Seen {
    is_there: bool,
    time: Nanoseconds,
    /// Its variance, in square seconds: that of a count of samples.
    variance: f64,
}

impl Seen {
    fn add(&mut self, cell: &Cell) {
        self.is_there |= cell.samples > 0;
        self.time += cell.time;
        self.variance += chance::variance(cell.time.as_secs_f64(), cell.samples);
    }

    /// It is longer than the other one by more than chance.
    fn exceeds(&self, other: &Self) -> bool {
        let more = self.time.as_secs_f64() - other.time.as_secs_f64();
        !chance::explains(more, self.variance + other.variance)
    }
}

/// Takes threads that recordings of one time share from one of them. In the others their joules are other processes', as the
/// joules of all that is not recorded.
///
/// That one is a recording of these threads, as a rank's, if a recording of everything, as its node's, has no more of them
/// than chance tells: the former counted exactly how long they ran, and knows whose they are. Else it is the one that charged
/// them with most time.
pub(super) fn take_once(parts: &mut [Profile], machines: &Machines) -> Taken {
    leave_recorders_out(parts, machines);
    let of_system: Vec<bool> = parts.iter().map(is_of_system).collect();
    let mut variances: Vec<Vec<f64>> = parts.iter().map(|part| vec![0.0; part.domains.len()]).collect();
    let mut taken_away: BTreeMap<(usize, usize), (u32, u32)> = BTreeMap::new();
    for ((_, _, pid, _), mut holders) in holders(parts, machines) {
        let longest_chosen = holders.iter().filter(|holder| !of_system[holder.part]);
        let longest_chosen = longest_chosen.max_by_key(|holder| holder.seen.time).map(|holder| holder.seen);
        let comes_later = |holder: &Holder| {
            of_system[holder.part] && longest_chosen.is_some_and(|chosen| !holder.seen.exceeds(&chosen))
        };
        holders.sort_by_key(|holder| (comes_later(holder), Reverse(holder.seen.time), holder.part));
        let mut kept: Vec<Holder> = Vec::new();
        let mut done: Vec<Holder> = Vec::new();
        for holder in holders {
            // The same thread in another name, in one recording.
            let is_kept_here = kept.iter().any(|other| other.part == holder.part);
            let rival = kept.iter().find(|other| {
                other.part != holder.part && overlap(times(&parts[other.part]), times(&parts[holder.part]))
            });
            match rival.filter(|_| !is_kept_here) {
                None => kept.push(holder),
                Some(other) => {
                    done.push(holder);
                    // A recording of everything is expected to have what others have, and nothing of it is lost here.
                    let loses_nothing = comes_later(&holder) && !comes_later(other)
                        || of_system[other.part] != of_system[holder.part]
                            && is_within(times(&parts[holder.part]), times(&parts[other.part]));
                    if !loses_nothing {
                        let (count, _) = taken_away.entry((other.part, holder.part)).or_insert((0, pid));
                        *count += 1;
                    }
                }
            }
        }
        for Holder { part, thread, .. } in done {
            empty(&mut parts[part], thread, &mut variances[part]);
        }
    }
    let sentences = taken_away.into_iter().map(|((other, part), (count, pid))| {
        let beyond = if is_within(times(&parts[part]), times(&parts[other])) {
            ""
        } else {
            "; what only the latter may have seen of them stands with other processes"
        };
        format!(
            "{} and {} both have {count} thread(s) of one time, such as of process {pid}: these are taken from the \
             former alone{beyond}",
            title(&parts[other]),
            title(&parts[part])
        )
    });
    let warnings = sentences.chain(strangers(parts, machines)).collect();
    parts.iter_mut().for_each(slices::leave_empty_cells_out);
    count_functions_alone(parts, machines);
    // Of a recording of everything the sum is what was measured, whichever of its threads chance gave more.
    for (part, variances) in parts.iter().zip(&mut variances).filter(|(part, _)| !is_of_system(part)) {
        for (index, cell) in part.cells.iter().enumerate() {
            add_chance(variances, part.joules(index), cell.samples);
        }
    }
    Taken { warnings, chosen: chosen_processes(parts, machines), variances }
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

/// Which recordings have each thread.
fn holders(parts: &[Profile], machines: &Machines) -> BTreeMap<Task, Vec<Holder>> {
    let mut holders: BTreeMap<Task, Vec<Holder>> = BTreeMap::new();
    for (number, part) in parts.iter().enumerate() {
        let identity = part.recordings.first().and_then(|origin| origin.identity.as_ref());
        // Numbers of processes mean nothing in another namespace, or on a machine that is not known to be the same.
        let Some(namespace) = identity.map(|identity| identity.pid_namespace) else { continue };
        let mut seen = vec![Seen::default(); part.threads.len()];
        part.cells.iter().for_each(|cell| seen[cell.thread.0 as usize].add(cell));
        for (index, (thread, seen)) in (0..).zip(part.threads.iter().zip(seen)) {
            // Short processes of two recordings are not the same ones.
            if let Some((pid, tid)) = thread.ids().filter(|_| seen.is_there) {
                let task = (machines.of_part[number], namespace, pid, tid);
                holders.entry(task).or_default().push(Holder { part: number, thread: index, seen });
            }
        }
    }
    holders
}

fn is_of_system(part: &Profile) -> bool {
    part.recordings.first().is_some_and(|origin| origin.is_of_system)
}

fn is_within(inner: (Timestamp, Timestamp), outer: (Timestamp, Timestamp)) -> bool {
    inner.0 >= outer.0 && inner.1 <= outer.1
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
                // It is told exactly elsewhere.
                let mut ignored = vec![0.0; parts[part].domains.len()];
                empty(&mut parts[part], thread, &mut ignored);
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

/// A thread's cells have nothing any more, and others its joules. `variances` grows by what these may be off by chance.
fn empty(part: &mut Profile, thread: u32, variances: &mut [f64]) {
    let columns = part.domains.len();
    for (index, cell) in part.cells.iter_mut().enumerate().filter(|(_, cell)| cell.thread.0 == thread) {
        let samples = std::mem::take(&mut cell.samples);
        (cell.count, cell.time) = (0, Nanoseconds::ZERO);
        let joules = &mut part.cell_joules[index * columns..][..columns];
        add_chance(variances, joules, samples);
        for (domain, joules) in joules.iter_mut().enumerate() {
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

/// Adds the variance of joules that so many samples had: that of their count.
fn add_chance(variances: &mut [f64], joules: &[Joules], samples: u64) {
    for (variance, joules) in variances.iter_mut().zip(joules) {
        *variance += chance::variance(joules.as_joules(), samples);
    }
}

#[cfg(test)]
#[path = "duplicates_tests.rs"]
mod tests;
