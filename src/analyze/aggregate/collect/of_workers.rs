//! Keys that other threads found, numbered as if they had been found here.

use perf_data::RecordPosition;

use super::Collector;
use crate::analyze::aggregate::call_paths::{CallPaths, NewParts};
use crate::analyze::aggregate::key_table::KeyTable;
use crate::analyze::sample_key::{OwnAddress, SampleKey};
use crate::profile::{AddressId, CallersId, CodeAddress, Module, ModuleId, ThreadIndex};
use crate::symbolize::ReturnAddressFinder;
use crate::timeline::Tasks;

/// What another thread found of samples in a row. Its numbers of modules, addresses and callers are its own; what is new to it is
/// told before it is used, in the order in which it was met.
#[derive(Debug, Default)]
pub(crate) struct FoundKeys {
    /// Callers are numbered anew from here on.
    begins_anew: bool,
    modules: Vec<Module>,
    addresses: Vec<NewAddress>,
    parts: NewParts,
    keys: Vec<FoundKey>,
}

#[derive(Debug, Clone, Copy)]
struct FoundKey {
    /// Of which sample.
    at: RecordPosition,
    callers: CallersId,
    own: OwnAddress,
    /// So many of the new addresses and parts were met up to it.
    addresses: u32,
    parts: u32,
}

#[derive(Debug, Clone, Copy)]
struct NewAddress {
    code: CodeAddress,
    is_apart: bool,
    is_no_return_address: bool,
}

/// What has been told of a thread's numbers, on both sides.
#[derive(Debug, Default)]
pub(crate) struct Told {
    modules: usize,
    addresses: usize,
}

impl Collector {
    /// One for another thread, which knows the same addresses and functions, and whose paths may take so many bytes before they are
    /// forgotten.
    pub fn of_worker(&self, most_bytes: usize, return_addresses: Option<ReturnAddressFinder>) -> Self {
        let mut new = Self::new(self.dimensions, most_bytes);
        new.hashers = self.hashers.clone();
        new.located = self.located.clone();
        new.code = self.code.clone();
        new.are_nowhere = self.are_nowhere.clone();
        new.hashes = self.hashes.clone();
        new.return_addresses = return_addresses;
        new.no_return_addresses = self.no_return_addresses.clone();
        new.functions = self.functions.clone();
        new.sets = self.sets.clone();
        new.known_callers = KeyTable::default();
        new.paths = CallPaths::telling();
        new.is_telling = true;
        new
    }

    /// How much of it the thread that it is made for knows already.
    pub fn told(&self, tasks: &Tasks) -> Told {
        Told { modules: tasks.modules().len(), addresses: self.code.len() }
    }

    /// Adds a sample's key to those that are to be told, of this thread's.
    pub fn found(&mut self, found: &mut FoundKeys, told: &Told, at: RecordPosition, key: SampleKey) {
        let SampleKey { callers, own, .. } = key;
        let addresses = (self.code.len() - told.addresses) as u32;
        let parts = self.paths.new_len() as u32;
        found.keys.push(FoundKey { at, callers, own, addresses, parts });
    }

    /// Begins with the next samples: forgets paths if they are too many.
    pub fn begin_keys(&mut self) -> FoundKeys {
        let begins_anew = self.is_full;
        if begins_anew {
            self.take_paths();
        }
        FoundKeys { begins_anew, ..FoundKeys::default() }
    }

    /// Ends them: puts in what was new.
    pub fn end_keys(&mut self, found: FoundKeys, told: &mut Told, tasks: &Tasks) -> FoundKeys {
        let modules = tasks.modules()[told.modules..].to_vec();
        let new = (told.addresses as u32..self.code.len() as u32).map(AddressId).map(|address| NewAddress {
            code: self.code.addresses()[address.0 as usize],
            is_apart: self.code.is_apart(address),
            is_no_return_address: self.no_return_addresses.contains(&address),
        });
        let addresses = new.collect();
        *told = self.told(tasks);
        FoundKeys { modules, addresses, parts: self.paths.take_new(), ..found }
    }

    /// The next key of those that another thread found, which must be of the sample at this place; `None` if it is not, or if
    /// addresses would be more than are told apart.
    pub fn key_of(
        &mut self,
        numbering: &mut Numbering,
        tasks: &mut Tasks,
        at: RecordPosition,
        thread: ThreadIndex,
    ) -> Option<SampleKey> {
        let key = numbering.found.keys.get(numbering.next).filter(|key| key.at == at).copied()?;
        let new = key.addresses as usize - numbering.next_address;
        if self.code.len() + new > self.most_addresses {
            return None;
        }
        for place in numbering.next_address..key.addresses as usize {
            let number = self.address_of(numbering, numbering.found.addresses[place], tasks);
            numbering.addresses.push(number);
        }
        for part in numbering.next_part..key.parts as usize {
            let Numbering { found, callers, addresses, first_address, .. } = &mut *numbering;
            let number = |address| number_of(addresses, *first_address, address);
            self.paths.add_part(&found.parts, part, callers, number);
        }
        if (key.parts as usize) > numbering.next_part {
            self.is_full = self.are_too_many();
        }
        numbering.next += 1;
        (numbering.next_address, numbering.next_part) = (key.addresses as usize, key.parts as usize);
        let own = key.own.get().map(|own| number_of(&numbering.addresses, numbering.first_address, own));
        let callers = numbering.callers[key.callers.0 as usize];
        Some(SampleKey { callers, own: own.into(), thread })
    }

    fn address_of(&mut self, numbering: &mut Numbering, new: NewAddress, tasks: &mut Tasks) -> AddressId {
        let NewAddress { code, is_apart, is_no_return_address } = new;
        let code = CodeAddress { module: numbering.module(code.module, tasks), ..code };
        let number = if is_apart { self.code.number_apart(code) } else { self.code.intern(code) };
        if is_no_return_address {
            self.no_return_addresses.insert(number);
        }
        number
    }
}

fn number_of(addresses: &[AddressId], first: usize, address: AddressId) -> AddressId {
    match (address.0 as usize).checked_sub(first) {
        Some(place) => addresses[place],
        None => address,
    }
}

/// The numbers here of what another thread numbered, and what it found last.
#[derive(Debug)]
pub(crate) struct Numbering {
    found: FoundKeys,
    next: usize,
    next_address: usize,
    next_part: usize,
    /// By the other's numbers.
    callers: Vec<CallersId>,
    /// By the other's numbers from the first on that was not known here when it began.
    addresses: Vec<AddressId>,
    first_address: usize,
    modules: Vec<Module>,
    numbers_of_modules: Vec<Option<ModuleId>>,
    first_module: usize,
}

impl Numbering {
    /// Of a thread that knows what this one knows.
    pub fn new(told: &Told) -> Self {
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

    fn module(&mut self, module: ModuleId, tasks: &mut Tasks) -> ModuleId {
        let Some(place) = (module.0 as usize).checked_sub(self.first_module) else { return module };
        *self.numbers_of_modules[place].get_or_insert_with(|| tasks.module_of_other(&self.modules[place]))
    }
}
