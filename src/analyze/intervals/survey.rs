//! The first pass: what is in a recording, and how much of it.

use std::cmp::Reverse;
use std::iter::Peekable;
use std::slice;

use perf_data::format::{record_type, sample_type};
use perf_data::record::{ReadValue, Record, RecordContext, Sample};
use perf_data::{Decoder, RawRecord, Records};

use crate::analyze::events::EventUnit;
use crate::analyze::events::{EventRole, EventRoles, SampledEvent};
use crate::analyze::intervals::counted::{CountWeights, CountedSums, CounterReading};
use crate::analyze::intervals::grid::IntervalGrid;
use crate::analyze::intervals::late_readings::LateReadings;
use crate::analyze::intervals::late_samples::{LateSample, MadeUp};
use crate::analyze::intervals::losses::{Loss, Losses};
use crate::analyze::intervals::missing::Missing;
use crate::analyze::intervals::mixture::Mixture;
use crate::analyze::intervals::pieces::Pieces;
use crate::analyze::intervals::unsampled_tasks::{UnsampledCount, UnsampledTasks};
use crate::attribute::Quantum;
use crate::hardware::{DomainInfo, Method};
use crate::profile::{LostStretch, LostStretches, MeterCurve};
use crate::recording::energy::EnergyReading;
use crate::recording::own_blocks::own_blocks;
use crate::recording::{LentReading, Recording};
use crate::units::{Joules, Timestamp};

/// Long losses that are kept: far more than a recorder can be held up in an hour. Damaged files name more.
const MOST_LONG_LOSSES: usize = 1 << 18;
/// Stretches of lost records that are kept: the more there are, the less does each hide.
const MOST_STRETCHES: usize = 1 << 17;

/// Adds to stretches, as long as there is room.
pub(crate) fn add_stretch(stretches: &mut Vec<LostStretch>, stretch: LostStretch) {
    if stretches.len() < MOST_STRETCHES {
        stretches.push(stretch);
    }
}

/// What is seen on the way through the samples, in the order of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Seen {
    /// Highest CPU number of a sample.
    pub highest_cpu: Option<u32>,
    /// By sampled event: [`IntervalGrid::lateness_of_changes`].
    pub late: Vec<f64>,
    pub lost_stretches: Vec<LostStretch>,
}

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
    pub(crate) mixture: Mixture,
    pub(crate) losses: Losses,
    /// Of recorders that say what counters counted.
    pub(crate) counted: Option<CountedSums>,
    /// Of programs that were sampled alone by hardware events.
    pub(crate) unsampled_tasks: Option<UnsampledTasks>,
    /// How much samples weigh by what counters counted.
    pub(crate) weights: CountWeights,
    pub(crate) long_losses: Vec<Quantum>,
    pub(crate) lost_stretches: Vec<LostStretch>,
    pub(crate) is_of_samples: bool,
}

/// What a survey looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LookAt {
    /// Everything.
    All,
    /// Readings of meters; samples are only counted, and where records were lost, that does not do.
    Readings,
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

    /// Whether any meter was read at two times at least: what it counted at one says nothing.
    pub(crate) fn tells_joules(&self) -> bool {
        self.readings.iter().flatten().any(|[(first, _), (last, _)]| last > first)
    }

    /// What is to be said of domains that were read too seldom.
    pub(crate) fn read_too_late<'a>(
        &'a self,
        domains: &'a [DomainInfo],
    ) -> impl Iterator<Item = String> + 'a {
        self.late_readings.iter().zip(domains).filter_map(|(readings, domain)| readings.warning(domain))
    }

    /// In what pieces records were lost.
    pub fn lost(&self) -> LostStretches {
        LostStretches::of(&self.lost_stretches)
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
    look_at(recording, roles, LookAt::All).unwrap_or_default()
}

/// `None` if more must be looked at.
fn look_at(recording: &Recording, roles: &EventRoles, what: LookAt) -> Option<Survey> {
    let mut look = Look::new(recording, roles, what);
    look.at(recording.records())?;
    Some(look.finish())
}

