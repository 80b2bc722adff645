//! Energy readings on their way to the file, and what they add up to.

use perf_data::encode::RecordTooLong;

use crate::hardware::{DomainInfo, Method};
use crate::record::readings::DomainReading;
use crate::recording::metadata::Metadata;
use crate::recording::own_events;
use crate::units::Joules;

/// Takes the readings of all meters to the file.
#[derive(Debug)]
pub struct EnergyLog {
    domains: Vec<DomainInfo>,
    /// For each domain a CPU that belongs to it, which its readings are said to be of.
    cpus: Vec<u32>,
    waiting: Vec<DomainReading>,
    /// Readings on their way: where their records end, domains and energies.
    encoded: Vec<(usize, usize, Joules)>,
    /// First and last energy of each domain in the file.
    ranges: Vec<Option<(Joules, Joules)>>,
}

/// The energy of a recording, in a few words.
#[derive(Debug, Clone, PartialEq)]
pub struct EnergySummary {
    /// All joules of the domains that no other one contains.
    pub total: Joules,
    /// Whether all of it was measured.
    pub method: Method,
    /// Where the readings came from.
    pub sources: Vec<String>,
}

impl EnergyLog {
    /// For the domains of a recording.
    pub fn new(metadata: &Metadata) -> Self {
        let domains = metadata.domains.clone();
        let first_cpu = |domain: &DomainInfo| {
            let of_package = |package| metadata.machine.cpus.iter().find(|cpu| cpu.package == package);
            domain.cpus.first().copied().or_else(|| Some(of_package(domain.package?)?.cpu)).unwrap_or(0)
        };
        let cpus = domains.iter().map(first_cpu).collect();
        let ranges = vec![None; domains.len()];
        Self { domains, cpus, waiting: Vec::new(), encoded: Vec::new(), ranges }
    }

    /// Where meters put their readings.
    pub fn waiting(&mut self) -> &mut Vec<DomainReading> {
        &mut self.waiting
    }

    /// Appends all waiting readings as records. They count when [`EnergyLog::written`] says that they are in
    /// the file.
    pub fn encode(&mut self, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
        self.encoded.clear();
        for DomainReading { domain, time, reading } in self.waiting.drain(..) {
            own_events::energy(domain, &reading, time, self.cpus[domain], out)?;
            self.encoded.push((out.len(), domain, reading.energy));
        }
        Ok(())
    }

    /// So many bytes of what was last encoded into are in the file: on a full disk fewer than all.
    pub fn written(&mut self, bytes: usize) {
        for (_, domain, energy) in self.encoded.drain(..).filter(|(end, ..)| *end <= bytes) {
            let first = self.ranges[domain].map_or(energy, |(first, _)| first);
            self.ranges[domain] = Some((first, energy));
        }
    }

    /// What all readings so far add up to; `None` without any.
    pub fn summary(&self) -> Option<EnergySummary> {
        let is_top = |domain: &DomainInfo| {
            !self.domains.iter().any(|other| Some(&other.name) == domain.parent.as_ref())
        };
        let read = self.domains.iter().zip(&self.ranges).filter(|(domain, _)| is_top(domain));
        let read: Vec<_> = read.filter_map(|(domain, range)| Some((domain, (*range)?))).collect();
        let mut sources: Vec<String> = read.iter().map(|(domain, _)| domain.source.clone()).collect();
        sources.dedup();
        let estimated = read.iter().any(|(domain, _)| domain.method == Method::Estimated);
        (!read.is_empty()).then(|| EnergySummary {
            total: read.iter().map(|(_, (first, last))| *last - *first).sum(),
            method: if estimated { Method::Estimated } else { Method::Measured },
            sources,
        })
    }
}
