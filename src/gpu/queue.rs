//! What is outstanding on a GPU, walked through time.

use std::collections::BTreeMap;

use crate::units::{Nanoseconds, Timestamp};

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

    /// Nothing is outstanding, and nothing begins until then.
    fn is_quiet_until(&self, end: Timestamp) -> bool {
        self.count == 0 && self.changes.get(self.next).is_none_or(|(at, ..)| *at >= end)
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

/// The same, as a meter sees it that follows changes slowly: a part of what was done is seen later, each owner's for itself.
pub(super) struct SmearedQueue {
    queue: Queue,
    /// Time constant and how finely it is followed, in nanoseconds.
    constant: f64,
    unseen: Weights,
}

/// A time constant is followed in so many parts.
const PARTS: f64 = 16.0;

impl SmearedQueue {
    pub(super) fn new(launches: &[Outstanding], constant: Nanoseconds) -> Self {
        Self { queue: Queue::new(launches), constant: constant.as_nanos() as f64, unseen: Weights::new() }
    }

    /// Nanoseconds by owner that are seen between two times.
    pub(super) fn advance(&mut self, start: Timestamp, end: Timestamp) -> Weights {
        if self.constant <= 0.0 {
            return self.queue.advance(start, end).0;
        }
        let mut seen = Weights::new();
        let mut time = start;
        while time < end {
            let until = (time + Nanoseconds::from_nanos((self.constant / PARTS).max(1.0) as u64)).min(end);
            for (owner, nanos) in self.queue.advance(time, until).0 {
                *self.unseen.entry(owner).or_insert(0.0) += nanos;
            }
            let part = 1.0 - (-(until.since(time).as_nanos() as f64) / self.constant).exp();
            for (owner, unseen) in &mut self.unseen {
                *seen.entry(*owner).or_insert(0.0) += *unseen * part;
                *unseen *= 1.0 - part;
            }
            // Less than this nobody sees.
            let least = 1e-3 * self.constant;
            self.unseen.retain(|_, unseen| *unseen >= least);
            time = until;
            // Nothing happens for a long time.
            if self.unseen.is_empty() && self.queue.is_quiet_until(end) {
                break;
            }
        }
        seen
    }
}
