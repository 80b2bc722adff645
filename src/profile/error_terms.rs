//! What is needed to say how sure joules are.

use super::LostStretches;

/// The parts of the error of a profile's joules that depend on how cells are summed to rows.
#[derive(Debug, Clone, Default)]
pub struct ErrorTerms {
    /// Parameters of a domain's model: the coefficient of each event, then the static power.
    pub parameters: usize,
    /// How the joules of a cell change with the parameters of a domain's model, by way of the bucket's
    /// sum: rows of cells, of domains, of parameters. What a cell's own event adds, its joules over the
    /// coefficient, is not in it.
    pub sensitivities: Vec<f32>,
    /// Covariance of the parameters of each domain's model, row by row; empty where it is exact.
    pub covariances: Vec<Vec<f64>>,
    /// By event: how many times the variance that a change of code brings is larger since samples came late, several at a
    /// time. An event that is not in it has 1.
    pub late: Vec<f64>,
    /// A part of the samples in the order of time.
    pub sequence: SampleSequence,
    /// In what pieces records were lost.
    pub lost: LostStretches,
}

/// Which cells followed each other, sampled by one event on one CPU: a bounded part of a recording, in
/// blocks spread evenly over it.
#[derive(Debug, Clone, Default)]
pub struct SampleSequence {
    blocks: Vec<Vec<(u32, u32)>>,
    /// Of so many blocks one is kept.
    every: u64,
    /// Samples seen.
    seen: u64,
    /// The block at hand is kept.
    is_kept: bool,
    /// Of a part of a profile: which of the whole sequence's entries are of which of its cells. See
    /// [`SampleSequence::number`].
    entries: Option<Vec<(u32, u32)>>,
}

/// What stands in a [`SampleSequence`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InSequence {
    /// A sample.
    Sample {
        /// What tells the streams of single events on single CPUs apart.
        stream: u32,
        /// Its cell, or [`NO_CELL`].
        cell: u32,
    },
    /// Lost records of a CPU.
    Lost {
        /// What tells CPUs apart.
        cpu: u32,
        /// So many.
        records: u32,
    },
}

impl InSequence {
    fn of(&(stream, number): &(u32, u32)) -> Self {
        if stream & LOST == 0 {
            Self::Sample { stream, cell: number }
        } else {
            Self::Lost { cpu: stream & !LOST, records: number }
        }
    }
}

/// Marks lost records where a sample has its stream: there are far fewer streams.
const LOST: u32 = 1 << 31;

/// Samples in a block.
const BLOCK: u64 = 4096;
/// Blocks kept at most.
const MOST_BLOCKS: usize = 64;
/// The cell of samples that are not the program's.
pub const NO_CELL: u32 = u32::MAX;

impl SampleSequence {
    /// Adds a sample: what tells the streams of single events on single CPUs apart, and its cell, or
    /// [`NO_CELL`].
    #[inline]
    pub fn push(&mut self, stream: u32, cell: u32) {
        if self.seen.is_multiple_of(BLOCK) {
            self.begin_block();
        }
        self.seen += 1;
        if self.is_kept
            && let Some(block) = self.blocks.last_mut()
        {
            block.push((stream, cell));
        }
    }

    /// Adds so many records that were lost on a CPU. `cpu` tells CPUs apart as the streams do.
    pub fn push_lost(&mut self, cpu: u32, records: u64) {
        self.push(cpu | LOST, u32::try_from(records).unwrap_or(u32::MAX));
    }

    fn begin_block(&mut self) {
        self.every = self.every.max(1);
        let block = self.seen / BLOCK;
        self.is_kept = block.is_multiple_of(self.every);
        if self.is_kept && self.blocks.len() == MOST_BLOCKS {
            let mut at = 0;
            self.blocks.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every *= 2;
            self.is_kept = block.is_multiple_of(self.every);
        }
        if self.is_kept {
            self.blocks.push(Vec::with_capacity(BLOCK as usize));
        }
    }

    /// Puts numbers from 0 on in the place of the cells of all samples that have one: what each cell is, parts of
    /// the profile tell by these numbers ([`SampleSequence::of_part`]).
    pub fn number(&mut self) {
        let entries = self.blocks.iter_mut().flatten();
        let of_cells = entries.filter(|(stream, cell)| stream & LOST == 0 && *cell != NO_CELL);
        of_cells.zip(0..).for_each(|((_, cell), number)| *cell = number);
    }

