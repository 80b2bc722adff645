//! A page's pieces of time: what was measured in each, and where it went.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::leaves::{Leaves, Placed, PlacedCells, Places, Spent};
use crate::profile::{Balance, InSlice, Profile};
use crate::report::nodes::Nodes;
use crate::report::tree::CallTree;
use crate::units::{Joules, Timestamp};

/// At most so many points in time; a screen has not many more columns.
const MOST_SLICES: u64 = 400;
/// However little memory there is: time is still seen to pass.
const FEWEST_SLICES: usize = 10;
/// Pieces of time are made longer until a page has no more weights than this, of some seven bytes each.
const MOST_WEIGHTS: usize = 45_000;
/// Where few pieces still have more than this, with CPU times of three bytes each, there are too many leaves for a page of a megabyte.
const TOO_MANY_WEIGHTS: usize = 65_000;
/// What a weight takes in a hash table while it is added up.
const BYTES_PER_WEIGHT: usize = 48;

/// Pieces of time, one behind the other.
#[derive(Serialize)]
pub struct Slices {
    /// Where each begins and the last one ends, in seconds from the start.
    edges: Vec<f64>,
    /// Joules that were measured, by domain.
    measured: Vec<Vec<Joules>>,
    /// Joules of the counted domains that went to no function, by their kinds.
    #[serde(rename = "static")]
    static_energy: Vec<Joules>,
    others: Vec<Joules>,
    eprof: Vec<Joules>,
    lost: Vec<Joules>,
    /// Pairs of leaf (its distance to the one before) and weight.
    own: Vec<Vec<u64>>,
    /// CPU time of each pair of `own`; of the last of them that have any.
    times: Vec<Vec<u64>>,
    /// Pairs of CPU and weight.
    cpus: Vec<Vec<u64>>,
    /// Weights of which nobody knows when they were spent: pairs as in `own`.
    untimed: Vec<u64>,
    /// CPU times of `untimed`.
    untimed_times: Vec<u64>,
    /// There are more weights in time than a page has room for.
    #[serde(skip)]
    pub are_too_many: bool,
}

/// Whole numbers of what a page tells.
#[derive(Clone, Copy)]
pub struct Units {
    /// Units of weight: per joule, or 1.
    pub weight: f64,
    /// Units of CPU time per second.
    pub seconds: f64,
}

impl Slices {
    /// How many pieces of time there are.
    pub fn pieces(&self) -> usize {
        self.own.len()
    }

    /// Those of a call tree. Where a profile has none, there is one, and everything is in it.
    pub fn new(
        tree: &CallTree<'_>,
        nodes: &mut Nodes,
        places: &Places,
        are_apart: bool,
        units: Units,
    ) -> (Self, Leaves) {
        let parts = tree.parts();
        let profile = parts.profile();
        let mut leaves = Leaves::new(are_apart);
        let most = match parts.whole() {
            Some(_) => MOST_WEIGHTS,
            // The call tree has most of the spare memory.
            None => (parts.spare_bytes() / 4 / BYTES_PER_WEIGHT).min(MOST_WEIGHTS),
        };
        let mut gathered = Gathered::new(profile, most);
        gathered.keep_balance(tree.is_of_all_domains());
        parts.for_each_part(&mut |part| {
            let placed = PlacedCells::new(tree, part, nodes, places, &mut leaves);
            gathered.add_part(part, &placed, parts.whole().is_some());
        });
        (gathered.finish(units), leaves)
    }
}

/// One piece of time while it is added up.
#[derive(Default)]
struct Piece {
    start: f64,
    end: f64,
    measured: Vec<Joules>,
    balance: Balance,
    own: FxHashMap<u32, Spent>,
    cpus: FxHashMap<u32, f64>,
}

impl Piece {
    /// With another one behind it.
    fn extend(&mut self, next: Self) {
        self.end = next.end;
        self.measured.iter_mut().zip(next.measured).for_each(|(sum, joules)| *sum += joules);
        self.balance = self.balance + next.balance;
        next.own.into_iter().for_each(|(leaf, weight)| *self.own.entry(leaf).or_default() += weight);
        next.cpus.into_iter().for_each(|(cpu, weight)| *self.cpus.entry(cpu).or_default() += weight);
    }
}

