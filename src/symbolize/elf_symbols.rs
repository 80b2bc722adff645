//! The symbols of an ELF file that perf would show.

use object::read::elf::{ElfFile, FileHeader, Rel, Rela, SectionHeader, Sym};
use object::{ReadRef, SectionIndex, elf};

use super::elf::READ_AT_ONCE;
use super::nearby::{Chosen, Nearby};
use super::symbol_name::SymbolName;
use super::symbol_table::{Binding, Symbol};

/// Symbols of one table of a file, in its order: all of them, or those by which these addresses get their names. `release` gives
/// back what was read of the file.
pub(crate) fn static_symbols<'a>(
    file: &object::File<'a>,
    of: Option<&[u64]>,
    release: &dyn Fn(),
) -> FoundSymbols<'a> {
    match file {
        object::File::Elf32(file) => of_table(file, file.elf_symbol_table(), of, release),
        object::File::Elf64(file) => of_table(file, file.elf_symbol_table(), of, release),
        _ => FoundSymbols::default(),
    }
}

/// Symbols that the dynamic linker sees, likewise.
pub(crate) fn dynamic_symbols<'a>(
    file: &object::File<'a>,
    of: Option<&[u64]>,
    release: &dyn Fn(),
) -> FoundSymbols<'a> {
    match file {
        object::File::Elf32(file) => of_table(file, file.elf_dynamic_symbol_table(), of, release),
        object::File::Elf64(file) => of_table(file, file.elf_dynamic_symbol_table(), of, release),
        _ => FoundSymbols::default(),
    }
}

/// Symbols of a table.
#[derive(Debug, Default)]
pub(crate) struct FoundSymbols<'a> {
    pub(crate) symbols: Vec<Symbol<'a>>,
    /// By what they were chosen, if they are not all.
    pub(crate) chosen: Option<Chosen>,
}

/// The stubs of the procedure linkage table, each named by the function that it leads to.
pub(crate) fn linkage_stubs<'a>(file: &object::File<'a>) -> Vec<Symbol<'a>> {
    match file {
        object::File::Elf32(file) => stubs(file),
        object::File::Elf64(file) => stubs(file),
        _ => Vec::new(),
    }
}

fn of_table<'a, Header: FileHeader, Data: ReadRef<'a>>(
    file: &ElfFile<'a, Header, Data>,
    table: &object::read::elf::SymbolTable<'a, Header, Data>,
    of: Option<&[u64]>,
    release: &dyn Fn(),
) -> FoundSymbols<'a> {
    let mut symbols = Vec::new();
    let Some(addresses) = of else {
        walk(file, table, release, |symbol| symbols.push(symbol));
        return FoundSymbols { symbols, chosen: None };
    };
    let mut nearby = Nearby::new(addresses);
    walk(file, table, release, |symbol| nearby.see(symbol.start, symbol.end));
    let chosen = nearby.chosen();
    walk(file, table, release, |symbol| {
        if chosen.takes(symbol.start) {
            symbols.push(symbol);
        }
    });
    FoundSymbols { symbols, chosen: Some(chosen) }
}

