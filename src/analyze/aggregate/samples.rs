//! The energy of single samples, for those who hand on the samples themselves.

use perf_data::RecordPosition;

use crate::profile::{Cell, DomainEnergy, Profile, StackId, ThreadIndex};
use crate::units::{Joules, Nanoseconds};

/// The energy that each of the program's samples stands for.
#[derive(Debug, Clone)]
pub struct SampleEnergy {
    /// The domains and their balances.
    pub domains: Vec<DomainEnergy>,
    /// What the reader must know.
    pub warnings: Vec<String>,
    /// Places of the samples, ascending.
    positions: Vec<RecordPosition>,
    /// Rows of as many columns as there are domains, in the order of `positions`.
    joules: Vec<Joules>,
}

impl SampleEnergy {
    /// From the places of samples and a profile whose cells are these samples.
    pub(crate) fn new(positions: Vec<RecordPosition>, profile: Profile) -> Self {
        let columns = profile.domains.len();
        // Samples were seen in the order of time, and are handed on in the order of the file.
        let mut order: Vec<usize> = (0..positions.len()).collect();
        order.sort_unstable_by_key(|&sample| positions[sample]);
        let joules = order
            .iter()
            .flat_map(|&sample| profile.cell_joules[sample * columns..(sample + 1) * columns].iter().copied())
            .collect();
        let positions = order.iter().map(|&sample| positions[sample]).collect();
        Self { domains: profile.domains, warnings: profile.warnings, positions, joules }
    }

    /// The joules of the sample at this place, by domain; `None` if it is not a sample of the program.
    pub fn at(&self, position: RecordPosition) -> Option<&[Joules]> {
        let columns = self.domains.len();
        let sample = self.positions.binary_search(&position).ok()?;
        self.joules.get(sample * columns..(sample + 1) * columns)
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// There are no samples.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }
}

/// Samples, each of them a cell of its own.
#[derive(Debug, Default)]
pub(crate) struct SampleList {
    positions: Vec<RecordPosition>,
    cells: Vec<Cell>,
}

impl SampleList {
    /// Adds a sample; the number of its cell.
    pub fn push(&mut self, at: RecordPosition, event: u32, count: u64) -> u32 {
        self.positions.push(at);
        let (stack, thread, time) = (StackId(0), ThreadIndex(0), Nanoseconds::ZERO);
        self.cells.push(Cell { stack, thread, cpu: None, event, samples: 1, count, time });
        self.cells.len() as u32 - 1
    }

    /// The places of the samples.
    pub fn take_positions(&mut self) -> Vec<RecordPosition> {
        std::mem::take(&mut self.positions)
    }

    /// The cells, with the time that each stands for.
    pub fn into_cells(self, times: impl Iterator<Item = Nanoseconds>) -> Vec<Cell> {
        self.cells.into_iter().zip(times).map(|(cell, time)| Cell { time, ..cell }).collect()
    }
}