struct Gathered {
    pieces: Vec<Piece>,
    /// The piece of each of the profile's slices, and when these start.
    piece_of: Vec<usize>,
    starts: Vec<Timestamp>,
    untimed: FxHashMap<u32, Spent>,
    weights: usize,
    most_weights: usize,
}

impl Gathered {
    fn new(profile: &Profile, most_weights: usize) -> Self {
        let seconds = |time: Timestamp| time.since(profile.start).as_secs_f64();
        let shortest = profile.duration.as_nanos() / MOST_SLICES;
        let mut pieces: Vec<Piece> = Vec::new();
        let (mut piece_of, mut is_full) = (Vec::new(), true);
        let mut begin = profile.start;
        for slice in &profile.slices {
            let piece = Piece {
                start: pieces.last().map_or_else(|| seconds(slice.start), |last| last.end),
                end: seconds(slice.end),
                measured: slice.measured.clone(),
                balance: slice.balance,
                ..Piece::default()
            };
            if is_full {
                begin = slice.start;
                pieces.push(piece);
            } else if let Some(last) = pieces.last_mut() {
                last.extend(piece);
            }
            is_full = slice.end.since(begin).as_nanos() >= shortest;
            piece_of.push(pieces.len() - 1);
        }
        if pieces.is_empty() {
            pieces.push(Piece {
                end: profile.duration.as_secs_f64(),
                measured: profile.domains.iter().map(|domain| domain.balance.measured).collect(),
                balance: profile
                    .top_domains()
                    .fold(Balance::default(), |sum, (_, domain)| sum + domain.balance),
                ..Piece::default()
            });
        }
        let starts = profile.slices.iter().map(|slice| slice.start).collect();
        Self { pieces, piece_of, starts, untimed: FxHashMap::default(), weights: 0, most_weights }
    }

    /// What went to no function is known of all domains together alone.
    fn keep_balance(&mut self, is_known: bool) {
        if !is_known {
            self.pieces.iter_mut().for_each(|piece| piece.balance = Balance::default());
        }
    }

    /// Adds what the cells of a part have. A cell's weight is spread over time as the joules of all domains are that
    /// were charged to it.
    fn add_part(&mut self, part: &Profile, placed: &PlacedCells, is_whole: bool) {
        if self.starts.is_empty() {
            for placed in placed.of_cell.iter().flatten() {
                self.add(0, placed, placed.spent);
            }
            return;
        }
        let mut in_slices = vec![Spent::default(); part.cells.len()];
        for of_cell in part.slices.iter().flat_map(|slice| &slice.by_cell) {
            in_slices[of_cell.cell as usize] += spent(of_cell);
        }
        for (index, slice) in part.slices.iter().enumerate() {
            let index =
                if is_whole { index } else { self.starts.partition_point(|start| *start < slice.start) };
            let Some(&piece) = self.piece_of.get(index) else { continue };
            // Pieces become fewer while they are filled.
            let (mut piece, mut pieces) = (piece, self.pieces.len());
            for of_cell in &slice.by_cell {
                let cell = of_cell.cell as usize;
                let Some(placed) = placed.of_cell[cell] else { continue };
                self.add(piece, &placed, placed.spent.in_proportion(spent(of_cell), in_slices[cell]));
                while pieces != self.pieces.len() {
                    (piece, pieces) = (piece / 2, pieces.div_ceil(2));
                }
            }
        }
        for (placed, in_slices) in placed.of_cell.iter().zip(&in_slices) {
            let Some(placed) = placed else { continue };
            let untimed = placed.spent.where_none(*in_slices);
            if !untimed.is_nothing() {
                for leaf in placed.leaves.into_iter().flatten() {
                    *self.untimed.entry(leaf).or_default() += untimed;
                }
            }
        }
    }

