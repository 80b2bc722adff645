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
