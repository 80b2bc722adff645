//! Call stacks, each an innermost frame and its callers: many stacks differ in nothing but the former.

use std::ops::Range;

use super::AddressId;

/// Index of a stack in a [`StackTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

/// Index of a list of callers in a [`StackTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallersId(pub u32);

impl CallersId {
    /// No callers.
    pub const NONE: Self = Self(0);
}

/// A set of call stacks.
#[derive(Debug, Clone)]
pub struct StackTable {
    /// Frames of all lists of callers, outermost first, and where each list ends. The first one is empty.
    frames: Vec<AddressId>,
    ends: Vec<u32>,
    /// Callers and innermost frame of each stack.
    stacks: Vec<(CallersId, AddressId)>,
}

/// Stands in the place of an address where a stack has no innermost frame.
const NO_ADDRESS: AddressId = AddressId(u32::MAX);

impl Default for StackTable {
    fn default() -> Self {
        Self { frames: Vec::new(), ends: vec![0], stacks: Vec::new() }
    }
}

impl StackTable {
    /// Adds a list of callers, outermost first. The table does not look for an equal one.
    pub fn push_callers(&mut self, frames: impl IntoIterator<Item = AddressId>) -> CallersId {
        let before = self.frames.len();
        self.frames.extend(frames);
        if self.frames.len() == before {
            return CallersId::NONE;
        }
        self.ends.push(self.frames.len() as u32);
        CallersId(self.ends.len() as u32 - 1)
    }

    /// Adds a stack. It has no frame of its own if its sample had no address. The table does not look for an
    /// equal one.
    pub fn push(&mut self, callers: CallersId, innermost: Option<AddressId>) -> StackId {
        self.stacks.push((callers, innermost.unwrap_or(NO_ADDRESS)));
        StackId(self.stacks.len() as u32 - 1)
    }

    /// This table's lists of callers with the stacks of another one, which name callers by this one's numbers.
    pub fn with_stacks_of(self, other: Self) -> Self {
        Self { stacks: other.stacks, ..self }
    }

    /// The callers of a stack.
    #[inline]
    pub fn callers(&self, stack: StackId) -> CallersId {
        self.stacks[stack.0 as usize].0
    }

    /// The innermost frame of a stack.
    #[inline]
    pub fn innermost(&self, stack: StackId) -> Option<AddressId> {
        let address = self.stacks[stack.0 as usize].1;
        (address != NO_ADDRESS).then_some(address)
    }

    /// The frames of a list of callers, outermost first.
    #[inline]
    pub fn frames_of_callers(&self, callers: CallersId) -> &[AddressId] {
        let range = self.range_of_callers(callers);
        &self.frames[range.start as usize..range.end as usize]
    }

    /// Where [`StackTable::caller_frames`] has the frames of a list of callers.
    #[inline]
    pub fn range_of_callers(&self, callers: CallersId) -> Range<u32> {
        let index = callers.0 as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        start..self.ends[index]
    }

    /// The frames of all lists of callers.
    pub fn caller_frames(&self) -> &[AddressId] {
        &self.frames
    }

    /// The frames of a stack, outermost first.
    pub fn frames(&self, stack: StackId) -> impl DoubleEndedIterator<Item = AddressId> + '_ {
        self.frames_of_callers(self.callers(stack)).iter().copied().chain(self.innermost(stack))
    }

    /// Number of stacks.
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// No stack.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// Number of lists of callers, the empty one included.
    pub fn callers_len(&self) -> usize {
        self.ends.len()
    }

    /// The stacks by their callers.
    pub fn by_callers(&self) -> StacksByCallers {
        let mut ends = vec![0_u32; self.ends.len() + 1];
        for (callers, _) in &self.stacks {
            ends[callers.0 as usize + 1] += 1;
        }
        for index in 1..ends.len() {
            ends[index] += ends[index - 1];
        }
        let mut next = ends.clone();
        let mut stacks = vec![StackId(0); self.stacks.len()];
        for (index, (callers, _)) in self.stacks.iter().enumerate() {
            let place = &mut next[callers.0 as usize];
            stacks[*place as usize] = StackId(index as u32);
            *place += 1;
        }
        StacksByCallers { stacks, ends }
    }
}

/// Which stacks have which callers.
#[derive(Debug, Clone)]
pub struct StacksByCallers {
    stacks: Vec<StackId>,
    /// Where the part of each list of callers begins, and the end of all.
    ends: Vec<u32>,
}

impl StacksByCallers {
    /// The stacks with these callers.
    pub fn of(&self, callers: CallersId) -> &[StackId] {
        let index = callers.0 as usize;
        &self.stacks[self.ends[index] as usize..self.ends[index + 1] as usize]
    }

    /// All lists of callers, with the stacks that have them.
    pub fn iter(&self) -> impl Iterator<Item = (CallersId, &[StackId])> {
        (0..self.ends.len() as u32 - 1).map(|index| (CallersId(index), self.of(CallersId(index))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_share_their_callers() {
        let mut table = StackTable::default();
        let callers = table.push_callers([AddressId(7), AddressId(6)]);
        let [a, b] = [8, 9].map(|address| table.push(callers, Some(AddressId(address))));
        let alone = table.push(CallersId::NONE, Some(AddressId(7)));
        let nothing = table.push(CallersId::NONE, None);
        assert_eq!(table.frames(b).collect::<Vec<_>>(), [AddressId(7), AddressId(6), AddressId(9)]);
        assert_eq!(table.frames(alone).collect::<Vec<_>>(), [AddressId(7)]);
        assert_eq!(table.frames(nothing).count(), 0);
        assert_eq!((table.callers(a), table.innermost(a)), (callers, Some(AddressId(8))));
        let by_callers: Vec<_> = table.by_callers().iter().map(|(_, stacks)| stacks.to_vec()).collect();
        assert_eq!(by_callers, [vec![alone, nothing], vec![a, b]]);
    }
}
