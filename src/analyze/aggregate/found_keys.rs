//! Keys that other threads found, in numbers of their own.

use perf_data::RecordPosition;

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
    /// Modules, addresses and parts of call paths that were not told before, by the other's numbers.
    pub modules: Vec<Module>,
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
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewAddress {
    pub code: CodeAddress,
    /// It has another number already: see [`crate::timeline::CodeInterner::number_apart`].
    pub is_apart: bool,
    pub is_no_return_address: bool,
}

/// How many modules and addresses both sides number alike, or were told of.
#[derive(Debug, Default)]
pub(crate) struct KnownNumbers {
    pub modules: usize,
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
    pub modules: Vec<Module>,
    pub numbers_of_modules: Vec<Option<ModuleId>>,
    pub first_module: usize,
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
            modules: Vec::new(),
            numbers_of_modules: Vec::new(),
            first_module: told.modules,
        }
    }

    /// Takes what the thread found next.
    pub fn begin(&mut self, mut found: FoundKeys) {
        if found.begins_anew {
            self.callers.truncate(1);
        }
        self.modules.append(&mut found.modules);
        self.numbers_of_modules.resize(self.modules.len(), None);
        (self.found, self.next, self.next_address, self.next_part) = (found, 0, 0, 0);
    }

    /// The number here of a module of the other thread.
    pub fn module(&mut self, module: ModuleId, tasks: &mut Tasks) -> ModuleId {
        let Some(place) = (module.0 as usize).checked_sub(self.first_module) else { return module };
        *self.numbers_of_modules[place].get_or_insert_with(|| tasks.module_of_other(&self.modules[place]))
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
