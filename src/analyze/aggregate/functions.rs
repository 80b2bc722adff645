//! Functions whose addresses need not be told apart.
//!
//! A program has many addresses and few functions. Where only functions are asked for, stacks that differ in nothing else are
//! one: after the first samples of a recording the symbols of what they met are looked up, and from then on one address stands
//! for all others that the same symbol names. That is an economy and no more: addresses of other functions, and those that were
//! met before, stay what they are, and every stack still has the names that it had.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::profile::{AddressId, CodeAddress, Module, ModuleId, ModuleKind};
use crate::symbolize::{SymbolizeOptions, Symbolizer};

/// Samples before functions are looked up: enough to meet nearly all that matter.
/// Tests have few samples.
pub(crate) const SAMPLES_BEFORE: u64 = if cfg!(test) { 100 } else { 1 << 15 };

/// Functions, each with the address that stands for all of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Functions {
    /// By module and start: where each function ends, and its address.
    by_module: FxHashMap<ModuleId, BTreeMap<u64, (u64, AddressId)>>,
    standing: FxHashSet<AddressId>,
}

impl Functions {
    /// The functions in files that some of these addresses, in these modules, are of; `may_stand` tells which addresses may
    /// stand for others.
    pub fn of(
        options: &SymbolizeOptions,
        modules: &[Module],
        addresses: &[CodeAddress],
        may_stand: impl Fn(AddressId) -> bool,
    ) -> Self {
        let is_of_file = |code: &CodeAddress| {
            modules.get(code.module.0 as usize).is_some_and(|module| module.kind == ModuleKind::File)
        };
        let numbered = (0..).map(AddressId).zip(addresses);
        let met = numbered.filter(|(id, code)| is_of_file(code) && may_stand(*id));
        let (ids, met): (Vec<AddressId>, Vec<CodeAddress>) = met.map(|(id, code)| (id, *code)).unzip();
        let symbols = Symbolizer::new(options.clone()).symbolize(modules, &met);
        let mut functions = Self::default();
        for (index, (id, code)) in (0..).map(AddressId).zip(ids.into_iter().zip(met)) {
            let Some(extent) = symbols.extent(index) else { continue };
            let of_module = functions.by_module.entry(code.module).or_default();
            let (_, standing) = *of_module.entry(extent.start).or_insert((extent.end, id));
            functions.standing.insert(standing);
        }
        functions
    }

    /// Functions of one module: where each begins and ends, and what stands for it.
    #[cfg(test)]
    pub fn of_extents(module: ModuleId, extents: &[(u64, u64, AddressId)]) -> Self {
        let standing = extents.iter().map(|&(.., standing)| standing).collect();
        let extents = extents.iter().map(|&(start, end, standing)| (start, (end, standing))).collect();
        Self { by_module: FxHashMap::from_iter([(module, extents)]), standing }
    }

    /// The address that stands for this one.
    pub fn find(&self, code: CodeAddress) -> Option<AddressId> {
        let of_module = self.by_module.get(&code.module).filter(|_| !code.kernel)?;
        let (_, (end, standing)) = of_module.range(..=code.address).next_back()?;
        (code.address < *end).then_some(*standing)
    }

    /// The address stands for others, too.
    pub fn is_standing(&self, address: AddressId) -> bool {
        self.standing.contains(&address)
    }
}

#[cfg(test)]
mod tests {
    use object::{Object, ObjectSection};

    use super::*;

    /// Of this test's own file: every address of a function is that function's, and no other is.
    #[test]
    fn one_address_stands_for_a_function() {
        let path = std::env::current_exe().expect("a path").display().to_string();
        let modules = [Module { kind: ModuleKind::File, path, build_id: None, inode: None, pid: None }];
        let bytes = std::fs::read(&modules[0].path).expect("a file");
        let file = object::File::parse(bytes.as_slice()).expect("a program");
        let text = file.section_by_name(".text").and_then(|text| text.file_range());
        let (start, size) = text.expect("code");
        let code = |address| CodeAddress { module: ModuleId(0), address, kernel: false };
        let met: Vec<CodeAddress> = (0..4_000).map(|step| code(start + step * (size / 4_000))).collect();
        let options = SymbolizeOptions { inlines: false, lines: false, ..SymbolizeOptions::default() };
        let may_stand = |id: AddressId| !id.0.is_multiple_of(3);
        let functions = Functions::of(&options, &modules, &met, may_stand);
        assert!(functions.standing.len() > 100, "{}", functions.standing.len());
        assert!(functions.standing.iter().all(|id| may_stand(*id)));
        let others: Vec<CodeAddress> = met.iter().map(|met| code(met.address + 3)).collect();
        let names = |addresses: &[CodeAddress]| {
            let symbols = Symbolizer::new(options.clone()).symbolize(&modules, addresses);
            let name = |index| {
                let function = symbols.function(symbols.frames(AddressId(index))[0].function);
                (function.raw_name.clone(), function.address, function.known)
            };
            (0..addresses.len() as u32).map(name).collect::<Vec<_>>()
        };
        let (of_met, of_others) = (names(&met), names(&others));
        let mut found = 0;
        for (other, name) in others.iter().zip(&of_others) {
            if let Some(standing) = functions.find(*other) {
                assert_eq!(&of_met[standing.0 as usize], name, "{other:?}");
                found += 1;
            }
            assert_eq!(functions.find(CodeAddress { kernel: true, ..*other }), None);
            assert_eq!(functions.find(CodeAddress { module: ModuleId(1), ..*other }), None);
        }
        assert!(found > 1_000, "{found}");
    }

