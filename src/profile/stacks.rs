//! Call stacks, each an innermost frame and its callers. Callers stand in a tree, which stacks share: most differ
//! from others in a few frames.

use std::marker::PhantomData;

use super::ids::AddressId;

/// Index of a stack in a [`StackTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

/// Callers, from the outermost to one of them: the place of the latter in a [`StackTable`]'s tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallersId(pub u32);

impl CallersId {
    /// No callers: the root of the tree.
    pub const NONE: Self = Self(0);
}

/// A set of call stacks.
#[derive(Debug, Clone)]
pub struct StackTable {
    /// The callers of each caller and its address; callers stand before those that they call. The first stands
    /// for no callers.
    tree: Vec<(CallersId, AddressId)>,
    /// Callers and innermost frame of each stack.
    stacks: Vec<(CallersId, AddressId)>,
}

/// Stands in the place of an address where there is none.
const NO_ADDRESS: AddressId = AddressId(u32::MAX);

impl Default for StackTable {
    fn default() -> Self {
        Self { tree: vec![(CallersId::NONE, NO_ADDRESS)], stacks: Vec::new() }
    }
}

impl StackTable {
    /// Adds a caller below others of this table. The table does not look for an equal one.
    pub fn push_caller(&mut self, callers: CallersId, frame: AddressId) -> CallersId {
        self.tree.push((callers, frame));
        CallersId(self.tree.len() as u32 - 1)
    }

    /// Adds a stack. It has no frame of its own if its sample had no address. The table does not look for an
    /// equal one.
    pub fn push(&mut self, callers: CallersId, innermost: Option<AddressId>) -> StackId {
        self.stacks.push((callers, innermost.unwrap_or(NO_ADDRESS)));
        StackId(self.stacks.len() as u32 - 1)
    }

    /// This table's callers with the stacks of another one, which name callers by this one's numbers.
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

    /// The innermost of callers, and the callers of that.
    #[inline]
    pub fn caller(&self, callers: CallersId) -> Option<(AddressId, CallersId)> {
        let (outer, address) = self.tree[callers.0 as usize];
        (callers != CallersId::NONE).then_some((address, outer))
    }

    /// The frames of callers, innermost first.
    pub fn frames_of_callers(&self, callers: CallersId) -> impl Iterator<Item = AddressId> + '_ {
        let mut at = callers;
        std::iter::from_fn(move || {
            let (address, outer) = self.caller(at)?;
            at = outer;
            Some(address)
        })
    }

    /// The frames of a stack, innermost first.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = AddressId> + '_ {
        self.innermost(stack).into_iter().chain(self.frames_of_callers(self.callers(stack)))
    }

    /// Number of stacks.
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// No stack.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// Number of places in the tree of callers, its root included.
    pub fn callers_len(&self) -> usize {
        self.tree.len()
    }

    /// All callers, from the root on: those of a caller come before it.
    pub fn all_callers(&self) -> impl DoubleEndedIterator<Item = CallersId> + ExactSizeIterator + use<> {
        (0..self.tree.len() as u32).map(CallersId)
    }

    /// The stacks by their callers.
    pub fn by_callers(&self) -> ByCallers<StackId> {
        ByCallers::new(self.tree.len(), self.stacks.iter().map(|(callers, _)| *callers))
    }

    /// The callers that other callers called.
    pub fn called(&self) -> ByCallers<CallersId> {
        // The root itself was called by nobody.
        let nobody = CallersId(u32::MAX);
        let called_by = self.tree.iter().map(move |(callers, address)| match *address {
            NO_ADDRESS => nobody,
            _ => *callers,
        });
        ByCallers::new(self.tree.len(), called_by)
    }
}

/// What belongs to each place in a tree of callers.
#[derive(Debug, Clone)]
pub struct ByCallers<T> {
    /// The first that belongs to each place, and the next that belongs to the same as each.
    first: Vec<u32>,
    next: Vec<u32>,
    of: PhantomData<T>,
}

/// Stands for the end of a list.
const NO_MORE: u32 = u32::MAX;

impl<T: From<u32>> ByCallers<T> {
    /// From what each one belongs to.
    fn new(places: usize, callers: impl DoubleEndedIterator<Item = CallersId> + ExactSizeIterator) -> Self {
        let mut first = vec![NO_MORE; places];
        let mut next = vec![NO_MORE; callers.len()];
        for (at, callers) in callers.enumerate().rev() {
            if let Some(first) = first.get_mut(callers.0 as usize) {
                next[at] = std::mem::replace(first, at as u32);
            }
        }
        Self { first, next, of: PhantomData }
    }

    /// The first that belongs to these callers.
    #[inline]
    pub fn first(&self, callers: CallersId) -> Option<T> {
        let first = self.first[callers.0 as usize];
        (first != NO_MORE).then(|| T::from(first))
    }

    /// What belongs to the same callers as this one and stands behind it in the table.
    #[inline]
    pub fn next(&self, of: T) -> Option<T>
    where
        u32: From<T>,
    {
        let next = self.next[u32::from(of) as usize];
        (next != NO_MORE).then(|| T::from(next))
    }

    /// What belongs to these callers, in the order of the table.
    pub fn of(&self, callers: CallersId) -> impl Iterator<Item = T>
    where
        T: Copy,
        u32: From<T>,
    {
        std::iter::successors(self.first(callers), |item| self.next(*item))
    }
}

impl From<u32> for StackId {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl From<StackId> for u32 {
    fn from(stack: StackId) -> Self {
        stack.0
    }
}

impl From<u32> for CallersId {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl From<CallersId> for u32 {
    fn from(callers: CallersId) -> Self {
        callers.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_share_their_callers() {
        let mut table = StackTable::default();
        let outer = table.push_caller(CallersId::NONE, AddressId(7));
        let callers = table.push_caller(outer, AddressId(6));
        let [a, b] = [8, 9].map(|address| table.push(callers, Some(AddressId(address))));
        let alone = table.push(CallersId::NONE, Some(AddressId(7)));
        let nothing = table.push(CallersId::NONE, None);
        assert_eq!(table.frames(b).collect::<Vec<_>>(), [AddressId(9), AddressId(6), AddressId(7)]);
        assert_eq!(table.frames(alone).collect::<Vec<_>>(), [AddressId(7)]);
        assert_eq!(table.frames(nothing).count(), 0);
        assert_eq!((table.callers(a), table.innermost(a)), (callers, Some(AddressId(8))));
        assert_eq!(table.caller(callers), Some((AddressId(6), outer)));
        assert_eq!(table.caller(CallersId::NONE), None);
        let by_callers = table.by_callers();
        let stacks: Vec<Vec<_>> =
            table.all_callers().map(|callers| by_callers.of(callers).collect()).collect();
        assert_eq!(stacks, [vec![alone, nothing], vec![], vec![a, b]]);
        let called = table.called();
        let inner: Vec<Vec<_>> = table.all_callers().map(|callers| called.of(callers).collect()).collect();
        assert_eq!(inner, [vec![outer], vec![callers], vec![]]);
    }
}
