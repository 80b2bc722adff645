//! The machine code of a function, from the file that was recorded.

use std::path::PathBuf;

use object::{Architecture as FileArchitecture, Object};

use super::elf::Segments;
use super::elf_module::ElfFiles;
use super::error::SymbolizeError;
use super::options::SymbolizeOptions;
use super::split_dwarf::DwoArena;
use super::symbol_table::Symbol;
use super::unwind::Architecture;
use crate::profile::{Module, ModuleKind};

/// Of a function that is larger only so much is read: no compiler makes such, but a damaged symbol table may.
const LARGEST: u64 = 16 << 20;

/// The machine code of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineCode {
    /// What it is for.
    pub architecture: Architecture,
    /// Where it begins, in the module's own virtual addresses.
    pub address: u64,
    /// Where it begins in the module's file, as addresses of samples count.
    pub offset: u64,
    /// The code.
    pub bytes: Vec<u8>,
}

impl MachineCode {
    /// Of functions of one module, each of which is known by an address in it. The file is opened once for all.
    pub(super) fn read_all(
        options: &SymbolizeOptions,
        module: &Module,
        addresses: &[u64],
    ) -> Result<Vec<Result<Self, SymbolizeError>>, SymbolizeError> {
        let missing = |why| SymbolizeError::NoCode { path: PathBuf::from(&module.path), why };
        match module.kind {
            ModuleKind::File | ModuleKind::Vdso => {}
            ModuleKind::Kernel | ModuleKind::KernelModule => {
                return Err(missing("the kernel changes its code while it runs"));
            }
            _ => return Err(missing("it is in no file")),
        }
        let options = SymbolizeOptions { inlines: false, lines: false, ..options.clone() };
        let files = ElfFiles::open(&options, module)?;
        let image = files.image();
        let parsed = object::File::parse(image.data())
            .map_err(|source| SymbolizeError::Format { path: image.path.clone(), source })?;
        let architecture = match parsed.architecture() {
            FileArchitecture::X86_64 => Architecture::X86_64,
            FileArchitecture::Aarch64 => Architecture::Aarch64,
            _ => return Err(missing("it is neither for 64-bit x86 nor for 64-bit Arm")),
        };
        let dwos = DwoArena::default();
        let map = files.code_map(&dwos, None)?;
        let segments = Segments::of(&parsed);
        let read = |&address: &u64| {
            let of_symbol = map.table.find(address, |symbol: &Symbol<'_>| symbol.raw_name().into_owned());
            let extent = of_symbol.map(|symbol| (symbol.start, symbol.end));
            let (start, end) = extent
                .or_else(|| map.starts.extent_of(address))
                .ok_or_else(|| missing("nothing tells where the function begins"))?;
            let outside = || missing("the function lies outside of the file's code");
            let (offset, in_segment) = segments.offset_of(start).ok_or_else(outside)?;
            let length = end.saturating_sub(start).min(in_segment).min(LARGEST);
            let from = usize::try_from(offset).map_err(|_| outside())?;
            let bytes = image.data().get(from..).and_then(|rest| rest.get(..length as usize));
            Ok(Self { architecture, address: start, offset, bytes: bytes.ok_or_else(outside)?.to_vec() })
        };
        Ok(addresses.iter().map(read).collect())
    }
}
