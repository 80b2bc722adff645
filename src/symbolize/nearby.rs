//! Which symbols of a file say something of a few addresses.
//!
//! The table of a compiler's library has half a million symbols, and a second of samples asks for a dozen of them: all of
//! them in memory and in order take a hundred times as long, and as much memory, as those that matter. What is taken here
//! gives the same names as all symbols would, which a property test holds.

/// Looks at where all symbols lie, for some addresses.
#[derive(Debug)]
pub(crate) struct Nearby<'n> {
    /// Ascending.
    addresses: &'n [u64],
    /// By address: the last symbol's start that is not behind it, as far as no address before has it too,
    before: Vec<Option<u64>>,
    /// the first one behind, as far as no address after it has it too,
    behind: Vec<Option<u64>>,
    /// and the last end that is not behind it, likewise.
    ended: Vec<Option<u64>>,
    /// Starts of symbols that reach over an address.
    covering: Vec<u64>,
}

/// The symbols to take.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// All that start here, ascending.
    starts: Vec<u64>,
    /// The addresses, ascending, and where the last symbol before each ends: nothing that was left out is behind that.
    pub(crate) ended: Vec<(u64, u64)>,
}

impl Chosen {
    /// Whether symbols that start here are taken.
    pub(crate) fn takes(&self, start: u64) -> bool {
        self.starts.binary_search(&start).is_ok()
    }
}

impl<'n> Nearby<'n> {
    /// For addresses that ascend.
    pub(crate) fn new(addresses: &'n [u64]) -> Self {
        let none = || vec![None; addresses.len()];
        Self { addresses, before: none(), behind: none(), ended: none(), covering: Vec::new() }
    }

    /// A symbol; one without a size ends where it starts.
    pub(crate) fn see(&mut self, start: u64, end: u64) {
        let first = self.addresses.partition_point(|address| *address < start);
        if let Some(before) = self.before.get_mut(first) {
            *before = (*before).max(Some(start));
        }
        if let Some(behind) = first.checked_sub(1).and_then(|last| self.behind.get_mut(last)) {
            *behind = Some(behind.map_or(start, |known| known.min(start)));
        }
        if end <= start {
            return;
        }
        let covered = self.addresses[first..].partition_point(|address| *address < end);
        if covered > 0 && self.covering.last() != Some(&start) {
            self.covering.push(start);
        }
        if let Some(ended) = self.ended.get_mut(first + covered) {
            *ended = (*ended).max(Some(end));
        }
    }

    /// When all symbols were seen.
    pub(crate) fn chosen(self) -> Chosen {
        let Self { addresses, before, behind, ended, covering: mut starts } = self;
        let so_far = |values: Vec<Option<u64>>| {
            values.into_iter().scan(None, |most, value| {
                *most = (*most).max(value);
                Some(*most)
            })
        };
        starts.extend(so_far(before).flatten());
        starts.extend(behind.into_iter().rev().flatten().scan(u64::MAX, |least, value| {
            *least = (*least).min(value);
            Some(*least)
        }));
        starts.sort_unstable();
        starts.dedup();
        let ended = addresses.iter().zip(so_far(ended));
        Chosen { starts, ended: ended.map(|(address, end)| (*address, end.unwrap_or(0))).collect() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::symbol_name::SymbolName;
    use super::super::symbol_table::{Binding, GapRule, Symbol, SymbolTable};
    use super::*;

    proptest! {
        /// Nested and overlapping symbols, aliases, symbols without a size, gaps.
        #[test]
        fn few_symbols_name_addresses_as_all_do(
            symbols in prop::collection::vec((0u64..200, prop_oneof![Just(0), 0u64..60], 0usize..3), 0..40),
            asked in prop::collection::btree_set(0u64..250, 1..6),
        ) {
            let names: Vec<String> = (0..symbols.len()).map(|index| format!("f{index}")).collect();
            let symbols: Vec<Symbol<'_>> = symbols
                .iter()
                .zip(&names)
                .map(|((start, size, binding), name)| Symbol {
                    start: *start,
                    end: start + size,
                    binding: [Binding::Local, Binding::Global, Binding::Weak][*binding],
                    plt: false,
                    name: SymbolName::new(name.as_bytes()),
                })
                .collect();
            let asked: Vec<u64> = asked.into_iter().collect();
            let mut nearby = Nearby::new(&asked);
            symbols.iter().for_each(|symbol| nearby.see(symbol.start, symbol.end));
            let chosen = nearby.chosen();
            let few = symbols.iter().copied().filter(|symbol| chosen.takes(symbol.start)).collect();
            let few = SymbolTable::new(few, Vec::new(), GapRule::NextSymbol).of_chosen(chosen);
            let all = SymbolTable::new(symbols, Vec::new(), GapRule::NextSymbol);
            let readable = |symbol: &Symbol<'_>| symbol.raw_name().into_owned();
            let name = |table: &SymbolTable<'_>, address| table.find(address, readable).map(|it| it.raw_name().into_owned());
            for address in asked {
                prop_assert_eq!(name(&few, address), name(&all, address));
                prop_assert_eq!(few.gap(address), all.gap(address));
                let extents = (few.extent(address), all.extent(address));
                prop_assert_eq!(extents.0.is_some(), extents.1.is_some());
                // What has the same name as an address may be told of a part.
                if let (Some(few), Some(all)) = extents {
                    prop_assert!(few.contains(&address));
                    prop_assert!(all.start <= few.start && few.end <= all.end, "{few:?} of {all:?}");
                }
            }
        }
    }
}
