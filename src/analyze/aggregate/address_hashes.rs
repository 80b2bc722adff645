//! What stands for code addresses where their numbers differ.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::analyze::aggregate::call_paths::AddressHash;
use crate::profile::{AddressId, CodeAddress, Module};
use crate::timeline::CodeInterner;

/// By the numbers of addresses, what stands for each whatever number it has: made of what the address and its module are.
/// With 128 bits of hash and a million addresses the chance that two share them is below 10^-26.
#[derive(Debug, Clone)]
pub(crate) struct AddressHashes {
    hashers: [FixedState; 2],
    of_modules: Vec<AddressHash>,
    of_addresses: Vec<AddressHash>,
}

impl Default for AddressHashes {
    fn default() -> Self {
        let hashers = [FixedState::with_seed(7), FixedState::with_seed(8)];
        Self { hashers, of_modules: Vec::new(), of_addresses: Vec::new() }
    }
}

impl AddressHashes {
    /// Those of all addresses so far.
    #[inline]
    pub fn all(&self) -> &[AddressHash] {
        &self.of_addresses
    }

    /// Adds what was numbered since the last time.
    pub fn extend(&mut self, code: &CodeInterner, modules: &[Module]) {
        let Self { hashers, of_modules, of_addresses } = self;
        let new_modules = modules.get(of_modules.len()..).unwrap_or_default();
        of_modules.extend(
            new_modules.iter().map(|module| hashers.each_ref().map(|hasher| hasher.hash_one(module))),
        );
        for number in of_addresses.len()..code.len() {
            let CodeAddress { module, address, kernel } = code.addresses()[number];
            let is_apart = code.is_apart(AddressId(number as u32));
            let of_module = of_modules[module.0 as usize];
            let hash = |at: usize| hashers[at].hash_one((of_module[at], address, kernel, is_apart));
            of_addresses.push([hash(0), hash(1)]);
        }
    }
}
