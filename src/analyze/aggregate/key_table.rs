//! Tables that most samples look into: made so that a look is one access to memory.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::{FixedState, FoldHasher};
use perf_data::record::CpuMode;
use rustc_hash::FxHashMap;

use crate::profile::AddressId;
use crate::timeline::SpaceId;

/// Stands for a key, so that tables need no copies of stacks: 96 bits of hash. With ten million keys, the
/// chance that two share them is below 10^-14.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyHash {
    pub first: u64,
    pub second: u32,
}

/// Stands for what `write` gives to both hashers.
#[inline]
pub(crate) fn hash(hashers: &[FixedState; 2], write: impl Fn(&mut FoldHasher<'_>)) -> KeyHash {
    let finish = |state: &FixedState| {
        let mut hasher = state.build_hasher();
        write(&mut hasher);
        hasher.finish()
    };
    // Not by `map`, which is not inlined: nearly every sample comes by here.
    KeyHash { first: finish(&hashers[0]), second: finish(&hashers[1]) as u32 }
}

/// Numbers by hashes of their keys: open addressing, so that an entry and those that had to give way to it lie
/// in one line of the cache.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyTable {
    /// A power of two of them, or none.
    entries: Vec<Entry>,
    count: usize,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    first: u64,
    second: u32,
    /// [`FREE`] where there is none.
    number: u32,
}

/// What frame pointers say of who called the function that a sample was in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnCaller {
    /// They tell it, or it was not asked.
    Told,
    /// They lack it: the function has set up no frame.
    Hidden,
    /// That is not known: the unwind tables of its code are not here.
    Unknown,
}

/// The number of entries that are free.
const FREE: u32 = u32::MAX;
const SMALLEST: usize = 1024;

impl KeyTable {
    /// The number of a key, if it is known.
    #[inline]
    pub fn find(&self, key: KeyHash) -> Option<u32> {
        find_among(&self.entries, key)
    }

    /// Adds a key that is not known, with a number below `u32::MAX`.
    pub fn insert(&mut self, key: KeyHash, number: u32) {
        debug_assert_ne!(number, FREE);
        // A quarter of the entries is free, so that every look soon finds an end.
        if self.count >= self.entries.len() / 4 * 3 {
            self.grow();
        }
        self.put(Entry { first: key.first, second: key.second, number });
        self.count += 1;
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.count
    }

    fn put(&mut self, entry: Entry) {
        let mask = self.entries.len() - 1;
        let mut at = entry.first as usize & mask;
        while self.entries[at].number != FREE {
            at = (at + 1) & mask;
        }
        self.entries[at] = entry;
    }

    fn grow(&mut self) {
        let size = (self.entries.len() * 2).max(SMALLEST);
        let free = Entry { first: 0, second: 0, number: FREE };
        let before = std::mem::replace(&mut self.entries, vec![free; size]);
        before.into_iter().filter(|entry| entry.number != FREE).for_each(|entry| self.put(entry));
    }
}

#[inline(always)]
fn find_among(entries: &[Entry], key: KeyHash) -> Option<u32> {
    let mask = entries.len().checked_sub(1)?;
    let mut at = key.first as usize & mask;
    loop {
        // The mask keeps the index in the table. Most often it is the first place looked at, and the right one.
        let entry = entries.get(at)?;
        if entry.first == key.first && entry.second == key.second && entry.number != FREE {
            return Some(entry.number);
        }
        if entry.number == FREE {
            return None;
        }
        at = (at + 1) & mask;
    }
}

/// The numbers of addresses, each in the context that decides what it means: memory maps, mode, and whether the
/// instruction before it is meant.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddressTable {
    /// The keys are no hashes here: an address can be told from its hash again.
    numbers: KeyTable,
    spaces: FxHashMap<Spaces, u32>,
    /// The last memory maps and their number: samples come in bursts from one process.
    last: Option<(Spaces, u32)>,
}

/// The memory maps that decide what addresses mean: the process's and the kernel's.
pub(crate) type Spaces = (SpaceId, SpaceId);

impl AddressTable {
    /// What [`AddressTable::find`] wants to know of memory maps.
    #[inline]
    pub fn number_of(&mut self, spaces: Spaces) -> u32 {
        match self.last {
            Some((last, number)) if last == spaces => number,
            _ => {
                let next = self.spaces.len() as u32;
                let number = *self.spaces.entry(spaces).or_insert(next);
                self.last = Some((spaces, number));
                number
            }
        }
    }

    /// The key of an address; `spaces` is what [`AddressTable::number_of`] said.
    #[inline(always)]
    pub fn key(spaces: u32, mode: CpuMode, is_return: bool, address: u64) -> KeyHash {
        // Fibonacci hashing, which loses nothing: the multiplier is odd. The highest bits of the product depend
        // on all of the address, and the table goes by the lowest.
        let first = address.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
        // There are fewer modes than 8, and each state of a memory map takes more than a hundred bytes of a
        // recording.
        KeyHash { first, second: spaces << 4 | (mode as u32) << 1 | u32::from(is_return) }
    }

