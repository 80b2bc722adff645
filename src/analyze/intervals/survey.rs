//! The first pass: what is in a recording, and how much of it.

use std::cmp::Reverse;

use perf_data::format::record_type;
use perf_data::record::{Record, RecordContext, Sample};
use perf_data::{Decoder, RawRecord};

use crate::analyze::events::EventUnit;
use crate::analyze::events::{EventRole, EventRoles, SampledEvent};
use crate::analyze::intervals::grid::IntervalGrid;
use crate::analyze::intervals::late_readings::LateReadings;
use crate::analyze::intervals::losses::{Loss, Losses};
use crate::analyze::intervals::pieces::Pieces;
use crate::attribute::Quantum;
use crate::hardware::DomainInfo;
use crate::profile::{LostStretch, MeterCurve};
use crate::recording::energy::EnergyReading;
use crate::recording::{LentReading, Recording};
use crate::units::{Joules, Timestamp};

/// Long losses that are kept: far more than a recorder can be held up in an hour. Damaged files name more.
const MOST_LONG_LOSSES: usize = 1 << 18;
/// Stretches of lost records that are kept: the more there are, the less does each hide.
const MOST_STRETCHES: usize = 1 << 17;

/// What a recording holds.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// Samples of each sampled event.
    pub samples: Vec<u64>,
    /// First and last reading of each energy domain.
    pub readings: Vec<Option<[(Timestamp, Joules); 2]>>,
    /// What each energy domain's meter counted over time.
    pub meters: Vec<MeterCurve>,
    pub(crate) late_readings: Vec<LateReadings>,
    /// Highest CPU number of a sample.
    pub highest_cpu: Option<u32>,
    /// Times of the first and the last sample.
    pub sampled: Option<(Timestamp, Timestamp)>,
    /// What happened in equal intervals of time.
    pub intervals: IntervalGrid,
    pub(crate) pieces: Pieces,
    pub(crate) losses: Losses,
    pub(crate) long_losses: Vec<Quantum>,
    pub(crate) lost_stretches: Vec<LostStretch>,
}

impl Survey {
    /// Energy that a domain's meter counted.
    pub fn measured(&self, domain: usize) -> Joules {
        match self.readings.get(domain) {
            Some(Some([(_, first), (_, last)])) => (*last - *first).max(Joules::ZERO),
            _ => Joules::ZERO,
        }
    }

    /// The same per second; `None` where there are no two readings.
    pub fn mean_watts(&self, domain: usize) -> Option<f64> {
        let [(first, _), (last, _)] = (*self.readings.get(domain)?)?;
        let seconds = last.since(first).as_secs_f64();
        (seconds > 0.0).then(|| self.measured(domain).as_joules() / seconds)
    }

    /// What is to be said of domains that were read too seldom.
    pub(crate) fn read_too_late<'a>(
        &'a self,
        domains: &'a [DomainInfo],
    ) -> impl Iterator<Item = String> + 'a {
        self.late_readings.iter().zip(domains).filter_map(|(readings, domain)| readings.warning(domain))
    }

    /// Losses that are too long to be told of when they end, the first of them last.
    pub(crate) fn long_losses(&self) -> Vec<Quantum> {
        let mut losses = self.long_losses.clone();
        losses.sort_by_key(|loss| Reverse(loss.start));
        losses
    }
}

/// Surveys a recording. Damage is not reported here: the second pass meets it again and tells.
pub fn survey(recording: &Recording, roles: &EventRoles) -> Survey {
    let domains = recording.metadata().map_or(&[][..], |metadata| &metadata.domains);
    let ranges: Vec<Option<Joules>> = domains.iter().map(|domain| domain.range).collect();
    let domains = ranges.len();
    let mut survey = Survey {
        samples: vec![0; roles.sampled().len()],
        readings: vec![None; domains],
        meters: vec![MeterCurve::default(); domains],
        late_readings: vec![LateReadings::default(); domains],
        intervals: IntervalGrid::new(recording.metadata(), roles.sampled().len()),
        ..Survey::default()
    };
    let (mut records, decoder) = (recording.records(), recording.decoder());
    let mut lent = recording.lent_readings().unwrap_or_default().iter().peekable();
    loop {
        match records.next_raw() {
            Ok(Some(raw)) => {
                // Among the samples of their time, as if they lay in the file.
                let now = if lent.peek().is_some() { decoder.time(&raw) } else { None };
                while let Some(reading) = lent.next_if(|reading| now.is_some_and(|now| reading.time <= now)) {
                    survey.lent(&ranges, reading);
                }
                survey.record(roles, &ranges, decoder, &raw);
                let seen = raw.position;
                records.release_before(seen);
            }
            Err(error) if error.is_recoverable() => {}
            Ok(None) | Err(_) => break,
        }
    }
    lent.for_each(|reading| survey.lent(&ranges, reading));
    survey.intervals.end();
    survey
}

