//! The first pass: what is in a recording, and how much of it.

use super::events::{EventRole, EventRoles};
use super::intervals::IntervalGrid;
use super::losses::Losses;
use super::spans::EventUnit;
use crate::recording::Recording;
use crate::recording::energy::EnergyReading;
use crate::recording::record::{Record, RecordContext, Sample};
use crate::units::{Joules, Timestamp};

/// What a recording holds.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// Samples of each sampled event.
    pub samples: Vec<u64>,
    /// First and last reading of each energy domain.
    pub readings: Vec<Option<[(Timestamp, Joules); 2]>>,
    /// Highest CPU number of a sample.
    pub highest_cpu: Option<u32>,
    /// Times of the first and the last sample.
    pub sampled: Option<(Timestamp, Timestamp)>,
    /// What happened in equal intervals of time.
    pub intervals: IntervalGrid,
    pub(super) losses: Losses,
}

impl Survey {
    /// Energy that a domain's meter counted.
    pub fn measured(&self, domain: usize) -> Joules {
        match self.readings.get(domain) {
            Some(Some([(_, first), (_, last)])) => (*last - *first).max(Joules::ZERO),
            _ => Joules::ZERO,
        }
    }
}

/// Surveys a recording. Damage is not reported here: the second pass meets it again and tells.
pub fn survey(recording: &Recording, roles: &EventRoles) -> Survey {
    let domains = recording.metadata().map_or(0, |metadata| metadata.domains.len());
    let mut survey = Survey {
        samples: vec![0; roles.sampled().len()],
        readings: vec![None; domains],
        intervals: IntervalGrid::new(recording.metadata(), roles.sampled().len()),
        ..Survey::default()
    };
    let mut records = recording.records();
    loop {
        match records.next() {
            Ok(Some((_, context, Record::Sample(sample)))) => {
                let role = roles.of(context.event.map(|event| event.0));
                survey.add(roles, role, &context, &sample);
            }
            Ok(Some((_, context, Record::Lost { count }))) => survey.lost(roles, &context, count),
            Ok(Some(_)) => {}
            Ok(None) => return survey,
            Err(error) if error.is_recoverable() => {}
            Err(_) => return survey,
        }
    }
}

impl Survey {
    fn lost(&mut self, roles: &EventRoles, context: &RecordContext, records: u64) {
        let Some(time) = context.time else { return };
        for loss in self.losses.lost(context.cpu, time, records) {
            let unit = roles.sampled()[loss.event as usize].unit;
            self.intervals.lost(loss.event, context.cpu, unit, (loss.start, time), loss.count);
        }
    }

    fn add(
        &mut self,
        roles: &EventRoles,
        role: Option<EventRole>,
        context: &RecordContext,
        sample: &Sample<'_>,
    ) {
        let (time, cpu) = (context.time, context.cpu);
        match role {
            Some(EventRole::Sampled(event)) => {
                self.samples[event as usize] += 1;
                self.highest_cpu = self.highest_cpu.max(cpu);
                if let Some(time) = time {
                    let (first, last) = self.sampled.get_or_insert((time, time));
                    *first = (*first).min(time);
                    *last = (*last).max(time);
                    let about = &roles.sampled()[event as usize];
                    // A clock ticks on idle CPUs too.
                    let is_idle = context.pid == Some(0) && about.unit == EventUnit::Nanoseconds;
                    if !is_idle {
                        let count = sample.period.or(about.fixed_period).unwrap_or(1);
                        self.intervals.sample(event, cpu, about.unit, time, count);
                        self.losses.sampled(event, cpu, time, count);
                    }
                }
            }
            Some(EventRole::Energy(domain)) => {
                let (Some(time), Some(reading)) = (time, EnergyReading::from_bytes(sample.raw)) else {
                    return;
                };
                let point = (time, reading.energy);
                self.intervals.reading(domain as usize, time, reading.energy);
                let ends = self.readings[domain as usize].get_or_insert([point, point]);
                if time < ends[0].0 {
                    ends[0] = point;
                }
                if time >= ends[1].0 {
                    ends[1] = point;
                }
            }
            _ => {}
        }
    }
}
