//! Symbols by address, with the rules by which perf fills gaps and chooses among aliases.
//!
//! The same address must get the same name as in `perf report`, so its documented behaviour is followed:
//! a symbol without size reaches to the next one (data symbols count), and of several at one address the best is
//! the one with a size, then not weak, then global, then with fewer leading underscores, then with the longer
//! name, then the earlier one.

use std::borrow::Cow;
use std::ops::Range;

use super::nearby::Chosen;
use super::symbol_name::SymbolName;

/// Deepest nesting of symbols that is looked through.
const NESTING_LIMIT: usize = 64;
/// A symbol without size at the end of the table reaches to the end of the next page.
const PAGE: u64 = 4096;

/// How a symbol is bound; the order has no meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binding {
    Local,
    Global,
    Weak,
}

/// A symbol of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Symbol<'a> {
    pub(crate) start: u64,
    /// First address behind it.
    pub(crate) end: u64,
    pub(crate) binding: Binding,
    /// The name is that of the function which this entry of the procedure linkage table leads to.
    pub(crate) plt: bool,
    pub(crate) name: SymbolName<'a>,
}

impl<'a> Symbol<'a> {
    /// The name as it stands in the file, bytes that are no UTF-8 replaced; `name@plt` for linkage stubs.
    pub(crate) fn raw_name(&self) -> Cow<'a, str> {
        let name = String::from_utf8_lossy(self.name.bytes());
        if self.plt { Cow::Owned(format!("{name}@plt")) } else { name }
    }
}

/// What fills the space behind a symbol of size zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GapRule {
    /// It reaches to the next symbol.
    NextSymbol,
    /// As above, but the last symbol of the kernel or of a module ends with its page. Module names
    /// stand in brackets behind a tab in the symbol's name, as in kallsyms; they are cut off.
    Kallsyms,
}

/// Sorted symbols of one module.
#[derive(Debug, Default)]
pub(crate) struct SymbolTable<'a> {
    /// By start; in the order of the file where equal.
    symbols: Vec<Symbol<'a>>,
    /// For each symbol, the highest end up to it.
    reach: Vec<u64>,
    /// Where not all symbols of the file are here: the addresses that these were chosen for, ascending, and the last end
    /// before each.
    ended: Vec<(u64, u64)>,
}

impl<'a> SymbolTable<'a> {
    /// From symbols in the order of their file. `exact` ones (linkage stubs) neither get nor limit a size.
    pub(crate) fn new(mut symbols: Vec<Symbol<'a>>, exact: Vec<Symbol<'a>>, rule: GapRule) -> Self {
        symbols.sort_by_key(|symbol| symbol.start);
        fill_gaps(&mut symbols, rule);
        if rule == GapRule::Kallsyms {
            for symbol in &mut symbols {
                let name = symbol.name.bytes();
                let module = module_of(name).map_or(0, |module| module.len() + 1);
                symbol.name = SymbolName::new(&name[..name.len() - module]);
            }
        }
        if !exact.is_empty() {
            symbols.extend(exact);
            symbols.sort_by_key(|symbol| symbol.start);
        }
        let mut highest = 0;
        let reach = symbols
            .iter()
            .map(|symbol| {
                highest = highest.max(symbol.end);
                highest
            })
            .collect();
        Self { symbols, reach, ended: Vec::new() }
    }

    /// It has the symbols that were chosen for some addresses, and is asked for these alone.
    pub(crate) fn of_chosen(self, chosen: Chosen) -> Self {
        Self { ended: chosen.ended, ..self }
    }