    fn add(&mut self, piece: usize, placed: &Placed, spent: Spent) {
        if spent.is_nothing() {
            return;
        }
        let piece = &mut self.pieces[piece];
        let before = piece.own.len() + piece.cpus.len();
        for leaf in placed.leaves.into_iter().flatten() {
            *piece.own.entry(leaf).or_default() += spent;
        }
        *piece.cpus.entry(placed.cpu).or_default() += spent.weight;
        self.weights += piece.own.len() + piece.cpus.len() - before;
        if self.weights > self.most_weights && self.pieces.len() >= 2 * FEWEST_SLICES {
            self.halve();
        }
    }

    /// Makes one piece of each two.
    fn halve(&mut self) {
        let mut pieces = std::mem::take(&mut self.pieces).into_iter();
        while let Some(mut piece) = pieces.next() {
            if let Some(next) = pieces.next() {
                piece.extend(next);
            }
            self.pieces.push(piece);
        }
        self.piece_of.iter_mut().for_each(|piece| *piece /= 2);
        self.weights = self.pieces.iter().map(|piece| piece.own.len() + piece.cpus.len()).sum();
    }

    fn finish(self, units: Units) -> Slices {
        let mut own =
            RoundedSpent { weight: Rounded::new(units.weight), seconds: Rounded::new(units.seconds) };
        let mut cpus = Rounded::new(units.weight);
        let (all, times) = self.pieces.iter().map(|piece| own.lists(&piece.own)).unzip();
        let (untimed, untimed_times) = own.lists(&self.untimed);
        let mut edges: Vec<f64> = self.pieces.first().map(|first| first.start).into_iter().collect();
        edges.extend(self.pieces.iter().map(|piece| piece.end));
        let parts =
            |part: fn(&Balance) -> Joules| self.pieces.iter().map(|piece| part(&piece.balance)).collect();
        Slices {
            are_too_many: self.weights > TOO_MANY_WEIGHTS,
            static_energy: parts(|balance| balance.static_energy),
            others: parts(|balance| balance.other_processes),
            eprof: parts(|balance| balance.recorder),
            lost: parts(|balance| balance.lost),
            own: all,
            times,
            untimed,
            untimed_times,
            cpus: self.pieces.iter().map(|piece| flat(cpus.pairs(&piece.cpus))).collect(),
            measured: self.pieces.into_iter().map(|piece| piece.measured).collect(),
            edges,
        }
    }
}

/// Weights in whole units; what is rounded away stays for the next time.
struct Rounded {
    unit: f64,
    rests: FxHashMap<u32, f64>,
}

impl Rounded {
    fn new(unit: f64) -> Self {
        Self { unit, rests: FxHashMap::default() }
    }

    /// Pairs of key and weight, by key.
    fn pairs(&mut self, weights: &FxHashMap<u32, f64>) -> Vec<(u32, u64)> {
        let mut sorted: Vec<(u32, f64)> = weights.iter().map(|(&key, &weight)| (key, weight)).collect();
        sorted.sort_unstable_by_key(|(key, _)| *key);
        let whole = |(key, weight): (u32, f64)| (key, self.next(key, weight));
        sorted.into_iter().map(whole).filter(|(_, whole)| *whole > 0).collect()
    }

    /// The next weight of a key.
    fn next(&mut self, key: u32, weight: f64) -> u64 {
        let rest = self.rests.entry(key).or_default();
        let sum = *rest + weight * self.unit;
        let whole = sum.round().max(0.0);
        *rest = sum - whole;
        whole as u64
    }
}

/// Weights and times of leaves in whole units.
struct RoundedSpent {
    weight: Rounded,
    seconds: Rounded,
}