fn walk<'a, Header: FileHeader, Data: ReadRef<'a>>(
    file: &ElfFile<'a, Header, Data>,
    table: &object::read::elf::SymbolTable<'a, Header, Data>,
    release: &dyn Fn(),
    mut take: impl FnMut(Symbol<'a>),
) {
    let endian = file.endian();
    let sections = file.elf_section_table();
    let machine = file.elf_header().e_machine(endian);
    // Labels without type count only in sections of code and data, told by name as perf does.
    let labelled: Vec<bool> = sections
        .iter()
        .map(|section| {
            let name = sections.section_name(endian, section).unwrap_or_default();
            contains(name, b"text") || contains(name, b"data")
        })
        .collect();
    let names =
        sections.section(table.string_section()).and_then(|section| section.data(endian, file.data()));
    let names = names.unwrap_or_default();
    let mut read = 0;
    for (index, symbol) in table.enumerate() {
        if read > READ_AT_ONCE {
            release();
            read = 0;
        }
        read += size_of::<Header::Sym>();
        let Ok(Some(SectionIndex(section))) = table.symbol_section(endian, symbol, index) else { continue };
        let wanted = match symbol.st_type() {
            elf::STT_FUNC | elf::STT_GNU_IFUNC | elf::STT_OBJECT => section < labelled.len(),
            elf::STT_NOTYPE => labelled.get(section).copied().unwrap_or(false),
            _ => false,
        };
        if !wanted {
            continue;
        }
        let name_at = symbol.st_name(endian) as usize;
        let Some(name) = names.get(name_at..).map(SymbolName::new).filter(|_| name_at != 0) else { continue };
        if is_mapping_symbol(machine, name) {
            continue;
        }
        let mut start: u64 = symbol.st_value(endian).into();
        if machine == elf::EM_ARM && symbol.st_type() == elf::STT_FUNC {
            start &= !1; // The lowest bit tells Thumb code.
        }
        let binding = match symbol.st_bind() {
            elf::STB_WEAK => Binding::Weak,
            elf::STB_GLOBAL => Binding::Global,
            _ => Binding::Local,
        };
        let end = start.saturating_add(symbol.st_size(endian).into());
        take(Symbol { start, end, binding, plt: false, name });
    }
    release();
}

/// Labels that tell an assembler's switches between code and data; they name nothing.
fn is_mapping_symbol(machine: u16, name: SymbolName<'_>) -> bool {
    matches!(machine, elf::EM_ARM | elf::EM_AARCH64 | elf::EM_RISCV)
        && matches!(
            name.bytes(),
            [b'$', b'a' | b'd' | b't' | b'x'] | [b'$', b'a' | b'd' | b't' | b'x', b'.', ..]
        )
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn stubs<'a, Header: FileHeader, Data: ReadRef<'a>>(file: &ElfFile<'a, Header, Data>) -> Vec<Symbol<'a>> {
    let endian = file.endian();
    let sections = file.elf_section_table();
    let dynamic = file.elf_dynamic_symbol_table();
    let targets = linkage_targets(file);
    let machine = file.elf_header().e_machine(endian);
    let mut symbols = Vec::new();
    for (name, second) in [(&b".plt"[..], false), (b".plt.sec", true)] {
        let Some((_, section)) = sections.section_by_name(endian, name) else { continue };
        let entry_size: u64 = section.sh_entsize(endian).into();
        let (header, entry) = match machine {
            _ if second => (0, entry_size),
            elf::EM_ARM => (20, 12),
            elf::EM_AARCH64 => (32, 16),
            _ => (entry_size, entry_size),
        };
        if entry == 0 {
            continue;
        }
        let address: u64 = section.sh_addr(endian).into();
        let size: u64 = section.sh_size(endian).into();
        let starts = (header..size).step_by(usize::try_from(entry).unwrap_or(usize::MAX));
        for (inside, target) in starts.zip(&targets) {
            let name = dynamic.symbol(*target).and_then(|symbol| dynamic.symbol_name(endian, symbol));
            // Indirect functions of the file itself have no dynamic symbol: their stubs are plain `@plt`.
            let name = SymbolName::new(name.unwrap_or_default());
            let start = address.saturating_add(inside);
            let end = start.saturating_add(entry);
            symbols.push(Symbol { start, end, binding: Binding::Global, plt: true, name });
        }
    }
    symbols
}

/// Indices of the dynamic symbols that the linkage table's entries lead to, in order.
fn linkage_targets<'a, Header: FileHeader, Data: ReadRef<'a>>(
    file: &ElfFile<'a, Header, Data>,
) -> Vec<object::SymbolIndex> {
    let (endian, data) = (file.endian(), file.data());
    let sections = file.elf_section_table();
    let symbol = |index: u32| object::SymbolIndex(index as usize);
    for name in [&b".rela.plt"[..], b".rel.plt"] {
        let Some((_, section)) = sections.section_by_name(endian, name) else { continue };
        if SectionIndex(section.sh_link(endian) as usize) != file.elf_dynamic_symbol_table().section() {
            continue;
        }
        if let Ok(Some((entries, _))) = section.rela(endian, data) {
            return entries.iter().map(|entry| symbol(entry.r_sym(endian, false))).collect();
        }
        if let Ok(Some((entries, _))) = section.rel(endian, data) {
            return entries.iter().map(|entry| symbol(entry.r_sym(endian))).collect();
        }
    }
    Vec::new()
}