    /// Finds the same samples in another walk through the recording.
    pub fn follow(&self) -> TrailFollower {
        TrailFollower { every: self.every.max(1), seen: 0, next: 0 }
    }

    /// Of a part of a profile: pairs of a number in the whole profile's sequence and a cell of the part.
    pub fn of_part(entries: Vec<(u32, u32)>) -> Self {
        Self { entries: Some(entries), ..Self::default() }
    }

    /// What [`SampleSequence::of_part`] was given; `None` for the sequence of a whole profile.
    pub fn entries(&self) -> Option<&[(u32, u32)]> {
        self.entries.as_deref()
    }

    /// The blocks, in the order of time.
    pub fn blocks(&self) -> impl Iterator<Item = impl Iterator<Item = InSequence>> {
        self.blocks.iter().map(|block| block.iter().map(InSequence::of))
    }

    /// The share of all samples that is kept.
    pub fn share(&self) -> f64 {
        let kept: usize = self.blocks.iter().map(Vec::len).sum();
        kept as f64 / self.seen.max(1) as f64
    }
}

/// Finds the samples of a sequence again, when the same samples come in the same order.
#[derive(Debug, Clone)]
pub struct TrailFollower {
    every: u64,
    seen: u64,
    next: u32,
}

impl TrailFollower {
    /// The number of the next sample in the sequence, as [`SampleSequence::number`] gave it; `None` if it is not in it, or has
    /// no cell.
    #[inline]
    pub fn next(&mut self, has_cell: bool) -> Option<u32> {
        let is_kept = (self.seen / BLOCK).is_multiple_of(self.every);
        self.seen += 1;
        if !is_kept || !has_cell {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_recording_leaves_a_bounded_sequence() {
        let mut sequence = SampleSequence::default();
        (0..3_000_000u32).for_each(|at| sequence.push(0, at));
        assert!(sequence.blocks.len() <= MOST_BLOCKS);
        assert!(sequence.share() > 0.03 && sequence.share() < 0.12, "{}", sequence.share());
        for block in &sequence.blocks {
            assert!(block.windows(2).all(|pair| pair[1].1 == pair[0].1 + 1), "blocks have no gaps");
        }
        let last = sequence.blocks.iter().filter_map(|block| block.last()).next_back().expect("blocks").1;
        assert!(last > 2_500_000, "they are spread over the whole");
    }

    #[test]
    fn a_trail_is_found_again() {
        let mut sequence = SampleSequence::default();
        let cell_of = |at: u32| if at.is_multiple_of(3) { NO_CELL } else { at };
        let is_lost = |at: u32| at.is_multiple_of(7);
        for at in 0..1_700_000u32 {
            if is_lost(at) { sequence.push_lost(0, at.into()) } else { sequence.push(at % 2, cell_of(at)) }
        }
        let cells = |sequence: &SampleSequence| -> Vec<u32> {
            let cell_of = |entry| match entry {
                InSequence::Sample { cell, .. } => Some(cell),
                InSequence::Lost { .. } => None,
            };
            sequence.blocks().flatten().filter_map(cell_of).collect()
        };
        let of_samples = cells(&sequence);
        let mut follower = sequence.follow();
        let has_cell = |at: u32| !is_lost(at) && cell_of(at) != NO_CELL;
        let found: Vec<(u32, u32)> =
            (0..1_700_000u32).filter_map(|at| Some((follower.next(has_cell(at))?, cell_of(at)))).collect();
        sequence.number();
        assert!(found.iter().map(|(number, _)| *number).eq(0..found.len() as u32));
        for (number, cell) in cells(&sequence).into_iter().zip(of_samples) {
            let same = if number == NO_CELL { NO_CELL } else { found[number as usize].1 };
            assert_eq!(same, cell);
        }
    }

    #[test]
    fn a_short_one_is_kept_whole() {
        let mut sequence = SampleSequence::default();
        (0..100_000u32).for_each(|at| sequence.push(0, at));
        assert!((sequence.share() - 1.0).abs() < 1e-12);
    }
}