/// Looks at readings alone, and at nothing between them: where the recorder says where they lie, and that nothing was lost.
/// Samples are not counted.
fn of_own_blocks(recording: &Recording, roles: &EventRoles) -> Option<Survey> {
    let file = recording.perf_data();
    let mut look = Look::new(recording, roles, LookAt::Readings);
    for block in own_blocks(file)? {
        look.at(file.records_in(block)?)?;
    }
    Some(look.finish())
}

/// A look at records.
struct Look<'r> {
    what: LookAt,
    roles: &'r EventRoles,
    decoder: &'r Decoder,
    /// Of each domain.
    ranges: Vec<Option<Joules>>,
    /// Readings of others that are still to come.
    lent: Peekable<slice::Iter<'r, LentReading>>,
    survey: Survey,
}

impl<'r> Look<'r> {
    fn new(recording: &'r Recording, roles: &'r EventRoles, what: LookAt) -> Self {
        let domains = recording.metadata().map_or(&[][..], |metadata| &metadata.domains);
        Self {
            what,
            roles,
            decoder: recording.decoder(),
            ranges: domains.iter().map(|domain| domain.range).collect(),
            lent: recording.lent_readings().unwrap_or_default().iter().peekable(),
            survey: Survey { is_of_samples: what == LookAt::All, ..Survey::before(recording, roles) },
        }
    }

    /// Looks at the next records; `None` if more must be looked at than was to be.
    fn at(&mut self, mut records: Records<'_>) -> Option<()> {
        let Self { what, roles, decoder, ranges, lent, survey } = self;
        loop {
            match records.next_raw() {
                Ok(Some(raw)) => {
                    // Among the samples of their time, as if they lay in the file.
                    let now = if lent.peek().is_some() { decoder.time(&raw) } else { None };
                    while let Some(reading) =
                        lent.next_if(|reading| now.is_some_and(|now| reading.time <= now))
                    {
                        survey.lent(ranges, reading);
                    }
                    match what {
                        LookAt::All => survey.record(roles, ranges, decoder, &raw),
                        LookAt::Readings if tells_losses(decoder, &raw) => return None,
                        LookAt::Readings => survey.record_of_meters(roles, ranges, decoder, &raw),
                    }
                    let seen = raw.position;
                    records.release_before(seen);
                }
                Err(error) if error.is_recoverable() => {}
                Ok(None) | Err(_) => return Some(()),
            }
        }
    }

    fn finish(self) -> Survey {
        let Self { ranges, lent, mut survey, .. } = self;
        lent.for_each(|reading| survey.lent(&ranges, reading));
        survey.make_up_counts();
        survey.intervals.end();
        survey
    }
}

/// Whether a record says that others were lost.
fn tells_losses(decoder: &Decoder, raw: &RawRecord<'_>) -> bool {
    matches!(raw.kind, record_type::LOST | record_type::LOST_SAMPLES)
        && matches!(decoder.decode(raw, &decoder.context(raw)), Ok(Record::Lost { count: 1.. }))
}

impl Survey {
    /// Before anything of a recording was seen.
    fn before(recording: &Recording, roles: &EventRoles) -> Self {
        let domains = recording.metadata().map_or(0, |metadata| metadata.domains.len());
        Self {
            samples: vec![0; roles.sampled().len()],
            readings: vec![None; domains],
            meters: vec![MeterCurve::default(); domains],
            late_readings: vec![LateReadings::default(); domains],
            intervals: IntervalGrid::new(recording.metadata(), roles.sampled().len()),
            counted: recording.metadata().map(|_| CountedSums::default()),
            unsampled_tasks: UnsampledTasks::new(recording, roles),
            ..Self::default()
        }
    }

