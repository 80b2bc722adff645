//! When several recordings ran, on one axis.

use super::machines::{Machines, times};
use crate::profile::{Gap, Profile};
use crate::units::{Nanoseconds, Timestamp};

/// The time in which at least one recording ran: nanoseconds from 0 on, without the gaps in which nobody recorded.
pub(super) struct Axis {
    /// Stretches of time without gaps, in order, on the clock that all recordings are placed on.
    covered: Vec<(u64, u64)>,
    /// Of each part, what is added to its clock.
    shifts: Vec<i128>,
}

impl Axis {
    /// Of these profiles. Those of one boot are compared by its clock, boots by the wall clock at the start of their first
    /// recording; `Err` has the number of a profile whose place is not known.
    pub fn of(parts: &[Profile], machines: &Machines) -> Result<Self, usize> {
        let is_one_machine = machines.of_part.iter().all(|machine| *machine == machines.of_part[0]);
        let mut shifts = vec![0i128; parts.len()];
        for machine in 0..parts.len() {
            let Some(first) = machines.parts(machine).next() else { continue };
            let started = parts[first].recordings.first().and_then(|origin| origin.started_unix_ns);
            let shift = match started {
                Some(wall) => i128::from(wall) - i128::from(parts[first].start.as_nanos()),
                None if is_one_machine => 0,
                None => return Err(first),
            };
            machines.parts(machine).for_each(|part| shifts[part] = shift);
        }
        let placed = parts.iter().zip(&shifts).map(|(part, &shift)| {
            let (start, end) = times(part);
            (moved(start, shift), moved(end, shift))
        });
        Ok(Self { covered: joined(placed.collect()), shifts })
    }

    /// How long it is, in nanoseconds.
    pub fn length(&self) -> u64 {
        length(&self.covered)
    }

    /// Gaps that it leaves out, in order.
    pub fn gaps(&self) -> Vec<Gap> {
        let mut at = 0;
        let gap = |pair: &[(u64, u64)]| {
            at += pair[0].1 - pair[0].0;
            Gap { after: Nanoseconds::from_nanos(at), length: Nanoseconds::from_nanos(pair[1].0 - pair[0].1) }
        };
        self.covered.windows(2).map(gap).collect()
    }

    /// Where a time of a part's clock lies on the axis; in a gap, where that was left out.
    pub fn place(&self, part: usize, time: Timestamp) -> u64 {
        let time = moved(time, self.shifts[part]);
        let before = |&(start, end): &(u64, u64)| time.clamp(start, end) - start;
        self.covered.iter().map(before).sum()
    }

    /// The time of a part's clock at a place on the axis.
    pub fn time(&self, part: usize, place: u64) -> Timestamp {
        let mut left = place;
        let mut at = self.covered.last().map_or(0, |(_, end)| *end);
        for &(start, end) in &self.covered {
            if left <= end - start {
                at = start + left;
                break;
            }
            left -= end - start;
        }
        Timestamp::from_nanos(u64::try_from(i128::from(at) - self.shifts[part]).unwrap_or(0))
    }
}