impl Survey {
    fn lost(&mut self, roles: &EventRoles, context: &RecordContext, records: u64) {
        let Some(time) = context.time else { return };
        let cpu = context.cpu;
        let losses = self.losses.lost(cpu, time, records);
        if let Some(&Loss { start, .. }) = losses.first() {
            self.intervals.lost_records(cpu, start, time);
            if self.lost_stretches.len() < MOST_STRETCHES {
                self.lost_stretches.push(LostStretch { start, end: time, records });
            }
        }
        for loss in losses {
            let Loss { event, count, start } = loss;
            let unit = roles.sampled()[event as usize].unit;
            let span = self.intervals.lost(event, cpu, unit, (start, time), count);
            if loss.is_long(time) && self.long_losses.len() < MOST_LONG_LOSSES {
                let span = span.told_by(roles.tells_time(event));
                self.long_losses.push(loss.quantum(time, cpu, span));
            }
        }
    }

    /// Samples are nearly all there is: of these only what has a certain place is read, and no callchain.
    fn record(
        &mut self,
        roles: &EventRoles,
        ranges: &[Option<Joules>],
        decoder: &Decoder,
        raw: &RawRecord<'_>,
    ) {
        let context = decoder.context(raw);
        if raw.kind == record_type::SAMPLE {
            match roles.of(context.event.map(|event| event.0)) {
                Some(EventRole::Sampled(event)) => {
                    let period = decoder.period(raw, &context);
                    if let Some(address) = decoder.instruction_pointer(raw, &context) {
                        self.pieces.sample(address);
                    }
                    self.sample(&roles.sampled()[event as usize], event, &context, period);
                }
                Some(EventRole::Energy(domain)) => {
                    if let Ok(Record::Sample(sample)) = decoder.decode(raw, &context) {
                        let domain = domain as usize;
                        self.reading(domain, ranges[domain], &context, &sample);
                    }
                }
                _ => {}
            }
        } else if let Ok(Record::Lost { count }) = decoder.decode(raw, &context) {
            self.lost(roles, &context, count);
        }
    }

    fn sample(&mut self, about: &SampledEvent, event: u32, context: &RecordContext, period: Option<u64>) {
        self.samples[event as usize] += 1;
        self.highest_cpu = self.highest_cpu.max(context.cpu);
        let Some(time) = context.time else { return };
        let (first, last) = self.sampled.get_or_insert((time, time));
        *first = (*first).min(time);
        *last = (*last).max(time);
        // A clock ticks on idle CPUs too.
        let is_idle = context.pid == Some(0) && about.unit == EventUnit::Nanoseconds;
        if !is_idle {
            let count = period.or(about.fixed_period).unwrap_or(1);
            self.intervals.sample(event, context.cpu, about.unit, time, count);
            self.losses.sampled(event, context.cpu, time, count);
        }
    }

    fn reading(
        &mut self,
        domain: usize,
        range: Option<Joules>,
        context: &RecordContext,
        sample: &Sample<'_>,
    ) {
        let (Some(time), Some(reading)) = (context.time, EnergyReading::from_bytes(sample.raw)) else {
            return;
        };
        self.counted(domain, range, time, reading.energy);
    }

    fn lent(&mut self, ranges: &[Option<Joules>], reading: &LentReading) {
        let domain = reading.domain as usize;
        self.counted(domain, ranges[domain], reading.time, reading.energy);
    }

    /// A reading of a meter.
    fn counted(&mut self, domain: usize, range: Option<Joules>, time: Timestamp, energy: Joules) {
        let point = (time, energy);
        self.intervals.reading(domain, time, energy);
        self.meters[domain].push(time, energy);
        self.late_readings[domain].reading(range, time, energy);
        let ends = self.readings[domain].get_or_insert([point, point]);
        if time < ends[0].0 {
            ends[0] = point;
        }
        if time >= ends[1].0 {
            ends[1] = point;
        }
    }
}
