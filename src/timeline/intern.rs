//! One number for each distinct code address and call stack.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::profile::{AddressId, CodeAddress, StackId, StackTable};

/// Gives each distinct code address a number.
#[derive(Debug, Default)]
pub struct CodeInterner {
    ids: FxHashMap<CodeAddress, AddressId>,
    addresses: Vec<CodeAddress>,
}

impl CodeInterner {
    /// The number of an address.
    pub fn intern(&mut self, address: CodeAddress) -> AddressId {
        *self.ids.entry(address).or_insert_with(|| {
            self.addresses.push(address);
            AddressId(self.addresses.len() as u32 - 1)
        })
    }

    /// All addresses, by their numbers.
    pub fn into_addresses(self) -> Vec<CodeAddress> {
        self.addresses
    }

    /// Number of distinct addresses.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// No address yet.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }
}

/// Gives each distinct call stack a number.
#[derive(Debug, Default)]
pub struct StackInterner {
    ids: HashTable<StackId>,
    stacks: StackTable,
}

impl StackInterner {
    /// The number of a stack, given outermost frame first.
    pub fn intern(&mut self, frames: &[AddressId]) -> StackId {
        let hash = hash_of(frames);
        let stacks = &self.stacks;
        if let Some(id) = self.ids.find(hash, |id| stacks.frames(*id) == frames) {
            return *id;
        }
        let id = self.stacks.push(frames.iter().copied());
        let stacks = &self.stacks;
        self.ids.insert_unique(hash, id, |id| hash_of(stacks.frames(*id)));
        id
    }

    /// All stacks, by their numbers.
    pub fn into_stacks(self) -> StackTable {
        self.stacks
    }

    /// Number of distinct stacks.
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// No stack yet.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }
}

fn hash_of(value: impl Hash) -> u64 {
    FxBuildHasher.hash_one(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ModuleId;

    #[test]
    fn equal_stacks_share_a_number() {
        let mut stacks = StackInterner::default();
        let [a, b, c] = [AddressId(0), AddressId(1), AddressId(2)];
        let first = stacks.intern(&[a, b]);
        let other = stacks.intern(&[a, c]);
        let empty = stacks.intern(&[]);
        assert_eq!(stacks.intern(&[a, b]), first);
        assert_ne!(first, other);
        assert_eq!(stacks.intern(&[]), empty);
        let table = stacks.into_stacks();
        assert_eq!(table.len(), 3);
        assert_eq!(table.frames(other), [a, c]);
    }

    #[test]
    fn equal_addresses_share_a_number() {
        let mut code = CodeInterner::default();
        let address = CodeAddress { module: ModuleId(3), address: 0x1000, kernel: false };
        let id = code.intern(address);
        assert_eq!(code.intern(address), id);
        assert_ne!(code.intern(CodeAddress { kernel: true, ..address }), id);
        assert_eq!(code.into_addresses()[id.0 as usize], address);
    }
}
