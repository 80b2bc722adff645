//! How long several recordings took together.

use super::axis::{joined, length};
use super::machines::{Machines, times};
use crate::profile::Profile;
use crate::units::{Nanoseconds, Timestamp};

/// The time in which at least one recording ran. Recordings of one boot are compared by its clock; boots by the wall
/// clock at the start of their first recording. One whose place in time is not known counts on its own.
pub(super) fn of(parts: &[Profile], machines: &Machines) -> Nanoseconds {
    let mut on_the_wall: Vec<(u64, u64)> = Vec::new();
    let mut apart = 0u64;
    for machine in 0..parts.len() {
        let of_machine: Vec<usize> = machines.parts(machine).collect();
        let Some(&first) = of_machine.first() else { continue };
        let started = parts[first].recordings.first().and_then(|origin| origin.started_unix_ns);
        let stretches = of_machine.iter().map(|&part| times(&parts[part]));
        match started {
            Some(wall) => {
                let from = parts[first].start;
                let at = |time: Timestamp| wall.saturating_add(time.since(from).as_nanos());
                on_the_wall.extend(stretches.map(|(start, end)| (at(start), at(end))));
            }
            None => {
                let alone = stretches.map(|(start, end)| (start.as_nanos(), end.as_nanos())).collect();
                apart = apart.saturating_add(covered(alone));
            }
        }
    }
    Nanoseconds::from_nanos(covered(on_the_wall).saturating_add(apart))
}

/// How much lies in at least one of these stretches.
fn covered(stretches: Vec<(u64, u64)>) -> u64 {
    length(&joined(stretches))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_covered_twice_counts_once() {
        assert_eq!(covered(vec![(5, 15), (0, 10), (20, 30), (22, 25)]), 25);
        assert_eq!(covered(Vec::new()), 0);
    }
}
