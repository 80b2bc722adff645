//! Rows to hold out in turn, so that a fit is judged by what it has not seen.
//!
//! A cross validation is a list of parts that together have each row once: [`by_group`] leaves one group out at
//! a time, [`spans`] one stretch, of as many stretches as rows one row, and [`random_parts`] are the parts of
//! k-fold validation. What is to be learnt from while a part is held out is a [`Fold`].

use std::hash::Hash;

use hashbrown::HashMap;

use super::random::Random;

/// Numbers of the rows that are held out together.
pub type Part = Vec<usize>;

/// One turn of a cross validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    /// Rows to predict.
    pub held_out: Part,
    /// Rows to learn from, ascending.
    pub kept: Vec<usize>,
}

impl Fold {
    /// Holds a part of so many rows out.
    pub fn holding_out(held_out: &[usize], rows: usize) -> Self {
        let mut is_kept = vec![true; rows];
        held_out.iter().for_each(|&row| is_kept[row] = false);
        Self { held_out: held_out.to_vec(), kept: (0..rows).filter(|&row| is_kept[row]).collect() }
    }
}

/// Rows with the same label together, in the order in which labels come first.
pub fn by_group<L: Hash + Eq>(labels: impl IntoIterator<Item = L>) -> Vec<Part> {
    let mut known = HashMap::new();
    let mut parts: Vec<Part> = Vec::new();
    for (row, label) in labels.into_iter().enumerate() {
        let part = *known.entry(label).or_insert(parts.len());
        if part == parts.len() {
            parts.push(Vec::new());
        }
        parts[part].push(row);
    }
    parts
}

/// So many stretches of rows, as equal as can be. Some are empty if there are more than rows.
pub fn spans(rows: usize, count: usize) -> Vec<Part> {
    (0..count).map(|at| (rows * at / count..rows * (at + 1) / count).collect()).collect()
}

/// Parts dealt out in turn to at most so many hands, at least one.
pub fn dealt(parts: Vec<Part>, most: usize) -> Vec<Part> {
    if parts.len() <= most.max(1) {
        return parts;
    }
    let mut hands = vec![Vec::new(); most.max(1)];
    let count = hands.len();
    for (index, part) in parts.into_iter().enumerate() {
        hands[index % count].extend(part);
    }
    hands
}

/// So many parts of nearly equal size at random, of at most one part for each row. Rows stand in them in random
/// order.
pub fn random_parts(rows: usize, count: usize, random: &mut Random) -> Vec<Part> {
    let mut order: Vec<usize> = (0..rows).collect();
    random.shuffle(&mut order);
    dealt(order.into_iter().map(|row| vec![row]).collect(), count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn groups_keep_their_rows_together() {
        assert_eq!(by_group(["b", "a", "b", "c", "a"]), [vec![0, 2], vec![1, 4], vec![3]]);
        assert_eq!(by_group::<u32>([]), Vec::<Part>::new());
    }

    #[test]
    fn as_many_spans_as_rows_leave_one_out() {
        assert_eq!(spans(3, 3), [vec![0], vec![1], vec![2]]);
        assert_eq!(spans(7, 3), [vec![0, 1], vec![2, 3], vec![4, 5, 6]]);
    }

    #[test]
    fn parts_are_dealt_in_turn() {
        let parts = vec![vec![0, 1], vec![2], vec![3], vec![4]];
        assert_eq!(dealt(parts.clone(), 3), [vec![0, 1, 4], vec![2], vec![3]]);
        assert_eq!(dealt(parts.clone(), 4), parts);
    }

    #[test]
    fn random_parts_repeat_with_their_seed() {
        let parts = |seed| random_parts(20, 4, &mut Random::seeded(seed));
        assert_eq!(parts(1), parts(1));
        assert_ne!(parts(1), parts(2));
        assert!(parts(1).iter().all(|part| part.len() == 5));
    }

    fn any_parts() -> impl Strategy<Value = (usize, Vec<Part>)> {
        let labels = prop::collection::vec(0u8..9, 1..60);
        (labels, 1usize..70, 0u64..100, 0usize..4).prop_map(|(labels, count, seed, kind)| {
            let rows = labels.len();
            let parts = match kind {
                0 => by_group(labels),
                1 => spans(rows, count),
                2 => dealt(by_group(labels), count),
                _ => random_parts(rows, count, &mut Random::seeded(seed)),
            };
            (rows, parts)
        })
    }

    proptest! {
        /// Each row is held out once, and learnt from in every other turn.
        #[test]
        fn parts_partition_the_rows((rows, parts) in any_parts()) {
            let mut all: Vec<usize> = parts.iter().flatten().copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..rows).collect::<Vec<_>>());
            for part in &parts {
                let fold = Fold::holding_out(part, rows);
                prop_assert_eq!(&fold.held_out, part);
                prop_assert!(fold.kept.is_sorted() && fold.kept.iter().all(|row| !part.contains(row)));
                prop_assert_eq!(fold.kept.len() + part.len(), rows);
            }
        }

        #[test]
        fn no_group_is_torn_apart(labels in prop::collection::vec(0u8..9, 1..60), most in 1usize..12) {
            let parts = dealt(by_group(labels.iter().copied()), most);
            prop_assert!(parts.len() <= most);
            for (row, label) in labels.iter().enumerate() {
                let part = parts.iter().find(|part| part.contains(&row)).expect("every row is in a part");
                let whole = (0..labels.len()).filter(|other| labels[*other] == *label);
                prop_assert!(whole.clone().all(|other| part.contains(&other)));
            }
        }
    }
}