/// What lies in at least one of these stretches: stretches without gaps, in order.
pub(super) fn joined(mut stretches: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    stretches.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end) in stretches {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// How long stretches are together.
pub(super) fn length(stretches: &[(u64, u64)]) -> u64 {
    stretches.iter().fold(0, |sum: u64, (start, end)| sum.saturating_add(end.saturating_sub(*start)))
}

fn moved(time: Timestamp, shift: i128) -> u64 {
    u64::try_from(i128::from(time.as_nanos()) + shift).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::fixture::{Recorder, World};

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn stretches_that_meet_or_overlap_are_one() {
        let of = |stretches: &[(u64, u64)]| joined(stretches.to_vec());
        // They meet, to the nanosecond; one nanosecond lies between them; one lies within the other, or is given twice.
        assert_eq!(of(&[(10, 20), (0, 10)]), [(0, 20)]);
        assert_eq!(of(&[(11, 20), (0, 10)]), [(0, 10), (11, 20)]);
        assert_eq!(of(&[(0, 30), (5, 10), (0, 30), (29, 31)]), [(0, 31)]);
        assert_eq!(of(&[]), []);
        assert_eq!(length(&[(0, 10), (11, 20)]), 19);
        assert_eq!(
            (length(&[]), length(&[(9, 4), (1, 2)]), length(&[(0, u64::MAX), (0, 5)])),
            (0, 1, u64::MAX)
        );
    }

    /// A time's place is how many nanoseconds before it somebody recorded, and the time of a place has that place.
    #[test]
    fn places_are_what_was_recorded_before() {
        let axis = Axis { covered: vec![(10, 20), (30, 45), (50, 51)], shifts: vec![0, 7, -4] };
        let gap = |after, length| Gap {
            after: Nanoseconds::from_nanos(after),
            length: Nanoseconds::from_nanos(length),
        };
        assert_eq!((axis.length(), axis.gaps()), (26, vec![gap(10, 10), gap(25, 5)]));
        let is_covered = |nanos: u64| axis.covered.iter().any(|(start, end)| (*start..*end).contains(&nanos));
        for time in 0..60 {
            let expected = (0..time).filter(|nanos| is_covered(*nanos)).count() as u64;
            // The same moment by each part's clock.
            let of_clocks = [(0, time), (1, time.saturating_sub(7)), (2, time + 4)];
            for (part, time) in of_clocks.into_iter().filter(|(part, _)| *part != 1 || time >= 7) {
                assert_eq!(axis.place(part, at(time)), expected, "{part} {time}");
            }
        }
        for place in 0..=26 {
            assert_eq!(axis.place(1, axis.time(1, place)), place);
        }
        // A place at a gap is where that begins; what lies behind all is the end.
        let times = [0, 10, 11, 25, 26, 99].map(|place| axis.time(0, place).as_nanos());
        assert_eq!(times, [10, 20, 31, 45, 51, 51]);
        assert_eq!((axis.time(1, 0), axis.time(2, 0)), (at(3), at(14)));
    }

    fn recorded(boot: &'static str, window: (usize, usize), wall: Option<u64>) -> Profile {
        let world = World { boot, static_joules: 1.0, spent: vec![vec![1.0]; 40] };
        let mut profile = world.record(&Recorder { pid: 1, of: vec![0], window });
        profile.recordings[0].started_unix_ns = wall;
        profile
    }

    fn axis(parts: &[Profile]) -> Result<Axis, usize> {
        Axis::of(parts, &Machines::of(parts))
    }

    #[test]
    fn recordings_of_one_boot_need_no_wall_clock_and_those_of_two_do() {
        // A tick takes 10 ms, and the first begins at 5 s.
        let one = axis(&[recorded("a", (0, 10), None), recorded("a", (20, 30), None)])
            .unwrap_or_else(|_| panic!("placed"));
        assert_eq!(one.covered, [(5_000_000_000, 5_100_000_000), (5_200_000_000, 5_300_000_000)]);
        let two = [recorded("a", (0, 10), Some(77_000)), recorded("b", (20, 30), None)];
        assert_eq!(axis(&two).err(), Some(1));
        let two = [recorded("a", (0, 10), None), recorded("b", (20, 30), Some(77_000))];
        assert_eq!(axis(&two).err(), Some(0));
        // The first recording of a boot places the rest of it: their own wall clocks were set meanwhile.
        let three = [
            recorded("a", (0, 10), Some(77_000)),
            recorded("a", (10, 20), Some(5)),
            recorded("b", (20, 30), Some(100_077_000)),
        ];
        let three = axis(&three).unwrap_or_else(|_| panic!("placed"));
        assert_eq!(three.covered, [(77_000, 200_077_000)]);
        assert_eq!(three.place(1, at(5_150_000_000)), 150_000_000);
        assert_eq!(three.place(2, at(5_200_000_000)), 100_000_000);
    }
}
