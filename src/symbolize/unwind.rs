//! Call stacks from a copy of the program's stack: who called whom is told by the unwind tables that
//! compilers put into binaries for exceptions, for programs without frame pointers.
//!
//! The tables are those of this machine's files, so a module that changed since the recording is not used; code
//! without tables (just-in-time code) is taken to keep frame pointers.

use std::ops::Range;
use std::sync::Arc;

use framehop::Unwinder;
use framehop::aarch64::{CacheAarch64, PtrAuthMask, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use rustc_hash::FxHashMap;

use super::error::SymbolizeError;
use super::options::SymbolizeOptions;
use super::unwind_file::{CodeMapping, MappedModule, SectionBytes, UnwindFile};
use super::unwind_files::UnwindFiles;
use crate::profile::{Module, ModuleKind};

/// Most frames of one stack.
const DEEPEST: usize = 1_024;
/// Address spaces kept at once.
const MOST_SPACES: usize = 1_024;
/// Modules added to these spaces. The cache of rules tells only 65,536 sets of modules apart.
const MOST_MODULES: usize = 32_768;
/// Addresses of 64-bit Arm programs are 48 bits; those above sign return addresses.
const ARM_ADDRESS: u64 = (1 << 48) - 1;

/// The processor that a stack was recorded on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl Architecture {
    /// From the name that `uname -m` gives, as recordings hold it.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "x86_64" => Some(Self::X86_64),
            "aarch64" | "arm64" => Some(Self::Aarch64),
            _ => None,
        }
    }
}

/// The registers that unwinding starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackRegisters {
    /// Address of the current instruction.
    pub instruction: u64,
    /// Top of the stack: the address of the first byte of its copy.
    pub stack: u64,
    /// Frame pointer (`rbp`, `x29`).
    pub frame: u64,
    /// Link register (`x30`); 0 on x86.
    pub link: u64,
}

impl StackRegisters {
    /// Out of all recorded registers, by their numbers in the kernel's `asm/perf_regs.h`; `None` if one is missing.
    pub fn select(architecture: Architecture, register: impl Fn(u32) -> Option<u64>) -> Option<Self> {
        let [instruction, stack, frame] = match architecture {
            Architecture::X86_64 => [8, 7, 6],
            Architecture::Aarch64 => [32, 31, 29],
        }
        .map(&register);
        let link = match architecture {
            Architecture::X86_64 => Some(0),
            Architecture::Aarch64 => register(30),
        };
        Some(Self { instruction: instruction?, stack: stack?, frame: frame?, link: link? })
    }

    /// Where only these two are known. They lead to the caller of a function that keeps its return address
    /// in the link register, and no further.
    pub fn without_stack(instruction: u64, link: u64) -> Self {
        Self { instruction, stack: 0, frame: 0, link }
    }
}

/// Unwinds stacks of many processes, keeping opened files and what was learnt of their code.
#[derive(Debug)]
pub struct StackUnwinder {
    options: SymbolizeOptions,
    opened: UnwindFiles,
    files: FxHashMap<Module, Result<Arc<UnwindFile>, usize>>,
    /// Modules whose files were not used.
    refused: Vec<Refused>,
    /// Of each address space, where code of these modules lies.
    refused_ranges: FxHashMap<u32, Vec<(Range<u64>, usize)>>,
    engine: Engine,
}

/// A module whose unwind tables were not read.
#[derive(Debug)]
struct Refused {
    path: String,
    why: SymbolizeError,
    /// Stacks whose last frame lies in it.
    stacks: u64,
}

enum Engine {
    X86_64(Box<Spaces<UnwinderX86_64<SectionBytes>>>),
    Aarch64(Box<Spaces<UnwinderAarch64<SectionBytes>>>),
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::X86_64(_) => "X86_64",
            Self::Aarch64(_) => "Aarch64",
        })
    }
}

impl StackUnwinder {
    /// For stacks of one kind of processor; files are found as for symbols.
    pub fn new(options: SymbolizeOptions, architecture: Architecture) -> Self {
        let engine = match architecture {
            Architecture::X86_64 => {
                Engine::X86_64(Box::new(Spaces::new(UnwinderX86_64::new, CacheX86_64::new)))
            }
            Architecture::Aarch64 => {
                Engine::Aarch64(Box::new(Spaces::new(UnwinderAarch64::new, CacheAarch64::new)))
            }
        };
        let (files, refused_ranges) = (FxHashMap::default(), FxHashMap::default());
        Self { options, opened: UnwindFiles::default(), files, refused: Vec::new(), refused_ranges, engine }
    }

    /// With the files that others opened, all of them by the same options.
    pub fn with_files(self, opened: UnwindFiles) -> Self {
        Self { opened, ..self }
    }