    /// Surveys a recording before its samples are gone through, as far as that must be known beforehand. Where nothing is
    /// measured, no model is fitted to what happened in intervals, and readings are all that decides how joules are divided,
    /// unless records were lost; where nothing is estimated either, there is nothing to divide. What else there is to know
    /// comes on the way: see [`Survey::with_seen`]. That is in the order of time, in which samples that do not tell their CPU
    /// do not lie in the file: of these, all is found here if joules `are_asked_for`.
    pub(crate) fn ahead_of(recording: &Recording, roles: &EventRoles, are_asked_for: bool) -> Self {
        let domains = recording.metadata().map_or(&[][..], |metadata| &metadata.domains);
        if domains.is_empty() && !are_asked_for {
            return Self::before(recording, roles);
        }
        let has_measured = domains.iter().any(|domain| domain.method == Method::Measured);
        // How much samples weigh beside what none tells of is known at the end alone.
        let has_measured = has_measured || UnsampledTasks::new(recording, roles).is_some();
        let tells_cpus = recording.events().iter().all(|event| event.attr.samples(sample_type::CPU));
        if has_measured || !tells_cpus {
            return survey(recording, roles);
        }
        if domains.is_empty() {
            return Self::before(recording, roles);
        }
        // Without an event that tells time, that of most samples is used, and samples have to be counted.
        let of_listed = || of_own_blocks(recording, roles).filter(|_| roles.any_tells_time());
        let of_readings = || look_at(recording, roles, LookAt::Readings);
        of_listed().or_else(of_readings).unwrap_or_else(|| survey(recording, roles))
    }

    /// Samples were looked at, and not counted alone.
    pub(crate) fn is_of_samples(&self) -> bool {
        self.is_of_samples
    }

    /// With what was seen of samples and losses on the way through them.
    pub(crate) fn with_seen(
        self,
        samples: Vec<u64>,
        sampled: Option<(Timestamp, Timestamp)>,
        seen: Seen,
    ) -> Self {
        let Seen { highest_cpu, lost_stretches, .. } = seen;
        Self { samples, sampled, highest_cpu, lost_stretches, ..self }
    }

    fn take_losses(&mut self, roles: &EventRoles, context: &RecordContext, records: u64) {
        let Some(time) = context.time else { return };
        let cpu = context.cpu;
        let losses = self.losses.lost(cpu, time, records);
        if let Some(&Loss { start, .. }) = losses.first() {
            self.intervals.lost_records(cpu, start, time);
            add_stretch(&mut self.lost_stretches, LostStretch { start, end: time, records });
        }
        for loss in losses {
            let Loss { event, count, start } = loss;
            let unit = roles.sampled()[event as usize].unit;
            let span = self.intervals.lost(event, cpu, unit, (start, time), count);
            if let Some(counted) = &mut self.counted {
                counted.lost(event, cpu, count);
            }
            if loss.is_long(time) && self.long_losses.len() < MOST_LONG_LOSSES {
                let span = span.told_by(roles.tells_time(event));
                self.long_losses.push(loss.quantum(time, cpu, span));
            }
        }
    }

    /// Reads what meters counted, and counts samples.
    fn record_of_meters(
        &mut self,
        roles: &EventRoles,
        ranges: &[Option<Joules>],
        decoder: &Decoder,
        raw: &RawRecord<'_>,
    ) {
        if raw.kind != record_type::SAMPLE {
            return;
        }
        match roles.of(decoder.event_of_sample(raw).map(|event| event.0)) {
            Some(EventRole::Sampled(event)) => self.samples[event as usize] += 1,
            Some(EventRole::Energy(domain)) => {
                self.reading_of(domain, ranges, decoder, (raw, &decoder.context(raw)));
            }
            _ => {}
        }
    }