    /// The number of an address, and what is known of the caller there.
    #[inline]
    pub fn find(&self, key: KeyHash) -> Option<(AddressId, OwnCaller)> {
        let number = self.numbers.find(key)?;
        let caller = match number & !ADDRESS {
            HIDDEN => OwnCaller::Hidden,
            UNKNOWN => OwnCaller::Unknown,
            _ => OwnCaller::Told,
        };
        Some((address_of(number), caller))
    }

    /// For many looks in a row, between which nothing is added.
    #[inline]
    pub fn known(&self) -> KnownAddresses<'_> {
        KnownAddresses { entries: &self.numbers.entries }
    }

    /// Keeps the number of an address that is not known yet, and what is known of the caller there.
    pub fn insert(&mut self, key: KeyHash, number: AddressId, caller: OwnCaller) {
        // Addresses take more memory than there is before their numbers come near these bits.
        debug_assert_eq!(number.0 & !ADDRESS, 0);
        let of_caller = match caller {
            OwnCaller::Told => 0,
            OwnCaller::Hidden => HIDDEN,
            OwnCaller::Unknown => UNKNOWN,
        };
        self.numbers.insert(key, number.0 | of_caller);
    }
}

/// The part of an [`AddressTable`]'s numbers that is the address; what is above it tells of the caller.
const ADDRESS: u32 = (1 << 30) - 1;
const HIDDEN: u32 = 1 << 30;
const UNKNOWN: u32 = 2 << 30;

#[inline(always)]
fn address_of(number: u32) -> AddressId {
    AddressId(number & ADDRESS)
}

/// What an [`AddressTable`] knows, in so few words that a loop keeps them in registers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownAddresses<'t> {
    entries: &'t [Entry],
}

impl KnownAddresses<'_> {
    /// The number of an address.
    #[inline(always)]
    pub fn find(self, key: KeyHash) -> Option<AddressId> {
        find_among(self.entries, key).map(address_of)
    }

    /// The same by one look, which nearly always is enough; `None` says nothing.
    #[inline(always)]
    pub fn find_at_once(self, key: KeyHash) -> Option<AddressId> {
        let entry = self.entries.get(key.first as usize & self.entries.len().wrapping_sub(1))?;
        let is_it = entry.first == key.first && entry.second == key.second && entry.number != FREE;
        is_it.then_some(address_of(entry.number))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// All that was put in is found, and nothing else, also where all begin at one place.
        #[test]
        fn keys_are_found_again(
            keys in prop::collection::hash_set((0u64..4, 0u32..2000), 0..1500),
            shift in prop::sample::select(vec![0, 40]),
        ) {
            let key = |(first, second): (u64, u32)| KeyHash { first: first << shift, second };
            let mut known = KeyTable::default();
            for (number, parts) in keys.iter().enumerate() {
                prop_assert_eq!(known.find(key(*parts)), None);
                known.insert(key(*parts), number as u32);
            }
            for (number, parts) in keys.iter().enumerate() {
                prop_assert_eq!(known.find(key(*parts)), Some(number as u32));
            }
            prop_assert_eq!(known.find(key((5, 1))), None);
        }
    }

    #[test]
    fn an_address_means_something_else_elsewhere() {
        const CALLERS: [OwnCaller; 3] = [OwnCaller::Told, OwnCaller::Hidden, OwnCaller::Unknown];
        let mut known = AddressTable::default();
        let spaces = [(SpaceId(1), SpaceId(0)), (SpaceId(2), SpaceId(0)), (SpaceId(1), SpaceId(3))];
        let numbers = spaces.map(|spaces| known.number_of(spaces));
        assert_eq!(spaces.map(|spaces| known.number_of(spaces)), numbers);
        let mut keys = Vec::new();
        for spaces in numbers {
            for mode in [CpuMode::Unknown, CpuMode::User, CpuMode::GuestUser] {
                for is_return in [false, true] {
                    for address in [0x1000, 0x1001, 0x1000 << 32] {
                        keys.push(AddressTable::key(spaces, mode, is_return, address));
                    }
                }
            }
        }
        for (number, key) in keys.iter().enumerate() {
            assert_eq!(known.find(*key), None);
            known.insert(*key, AddressId(number as u32), CALLERS[number % 3]);
        }
        let mut at_once = 0;
        for (number, key) in keys.iter().enumerate() {
            let expected = Some(AddressId(number as u32));
            assert_eq!(known.find(*key), expected.map(|address| (address, CALLERS[number % 3])));
            assert_eq!(known.known().find(*key), expected);
            let found = known.known().find_at_once(*key);
            assert!(found.is_none() || found == expected);
            at_once += u32::from(found.is_some());
        }
        // All that is told apart by its context alone begins at one place.
        assert!(at_once >= 3, "{at_once}");
        let other = AddressTable::key(0, CpuMode::User, true, 0x1002);
        assert_eq!((known.known().find(other), known.known().find_at_once(other)), (None, None));
        assert_eq!(AddressTable::default().known().find_at_once(other), None);
    }
}
