//! What earlier recordings of one machine saw, for the fit of the next one's model.
//!
//! A window of a recording that is read while it is made is short: alone it may tell nothing of what the machine draws at
//! rest, and each window something else. With the intervals of the minutes before, a window's model is nearly that of the
//! whole, and the windows' joules add up to what the whole says.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crate::hardware::DomainKind;
use crate::power_model::intervals::Intervals;

/// Intervals that are kept of each kind of domain: some minutes, or more where meters are read seldom.
const MOST_ROWS: usize = 1024;
/// Recordings that they are of, at most.
const MOST_RECORDINGS: usize = 256;
/// Intervals that are longer or shorter than a recording's own by more than this factor are not fitted with them.
const SIMILAR: f64 = 2.0;

/// Remembers the intervals of recordings that follow each other; clones remember together.
#[derive(Debug, Clone, Default)]
pub struct EarlierIntervals(Arc<Mutex<BTreeMap<DomainKind, VecDeque<Seen>>>>);

#[derive(Debug)]
struct Seen {
    intervals: Intervals,
    /// By event.
    samples: Vec<u64>,
}

impl EarlierIntervals {
    /// The intervals of these domains, `own` behind those that are remembered; and samples of each event, of both. What is
    /// a recording's own is remembered in turn.
    pub(crate) fn join(&self, kind: DomainKind, own: Intervals, samples: &[u64]) -> (Intervals, Vec<u64>) {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kinds.entry(kind).or_default();
        kept.push_back(Seen { intervals: own, samples: samples.to_vec() });
        let rows = |kept: &VecDeque<Seen>| kept.iter().map(|seen| seen.intervals.rows.len()).sum::<usize>();
        while kept.len() > 1 && (rows(kept) > MOST_ROWS || kept.len() > MOST_RECORDINGS) {
            kept.pop_front();
        }
        together(kept)
    }
}

