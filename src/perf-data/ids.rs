//! Which event an id stands for.

use rustc_hash::FxHashMap;

use crate::record::EventIndex;

/// Ids are numbers that the kernel counts up from one, so those of one recording lie close together: a
/// table finds their events in one step. Others, which recorders give to events of their own, are hashed.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventIds {
    lowest: u64,
    close: Vec<Option<EventIndex>>,
    far: FxHashMap<u64, EventIndex>,
}

impl FromIterator<(u64, EventIndex)> for EventIds {
    /// Of events that claim the same id, the last has it.
    fn from_iter<T: IntoIterator<Item = (u64, EventIndex)>>(ids: T) -> Self {
        /// Holes that the table may have: for each id, and anyway.
        const HOLES: (u64, u64) = (8, 4096);
        let ids: FxHashMap<u64, EventIndex> = ids.into_iter().collect();
        let mut ids: Vec<(u64, EventIndex)> = ids.into_iter().collect();
        ids.sort_unstable_by_key(|&(id, _)| id);
        let lowest = ids.first().map_or(0, |&(id, _)| id);
        let mut table = Self { lowest, ..Self::default() };
        for (count, (id, event)) in (0..).zip(ids) {
            let place = id - lowest;
            if table.far.is_empty() && place <= HOLES.0 * count + HOLES.1 {
                table.close.resize(place as usize, None);
                table.close.push(Some(event));
            } else {
                table.far.insert(id, event);
            }
        }
        table
    }
}

impl EventIds {
    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<EventIndex> {
        let place = usize::try_from(id.wrapping_sub(self.lowest)).unwrap_or(usize::MAX);
        match self.close.get(place) {
            Some(event) => *event,
            None => self.far.get(&id).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_of_the_kernel_make_a_table_and_others_take_no_memory() {
        let kernels = (0..64).map(|cpu| (1000 + 5 * cpu, EventIndex(cpu as u32)));
        let own = [(1 << 62, EventIndex(64)), (u64::MAX, EventIndex(65))];
        let ids: EventIds = kernels.chain(own).collect();
        assert_eq!((ids.close.len(), ids.far.len()), (63 * 5 + 1, 2));
        assert_eq!((ids.get(1005), ids.get(1006)), (Some(EventIndex(1)), None));
        assert_eq!((ids.get(1 << 62), ids.get(u64::MAX)), (Some(EventIndex(64)), Some(EventIndex(65))));
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
