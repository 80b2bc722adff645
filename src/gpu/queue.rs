//! What is outstanding on a GPU, walked through time.

use std::collections::BTreeMap;

use crate::units::Timestamp;

/// One launch: outstanding from its call until a wait for it returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outstanding {
    /// When it was launched.
    pub start: Timestamp,
    /// When it was known to be done.
    pub end: Timestamp,
    /// Whom its joules go to.
    pub owner: u32,
    /// The GPU it runs on, where that is known.
    pub gpu: Option<u32>,
}

/// Nanoseconds by owner.
pub(super) type Weights = BTreeMap<u32, f64>;

/// What is outstanding, walked through time.
pub(super) struct Queue {
    /// Beginnings and ends in time order: time, owner, one more or less.
    changes: Vec<(Timestamp, u32, bool)>,
    next: usize,
    now: BTreeMap<u32, u32>,
    count: u32,
}

impl Queue {
    pub(super) fn new(launches: &[Outstanding]) -> Self {
        let both = |launch: &Outstanding| {
            [(launch.start, launch.owner, true), (launch.end.max(launch.start), launch.owner, false)]
        };
        let mut changes: Vec<_> = launches.iter().flat_map(both).collect();
        // A beginning before an end of the same time, so that no count falls below zero.
        changes.sort_by_key(|(time, owner, begins)| (*time, !begins, *owner));
        Self { changes, next: 0, now: BTreeMap::new(), count: 0 }
    }

    /// Nanoseconds by owner between two times, and the last time at which anything was outstanding.
    pub(super) fn advance(&mut self, start: Timestamp, end: Timestamp) -> (Weights, Option<Timestamp>) {
        let mut weights = Weights::new();
        let mut busy_until = None;
        let mut time = start;
        loop {
            let change = self.changes.get(self.next).copied().filter(|(at, ..)| *at < end);
            let until = change.map_or(end, |(at, ..)| at.max(time));
            if self.count > 0 && until > time {
                let each = until.since(time).as_nanos() as f64 / f64::from(self.count);
                for (owner, count) in &self.now {
                    *weights.entry(*owner).or_insert(0.0) += each * f64::from(*count);
                }
                busy_until = Some(until);
            }
            time = until;
            let Some((_, owner, begins)) = change else { break };
            self.next += 1;
            if begins {
                *self.now.entry(owner).or_insert(0) += 1;
                self.count += 1;
            } else if let Some(count) = self.now.get_mut(&owner) {
                *count -= 1;
                self.count -= 1;
                if *count == 0 {
                    self.now.remove(&owner);
                }
            }
        }
        (weights, busy_until)
    }
}