impl RoundedSpent {
    /// Pairs of leaf (its distance to the one before) and weight, and the time of each, without the last that have none.
    fn lists(&mut self, spent: &FxHashMap<u32, Spent>) -> (Vec<u64>, Vec<u64>) {
        let mut sorted: Vec<(u32, Spent)> = spent.iter().map(|(&leaf, &spent)| (leaf, spent)).collect();
        sorted.sort_unstable_by_key(|(leaf, _)| *leaf);
        let whole = |(leaf, spent): (u32, Spent)| {
            (leaf, self.weight.next(leaf, spent.weight), self.seconds.next(leaf, spent.seconds))
        };
        let whole: Vec<(u32, u64, u64)> =
            sorted.into_iter().map(whole).filter(|(_, weight, time)| weight + time > 0).collect();
        let mut times: Vec<u64> = whole.iter().map(|(.., time)| *time).collect();
        times.truncate(times.iter().rposition(|time| *time > 0).map_or(0, |last| last + 1));
        (from_before(whole.into_iter().map(|(leaf, weight, _)| (leaf, weight)).collect()), times)
    }
}

/// What slices say of a cell, which is how what it had lies in time.
fn spent(of_cell: &InSlice) -> Spent {
    Spent { weight: f64::from(of_cell.joules.max(0.0)), seconds: f64::from(of_cell.seconds.max(0.0)) }
}

impl Spent {
    /// The part of it that a slice has, of which `part` is there of `whole`.
    fn in_proportion(self, part: Self, whole: Self) -> Self {
        let of = |spent: f64, part: f64, whole: f64| if whole > 0.0 { spent * (part / whole) } else { 0.0 };
        Self {
            weight: of(self.weight, part.weight, whole.weight),
            seconds: of(self.seconds, part.seconds, whole.seconds),
        }
    }

    /// What of it lies in no slice, where these have `in_slices` together.
    fn where_none(self, in_slices: Self) -> Self {
        let of = |spent: f64, in_slices: f64| if in_slices > 0.0 { 0.0 } else { spent };
        Self { weight: of(self.weight, in_slices.weight), seconds: of(self.seconds, in_slices.seconds) }
    }
}

fn flat(pairs: Vec<(u32, u64)>) -> Vec<u64> {
    pairs.into_iter().flat_map(|(key, weight)| [u64::from(key), weight]).collect()
}

