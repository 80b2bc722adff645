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
    use crate::merge::fixture::{Recorder, TICK, World};

    #[test]
    fn what_is_covered_twice_counts_once() {
        assert_eq!(covered(vec![(5, 15), (0, 10), (20, 30), (22, 25)]), 25);
        assert_eq!(covered(Vec::new()), 0);
    }
    fn recorded(boot: &'static str, window: (usize, usize), wall: Option<u64>) -> Profile {
        let world = World { boot, static_joules: 1.0, spent: vec![vec![1.0]; 40] };
        let mut profile = world.record(&Recorder { pid: 1, of: vec![0], window });
        profile.recordings[0].started_unix_ns = wall;
        profile
    }

    /// Ticks of 10 ms that at least one recording covers.
    #[test]
    fn boots_meet_on_the_wall_and_those_without_one_count_apart() {
        let ticks = |parts: &[Profile]| of(parts, &Machines::of(parts)).as_nanos() / TICK.as_nanos();
        let wall = |tick: u64| Some(9_000_000_000 + tick * TICK.as_nanos());
        let (a, b) = (recorded("a", (0, 10), wall(0)), recorded("b", (20, 30), wall(5)));
        // b ran from tick 5 to 15 of a's clock.
        assert_eq!(ticks(&[a.clone(), b]), 15);
        // A second one of a's boot stands where that boot's clock says, whatever its own wall clock.
        assert_eq!(ticks(&[a.clone(), recorded("a", (8, 14), wall(99))]), 14);
        let unknown = recorded("b", (20, 30), None);
        assert_eq!(ticks(&[a, unknown.clone()]), 20);
        assert_eq!(ticks(&[unknown.clone(), recorded("b", (25, 32), None)]), 12);
        assert_eq!(ticks(&[unknown, recorded("c", (25, 32), None)]), 17);
    }
}