    fn reading_of(
        &mut self,
        domain: u32,
        ranges: &[Option<Joules>],
        decoder: &Decoder,
        (raw, context): (&RawRecord<'_>, &RecordContext),
    ) {
        if let Ok(Record::Sample(sample)) = decoder.decode(raw, context) {
            let domain = domain as usize;
            self.reading(domain, ranges[domain], context, &sample);
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
                        if let Some(time) = context.time {
                            self.mixture.sample(address, time);
                        }
                    }
                    self.sample(&roles.sampled()[event as usize], event, &context, period);
                }
                Some(EventRole::Energy(domain)) => self.reading_of(domain, ranges, decoder, (raw, &context)),
                Some(EventRole::CpuTimes) => {
                    if let (Some(tasks), Some(time)) = (&mut self.unsampled_tasks, context.time) {
                        tasks.round(time);
                    }
                }
                _ => {}
            }
            return;
        }
        match decoder.decode(raw, &context) {
            Ok(Record::Lost { count }) => {
                // What is lost has a row of its own.
                self.unsampled_tasks = None;
                self.take_losses(roles, &context, count);
            }
            // What was there before has no time.
            Ok(Record::Fork(change)) if context.time.is_some() => {
                self.unsampled_tasks.iter_mut().for_each(|tasks| tasks.started(change.tid));
            }
            Ok(Record::Exit(change)) => {
                self.unsampled_tasks.iter_mut().for_each(|tasks| tasks.ended(change.tid));
            }
            Ok(Record::Read { tid, value, .. }) => self.counter(roles, &context, tid, value),
            Ok(Record::Throttle(is_stopped)) => self.throttled(roles, &context, is_stopped),
            _ => {}
        }
    }

    /// What a counter counted of a task, or of all that runs on its CPU, of which it says so.
    fn counter(&mut self, roles: &EventRoles, context: &RecordContext, task: u32, value: ReadValue) {
        const ALL: u32 = u32::MAX;
        let Some(EventRole::Sampled(event)) = roles.of(context.event.map(|event| event.0)) else { return };
        let (Some(time), Some(cpu), Some(counted)) = (context.time, context.cpu, &mut self.counted) else {
            return;
        };
        let ReadValue { value, time_enabled, time_running, id, .. } = value;
        if roles.sampled()[event as usize].unit == EventUnit::Nanoseconds {
            return;
        }
        let (enabled, running) = (time_enabled.unwrap_or(0), time_running.unwrap_or(0));
        let reading = CounterReading { time, value, enabled, running };
        match (task, id) {
            (ALL, _) => counted.reading(event, cpu, reading),
            (_, Some(id)) => {
                counted.reading_of_task(event, task, id, reading);
                let tasks = self.unsampled_tasks.as_mut();
                if let Some(unsampled) = tasks.and_then(|tasks| tasks.reading(event, cpu, reading)) {
                    let UnsampledCount { since, until, count, .. } = unsampled;
                    self.intervals.of_unsampled_tasks(event, cpu, (since, until), count);
                }
            }
            (_, None) => {}
        }
    }

    fn throttled(&mut self, roles: &EventRoles, context: &RecordContext, is_stopped: bool) {
        let event = roles.of(context.event.map(|event| event.0));
        if let (Some(EventRole::Sampled(event)), Some(time), Some(counted)) =
            (event, context.time, &mut self.counted)
        {
            counted.throttled(event, context.cpu, time, is_stopped);
        }
    }

    /// Adds what counters counted and no sample tells of, and lets samples weigh the more for it.
    fn make_up_counts(&mut self) {
        let Some(mut counted) = self.counted.take() else { return };
        let events = 0..self.samples.len() as u32;
        let by_turns: Vec<f64> = events.clone().map(|event| counted.weight_of_tasks(event)).collect();
        let tasks = self.unsampled_tasks.take();
        let by_samples: Vec<f64> =
            events.map(|event| tasks.as_ref().map_or(1.0, |tasks| tasks.weight_of_samples(event))).collect();
        let of_samples: Vec<f64> = by_turns.iter().zip(&by_samples).map(|(a, b)| a * b).collect();
        self.intervals.weigh(&of_samples, &by_turns);
        let mut missing = counted.missing();
        let made_up = counted.made_up(&mut missing);
        for MadeUp { late: LateSample { event, cpu, since, time, .. }, count } in &made_up {
            self.intervals.not_sampled(*event, *cpu, (*since, *time), *count);
        }
        for missing in &missing {
            let Missing { event, cpu, start, end, count, .. } = *missing;
            self.intervals.not_sampled(event, cpu, (start, end), count);
        }
        let lost = missing.iter().filter_map(Missing::as_lost);
        self.long_losses.extend(lost.take(MOST_LONG_LOSSES - self.long_losses.len()));
        self.weights = CountWeights::new(&missing, &made_up, by_turns, &by_samples);
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
            if let Some(counted) = &mut self.counted {
                counted.sampled(event, context.cpu, time, count);
            }
            if let (Some(tasks), Some(tid), Some(cpu)) = (&mut self.unsampled_tasks, context.tid, context.cpu)
            {
                tasks.sampled(event, tid, cpu, count);
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::fixture::{metadata, recording_with_readings};
    use crate::recording::metadata::Metadata;

    #[test]
    fn of_samples_nothing_must_be_known_where_nothing_is_measured() {
        let stacks: Vec<Vec<u64>> = (0..100).map(|number| vec![number % 7]).collect();
        let surveys = |metadata: Metadata| {
            let recording = recording_with_readings(&stacks, metadata, |_| true);
            let roles = EventRoles::new(&recording);
            [survey(&recording, &roles), Survey::ahead_of(&recording, &roles, true)]
        };
        let mut estimated = metadata();
        estimated.domains.iter_mut().for_each(|domain| domain.method = Method::Estimated);
        let [all, ahead] = surveys(estimated);
        assert!(all.is_of_samples() && !ahead.is_of_samples());
        assert_eq!((&ahead.samples, &ahead.readings), (&all.samples, &all.readings));
        assert_eq!((all.samples[0], all.readings.len()), (100, 3));
        assert!(all.readings.iter().all(Option::is_some));
        assert_eq!(ahead.sampled, None);
        let [_, ahead] = surveys(metadata());
        assert!(ahead.is_of_samples(), "a model is fitted to what was measured");
        let [all, ahead] = surveys(Metadata { domains: Vec::new(), ..metadata() });
        assert_eq!((all.samples[0], ahead.samples[0], ahead.is_of_samples()), (100, 0, false));
    }

    /// A counter of a period of 1,000 that is read every 100 ms: behind its only sample it counts on, and nothing tells of what.
    #[test]
    fn no_more_long_losses_are_kept_than_there_is_room_for() {
        let recording = recording_with_readings(&[vec![1]], metadata(), |_| true);
        let at = |millis: u64| Timestamp::from_nanos(millis * 1_000_000);
        let losses = |before: usize| {
            let mut sums = CountedSums::default();
            let reading = |millis: u64, value| CounterReading {
                time: at(millis),
                value,
                enabled: millis,
                running: millis,
            };
            sums.reading(0, 0, reading(0, 0));
            sums.sampled(0, Some(0), at(50), 1_000);
            for (millis, value) in [(100, 1_000), (200, 50_000), (300, 100_000)] {
                sums.reading(0, 0, reading(millis, value));
            }
            let mut survey = Survey::before(&recording, &EventRoles::new(&recording));
            let lost = sums.missing().iter().find_map(Missing::as_lost).expect("two stretches are lost");
            survey.counted = Some(sums);
            survey.long_losses = vec![lost; before];
            survey.make_up_counts();
            survey.long_losses.len()
        };
        assert_eq!(
            [0, MOST_LONG_LOSSES - 1, MOST_LONG_LOSSES].map(losses),
            [2, MOST_LONG_LOSSES, MOST_LONG_LOSSES]
        );
    }

    /// A file has readings in the order in which they were written, one CPU's after another's.
    #[test]
    fn the_first_and_the_last_reading_are_those_in_time() {
        let recording = recording_with_readings(&[vec![1]], metadata(), |_| true);
        let mut survey = Survey::before(&recording, &EventRoles::new(&recording));
        let reading = |seconds: u64, joules: f64| {
            (Timestamp::from_nanos(seconds * 1_000_000_000), Joules::from_joules(joules))
        };
        let all = [
            reading(5, 1.0),
            reading(3, 0.5),
            reading(7, 2.0),
            reading(6, 1.5),
            reading(7, 2.5),
            reading(3, 0.0),
        ];
        for (time, energy) in all {
            survey.counted(1, None, time, energy);
        }
        // Of two at one time the first one begins, and the second one ends.
        assert_eq!(survey.readings[1], Some([reading(3, 0.5), reading(7, 2.5)]));
        assert_eq!((survey.readings[0], survey.readings[2]), (None, None));
    }
}
