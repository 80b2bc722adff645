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
//! Beside that, [`StackUnwinder`] makes call stacks of copied stacks, from the same files, [`ReturnAddressFinder`] tells
//! where functions without a frame have their callers, and [`jitdump`] where just-in-time compilers placed their
//! functions.
//!
//! Nothing is fetched from a network unless it is asked for ([`Debuginfod`]), and a file that is not the recorded one is
//! not used: what has no symbol keeps its module as its name, with the start of its function if unwind tables tell it.

mod call_instruction;
mod code_map;
mod debug_file;
mod debug_sections;
mod debuginfod;
mod declaration;
mod demangle;
mod dwarf;
mod elf;
mod elf_module;
mod elf_symbols;
mod error;
mod function_starts;
pub mod jitdump;
mod kallsyms;
mod kept_tables;
mod kernel;
mod kernel_cache;
mod known_returns;
mod machine_code;
mod named_files;
mod nearby;
mod options;
mod perf_map;
mod read_ahead;
mod return_address;
mod running_kernel;
mod scopes;
mod source;
mod split_dwarf;
mod symbol_cache;
mod symbol_name;
mod symbol_table;
mod symbolizer;
mod symbols;
mod unit_limits;
mod units;
mod unwind;
mod unwind_file;
mod unwind_files;
mod vdso;

pub use debuginfod::Debuginfod;
pub use error::SymbolizeError;
pub use known_returns::ReturnAddress;
pub use machine_code::MachineCode;
pub use options::{KernelReference, SymbolizeOptions};
pub use read_ahead::KernelListAhead;
pub use return_address::ReturnAddressFinder;
pub use symbol_cache::SymbolCache;
pub use symbolizer::Symbolizer;
pub use symbols::{FileId, Function, FunctionId, SourceFrame, SymbolWarning, Symbols};
pub(crate) use symbols::{FoundFrames, FoundFunction, Item, SymbolsBuilder};
pub use unwind::{Architecture, StackRegisters, StackUnwinder};
pub use unwind_file::CodeMapping;
pub use unwind_files::UnwindFiles;
