//! Going on with many cursors at once along the frames that their stacks share.

use super::{Cursor, Direction, Node, Place, SEVERAL, TreeFrame, Walker};
use crate::profile::AddressId;

/// A way through frames of callers that several cursors share. How far each of them does is found in one go: to
/// move all of them from frame to frame would look each up in memory at every step, and most go on alike.
pub(super) struct Trunk {
    /// Where the way begins, among the frames of all lists of callers.
    start: u32,
    /// Frames behind that which were passed.
    pub(super) passed: u32,
    /// By cursor.
    reach: Vec<Reach>,
}

/// Which frames of a trunk a cursor shares.
#[derive(Clone, Copy)]
struct Reach {
    /// Frames that were passed where the cursor was put down.
    from: u32,
    /// Frames that were passed where it leaves.
    end: u32,
}

/// Steps that are made one by one where cursors could not share a way, before it is tried again.
const PLAIN_STEPS: u32 = 4;

impl Walker<'_> {
    /// Goes along a trunk until cursors leave it, and goes on by one frame with those.
    pub(super) fn follow<E>(
        &mut self,
        mut cursors: Vec<Cursor>,
        mut trunk: Trunk,
        next: &mut Vec<Cursor>,
        visit: &mut impl FnMut(Node<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while trunk.reach.iter().all(|reach| reach.end > trunk.passed) {
            visit(Node { path: &self.path, own: 0.0 })?;
            let first = self.frames.of_address(self.ahead_on(&trunk))[0];
            self.path.push(TreeFrame::Key(first));
            self.visit_inlined(&trunk, visit)?;
            trunk.passed += 1;
        }
        let passed = trunk.passed;
        let names = match trunk.reach.iter().any(|reach| reach.end > passed) {
            true => self.frames.of_address(self.ahead_on(&trunk)),
            false => &[],
        };
        let rank = names.first().map_or(SEVERAL, |&key| self.shape.rank[key as usize]);
        let (mut staying, mut reaches) = (Vec::new(), Vec::new());
        next.clear();
        let mut own = 0.0;
        for (cursor, &reach) in cursors.iter().zip(&trunk.reach) {
            if reach.end > passed {
                staying.push(*cursor);
                reaches.push(reach);
                continue;
            }
            let before = next.len();
            own += self.go_on(self.advanced(cursor, reach, passed), next);
            // What ends in the trunk's next function goes there with the others.
            let joining = next[before..].iter().filter(|cursor| cursor.rank == rank);
            let known = staying.len();
            staying.extend(joining);
            if staying.len() > known {
                if names.len() > 1 {
                    // It need not have all names that are next on the trunk.
                    for (cursor, reach) in cursors.iter_mut().zip(&trunk.reach) {
                        *cursor = self.advanced(cursor, *reach, passed);
                    }
                    return self.step(&cursors, PLAIN_STEPS, next, visit);
                }
                reaches.resize(staying.len(), Reach { from: passed + 1, end: passed + 1 });
                let mut at = 0;
                next.retain(|cursor| {
                    at += 1;
                    at <= before || cursor.rank != rank
                });
            }
        }
        let goes_on = (!staying.is_empty()).then_some((rank, staying, Trunk { reach: reaches, ..trunk }));
        own += self.divide(next, 0, goes_on);
        visit(Node { path: &self.path, own })
    }

    /// Visits what lies between the first and the last name of the next frame of a trunk.
    pub(super) fn visit_inlined<E>(
        &mut self,
        trunk: &Trunk,
        visit: &mut impl FnMut(Node<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for &key in &self.frames.of_address(self.ahead_on(trunk))[1..] {
            visit(Node { path: &self.path, own: 0.0 })?;
            self.path.push(TreeFrame::Key(key));
        }
        Ok(())
    }

    /// The way of one of these cursors to the innermost of its callers, and how far the others go along.
    pub(super) fn trunk(&self, cursors: &[Cursor]) -> Option<Trunk> {
        if self.shape.direction != Direction::FromOutermost {
            return None;
        }
        let frames = self.profile.stacks.caller_frames();
        // Nothing for those that are at a stack's end, or have more names where they are.
        let ahead = |cursor: &Cursor| match cursor.at {
            Place::Caller(_, index, left) if self.next_name(cursor).is_none() => {
                frames.get(index as usize + 1..).and_then(|ahead| ahead.get(..left as usize))
            }
            _ => None,
        };
        let way = |cursor: &Cursor| ahead(cursor).filter(|ahead| !ahead.is_empty());
        let (start, way) = cursors.iter().find_map(|cursor| match cursor.at {
            Place::Caller(_, index, _) => Some((index, way(cursor)?)),
            _ => None,
        })?;
        let alike = |(a, b): &(&AddressId, &AddressId)| a == b || self.have_one_name(**a, **b);
        let reach = |cursor| {
            let shared = way.iter().zip(ahead(cursor).unwrap_or_default()).take_while(alike);
            Reach { from: 0, end: shared.count() as u32 }
        };
        Some(Trunk { start, passed: 0, reach: cursors.iter().map(reach).collect() })
    }

    /// The address of the next frame of a trunk.
    fn ahead_on(&self, trunk: &Trunk) -> AddressId {
        self.profile.stacks.caller_frames()[(trunk.start + trunk.passed) as usize + 1]
    }

    /// Where a cursor is that went along with a trunk until so many of its frames were passed.
    fn advanced(&self, cursor: &Cursor, reach: Reach, passed: u32) -> Cursor {
        let mut cursor = *cursor;
        if let Place::Caller(_, index, left) = &mut cursor.at
            && passed > reach.from
        {
            *index += passed - reach.from;
            *left -= passed - reach.from;
            let address = self.profile.stacks.caller_frames()[*index as usize];
            cursor.nth = self.frames.of_address(address).len() as u32 - 1;
        }
        cursor
    }

    /// Both addresses have one name, and it is the same.
    fn have_one_name(&self, a: AddressId, b: AddressId) -> bool {
        let [a, b] = [a, b].map(|address| self.only_rank[address.0 as usize]);
        a == b && a != SEVERAL
    }
}