    /// Of symbols in the order of a table, each with the highest end up to it in that table.
    pub(crate) fn of_sorted(symbols: impl Iterator<Item = (Symbol<'a>, u64)>) -> Self {
        let (symbols, reach) = symbols.unzip();
        Self { symbols, reach, ended: Vec::new() }
    }

    /// The symbols in order, each with the highest end up to it.
    pub(crate) fn with_reach(&self) -> impl Iterator<Item = (Symbol<'a>, u64)> {
        self.symbols.iter().copied().zip(self.reach.iter().copied())
    }

    /// The symbol that contains `address`, the innermost where several nest. `readable` turns a raw name into
    /// the one whose length and underscores decide among aliases.
    pub(crate) fn find(&self, address: u64, readable: impl Fn(&Symbol<'a>) -> String) -> Option<Symbol<'a>> {
        let mut behind = self.symbols.partition_point(|symbol| symbol.start <= address);
        for _ in 0..NESTING_LIMIT {
            let last = behind.checked_sub(1)?;
            if self.reach[last] <= address {
                return None;
            }
            let start = self.symbols[last].start;
            let first = self.symbols[..behind].partition_point(|symbol| symbol.start < start);
            if let Some(best) = best_alias(&self.symbols[first..behind], &readable)
                && address < best.end
            {
                return Some(best);
            }
            behind = first;
        }
        None
    }
}

impl SymbolTable<'_> {
    /// The addresses around `address` that no symbol contains, as far as that is certain; `None` where one may.
    pub(crate) fn gap(&self, address: u64) -> Option<Range<u64>> {
        let behind = self.symbols.partition_point(|symbol| symbol.start <= address);
        let start = behind.checked_sub(1).map_or(0, |last| self.reach[last]).max(self.ended(address));
        let end = self.symbols.get(behind).map_or(u64::MAX, |next| next.start);
        (start <= address).then_some(start..end)
    }

    /// The addresses around `address` that [`SymbolTable::find`] gives the same symbol, as far as that is certain;
    /// `None` where it gives none.
    pub(crate) fn extent(&self, address: u64) -> Option<Range<u64>> {
        let mut behind = self.symbols.partition_point(|symbol| symbol.start <= address);
        let mut end = self.symbols.get(behind).map_or(u64::MAX, |next| next.start);
        let (mut start, mut is_found) = (self.ended(address), false);
        for _ in 0..NESTING_LIMIT {
            let Some(last) = behind.checked_sub(1).filter(|last| self.reach[*last] > address) else { break };
            let its_start = self.symbols[last].start;
            let first = self.symbols[..behind].partition_point(|symbol| symbol.start < its_start);
            let ends = || self.symbols[first..behind].iter().map(|alias| alias.end);
            end = ends().filter(|its| *its > address).fold(end, u64::min);
            start = ends().filter(|its| *its <= address).fold(start, u64::max);
            if ends().any(|its| its > address) {
                is_found = true;
                start = start.max(its_start);
            }
            // Where aliases end at different addresses, the best one may not reach here, and an outer symbol counts.
            if ends().all(|its| its > address) {
                break;
            }
            behind = first;
        }
        is_found.then_some(start..end)
    }

    /// What is known of symbols before an address that are not here.
    fn ended(&self, address: u64) -> u64 {
        let at = self.ended.binary_search_by_key(&address, |(address, _)| *address);
        at.map_or(0, |at| self.ended[at].1)
    }
}

fn fill_gaps(symbols: &mut [Symbol<'_>], rule: GapRule) {
    for index in 1..symbols.len() {
        let (next_start, next_name) = (symbols[index].start, symbols[index].name);
        let symbol = &mut symbols[index - 1];
        if symbol.end != symbol.start {
            continue;
        }
        let leaves_module =
            rule == GapRule::Kallsyms && module_of(symbol.name.bytes()) != module_of(next_name.bytes());
        symbol.end = if leaves_module { page_behind(symbol.start) } else { next_start };
    }
    if let Some(last) = symbols.last_mut()
        && last.end == last.start
    {
        last.end = page_behind(last.start);
    }
}

fn page_behind(address: u64) -> u64 {
    address.div_ceil(PAGE).saturating_add(1).saturating_mul(PAGE)
}

/// The `[module]` behind the tab of a kallsyms name.
fn module_of(name: &[u8]) -> Option<&[u8]> {
    // Nearly all names have none, which their last byte tells.
    if name.last() != Some(&b']') {
        return None;
    }
    let tab = name.iter().position(|&byte| byte == b'\t')?;
    Some(&name[tab + 1..])
}

fn best_alias<'a>(aliases: &[Symbol<'a>], readable: &impl Fn(&Symbol<'a>) -> String) -> Option<Symbol<'a>> {
    // A stub may lead to a function without a name; other symbols without one say nothing.
    let named = aliases.iter().copied().filter(|symbol| symbol.plt || !symbol.name.is_empty());
    named.reduce(|best, other| if prefers(&best, &other, readable) { best } else { other })
}

/// Is `a`, the earlier one, to be kept rather than `b`?
fn prefers<'a>(a: &Symbol<'a>, b: &Symbol<'a>, readable: &impl Fn(&Symbol<'a>) -> String) -> bool {
    let differ = |a_has: bool, b_has: bool| (a_has != b_has).then_some(a_has);
    let by_kind = differ(a.end != a.start, b.end != b.start)
        .or_else(|| differ(a.binding != Binding::Weak, b.binding != Binding::Weak))
        .or_else(|| differ(a.binding == Binding::Global, b.binding == Binding::Global));
    by_kind.unwrap_or_else(|| {
        if a.name == b.name && a.plt == b.plt {
            return true;
        }
        let (a_name, b_name) = (readable(a), readable(b));
        let underscores = |name: &str| name.bytes().take_while(|&byte| byte == b'_').count();
        let (a_underscores, b_underscores) = (underscores(&a_name), underscores(&b_name));
        if a_underscores != b_underscores {
            return a_underscores < b_underscores;
        }
        if a_name.len() != b_name.len() {
            return a_name.len() > b_name.len();
        }
        // Aliases of system calls that old kernels have.
        !(a_name.starts_with("SyS") || a_name.starts_with("compat_SyS"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(start: u64, size: u64, binding: Binding, name: &str) -> Symbol<'_> {
        Symbol { start, end: start + size, binding, plt: false, name: SymbolName::new(name.as_bytes()) }
    }

    fn name_at(symbols: &[Symbol<'static>], rule: GapRule, address: u64) -> Option<String> {
        let table = SymbolTable::new(symbols.to_vec(), Vec::new(), rule);
        let found = table.find(address, |symbol| symbol.raw_name().into_owned())?;
        Some(found.raw_name().into_owned())
    }

    #[test]
    fn a_symbol_without_size_reaches_to_the_next() {
        let symbols = [
            symbol(0x100, 0, Binding::Global, "start"),
            symbol(0x140, 0x10, Binding::Local, "next"),
            symbol(0x2345, 0, Binding::Local, "last"),
        ];
        let at = |address| name_at(&symbols, GapRule::NextSymbol, address);
        assert_eq!(at(0xff), None);
        assert_eq!(at(0x13f).as_deref(), Some("start"));
        assert_eq!(at(0x14f).as_deref(), Some("next"));
        assert_eq!(at(0x150), None);
        assert_eq!(at(0x3fff).as_deref(), Some("last"));
        assert_eq!(at(0x4000), None);
    }

    #[test]
    fn aliases_are_chosen_as_perf_does() {
        let best = |symbols: &[Symbol<'static>]| name_at(symbols, GapRule::NextSymbol, 0x100);
        let global = |name| symbol(0x100, 8, Binding::Global, name);
        let weak = |name| symbol(0x100, 8, Binding::Weak, name);
        let local = |name| symbol(0x100, 8, Binding::Local, name);
        assert_eq!(best(&[weak("weak"), local("local")]).as_deref(), Some("local"));
        assert_eq!(best(&[local("local"), global("global")]).as_deref(), Some("global"));
        assert_eq!(best(&[global("__puts"), global("puts")]).as_deref(), Some("puts"));
        assert_eq!(best(&[global("short"), global("longer")]).as_deref(), Some("longer"));
        assert_eq!(best(&[global("one"), global("two")]).as_deref(), Some("one"));
        let unsized_global = symbol(0x100, 0, Binding::Global, "unsized");
        assert_eq!(best(&[unsized_global, weak("sized")]).as_deref(), Some("sized"));
    }

    #[test]
    fn an_extent_holds_what_is_found_alike() {
        let symbols = [
            symbol(0x100, 0x100, Binding::Global, "outer"),
            symbol(0x120, 0x10, Binding::Local, "inner"),
            symbol(0x120, 0x08, Binding::Weak, "alias"),
            symbol(0x300, 0, Binding::Global, "last"),
        ];
        let table = SymbolTable::new(symbols.to_vec(), Vec::new(), GapRule::NextSymbol);
        let find = |address| table.find(address, |symbol| symbol.raw_name().into_owned());
        for address in 0xf0..0x310 {
            let Some(extent) = table.extent(address) else { continue };
            assert!(extent.contains(&address), "{address:x}");
            for other in extent {
                assert_eq!(find(other), find(address), "{other:x} and {address:x}");
            }
        }
        assert_eq!(table.extent(0x110), Some(0x100..0x120));
        assert_eq!(table.extent(0x1f0), Some(0x130..0x200));
        assert_eq!((table.extent(0xff), table.extent(0x200)), (None, None));
        assert_eq!(table.gap(0xff), Some(0..0x100));
        assert_eq!((table.gap(0x110), table.gap(0x200)), (None, Some(0x200..0x300)));
    }

    #[test]
    fn of_nested_symbols_the_innermost_and_then_the_outer_again() {
        let symbols =
            [symbol(0x100, 0x100, Binding::Global, "outer"), symbol(0x120, 0x10, Binding::Local, "inner")];
        let at = |address| name_at(&symbols, GapRule::NextSymbol, address);
        assert_eq!(at(0x11f).as_deref(), Some("outer"));
        assert_eq!(at(0x125).as_deref(), Some("inner"));
        assert_eq!(at(0x130).as_deref(), Some("outer"));
        assert_eq!(at(0x200), None);
    }

    #[test]
    fn the_kernels_last_symbol_does_not_reach_into_the_modules() {
        let symbols = [
            symbol(0x1010, 0, Binding::Global, "last_of_kernel"),
            symbol(0x9000, 0, Binding::Local, "first\t[ext4]"),
            symbol(0x9010, 0, Binding::Local, "second\t[ext4]"),
            symbol(0xf000, 0, Binding::Local, "other\t[xfs]"),
        ];
        let at = |address| name_at(&symbols, GapRule::Kallsyms, address);
        assert_eq!(at(0x2fff).as_deref(), Some("last_of_kernel"));
        assert_eq!(at(0x3000), None);
        assert_eq!(at(0x900f).as_deref(), Some("first"));
        assert_eq!(at(0xafff).as_deref(), Some("second"));
        assert_eq!(at(0xb000), None);
    }

    #[test]
    fn addresses_at_the_very_end_do_not_overflow() {
        let symbols = [symbol(u64::MAX - 1, 0, Binding::Global, "end")];
        assert_eq!(name_at(&symbols, GapRule::NextSymbol, u64::MAX - 1).as_deref(), Some("end"));
    }
}
