//! Beside the pipeline: code addresses to functions, inlined frames and source lines.
//!
//! Attribution comes first, so each unique address is looked up once. The addresses are sorted by module;
//! each module is opened once, its symbol table built once, and the units of its debug information parsed once,
//! by the thread that the unit's addresses fall to (a unit with very many addresses falls to several):
//!
//! ```text
//!   module ──► image, debug file ──► symbol table ──► function ──┐
//!   (build-id checked)         └───► DWARF units  ──► inlined ───┴─► Symbols
//! ```
//!
//! Beside that, [`StackUnwinder`] makes call stacks of copied stacks, from the same files, and [`jitdump`] tells where
//! just-in-time compilers placed their functions.
//!
//! Nothing is fetched from a network, and a file that is not the recorded one is not used: what has no
//! symbol keeps module and offset as its name.

mod code_map;
mod debug_file;
mod debug_sections;
mod demangle;
mod dwarf;
mod elf;
mod elf_module;
mod elf_symbols;
mod error;
pub mod jitdump;
mod kallsyms;
mod kernel;
mod kernel_cache;
mod named_files;
mod options;
mod perf_map;
mod read_ahead;
mod running_kernel;
mod source;
mod split_dwarf;
mod symbol_table;
mod symbolizer;
mod symbols;
mod threads;
mod unit_limits;
mod units;
mod unwind;
mod vdso;

pub use error::SymbolizeError;
pub use options::{KernelReference, SymbolizeOptions};
pub use read_ahead::KernelListAhead;
pub use symbolizer::Symbolizer;
pub use symbols::{FileId, Function, FunctionId, SourceFrame, Symbols};
pub(crate) use symbols::{FoundFrames, FoundFunction, Item, SymbolsBuilder};
pub use unwind::{Architecture, CodeMapping, StackRegisters, StackUnwinder};
