//! How often neighbours in the sequence of samples differ in being of a row.

use super::lost_stretches::Ends;
use super::{InSequence, SampleSequence};

/// Samples that may be in step are at most so many apart.
pub(super) const FARTHEST: usize = 8;

/// How many samples the sequence has, and pairs of samples of one stream 1, 2 .. [`FARTHEST`] apart.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Pairs {
    pub samples: f64,
    pub apart: [f64; FARTHEST],
    /// Samples of two CPUs that follow each other in time, and those of them that are of one row.
    pub across: [f64; 2],
}

/// What was counted of a row.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TransitionsOfRow {
    /// Its samples.
    pub samples: f64,
    /// By event: pairs of which just one is of the row, of neighbours and of samples two apart.
    pub of_events: Vec<[f64; 2]>,
    /// The same for samples 3, 4 .. [`FARTHEST`] apart, of all events together.
    pub farther: [f64; FARTHEST - 2],
}

/// Pairs of samples of the sequence of which just one is of a row.
///
/// These are all pairs with its samples less twice those of which both are of it. All pairs follow from the
/// number of samples, but for those at the ends of a stream; and pairs of which both are of one row are few
/// where there are many rows. So little is done for each of some hundred thousand samples.
pub(super) struct Transitions {
    pub pairs: Pairs,
    /// What is known of lost records.
    pub ends: Ends,
    events: usize,
    /// By row, and for each row by event.
    counts: Vec<Counts>,
}

/// What is counted of a row's samples of one event.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    samples: u32,
    /// By distance, the farthest first, what is to be taken from twice their number: pairs that the ends of streams lack, and
    /// twice those of which both are of the row.
    lacking: [u32; FARTHEST],
}

/// What CPUs did last, in one block of the sequence.
#[derive(Default)]
struct Cpus {
    /// CPU and row of the latest sample.
    latest: Option<(u32, u32)>,
    /// By CPU: the row of its latest sample, and how many records were lost since.
    of_cpu: Vec<Option<(u32, u64)>>,
}

impl Cpus {
    fn lost(&mut self, cpu: u32, records: u32) {
        if let Some(Some((_, lost))) = self.of_cpu.get_mut(cpu as usize) {
            *lost += u64::from(records);
        }
    }

    fn sample(&mut self, cpu: u32, row: u32, transitions: &mut Transitions) {
        if let Some((other, of_other)) = self.latest.replace((cpu, row))
            && other != cpu
        {
            transitions.pairs.across[0] += 1.0;
            transitions.pairs.across[1] += f64::from(u8::from(of_other == row));
        }
        if let Some((before, lost)) = place_of(&mut self.of_cpu, cpu, || None).replace((row, 0))
            && lost > 0
        {
            transitions.ends.add(lost, [before, row].map(|row| (row != NO_ROW).then_some(row)));
        }
    }
}

/// What a list has at a number, of which there are few.
fn place_of<T>(list: &mut Vec<T>, number: u32, empty: impl FnMut() -> T) -> &mut T {
    let number = number as usize;
    if number >= list.len() {
        list.resize_with(number + 1, empty);
    }
    &mut list[number]
}

/// The row of samples that are in none.
const NO_ROW: u32 = u32::MAX;

impl Transitions {
    /// Counts a sequence of samples of so many events for `rows` rows, of which `row_of` tells for each cell its own.
    pub fn count(
        sequence: &SampleSequence,
        events: usize,
        rows: usize,
        row_of: impl Fn(u32) -> Option<usize>,
    ) -> Self {
        let events = events.max(1);
        let counts = vec![Counts::default(); rows * events];
        let mut transitions = Self { pairs: Pairs::default(), ends: Ends::default(), events, counts };
        // By stream: the rows of its samples in the block at hand.
        let mut streams: Vec<Vec<u32>> = Vec::new();
        let mut by_event = vec![0u64; events];
        for block in sequence.blocks() {
            let mut cpus = Cpus::default();
            for entry in block {
                let (number, cell) = match entry {
                    InSequence::Sample { stream, cell } => (stream, cell),
                    InSequence::Lost { cpu, records } => {
                        cpus.lost(cpu, records);
                        continue;
                    }
                };
                let row = row_of(cell).filter(|&row| row < rows).map_or(NO_ROW, |row| row as u32);
                place_of(&mut streams, number, Vec::new).push(row);
                cpus.sample(number / events as u32, row, &mut transitions);
            }
            for (number, rows) in streams.iter_mut().enumerate() {
                let event = number % events;
                by_event[event] += rows.len() as u64;
                transitions.stream(event, rows);
                rows.clear();
            }
        }
        transitions.pairs.samples = by_event.iter().sum::<u64>() as f64;
        let most = by_event.iter().max().map_or(0.0, |&most| most as f64);
        transitions.ends.of_stream = most / transitions.pairs.samples.max(1.0);
        transitions
    }

