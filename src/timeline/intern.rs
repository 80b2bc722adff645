//! One number for each distinct code address and call stack.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::profile::{AddressId, CallersId, CodeAddress, StackId, StackTable};

/// Gives each distinct code address a number.
#[derive(Debug, Clone, Default)]
pub struct CodeInterner {
    ids: FxHashMap<CodeAddress, AddressId>,
    addresses: Vec<CodeAddress>,
    /// The other numbers of addresses that have two.
    apart: FxHashMap<CodeAddress, AddressId>,
}

impl CodeInterner {
    /// The number of an address.
    pub fn intern(&mut self, address: CodeAddress) -> AddressId {
        *self.ids.entry(address).or_insert_with(|| {
            self.addresses.push(address);
            AddressId(self.addresses.len() as u32 - 1)
        })
    }

    /// Whether an address has a number.
    pub fn has(&self, address: CodeAddress) -> bool {
        self.ids.contains_key(&address)
    }

    /// Another number for an address, which [`CodeInterner::intern`] does not give: always the same.
    pub fn number_apart(&mut self, address: CodeAddress) -> AddressId {
        *self.apart.entry(address).or_insert_with(|| {
            self.addresses.push(address);
            AddressId(self.addresses.len() as u32 - 1)
        })
    }

    /// Whether a number is one that [`CodeInterner::number_apart`] gave.
    pub fn is_apart(&self, number: AddressId) -> bool {
        !self.apart.is_empty() && self.apart.get(&self.addresses[number.0 as usize]) == Some(&number)
    }

    /// All addresses so far, by their numbers.
    pub fn addresses(&self) -> &[CodeAddress] {
        &self.addresses
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
    /// With what decides their place, so that a table that grows need not look at the stacks themselves.
    stack_ids: HashTable<((CallersId, Option<AddressId>), StackId)>,
    stacks: StackTable,
}

impl StackInterner {
    /// The number of the stack that has this frame on top of its callers.
    pub fn stack(&mut self, callers: CallersId, innermost: Option<AddressId>) -> StackId {
        let key = (callers, innermost);
        let hash = hash_of(key);
        if let Some((_, id)) = self.stack_ids.find(hash, |(known, _)| *known == key) {
            return *id;
        }
        let id = self.stacks.push(callers, innermost);
        self.stack_ids.insert_unique(hash, (key, id), |(key, _)| hash_of(*key));
        id
    }

    /// The stacks so far.
    pub fn stacks(&self) -> &StackTable {
        &self.stacks
    }

    /// All stacks, by their numbers.
    pub fn into_stacks(self) -> StackTable {
        self.stacks
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
        let callers = CallersId(a.0 + 1);
        let first = stacks.stack(callers, Some(b));
        let other = stacks.stack(callers, Some(c));
        assert_eq!(stacks.stack(callers, Some(b)), first);
        assert_ne!(first, other);
        let table = stacks.into_stacks();
        assert_eq!(table.len(), 2);
        assert_eq!((table.callers(other), table.innermost(other)), (callers, Some(c)));
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
