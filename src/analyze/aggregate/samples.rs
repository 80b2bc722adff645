//! The energy of single samples, for those who hand on the samples themselves.

use perf_data::RecordPosition;

use crate::profile::{Cell, DomainEnergy, Profile, StackId, ThreadIndex};
use crate::units::{Joules, Nanoseconds};

/// The energy that each of the program's samples stands for, of a stretch of the file.
#[derive(Debug, Clone)]
pub(crate) struct SampleEnergy {
    /// The domains and their balances.
    pub domains: Vec<DomainEnergy>,
    /// Samples of the whole recording.
    pub samples: u64,
    /// What the reader must know.
    pub warnings: Vec<String>,
    /// Places of the samples, ascending.
    positions: Vec<RecordPosition>,
    /// Rows of as many columns as there are domains, in the order of `positions`.
    joules: Vec<Joules>,
}

impl SampleEnergy {
    /// From the places of samples and a profile whose cells are these samples, after one of all others.
    pub(crate) fn new(positions: Vec<RecordPosition>, profile: Profile) -> Self {
        // Samples were seen in the order of time, and are handed on in the order of the file.
        let mut order: Vec<usize> = (0..positions.len()).collect();
        order.sort_unstable_by_key(|&sample| positions[sample]);
        let joules = order.iter().flat_map(|&sample| profile.joules(sample + 1).iter().copied()).collect();
        let positions = order.iter().map(|&sample| positions[sample]).collect();
        let samples = profile.events.iter().map(|event| event.samples).sum();
        Self { domains: profile.domains, samples, warnings: profile.warnings, positions, joules }
    }

    /// The joules of the sample at this place, by domain; `None` if it is not a sample of the program.
    pub fn at(&self, position: RecordPosition) -> Option<&[Joules]> {
        let columns = self.domains.len();
        let sample = self.positions.binary_search(&position).ok()?;
        self.joules.get(sample * columns..(sample + 1) * columns)
    }

    /// Forgets all samples.
    pub fn clear(&mut self) {
        (self.positions, self.joules) = (Vec::new(), Vec::new());
    }
}

/// Samples of a stretch of the file, each of them a cell of its own.
#[derive(Debug)]
pub(crate) struct SampleList {
    from: RecordPosition,
    most: usize,
    positions: Vec<RecordPosition>,
    /// First the one of all other samples.
    cells: Vec<Cell>,
    /// The first place in the stretch whose sample there was no room for.
    until: Option<RecordPosition>,
}

/// What a sample takes in memory beside its joules: its place and cell, what is counted of it, and its place in the
/// order of the file.
pub(crate) const BYTES_PER_SAMPLE: usize = 160;

impl SampleList {
    /// The samples from a place on, at most so many.
    pub fn new(from: RecordPosition, most: usize) -> Self {
        Self { from, most, positions: Vec::new(), cells: vec![cell(0, 0)], until: None }
    }

    /// Adds a sample; the number of its cell.
    pub fn push(&mut self, at: RecordPosition, event: u32, count: u64) -> u32 {
        if at < self.from {
            return 0;
        }
        if self.positions.len() == self.most {
            self.until = Some(self.until.map_or(at, |until| until.min(at)));
            return 0;
        }
        self.positions.push(at);
        self.cells.push(cell(event, count));
        self.cells.len() as u32 - 1
    }

    /// The places of the samples, and up to where these are all that there are.
    pub fn take_positions(&mut self) -> (Vec<RecordPosition>, Option<RecordPosition>) {
        (std::mem::take(&mut self.positions), self.until)
    }

    /// The cells, with the time that each stands for.
    pub fn into_cells(self, times: impl Iterator<Item = Nanoseconds>) -> Vec<Cell> {
        self.cells.into_iter().zip(times).map(|(cell, time)| Cell { time, ..cell }).collect()
    }
}

fn cell(event: u32, count: u64) -> Cell {
    let (stack, thread, time) = (StackId(0), ThreadIndex(0), Nanoseconds::ZERO);
    Cell { stack, thread, cpu: None, event, samples: 1, count, time }
}