    /// The correlation of samples of two CPUs at one time in what they are of: 1 where all CPUs do the same at any time.
    pub fn across(&self) -> f64 {
        let ([pairs, same], all) = (self.pairs.across, self.pairs.samples);
        if pairs <= 0.0 {
            return 0.0;
        }
        let of_rows = self.counts.chunks_exact(self.events);
        let of_rows = of_rows.map(|counts| counts.iter().map(|of_event| of_event.samples).sum::<u32>());
        let parts = of_rows.map(|samples| f64::from(samples) / all);
        let (of_rows, squares) =
            parts.fold((0.0, 0.0), |(sum, squares), part| (sum + part, squares + part * part));
        let by_chance = squares + (1.0 - of_rows).powi(2);
        if by_chance < 1.0 { ((same / pairs - by_chance) / (1.0 - by_chance)).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// What was counted of a row.
    pub fn of_row(&self, row: usize) -> TransitionsOfRow {
        let counts = &self.counts[row * self.events..][..self.events];
        let lacking = |counts: &Counts, distance: usize| f64::from(counts.lacking[FARTHEST - distance]);
        let samples: f64 = counts.iter().map(|counts| f64::from(counts.samples)).sum();
        let of_event = |counts: &Counts| {
            let pairs = 2.0 * f64::from(counts.samples);
            [pairs - lacking(counts, 1), pairs - lacking(counts, 2)]
        };
        let farther = |distance: usize| counts.iter().map(|counts| lacking(counts, distance)).sum::<f64>();
        TransitionsOfRow {
            samples,
            of_events: counts.iter().map(of_event).collect(),
            farther: std::array::from_fn(|at| 2.0 * samples - farther(at + 3)),
        }
    }

    #[inline]
    fn counts(&mut self, row: u32, event: usize) -> &mut Counts {
        &mut self.counts[row as usize * self.events + event]
    }

    /// Counts one stream in one block of the sequence.
    fn stream(&mut self, event: usize, rows: &[u32]) {
        for (distance, apart) in (1..).zip(&mut self.pairs.apart) {
            *apart += rows.len().saturating_sub(distance) as f64;
        }
        let are_whole = rows.windows(FARTHEST + 1).filter_map(|window| window.split_last_chunk());
        for (before, &[row]) in are_whole.filter(|(_, row)| **row != [NO_ROW]) {
            let counts = self.counts(row, event);
            counts.samples += 1;
            // All of them alike, whether they are of the row or not: a CPU does that at once.
            let mut lacking = counts.lacking;
            for (lacking, &other) in lacking.iter_mut().zip(before) {
                *lacking += 2 * u32::from(other == row);
            }
            counts.lacking = lacking;
        }
        // The first have fewer before them, and the last fewer behind.
        for (at, &row) in rows.iter().enumerate().take(FARTHEST).filter(|(_, row)| **row != NO_ROW) {
            let counts = self.counts(row, event);
            counts.samples += 1;
            let (beyond, seen) = counts.lacking.split_at_mut(FARTHEST - at);
            beyond.iter_mut().for_each(|lacking| *lacking += 1);
            for (lacking, &other) in seen.iter_mut().zip(rows) {
                *lacking += 2 * u32::from(other == row);
            }
        }
        for (behind, &row) in rows.iter().rev().enumerate().take(FARTHEST).filter(|(_, row)| **row != NO_ROW)
        {
            let beyond = &mut self.counts(row, event).lacking[..FARTHEST - behind];
            beyond.iter_mut().for_each(|lacking| *lacking += 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As the definition has it: pair by pair.
    fn one_by_one(samples: &[(u32, u32)], events: usize, row: u32) -> (TransitionsOfRow, Pairs) {
        let mut transitions =
            TransitionsOfRow { of_events: vec![[0.0; 2]; events], ..TransitionsOfRow::default() };
        let mut pairs = Pairs { samples: samples.len() as f64, ..Pairs::default() };
        transitions.samples = samples.iter().filter(|(_, cell)| *cell == row).count() as f64;
        let streams: std::collections::BTreeSet<u32> = samples.iter().map(|(stream, _)| *stream).collect();
        for stream in streams {
            let cells: Vec<u32> =
                samples.iter().filter(|sample| sample.0 == stream).map(|sample| sample.1).collect();
            for distance in 1..=FARTHEST {
                let differ = |pair: &&[u32]| (pair[0] == row) != (pair[distance] == row);
                let windows = cells.windows(distance + 1);
                pairs.apart[distance - 1] += windows.len() as f64;
                let count = windows.filter(differ).count() as f64;
                match distance {
                    1 | 2 => transitions.of_events[stream as usize % events][distance - 1] += count,
                    farther => transitions.farther[farther - 3] += count,
                }
            }
        }
        let follow = samples.windows(2).filter(|pair| pair[0].0 / events as u32 != pair[1].0 / events as u32);
        let row_of = |cell: u32| if cell < 3 { cell } else { NO_ROW };
        let same = follow.clone().filter(|pair| row_of(pair[0].1) == row_of(pair[1].1));
        pairs.across = [follow.count() as f64, same.count() as f64];
        (transitions, pairs)
    }

    proptest! {
        #[test]
        fn pairs_are_counted_as_if_one_by_one(
            samples in prop::collection::vec((0u32..4, 0u32..4), 0..120),
            events in 1usize..3,
        ) {
            let mut sequence = SampleSequence::default();
            samples.iter().for_each(|(stream, cell)| sequence.push(*stream, *cell));
            // Cell 3 is in no row.
            let transitions = Transitions::count(&sequence, events, 3, |cell| (cell < 3).then_some(cell as usize));
            for row in 0..3 {
                let (expected, pairs) = one_by_one(&samples, events, row);
                prop_assert_eq!(transitions.of_row(row as usize), expected);
                prop_assert_eq!(transitions.pairs, pairs);
            }
        }
    }
}