/// With each key as its distance to the one before.
fn from_before(pairs: Vec<(u32, u64)>) -> Vec<u64> {
    let mut before = 0;
    let pair = |(key, weight): (u32, u64)| {
        let distance = u64::from(key) - before;
        before = u64::from(key);
        [distance, weight]
    };
    pairs.into_iter().flat_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{ProfileParts, TimeSlice};
    use crate::report::fixture::{Divided, in_slice, sample_profile};
    use crate::report::tree::TreeOptions;
    use crate::symbolize::Symbols;
    use crate::units::Nanoseconds;

    const MICROJOULES: f64 = 1e6;
    const UNITS: Units = Units { weight: MICROJOULES, seconds: 1e6 };

    /// The five cells in slices that are too short to be drawn one by one.
    fn many_slices() -> (Profile, Symbols) {
        let (mut profile, symbols) = sample_profile();
        let start = profile.start;
        profile.slices = (0..1000)
            .map(|at| TimeSlice {
                start: start + Nanoseconds::from_millis(2 * at),
                end: start + Nanoseconds::from_millis(2 * at + 2),
                measured: vec![Joules::from_joules(0.03), Joules::ZERO, Joules::from_joules(0.004)],
                modelled: Joules::ZERO,
                balance: Balance { static_energy: Joules::from_joules(0.001), ..Balance::default() },
                by_cell: in_slice(
                    &[0, 1, 2, 3, 4].map(|cell| (cell, 0.001 * ((at + u64::from(cell)) % 4) as f32)),
                ),
            })
            .collect();
        (profile, symbols)
    }

    fn slices(parts: &dyn ProfileParts, symbols: &Symbols) -> (Slices, f64) {
        let tree = CallTree::new(parts, symbols, &TreeOptions::default()).expect("a tree");
        let mut nodes = Nodes::new(&tree, 0.0);
        let places = Places::new(&tree);
        (Slices::new(&tree, &mut nodes, &places, false, UNITS).0, tree.total() * MICROJOULES)
    }

    /// What each slice weighs.
    fn weights(slices: &Slices) -> Vec<u64> {
        slices.own.iter().map(|pairs| pairs.chunks(2).map(|pair| pair[1]).sum()).collect()
    }

    #[test]
    fn weights_add_up_to_the_whole_and_follow_the_joules_in_time() {
        let (profile, symbols) = many_slices();
        let (whole, total) = slices(&profile, &symbols);
        assert_eq!(whole.own.len(), 334);
        let sum: u64 = weights(&whole).iter().sum();
        assert!((sum as f64 - total).abs() <= 5.0, "{sum} and {total}");
        assert!(whole.untimed.is_empty());
        let cpus: u64 = whole.cpus.iter().map(|pairs| pairs.chunks(2).map(|pair| pair[1]).sum::<u64>()).sum();
        assert!((cpus as f64 - total).abs() <= 5.0, "{cpus} and {total}");
        // Three slices each, of 1 mJ.
        assert!((whole.static_energy[7].as_joules() - 0.003).abs() < 1e-12);
        assert_eq!((whole.edges.len(), whole.edges[0]), (335, 0.0));
        // All CPU time that cells tell of.
        let times: u64 = whole.times.iter().flatten().sum();
        let expected = profile.cells.iter().map(|cell| cell.time.as_secs_f64()).sum::<f64>() * UNITS.seconds;
        assert!(expected > 1e4 && (times as f64 - expected).abs() <= 5.0, "{times} and {expected}");
    }

    #[test]
    fn slices_of_parts_are_slices_of_the_whole() {
        let (profile, symbols) = many_slices();
        let (whole, _) = slices(&profile, &symbols);
        for parts in 1..5 {
            let (divided, _) = slices(&Divided::new(&profile, parts, |cell| cell % parts), &symbols);
            assert_eq!((&whole.edges, &whole.measured), (&divided.edges, &divided.measured));
            let (a, b) = (weights(&whole), weights(&divided));
            assert!(a.iter().zip(&b).all(|(a, b)| a.abs_diff(*b) <= 6), "{a:?} and {b:?}");
        }
    }

    #[test]
    fn with_little_memory_pieces_of_time_are_longer_and_nothing_is_missing() {
        let (profile, symbols) = many_slices();
        let narrow = Divided::new(&profile, 2, |cell| cell % 2).within(0);
        let (few, total) = slices(&narrow, &symbols);
        assert!((FEWEST_SLICES..2 * FEWEST_SLICES).contains(&few.own.len()), "{}", few.own.len());
        let sum: u64 = weights(&few).iter().sum();
        assert!((sum as f64 - total).abs() <= 5.0, "{sum} and {total}");
        let (whole, _) = slices(&profile, &symbols);
        let measured = |slices: &Slices| slices.measured.iter().map(|of| of[0].as_joules()).sum::<f64>();
        assert!((measured(&few) - measured(&whole)).abs() < 1e-9);
        assert_eq!(few.edges.last(), whole.edges.last());
    }

    #[test]
    fn what_no_slice_has_is_told_without_time() {
        let (mut profile, symbols) = many_slices();
        profile.slices.iter_mut().for_each(|slice| slice.by_cell.retain(|of| of.cell != 1));
        let (found, total) = slices(&profile, &symbols);
        let untimed: u64 = found.untimed.chunks(2).map(|pair| pair[1]).sum();
        assert!(untimed > 0);
        let timed: u64 = weights(&found).iter().sum();
        assert!(((timed + untimed) as f64 - total).abs() <= 5.0);
    }

    #[test]
    fn weights_are_rounded_over_time() {
        let mut weights = Rounded::new(1.0);
        let sum: u64 = (0..10)
            .flat_map(|_| weights.pairs(&FxHashMap::from_iter([(1, 0.3), (2, 1.0)])))
            .filter_map(|(key, weight)| (key == 1).then_some(weight))
            .sum();
        assert_eq!(sum, 3);
    }
}
