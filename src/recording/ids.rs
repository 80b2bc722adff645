//! Which event an id stands for.

use rustc_hash::FxHashMap;

use super::record::EventIndex;

/// Ids are numbers that the kernel counts up, so those of one recording lie close together: a table
/// finds an event in one step. Ids that do not, of a merged or damaged file, are hashed.
#[derive(Debug, Clone)]
pub(super) enum EventIds {
    Close { lowest: u64, events: Vec<Option<EventIndex>> },
    Scattered(FxHashMap<u64, EventIndex>),
}

impl Default for EventIds {
    fn default() -> Self {
        Self::Scattered(FxHashMap::default())
    }
}

impl FromIterator<(u64, EventIndex)> for EventIds {
    /// Of events that claim the same id, the last has it.
    fn from_iter<T: IntoIterator<Item = (u64, EventIndex)>>(ids: T) -> Self {
        /// Holes that the table may have for each id, and anyway.
        const HOLES: (u64, u64) = (8, 4096);
        let ids: FxHashMap<u64, EventIndex> = ids.into_iter().collect();
        let lowest = ids.keys().copied().min().unwrap_or(0);
        let span = ids.keys().copied().max().unwrap_or(0) - lowest;
        if span > HOLES.0 * ids.len() as u64 + HOLES.1 {
            return Self::Scattered(ids);
        }
        let mut events = vec![None; span as usize + 1];
        for (id, event) in ids {
            events[(id - lowest) as usize] = Some(event);
        }
        Self::Close { lowest, events }
    }
}

impl EventIds {
    #[inline]
    pub(super) fn get(&self, id: u64) -> Option<EventIndex> {
        match self {
            Self::Close { lowest, events } => {
                let index = usize::try_from(id.wrapping_sub(*lowest)).unwrap_or(usize::MAX);
                events.get(index).copied().flatten()
            }
            Self::Scattered(events) => events.get(&id).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_of_one_kernel_make_a_table() {
        let ids: EventIds = (0..64).map(|cpu| (1000 + 5 * cpu, EventIndex(cpu as u32))).collect();
        assert!(matches!(ids, EventIds::Close { lowest: 1000, .. }));
        let far: EventIds = [(1, EventIndex(0)), (u64::MAX, EventIndex(1))].into_iter().collect();
        assert!(matches!(far, EventIds::Scattered(_)));
    }

    proptest! {
        #[test]
        fn both_forms_find_what_was_put_in(
            ids in prop::collection::hash_map(any::<u64>(), any::<u32>(), 0..20),
            close in prop::collection::hash_map(70u64..5000, any::<u32>(), 0..20),
            other: u64,
        ) {
            for ids in [ids, close] {
                let table: EventIds = ids.iter().map(|(&id, &event)| (id, EventIndex(event))).collect();
                for id in ids.keys().copied().chain([0, 69, 71, 5001, other]) {
                    prop_assert_eq!(table.get(id), ids.get(&id).copied().map(EventIndex));
                }
            }
        }
    }
}
