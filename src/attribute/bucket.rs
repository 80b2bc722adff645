//! What lies in one bucket: sums by kind of quantum first, and then joules by cell.
//!
//! Quanta of the same event on CPUs that are fed alike cost the same per event, so that a bucket is
//! weighed by a few sums, and each quantum is looked at once for them and once for its cell.

use super::cpu_groups::CpuGroups;
use super::quantum::{Charge, Window};
use crate::units::Timestamp;

/// The quanta of one bucket; kept from bucket to bucket to save allocations.
#[derive(Debug)]
pub(super) struct BucketSums {
    events: usize,
    /// Number of events: rows of groups, of events.
    counts: Vec<f64>,
    /// CPU nanoseconds by group.
    running: Vec<f64>,
    parts: Vec<Part>,
    /// Quanta that end in the bucket.
    pub ended: u32,
}

/// The part of a quantum that lies in the bucket.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub events: f64,
    /// CPU nanoseconds.
    pub running: f64,
    pub group: u32,
    pub event: u32,
    pub charge: Charge,
}

impl BucketSums {
    pub fn new(events: usize, cpu_groups: &CpuGroups) -> Self {
        let groups = cpu_groups.groups().len();
        Self {
            events,
            counts: vec![0.0; groups * events],
            running: vec![0.0; groups],
            parts: Vec::new(),
            ended: 0,
        }
    }

    /// Takes up what lies between `start` and `end`; the last bucket ends all quanta.
    pub fn collect(&mut self, pending: &Window, start: Timestamp, end: Timestamp, is_last: bool) {
        self.counts.fill(0.0);
        self.running.fill(0.0);
        self.parts.clear();
        self.ended = 0;
        for (quantum, overlap) in pending.overlapping(start, end) {
            self.ended += u32::from(quantum.end <= end || is_last);
            let (group, event) = (quantum.group as usize, quantum.event as usize);
            let events = quantum.count * overlap;
            self.counts[group * self.events + event] += events;
            let running = quantum.running * overlap;
            self.running[group] += running;
            let (group, event, charge) = (quantum.group, quantum.event, quantum.charge);
            self.parts.push(Part { events, running, group, event, charge });
        }
    }

    /// Number of each event in a group.
    pub fn counts_of(&self, group: usize) -> &[f64] {
        &self.counts[group * self.events..][..self.events]
    }

    /// CPU nanoseconds in a group.
    pub fn running_of(&self, group: usize) -> f64 {
        self.running[group]
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

/// Joules of one event, by group, event and what is charged with it: **columns**, of which a group has
/// as many as domains feed it, or twice as many, see [`Rates::new`].
#[derive(Debug)]
pub(super) struct Rates {
    groups: Vec<GroupRates>,
}

#[derive(Debug)]
struct GroupRates {
    columns: Vec<usize>,
    /// Rows of events, of columns.
    joules: Vec<f64>,
}

impl Rates {
    /// `also_model`: beside the column of each domain there is one for the model's own joules, that many
    /// columns further on.
    pub fn new(events: usize, cpu_groups: &CpuGroups, also_model: Option<usize>) -> Self {
        let groups = cpu_groups.groups().iter().map(|fed| {
            let model = also_model.into_iter().flat_map(|by| fed.iter().map(move |domain| domain + by));
            let columns: Vec<usize> = fed.iter().copied().chain(model).collect();
            GroupRates { joules: vec![0.0; columns.len() * events], columns }
        });
        Self { groups: groups.collect() }
    }

    /// Fills in the joules of an event, given group, event and column.
    pub fn set(&mut self, joules: impl Fn(usize, usize, usize) -> f64) {
        for (index, group) in self.groups.iter_mut().enumerate() {
            let columns = &group.columns;
            for (at, value) in group.joules.iter_mut().enumerate() {
                *value = joules(index, at / columns.len(), columns[at % columns.len()]);
            }
        }
    }

    /// Columns and joules per event in each.
    #[inline]
    fn of(&self, part: &Part) -> impl Iterator<Item = (usize, f64)> {
        let group = &self.groups[part.group as usize];
        let columns = &group.columns;
        let joules = &group.joules[part.event as usize * columns.len()..][..columns.len()];
        columns.iter().copied().zip(joules.iter().copied())
    }
}

/// Sums of one bucket by cell, in the order in which cells come.
#[derive(Debug)]
pub(super) struct CellSums {
    columns: usize,
    /// The first cell that may come.
    first_cell: u32,
    /// Row of each cell from there on in this bucket, if it has come.
    row_of: Vec<u32>,
    cells: Vec<u32>,
    /// First those of [`Charge`]s that are no cells, then those of the cells.
    rows: Vec<f64>,
    /// CPU nanoseconds of each row.
    running: Vec<f64>,
}

const NO_ROW: u32 = u32::MAX;
/// Rows that are no cells.
const OTHERS: usize = 3;

impl CellSums {
    /// For rows of so many columns.
    pub fn new(columns: usize) -> Self {
        let rows = vec![0.0; OTHERS * columns];
        let running = vec![0.0; OTHERS];
        Self { columns, first_cell: 0, row_of: Vec::new(), cells: Vec::new(), rows, running }
    }

    /// Makes room for the cells from `first` to `last`; no others come any more. Only between buckets.
    pub fn make_room(&mut self, first: u32, last: u32) {
        self.first_cell = first;
        self.row_of.resize((last - first) as usize + 1, NO_ROW);
    }

    /// Adds a part of a quantum; there is room for its cell.
    #[inline]
    pub fn add(&mut self, part: &Part, rates: &Rates) {
        let row = match part.charge {
            Charge::OtherProcess => 0,
            Charge::Recorder => 1,
            Charge::Lost => 2,
            Charge::Cell(cell) => {
                let row = &mut self.row_of[(cell - self.first_cell) as usize];
                if *row == NO_ROW {
                    *row = (OTHERS + self.cells.len()) as u32;
                    self.cells.push(cell);
                    self.rows.resize(self.rows.len() + self.columns, 0.0);
                    self.running.push(0.0);
                }
                *row as usize
            }
        };
        self.running[row] += part.running;
        let row = &mut self.rows[row * self.columns..][..self.columns];
        for (column, joules) in rates.of(part) {
            row[column] += joules * part.events;
        }
    }

    /// Joules of other processes, of the recorder and of what was lost, each by column.
    pub fn not_cells(&self) -> [&[f64]; OTHERS] {
        [0, 1, 2].map(|row| &self.rows[row * self.columns..][..self.columns])
    }

    /// Joules of the cells, by column, and their CPU nanoseconds.
    pub fn cells(&self) -> impl Iterator<Item = (u32, &[f64], f64)> {
        let rows = self.rows.chunks_exact(self.columns.max(1)).skip(OTHERS);
        let rows = rows.zip(self.running.iter().copied().skip(OTHERS));
        self.cells.iter().copied().zip(rows).map(|(cell, (row, running))| (cell, row, running))
    }

    /// Before the next bucket.
    pub fn clear(&mut self) {
        let first = self.first_cell;
        self.cells.drain(..).for_each(|cell| self.row_of[(cell - first) as usize] = NO_ROW);
        self.rows.truncate(OTHERS * self.columns);
        self.rows.fill(0.0);
        self.running.truncate(OTHERS);
        self.running.fill(0.0);
    }
}
