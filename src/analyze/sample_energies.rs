//! The energy of single samples, stretch by stretch of the file.

use perf_data::RecordPosition;

use crate::analyze::aggregate::samples::{BYTES_PER_SAMPLE, SampleEnergy, SampleList};
use crate::analyze::memory::{MemoryLimit, TableLimits};
use crate::analyze::options::Options;
use crate::analyze::passes::whole::whole;
use crate::profile::DomainEnergy;
use crate::recording::Recording;
use crate::units::Joules;

/// The energy that each of the program's samples stands for, for those who hand on the samples themselves.
///
/// Joules are attributed in the order of time, and a file is not in that order. As many samples as there is memory for
/// are remembered at a time; for those behind them in the file the recording is walked through again.
#[derive(Debug)]
pub struct SampleEnergies<'r> {
    recording: &'r Recording,
    options: &'r Options,
    /// Samples that are remembered at a time.
    most: usize,
    stretch: SampleEnergy,
    /// Where the next stretch begins.
    until: Option<RecordPosition>,
}

impl<'r> SampleEnergies<'r> {
    /// The energy of a recording's samples, as [`crate::analyze::analyze`] attributes it.
    pub fn new(recording: &'r Recording, options: &'r Options, limit: MemoryLimit) -> Self {
        let events = recording.metadata().map_or(0, |metadata| metadata.events.len());
        let domains = recording.metadata().map_or(1, |metadata| metadata.domains.len().max(1));
        let joules = domains * (2 * size_of::<Joules>() + (events + 1) * size_of::<f32>());
        let TableLimits { cells, .. } = limit.of_whole(false);
        Self::of_stretches(recording, options, cells / (BYTES_PER_SAMPLE + joules))
    }

    fn of_stretches(recording: &'r Recording, options: &'r Options, most: usize) -> Self {
        let (stretch, until) = walk(recording, options, RecordPosition::default(), most);
        Self { recording, options, most, stretch, until }
    }

    /// The domains and their balances.
    pub fn domains(&self) -> &[DomainEnergy] {
        &self.stretch.domains
    }

    /// How many samples the recording has.
    pub fn samples(&self) -> u64 {
        self.stretch.samples
    }

    /// What the reader must know.
    pub fn warnings(&self) -> &[String] {
        &self.stretch.warnings
    }

    /// The joules of the sample at this place, by domain; `None` if it is not a sample of the program. To be asked
    /// in the order of the file.
    pub fn at(&mut self, position: RecordPosition) -> Option<&[Joules]> {
        while let Some(from) = self.until.filter(|until| *until <= position) {
            self.stretch.clear();
            (self.stretch, self.until) = walk(self.recording, self.options, from, self.most);
            // A sample came so late that there was no room left for it.
            if self.until == Some(from) {
                self.most *= 2;
            }
        }
        self.stretch.at(position)
    }
}

fn walk(
    recording: &Recording,
    options: &Options,
    from: RecordPosition,
    most: usize,
) -> (SampleEnergy, Option<RecordPosition>) {
    let limits = MemoryLimit::NONE.of_whole(false);
    let (assembled, _) = whole(recording, options, Some(SampleList::new(from, most.max(1))), limits);
    let (positions, until) = assembled.positions;
    (SampleEnergy::new(positions, assembled.profile), until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::fixture::recording_of_stacks;

    #[test]
    fn stretches_of_any_length_say_the_same() {
        let stacks: Vec<Vec<u64>> = (0..200).map(|number| vec![1, number % 7]).collect();
        let recording = recording_of_stacks(&stacks);
        let options = Options::default();
        let mut positions = Vec::new();
        let mut records = recording.records();
        while let Some(raw) = records.next_raw().expect("sound") {
            positions.push(raw.position);
        }
        let energies = |most| {
            let mut energies = SampleEnergies::of_stretches(&recording, &options, most);
            let of_each = positions.iter().map(|at| energies.at(*at).map(<[Joules]>::to_vec)).collect();
            let stretches: Vec<Option<Vec<Joules>>> = of_each;
            (stretches, energies.domains().len())
        };
        let (whole, domains) = energies(usize::MAX);
        assert_eq!(whole.iter().flatten().count(), 200);
        assert!(whole.iter().flatten().all(|joules| joules.len() == domains && joules[0] > Joules::ZERO));
        for most in [1, 7, 64, 199, 200] {
            assert_eq!(energies(most), (whole.clone(), domains), "{most} at a time");
        }
    }

    /// 300 MiB for tables: of three domains without events each sample has two sums and an error.
    #[test]
    fn as_many_samples_as_there_is_memory_for() {
        let recording = recording_of_stacks(&[vec![1]]);
        let options = Options::default();
        let limit = MemoryLimit::from_bytes(356 << 20).expect("enough");
        let most = SampleEnergies::new(&recording, &options, limit).most;
        assert_eq!(most, (300 << 20) / (BYTES_PER_SAMPLE + 3 * (2 * 8 + 4)));
    }
}
