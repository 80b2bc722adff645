//! What each sample spent of its cell, where samples are told one by one.

use crate::profile::{InSlice, Profile};

/// Of each of a profile's sample times, the share that it has of its cell: what a cell had in a slice of time is shared evenly by
/// those of its samples that were taken in it, or else is the next one's.
pub fn shares_of_cells(profile: &Profile) -> Vec<f64> {
    let times = &profile.sample_times;
    let mut cells: Vec<SamplesOfCell> = profile.cells.iter().map(|_| SamplesOfCell::default()).collect();
    for (index, sample) in times.iter().enumerate() {
        cells[sample.cell as usize].samples.push(index as u32);
    }
    let mut shares = vec![0.0; times.len()];
    for slice in &profile.slices {
        for &InSlice { cell, joules, .. } in &slice.by_cell {
            let cell = &mut cells[cell as usize];
            cell.waiting += f64::from(joules.max(0.0));
            let rest = &cell.samples[cell.given..];
            let ended = rest.partition_point(|&sample| times[sample as usize].end <= slice.end);
            cell.give(ended, &mut shares);
        }
    }
    for cell in &mut cells {
        cell.give(cell.samples.len() - cell.given, &mut shares);
        cell.finish(&mut shares);
    }
    shares
}

/// The samples of a cell, in the order of time.
#[derive(Default)]
struct SamplesOfCell {
    samples: Vec<u32>,
    /// So many of them have their joules.
    given: usize,
    /// Joules that no sample has yet.
    waiting: f64,
}

impl SamplesOfCell {
    /// Gives what waits to the next samples.
    fn give(&mut self, count: usize, shares: &mut [f64]) {
        if count == 0 {
            return;
        }
        let each = std::mem::take(&mut self.waiting) / count as f64;
        for &sample in &self.samples[self.given..self.given + count] {
            shares[sample as usize] = each;
        }
        self.given += count;
    }

    /// Gives the rest to the last one, and turns joules into shares.
    fn finish(&self, shares: &mut [f64]) {
        let Some(&last) = self.samples.last() else { return };
        shares[last as usize] += self.waiting;
        let sum: f64 = self.samples.iter().map(|&sample| shares[sample as usize]).sum();
        for &sample in &self.samples {
            let share = &mut shares[sample as usize];
            *share = if sum > 0.0 { *share / sum } else { 1.0 / self.samples.len() as f64 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Balance, Cell, SampleTime, StackId, ThreadIndex, TimeSlice};
    use crate::units::{Joules, Nanoseconds, Timestamp};

    #[test]
    fn samples_have_what_their_slice_had() {
        let at = Timestamp::from_nanos;
        let slice = |start, end, by_cell: &[(u32, f32)]| TimeSlice {
            start: at(start),
            end: at(end),
            measured: vec![Joules::from_joules(1.0)],
            modelled: Joules::ZERO,
            balance: Balance::default(),
            by_cell: by_cell.iter().map(|&(cell, joules)| InSlice { cell, joules, seconds: 0.0 }).collect(),
        };
        let sample = |end: u64, cell| SampleTime { start: at(end - 10), end: at(end), cell };
        let cell = Cell {
            stack: StackId(0),
            thread: ThreadIndex(0),
            cpu: None,
            event: 0,
            samples: 1,
            count: 1,
            time: Nanoseconds::ZERO,
        };
        let profile = Profile {
            cells: vec![cell; 3],
            slices: vec![
                // Two of the first cell's, none of the second's.
                slice(0, 100, &[(0, 3.0), (1, 1.0)]),
                // None of the first, which is what the last one began.
                slice(100, 200, &[(0, 0.5), (1, 3.0)]),
                slice(200, 300, &[(0, 0.5)]),
            ],
            sample_times: vec![
                sample(50, 0),
                sample(100, 0),
                sample(150, 1),
                sample(250, 0),
                sample(260, 2),
                sample(270, 2),
                sample(280, 2),
                sample(290, 2),
            ],
            ..Profile::default()
        };
        // 3 J by two and 1 J by one; 1 J waited for the sample that ends later; of the last cell nobody knows anything.
        let expected = [0.375, 0.375, 1.0, 0.25, 0.25, 0.25, 0.25, 0.25];
        assert_eq!(shares_of_cells(&profile), expected);
    }
}
