//! Which recordings of one machine and one time have the same threads, and whose each thread is.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::chance;
use super::covered::Covered;
use super::machines::{Machines, overlap, times};
use crate::profile::{Cell, Profile};
use crate::units::Nanoseconds;

/// A thread of one machine.
type Task = (usize, Option<u64>, u32, u32);

/// A recording that has a thread.
struct Holder {
    part: usize,
    /// The thread by its numbers there: it may have run by several names.
    threads: Vec<u32>,
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

    fn add_all(&mut self, other: &Self) {
        self.is_there |= other.is_there;
        self.time += other.time;
        self.variance += other.variance;
    }

    /// It is longer than the other one by more than chance.
    fn exceeds(&self, other: &Self) -> bool {
        let more = self.time.as_secs_f64() - other.time.as_secs_f64();
        !chance::explains(more, self.variance + other.variance)
    }
}

/// Threads of a recording that are others' for some of its time.
#[derive(Default)]
pub(super) struct Shared {
    /// By thread of the recording, when it is another's.
    pub threads: BTreeMap<u32, Elsewhere>,
    /// By the recording that has them, how many threads, and the process of one of them; without those that a recording of everything
    /// is expected to have.
    pub told: BTreeMap<usize, (usize, u32)>,
}

/// When a thread of a recording is another one's.
pub(super) struct Elsewhere {
    /// The time that others recorded it in.
    pub covered: Covered,
    /// It is that of a recording of this thread, and this recording is one of everything, which has no more of it than chance tells.
    pub is_expected: bool,
}

impl Shared {
    /// Whether the recording alone covers some time of a thread that it shares.
    pub fn reaches_beyond(&self, part: &Profile) -> bool {
        self.threads.values().any(|elsewhere| !elsewhere.covered.contains(times(part)))
    }
}

/// Of each recording, the threads that others of its time have.
///
/// The first that has a thread is a recording of that thread, as a rank's, if a recording of everything, as its node's, has no more
/// of it than chance tells: the former counted exactly how long it ran, and knows whose it is. Else it is the one that
/// charged it with most time. The others have it where those before them did not record.
pub(super) fn shared(parts: &[Profile], machines: &Machines, of_system: &[bool]) -> Vec<Shared> {
    let mut shared: Vec<Shared> = parts.iter().map(|_| Shared::default()).collect();
    for ((_, _, pid, _), mut holders) in holders(parts, machines) {
        let longest_chosen = holders.iter().filter(|holder| !of_system[holder.part]);
        let longest_chosen = longest_chosen.max_by_key(|holder| holder.seen.time).map(|holder| holder.seen);
        let comes_later = |holder: &Holder| {
            of_system[holder.part] && longest_chosen.is_some_and(|chosen| !holder.seen.exceeds(&chosen))
        };
        holders.sort_by_key(|holder| (comes_later(holder), Reverse(holder.seen.time), holder.part));
        let mut covered = Covered::default();
        for (at, holder) in holders.iter().enumerate() {
            let window = times(&parts[holder.part]);
            let before = &holders[..at];
            if let Some(rival) = before.iter().find(|other| overlap(times(&parts[other.part]), window)) {
                let is_expected = comes_later(holder) && !comes_later(rival);
                let of_part = &mut shared[holder.part];
                for &thread in &holder.threads {
                    let elsewhere = Elsewhere { covered: covered.clone(), is_expected };
                    of_part.threads.insert(thread, elsewhere);
                }
                // A recording of everything is expected to have what others have.
                let is_known = is_expected
                    || of_system[rival.part] != of_system[holder.part] && covered.contains(window);
                if !is_known {
                    of_part.told.entry(rival.part).or_insert((0, pid)).0 += 1;
                }
            }
            covered.add(window);
        }
    }
    shared
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
            let Some((pid, tid)) = thread.ids().filter(|_| seen.is_there) else { continue };
            let of_task = holders.entry((machines.of_part[number], namespace, pid, tid)).or_default();
            match of_task.last_mut().filter(|last| last.part == number) {
                Some(last) => {
                    last.threads.push(index);
                    last.seen.add_all(&seen);
                }
                None => of_task.push(Holder { part: number, threads: vec![index], seen }),
            }
        }
    }
    holders
}
