//! Energy readings on their way from the meters to the file, and what they add up to.

use std::io;
use std::time::Duration;

use perf_data::encode::RecordTooLong;

use crate::hardware::{DomainInfo, Method};
use crate::meter::{EnergyMeter, Pace};
use crate::record::error::RecordError;
use crate::record::meter_turn::MeterTurn;
use crate::record::readings::{DomainReading, MeterReader};
use crate::recording::metadata::{Metadata, MetersRead};
use crate::recording::own_events;
use crate::units::Joules;

/// An estimate follows the CPU times, which move in steps of 10 ms: to ask for it more often than this
/// costs more than it tells.
const ESTIMATE_INTERVAL: Duration = Duration::from_millis(50);

/// How often a recorder reads meters that another one reads closely. What each counted between two times is known then even if
/// the other one is killed; and so few readings cost nothing, however many recorders there are.
const SELDOM: Duration = Duration::from_secs(10);

/// Takes the readings of all meters to the file.
pub struct EnergyLog {
    meters: Vec<PacedReader>,
    /// Whose turn it is to read them closely.
    turn: MeterTurn,
    domains: Vec<DomainInfo>,
    /// For each domain a CPU that belongs to it, which its readings are said to be of.
    cpus: Vec<u32>,
    waiting: Vec<DomainReading>,
    /// Readings on their way: where their records end, domains and energies.
    encoded: Vec<(usize, usize, Joules)>,
    /// First and last energy of each domain in the file.
    ranges: Vec<Option<(Joules, Joules)>>,
}

/// A meter that is being read, and how often that is to be when it is read closely.
struct PacedReader {
    reader: MeterReader,
    interval: Duration,
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
    /// Takes a first reading of each meter, and starts to read them at the interval that is wanted, as far as
    /// their pace permits: seldom, until it is this recorder's turn. The domains are those of the metadata, in the meters'
    /// order.
    ///
    /// # Errors
    /// A meter that cannot be read.
    pub fn start(
        meters: Vec<Box<dyn EnergyMeter>>,
        wanted: Duration,
        metadata: &Metadata,
        turn: MeterTurn,
    ) -> Result<Self, RecordError> {
        let domains = metadata.domains.clone();
        let first_cpu = |domain: &DomainInfo| {
            let of_package = |package| metadata.machine.cpus.iter().find(|cpu| cpu.package == package);
            domain.cpus.first().copied().or_else(|| Some(of_package(domain.package?)?.cpu)).unwrap_or(0)
        };
        let cpus = domains.iter().map(first_cpu).collect();
        let ranges = vec![None; domains.len()];
        let seldom = turn.read == MetersRead::ByAnother;
        let meters =
            start_meters(meters, wanted, seldom).map_err(RecordError::system("reading an energy meter"))?;
        Ok(Self { meters, turn, domains, cpus, waiting: Vec::new(), encoded: Vec::new(), ranges })
    }

    /// Appends the readings since the last call as records. They count when [`EnergyLog::written`] says that they
    /// are in the file.
    pub fn collect(&mut self, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
        if self.turn.read == MetersRead::ByAnother && self.turn.has_come() {
            self.turn.read = MetersRead::ForAll;
            self.meters.iter().for_each(|meter| meter.reader.hasten(meter.interval));
        }
        for meter in &mut self.meters {
            meter.reader.collect(&mut self.waiting);
        }
        self.encode(out)
    }

    /// Takes a last reading of each meter, stops them, and appends what they read.
    pub fn stop(&mut self, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
        for meter in std::mem::take(&mut self.meters) {
            meter.reader.stop(&mut self.waiting);
        }
        self.encode(out)
    }

    /// Stops the meters and takes no last reading. Another recorder may have the turn.
    pub fn give_up(&mut self) {
        self.meters.clear();
        self.turn = MeterTurn::default();
    }

    fn encode(&mut self, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
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

fn start_meters(
    meters: Vec<Box<dyn EnergyMeter>>,
    wanted: Duration,
    seldom: bool,
) -> io::Result<Vec<PacedReader>> {
    let mut first_domain = 0;
    let mut readers = Vec::new();
    for meter in meters {
        let count = meter.domains().len();
        let Pace { shortest, longest } = meter.pace();
        let [shortest, longest] = [shortest, longest].map(|span| Duration::from_nanos(span.as_nanos()));
        let measures = meter.domains().iter().any(|domain| domain.method == Method::Measured);
        let wanted = if measures { wanted } else { wanted.max(ESTIMATE_INTERVAL) };
        let interval = wanted.min(longest).max(shortest);
        let reader = match seldom {
            true => MeterReader::start_seldom(meter, first_domain, SELDOM.min(longest).max(shortest))?,
            false => MeterReader::start(meter, first_domain, interval)?,
        };
        readers.push(PacedReader { reader, interval });
        first_domain += count;
    }
    Ok(readers)
}