    /// Appends the frames of a stack to `frames`, innermost first: the current instruction, then return
    /// addresses, as in a callchain of the kernel.
    ///
    /// `space` names a state of an address space: where it is the same, `mappings` would be too, and is not called
    /// again.
    pub fn unwind<'m, Mappings: IntoIterator<Item = CodeMapping<'m>>>(
        &mut self,
        space: u32,
        mappings: impl FnOnce() -> Mappings,
        registers: StackRegisters,
        stack: &[u8],
        frames: &mut Vec<u64>,
    ) {
        let Self { options, opened, files, refused, refused_ranges, engine } = self;
        let first = frames.len();
        let modules = || {
            let mut ranges = Vec::new();
            let modules = mappings().into_iter().filter_map(|mapping| {
                if !matches!(mapping.module.kind, ModuleKind::File | ModuleKind::Vdso) {
                    return None;
                }
                let file = files.entry(mapping.module.clone()).or_insert_with(|| {
                    opened.open(options, mapping.module).map_err(|why| {
                        refused.push(Refused { path: mapping.module.path.clone(), why, stacks: 0 });
                        refused.len() - 1
                    })
                });
                match file {
                    Ok(file) => file.mapped(&mapping),
                    Err(refused) => {
                        ranges.push((mapping.start..mapping.end, *refused));
                        None
                    }
                }
            });
            let modules = modules.collect::<Vec<_>>();
            if refused_ranges.len() >= MOST_SPACES {
                refused_ranges.clear();
            }
            match ranges.is_empty() {
                true => refused_ranges.remove(&space),
                false => refused_ranges.insert(space, ranges),
            };
            modules
        };
        let StackRegisters { instruction, stack: top, frame, link } = registers;
        let read = |address: u64| {
            let start = address.checked_sub(top).and_then(|at| usize::try_from(at).ok()).ok_or(())?;
            let bytes = stack.get(start..).and_then(|rest| rest.first_chunk()).ok_or(())?;
            Ok(u64::from_le_bytes(*bytes))
        };
        match engine {
            Engine::X86_64(spaces) => {
                let registers = UnwindRegsX86_64::new(instruction, top, frame);
                spaces.unwind(space, modules, instruction, registers, read, frames);
            }
            Engine::Aarch64(spaces) => {
                let mask = PtrAuthMask(ARM_ADDRESS);
                let registers = UnwindRegsAarch64::new_with_ptr_auth_mask(mask, link, top, frame);
                spaces.unwind(space, modules, instruction, registers, read, frames);
            }
        }
        let ranges = self.refused_ranges.get(&space);
        if let (Some(last), Some(ranges)) = (frames[first..].last(), ranges)
            && let Some((_, refused)) = ranges.iter().find(|(range, _)| range.contains(last))
            && let Some(refused) = self.refused.get_mut(*refused)
        {
            refused.stacks += 1;
        }
    }

    /// Which stacks end early for want of a module's unwind tables, and why there are none.
    pub fn warnings(&self) -> Vec<String> {
        let cut = self.refused.iter().filter(|refused| refused.stacks > 0);
        let warning = |Refused { path, why, stacks }: &Refused| {
            format!("{stacks} call stacks end in {path}, whose unwind tables were not read: {why}")
        };
        cut.map(warning).collect()
    }
}

/// The unwinders of the address spaces seen, and the rules found for their addresses.
struct Spaces<U: Unwinder> {
    unwinders: FxHashMap<u32, U>,
    cache: U::Cache,
    modules: usize,
    new_unwinder: fn() -> U,
    new_cache: fn() -> U::Cache,
}

impl<U: Unwinder<Module = MappedModule>> Spaces<U> {
    fn new(new_unwinder: fn() -> U, new_cache: fn() -> U::Cache) -> Self {
        Self { unwinders: FxHashMap::default(), cache: new_cache(), modules: 0, new_unwinder, new_cache }
    }

    fn unwind(
        &mut self,
        space: u32,
        modules: impl FnOnce() -> Vec<MappedModule>,
        instruction: u64,
        registers: U::UnwindRegs,
        mut read: impl FnMut(u64) -> Result<u64, ()>,
        frames: &mut Vec<u64>,
    ) {
        if !self.unwinders.contains_key(&space) {
            let modules = modules();
            self.modules += modules.len() + 1;
            if self.unwinders.len() >= MOST_SPACES || self.modules > MOST_MODULES {
                self.unwinders.clear();
                self.cache = (self.new_cache)();
                self.modules = modules.len() + 1;
            }
            let mut unwinder = (self.new_unwinder)();
            modules.into_iter().for_each(|module| unwinder.add_module(module));
            self.unwinders.insert(space, unwinder);
        }
        let Some(unwinder) = self.unwinders.get(&space) else { return };
        let mut found = unwinder.iter_frames(instruction, registers, &mut self.cache, &mut read);
        for _ in 0..DEEPEST {
            // An error is the usual end: the copy of the stack is only so long.
            let Ok(Some(frame)) = found.next() else { break };
            frames.push(frame.address());
        }
    }
}