/// All that fits to the last, which is not empty.
fn together(kept: &VecDeque<Seen>) -> (Intervals, Vec<u64>) {
    let Some(last) = kept.back() else { return Default::default() };
    let length = |seen: &Seen| seen.intervals.rows.first().map(|row| row.seconds);
    let wanted = kept.iter().rev().find_map(length).unwrap_or(0.0);
    let fits = |seen: &&Seen| {
        let same = seen.samples.len() == last.samples.len()
            && seen.intervals.static_terms == last.intervals.static_terms;
        let similar = |length: f64| length <= wanted * SIMILAR && wanted <= length * SIMILAR;
        same && length(seen).is_some_and(similar)
    };
    let seen: Vec<&Seen> = kept.iter().filter(fits).collect();
    let all: f64 = seen.iter().map(|seen| seen.intervals.rows.len() as f64).sum();
    let mut joined = Intervals { rows: Vec::new(), ..last.intervals.clone() };
    let mut samples = vec![0u64; last.samples.len()];
    if seen.is_empty() {
        return (joined, last.samples.clone());
    }
    for noise in [&mut joined.count_noise, &mut joined.late_noise] {
        noise.fill(0.0);
    }
    joined.edge_noise = 0.0;
    for Seen { intervals, samples: of_recording } in &seen {
        let share = intervals.rows.len() as f64 / all.max(1.0);
        let noises = [
            (&mut joined.count_noise, &intervals.count_noise),
            (&mut joined.late_noise, &intervals.late_noise),
        ];
        for (sum, of) in noises {
            sum.iter_mut().zip(of).for_each(|(sum, noise)| *sum += share * noise);
        }
        joined.edge_noise += share * intervals.edge_noise;
        // What they have in common is not known: no fewer pieces than in one.
        joined.pieces_of_code = match (joined.pieces_of_code, intervals.pieces_of_code) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        joined.judged_together = joined.judged_together.max(intervals.judged_together);
        samples.iter_mut().zip(of_recording).for_each(|(sum, count)| *sum += count);
    }
    for term in 0..joined.static_terms.max(1) {
        for Seen { intervals, .. } in &seen {
            joined.rows.extend(intervals.rows.iter().filter(|row| row.static_term == term).cloned());
        }
    }
    (joined, samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power_model::intervals::Interval;

    fn intervals(count: usize, seconds: f64, joules: f64) -> Intervals {
        let row = |at: usize| Interval {
            static_term: 0,
            follows: at > 0,
            seconds,
            joules,
            counts: vec![1.0],
            busy: 1.0,
            guessed: 0.0,
        };
        Intervals {
            rows: (0..count).map(row).collect(),
            count_noise: vec![joules],
            late_noise: vec![0.0],
            edge_noise: 1.0,
            pieces_of_code: Some(joules),
            static_terms: 1,
            judged_together: 2,
        }
    }

    #[test]
    fn a_recording_is_fitted_with_those_before_it_and_memory_is_bounded() {
        let earlier = EarlierIntervals::default();
        let kind = DomainKind::Package;
        assert_eq!(earlier.join(kind, intervals(10, 0.1, 2.0), &[5]), (intervals(10, 0.1, 2.0), vec![5]));
        let (joined, samples) = earlier.join(kind, intervals(30, 0.1, 6.0), &[7]);
        assert_eq!((joined.rows.len(), samples), (40, vec![12]));
        assert_eq!(joined.rows.iter().filter(|row| !row.follows).count(), 2, "a gap between both");
        assert!((joined.count_noise[0] - 5.0).abs() < 1e-12, "{:?}", joined.count_noise);
        assert_eq!(joined.pieces_of_code, Some(6.0));
        // Of another kind nothing is known, and intervals of another length are others.
        assert_eq!(earlier.join(DomainKind::Dram, intervals(1, 0.1, 1.0), &[1]).0.rows.len(), 1);
        assert_eq!(earlier.join(kind, intervals(3, 1.0, 1.0), &[1]).0.rows.len(), 3);
        for _ in 0..1000 {
            let (joined, _) = earlier.join(kind, intervals(50, 0.1, 2.0), &[1]);
            assert!(joined.rows.len() <= MOST_ROWS);
        }
    }

    #[test]
    fn a_recording_without_intervals_goes_by_those_before() {
        let earlier = EarlierIntervals::default();
        earlier.join(DomainKind::Package, intervals(10, 0.1, 2.0), &[5]);
        let (joined, samples) = earlier.join(DomainKind::Package, intervals(0, 0.1, 0.0), &[1]);
        assert_eq!((joined.rows.len(), samples), (10, vec![5]));
    }

    #[test]
    fn a_recording_that_is_too_large_for_memory_is_used_all_the_same() {
        let earlier = EarlierIntervals::default();
        let kind = DomainKind::Package;
        for _ in 0..2 {
            let (joined, samples) = earlier.join(kind, intervals(MOST_ROWS + 1, 0.1, 2.0), &[5]);
            assert_eq!((joined.rows.len(), samples), (MOST_ROWS + 1, vec![5]));
        }
        // As many rows as may be kept are kept.
        let earlier = EarlierIntervals::default();
        earlier.join(kind, intervals(10, 0.1, 2.0), &[5]);
        assert_eq!(earlier.join(kind, intervals(MOST_ROWS - 10, 0.1, 2.0), &[5]).0.rows.len(), MOST_ROWS);
        assert_eq!(earlier.join(kind, intervals(1, 0.1, 2.0), &[5]).0.rows.len(), MOST_ROWS - 9);
    }

    #[test]
    fn intervals_of_similar_length_fit() {
        let rows = |first: f64, second: f64| {
            let earlier = EarlierIntervals::default();
            earlier.join(DomainKind::Package, intervals(10, first, 2.0), &[5]);
            earlier.join(DomainKind::Package, intervals(20, second, 2.0), &[7])
        };
        let just = 0.125 * SIMILAR;
        assert_eq!((rows(just, 0.125).0.rows.len(), rows(0.125, just).0.rows.len()), (30, 30));
        let (joined, samples) = rows(just * 1.001, 0.125);
        assert_eq!((joined.rows.len(), samples), (20, vec![7]));
        assert_eq!(rows(0.125, just * 1.001).0.rows.len(), 20);
    }
}
