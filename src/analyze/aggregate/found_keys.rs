//! Keys that other threads found, in numbers of their own.

use perf_data::RecordPosition;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analyze::aggregate::call_paths::NewParts;
use crate::analyze::sample_key::OwnAddress;
use crate::profile::{AddressId, CallersId, CodeAddress, Module, ModuleId};
use crate::timeline::Tasks;

/// What another thread found of samples in a row. Its numbers of modules, addresses and callers are its own; what is new to it is
/// told before it is used, in the order in which it was met.
#[derive(Debug, Default)]
pub(crate) struct FoundKeys {
    /// Callers are numbered anew from here on.
    pub begins_anew: bool,
    /// Addresses and parts of call paths that were not told before.
    pub addresses: Vec<NewAddress>,
    pub parts: NewParts,
    /// Of each sample of the program.
    pub keys: Vec<FoundKey>,
}

/// The key of a sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundKey {
    /// Of which sample.
    pub at: RecordPosition,
    pub callers: CallersId,
    pub own: OwnAddress,
    /// So many of the new addresses and parts were met up to it.
    pub addresses: u32,
    pub parts: u32,
}

/// An address, whose module has the other's number.
#[derive(Debug)]
pub(crate) struct NewAddress {
    pub code: CodeAddress,
    /// Its module, if that was not told before.
    pub module: Option<Module>,
    /// It has another number already: see [`crate::timeline::CodeInterner::number_apart`].
    pub is_apart: bool,
    pub is_no_return_address: bool,
}

/// What both sides number alike or were told of.
#[derive(Debug, Default)]
pub(crate) struct KnownNumbers {
    /// So many modules are numbered alike, and of the others these were told.
    pub modules: usize,
    pub told_modules: FxHashSet<ModuleId>,
    /// So many addresses.
    pub addresses: usize,
}

/// The numbers here of what another thread numbered, and what it found last.
#[derive(Debug)]
pub(crate) struct Numbering {
    pub found: FoundKeys,
    /// What of that comes next.
    pub next: usize,
    pub next_address: usize,
    pub next_part: usize,
    /// By the other's numbers.
    pub callers: Vec<CallersId>,
    /// By the other's numbers from the first on that was not known here when it began.
    pub addresses: Vec<AddressId>,
    pub first_address: usize,
    /// The same of modules.
    pub modules: FxHashMap<ModuleId, ModuleId>,
}

impl Numbering {
    /// Of a thread that knows what this one knows.
    pub fn new(told: &KnownNumbers) -> Self {
        Self {
            found: FoundKeys::default(),
            next: 0,
            next_address: 0,
            next_part: 0,
            callers: vec![CallersId::NONE],
            addresses: Vec::new(),
            first_address: told.addresses,
            modules: FxHashMap::default(),
        }
    }

    /// Takes what the thread found next.
    pub fn begin(&mut self, found: FoundKeys) {
        if found.begins_anew {
            self.callers.truncate(1);
        }
        (self.found, self.next, self.next_address, self.next_part) = (found, 0, 0, 0);
    }

    /// The number here of a module of the other thread, which is told with the first of its addresses.
    pub fn module(&mut self, number: ModuleId, told: Option<&Module>, tasks: &mut Tasks) -> ModuleId {
        if let Some(module) = told {
            self.modules.insert(number, tasks.module_of_other(module));
        }
        // The others are numbered alike.
        self.modules.get(&number).copied().unwrap_or(number)
    }

    /// The number here of an address of the other thread.
    pub fn address(&self, address: AddressId) -> AddressId {
        number_of(&self.addresses, self.first_address, address)
    }
}

/// The number of an address, by those of the ones from the first on that was not known when the other began.
pub(crate) fn number_of(addresses: &[AddressId], first: usize, address: AddressId) -> AddressId {
    match (address.0 as usize).checked_sub(first) {
        Some(place) => addresses[place],
        None => address,
    }
}
