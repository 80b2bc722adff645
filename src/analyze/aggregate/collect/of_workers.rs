//! Keys that other threads found, numbered as if they had been found here.

use perf_data::RecordPosition;
use rustc_hash::FxHashSet;

use super::Collector;
use crate::analyze::aggregate::call_paths::CallPaths;
use crate::analyze::aggregate::found_keys::{
    FoundKey, FoundKeys, KnownNumbers, NewAddress, Numbering, number_of,
};
use crate::analyze::sample_key::SampleKey;
use crate::profile::{AddressId, CodeAddress, HiddenCallers, ThreadIndex};
use crate::symbolize::ReturnAddressFinder;
use crate::timeline::Tasks;

impl Collector {
    /// One for another thread, which knows the same addresses and functions, and whose paths may take so many bytes before they are
    /// forgotten.
    pub fn of_worker(&self, most_bytes: usize, return_addresses: Option<ReturnAddressFinder>) -> Self {
        Self {
            hashers: self.hashers.clone(),
            located: self.located.clone(),
            code: self.code.clone(),
            are_nowhere: self.are_nowhere.clone(),
            hashes: self.hashes.clone(),
            return_addresses,
            hidden_callers: self.hidden_callers.map(|_| HiddenCallers::default()),
            no_return_addresses: self.no_return_addresses.clone(),
            functions: self.functions.clone(),
            sets: self.sets.clone(),
            paths: CallPaths::telling(),
            ..Self::new(self.dimensions, most_bytes)
        }
    }

    /// How much of it the thread that it is made for knows already.
    pub fn told(&self, tasks: &Tasks) -> KnownNumbers {
        let told_modules = FxHashSet::default();
        KnownNumbers { modules: tasks.modules().len(), told_modules, addresses: self.code.len() }
    }

    /// Adds a sample's key to those that are to be told, of this thread's.
    pub fn found(&mut self, found: &mut FoundKeys, told: &KnownNumbers, at: RecordPosition, key: SampleKey) {
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
    pub fn end_keys(&mut self, found: FoundKeys, told: &mut KnownNumbers, tasks: &Tasks) -> FoundKeys {
        let new = (told.addresses as u32..self.code.len() as u32).map(AddressId).map(|address| {
            let code = self.code.addresses()[address.0 as usize];
            let is_new = code.module.0 as usize >= told.modules && told.told_modules.insert(code.module);
            NewAddress {
                code,
                module: is_new.then(|| tasks.modules()[code.module.0 as usize].clone()),
                is_apart: self.code.is_apart(address),
                is_no_return_address: self.no_return_addresses.contains(&address),
            }
        });
        let addresses = new.collect();
        told.addresses = self.code.len();
        FoundKeys { addresses, parts: self.paths.take_new(), ..found }
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
            let number = self.address_of(numbering, place, tasks);
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
        let own = key.own.get().map(|own| numbering.address(own));
        let callers = numbering.callers[key.callers.0 as usize];
        Some(SampleKey { callers, own: own.into(), thread })
    }

    fn address_of(&mut self, numbering: &mut Numbering, place: usize, tasks: &mut Tasks) -> AddressId {
        let new = &mut numbering.found.addresses[place];
        let module = new.module.take();
        let NewAddress { code, is_apart, is_no_return_address, .. } = *new;
        let code = CodeAddress { module: numbering.module(code.module, module.as_ref(), tasks), ..code };
        let number = if is_apart { self.code.number_apart(code) } else { self.code.intern(code) };
        if is_no_return_address {
            self.no_return_addresses.insert(number);
        }
        number
    }
}
