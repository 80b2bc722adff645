//! The memory map of a process, as it changes over time.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::profile::ModuleId;

/// A state of a process's memory map in which every address means one thing.
///
/// Mapping something new over something old begins a new state, so that what was resolved in the
/// old one is never confused with the new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpaceId(pub u32);

/// A mapped range: `start` inclusive, `end` exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// What `start` is called inside the module (a file offset, or an address).
    pub module_address: u64,
    /// What is mapped.
    pub module: ModuleId,
}

/// An address, located in a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Located {
    /// The module.
    pub module: ModuleId,
    /// The address inside the module.
    pub address: u64,
}

/// The mappings of one process. Cloning is cheap: a fork shares them until one side changes.
#[derive(Debug, Clone, Default)]
pub struct AddressSpace {
    by_start: Arc<BTreeMap<u64, Mapping>>,
}

/// What a new mapping did to the old ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The range was free.
    Added,
    /// Something else was there and is now covered.
    Replaced,
    /// Exactly this was there already.
    Unchanged,
}

impl AddressSpace {
    /// Maps a range over whatever was there. An empty range changes nothing.
    pub fn map(&mut self, mapping: Mapping) -> Effect {
        if mapping.start >= mapping.end {
            return Effect::Unchanged;
        }
        if self.by_start.get(&mapping.start) == Some(&mapping) {
            return Effect::Unchanged;
        }
        let covered = self.overlapping(mapping.start, mapping.end);
        let by_start = Arc::make_mut(&mut self.by_start);
        let replaced = !covered.is_empty();
        for old in covered {
            by_start.remove(&old.start);
            // What sticks out on either side stays mapped.
            if old.start < mapping.start {
                by_start.insert(old.start, Mapping { end: mapping.start, ..old });
            }
            if old.end > mapping.end {
                let cut = mapping.end - old.start;
                let module_address = old.module_address.wrapping_add(cut);
                by_start.insert(mapping.end, Mapping { start: mapping.end, module_address, ..old });
            }
        }
        by_start.insert(mapping.start, mapping);
        if replaced { Effect::Replaced } else { Effect::Added }
    }

    /// Where an address lies; `None` if nothing is mapped there.
    pub fn locate(&self, address: u64) -> Option<Located> {
        let mapping = self.mapping_at(address)?;
        let address = mapping.module_address.wrapping_add(address - mapping.start);
        Some(Located { module: mapping.module, address })
    }

    /// The mapping that holds an address.
    pub fn mapping_at(&self, address: u64) -> Option<&Mapping> {
        let (_, mapping) = self.by_start.range(..=address).next_back()?;
        (address < mapping.end).then_some(mapping)
    }

    /// All mappings, by address.
    pub fn mappings(&self) -> impl Iterator<Item = &Mapping> {
        self.by_start.values()
    }

    fn overlapping(&self, start: u64, end: u64) -> Vec<Mapping> {
        let before = self.by_start.range(..start).next_back().map(|(_, mapping)| *mapping);
        let before = before.filter(|mapping| mapping.end > start);
        before.into_iter().chain(self.by_start.range(start..end).map(|(_, mapping)| *mapping)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mapping(start: u64, end: u64, module: u32) -> Mapping {
        Mapping { start, end, module_address: 0, module: ModuleId(module) }
    }

    #[test]
    fn a_mapping_in_the_middle_splits_the_old_one() {
        let mut space = AddressSpace::default();
        assert_eq!(space.map(mapping(100, 200, 1)), Effect::Added);
        assert_eq!(space.map(mapping(120, 150, 2)), Effect::Replaced);
        assert_eq!(space.locate(110), Some(Located { module: ModuleId(1), address: 10 }));
        assert_eq!(space.locate(130), Some(Located { module: ModuleId(2), address: 10 }));
        assert_eq!(space.locate(160), Some(Located { module: ModuleId(1), address: 60 }));
        assert_eq!(space.locate(200), None);
    }

    #[test]
    fn mapping_the_same_again_changes_nothing() {
        let mut space = AddressSpace::default();
        space.map(mapping(100, 200, 1));
        assert_eq!(space.map(mapping(100, 200, 1)), Effect::Unchanged);
        assert_eq!(space.map(mapping(5, 5, 1)), Effect::Unchanged);
    }

    #[test]
    fn a_fork_has_its_own_future() {
        let mut parent = AddressSpace::default();
        parent.map(mapping(0, 10, 1));
        let mut child = parent.clone();
        child.map(mapping(0, 10, 2));
        assert_eq!(parent.locate(5).map(|l| l.module), Some(ModuleId(1)));
        assert_eq!(child.locate(5).map(|l| l.module), Some(ModuleId(2)));
    }

    proptest! {
        /// The map behaves like an array of bytes painted over and over.
        #[test]
        fn behaves_like_painting(paints in prop::collection::vec((0u64..100, 1u64..40), 1..30)) {
            let mut space = AddressSpace::default();
            let mut canvas = [None; 160];
            for (number, (start, length)) in paints.into_iter().enumerate() {
                let number = number as u32;
                space.map(Mapping {
                    start, end: start + length, module_address: 1000, module: ModuleId(number),
                });
                for offset in 0..length {
                    canvas[(start + offset) as usize] =
                        Some(Located { module: ModuleId(number), address: 1000 + offset });
                }
            }
            for (address, expected) in canvas.iter().enumerate() {
                prop_assert_eq!(space.locate(address as u64), *expected);
            }
        }
    }
}