    /// A thousand addresses of the largest function of this test's own file, one sample at each.
    #[test]
    fn behind_the_first_samples_a_function_has_one_address() {
        use std::sync::Arc;

        use object::ObjectSymbol;
        use perf_data::encode::{self, MappingFields, SampleFields, SampleId};
        use perf_data::record::CpuMode;

        use crate::analyze::Options;
        use crate::analyze::fixture::{PERIOD, SAMPLE_TYPE, file_with, metadata};
        use crate::analyze::memory::MemoryLimit;
        use crate::analyze::options::{FunctionsAlone, FunctionsOfStacks};
        use crate::analyze::run::Analysis;
        use crate::recording::Recording;
        use crate::units::Timestamp;

        const ADDRESSES: u64 = 1_000;
        const CONTEXT_USER: u64 = -512i64 as u64;
        const PLACE: u64 = 0x10_0000_0000;
        let path = std::env::current_exe().expect("a path").display().to_string();
        let bytes = std::fs::read(&path).expect("a file");
        let file = object::File::parse(bytes.as_slice()).expect("a program");
        let text = file.section_by_name(".text").expect("code");
        let (start, size) = text.file_range().expect("code lies in the file");
        let is_of_text = |symbol: &object::Symbol<'_, '_>| symbol.section_index() == Some(text.index());
        let largest = file.symbols().filter(is_of_text).max_by_key(ObjectSymbol::size).expect("functions");
        assert!(largest.size() > ADDRESSES && size < PLACE);
        let first = PLACE + start + (largest.address() - text.address());
        let write = |time: Timestamp, records: &mut Vec<u8>| {
            let fields = MappingFields {
                pid: 60,
                tid: 60,
                addresses: PLACE..PLACE + (start + size).next_multiple_of(0x1000),
                file_offset: 0,
                // None: the file is what it was.
                inode: (0, 0, 0),
                protection: 5,
                flags: 2,
                path: path.as_bytes(),
            };
            let id = SampleId { pid: 60, tid: 60, time, cpu: 0, id: 1 };
            encode::mmap2(&fields, &id, records).expect("short");
            for ip in first..first + ADDRESSES {
                let fields = SampleFields {
                    id: 1,
                    ip,
                    mode: CpuMode::User,
                    pid: 60,
                    tid: 60,
                    time,
                    cpu: 0,
                    period: PERIOD,
                    callchain: &[CONTEXT_USER, ip],
                    raw: &[],
                };
                encode::sample(SAMPLE_TYPE, &fields, records).expect("short");
            }
        };
        // Beside the reading before all other samples alone.
        let is_first = |number: usize| number == 0;
        let recording = Recording::from_bytes(file_with(&[vec![1]], metadata(), is_first, write));
        let recording = Arc::new(recording.expect("a recording"));
        let addresses = |functions: Option<FunctionsAlone>| {
            let options = Options { functions, threads: Some(1), ..Options::default() };
            let profile = Analysis::new(&recording, &options, MemoryLimit::NONE).into_whole();
            let profile = profile.expect("there is memory");
            let of_file = profile
                .addresses
                .iter()
                .filter(|address| profile.modules[address.module.0 as usize].kind == ModuleKind::File);
            of_file.count() as u64
        };
        let symbols = SymbolizeOptions { inlines: false, lines: false, ..SymbolizeOptions::default() };
        let alone = FunctionsAlone { symbols, of_stacks: FunctionsOfStacks::Paths };
        assert_eq!(addresses(None), ADDRESSES);
        // What was met before, of which one stands for all that come behind it.
        assert_eq!(addresses(Some(alone)), SAMPLES_BEFORE - 1);
    }
}
