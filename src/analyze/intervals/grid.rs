//! Joules and event counts over equal intervals of time, gathered in one pass over a recording of any
//! length.

use std::ops::Range;

use crate::analyze::events::EventUnit;
use crate::analyze::intervals::cpu_set::CpuSet;
use crate::analyze::intervals::spans::{FirstSample, Span, SpanTracker, before};
use crate::analyze::intervals::unseen::BetweenSamples;
use crate::hardware::DomainInfo;
use crate::power_model::intervals::{Interval, Intervals};
use crate::recording::metadata::Metadata;
use crate::units::{Joules, Nanoseconds, Timestamp};

/// Intervals kept. When a recording grows longer than they reach, pairs of them become one, so that
/// memory does not grow with it.
const MOST: usize = 16384;
/// Numbers kept: with many domains there are fewer intervals, but at least these.
const MOST_NUMBERS: usize = 1 << 20;
const FEWEST: usize = 256;
/// Length of an interval at first.
const SHORTEST: Nanoseconds = Nanoseconds::from_nanos(1 << 23);
/// Intervals that a model is judged by: so long that what readings and samples miss at their edges is small
/// beside what lies between.
const JUDGED: usize = 64;
/// A meter that moves at every refresh tells the energy of so many of them to 5 %.
const REFRESHES: f64 = 20.0;
/// Readings that an interval has at least: between two of them joules are only interpolated.
const READINGS: f64 = 3.0;
/// Joules are spread evenly between two readings. Where code changes in between whose power differs by 0.3 of it, one standard
/// deviation, an edge between them is off by this share of the time: 0.3 x sqrt(2) x 0.13, the last the deviation of a
/// triangle's height over all places of change and edge.
const SPREAD: f64 = 0.055;

/// A recorder's records are written within so long.
const LONGEST_ROUND: Nanoseconds = Nanoseconds::from_millis(10_000);

/// What happened in each interval of a recording.
#[derive(Debug, Clone, Default)]
pub struct IntervalGrid {
    origin: Option<u64>,
    width: u64,
    events: usize,
    domains: Vec<DomainGrid>,
    /// Sets of CPUs that domains feed, each once.
    groups: Vec<Group>,
    /// By interval, group and event.
    counts: Vec<f64>,
    /// Likewise what was counted of tasks without samples; empty where there is nothing.
    unsampled: Vec<f64>,
    /// By interval and group: nanoseconds of CPUs in which records were lost, whose counts are guessed.
    lost: Vec<f64>,
    /// By interval and domain.
    joules: Vec<f64>,
    most: usize,
    /// The interval that was added to last, and its times.
    latest: (usize, Range<u64>),
    spans: SpanTracker,
    /// The event that counts cycles.
    cycles: Option<usize>,
    between: BetweenSamples,
}

/// CPUs that a domain feeds.
#[derive(Debug, Clone, Default, PartialEq)]
struct Group {
    /// Empty: all CPUs.
    cpus: CpuSet,
    /// By event: those that had samples.
    sampled: Vec<CpuSet>,
}

impl Group {
    /// Whether what happened on a CPU counts here.
    fn feeds(&self, cpu: Option<u32>) -> bool {
        cpu.is_none_or(|cpu| self.cpus.is_empty() || self.cpus.contains(cpu))
    }
}

#[derive(Debug, Clone, Default)]
struct DomainGrid {
    group: usize,
    first: Option<u64>,
    last: Option<(u64, Joules)>,
    readings: u64,
}

impl IntervalGrid {
    /// For the energy domains of a recording and so many sampled events.
    pub fn new(metadata: Option<&Metadata>, events: usize) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        let domains = metadata.map_or(&[][..], |metadata| &metadata.domains);
        let domains: Vec<DomainGrid> = domains
            .iter()
            .map(|domain| {
                let cpus: CpuSet = cpus_of(metadata, domain).into_iter().collect();
                let known = groups.iter().position(|group| group.cpus == cpus);
                let group = known.unwrap_or_else(|| {
                    groups.push(Group { cpus, sampled: vec![CpuSet::default(); events] });
                    groups.len() - 1
                });
                DomainGrid { group, ..DomainGrid::default() }
            })
            .collect();
        let width = SHORTEST.as_nanos();
        let columns = groups.len() * events + domains.len();
        Self {
            most: (MOST_NUMBERS / columns.max(1)).clamp(FEWEST, MOST),
            width,
            events,
            domains,
            groups,
            ..Self::default()
        }
    }

    /// A sample. Those of one event on one CPU come in the order of time.
    pub fn sample(&mut self, event: u32, cpu: Option<u32>, unit: EventUnit, time: Timestamp, count: u64) {
        if event as usize >= self.events {
            return;
        }
        if unit == EventUnit::Cycles {
            self.cycles.get_or_insert(event as usize);
        }
        let span = self.spans.span(event, cpu, unit, time, count);
        self.between.sample(event, cpu, span, time, count);
        // A first sample's events are spread in the end.
        if span.start < time || !self.spans.is_alone(event, cpu) {
            self.spread_count(event as usize, cpu, (span.start, time), count);
        }
    }

    /// There are no more samples and readings; to be called once. Events of first samples began nobody knows when: no earlier
    /// than counting did, and, as far as the next sample tells, not much longer ago than that one's. If they were taken to
    /// happen at their sample's time, the first interval, which often is the one without the program, would have too many.
    pub fn end(&mut self) {
        let first_reading = self.domains.iter().filter_map(|domain| domain.first).min();
        let Some(begin) = first_reading.map(Timestamp::from_nanos) else { return };
        let firsts: Vec<(u32, Option<u32>, FirstSample)> = self.spans.first_samples().collect();
        for (event, cpu, FirstSample { time, count, gap }) in firsts {
            let start = gap.map_or(begin, |gap| before(time, gap).max(begin)).min(time);
            self.spread_count(event as usize, cpu, (start, time), count);
        }
    }

    /// Events whose samples were lost between two times, and how long their CPU ran.
    pub fn lost(
        &mut self,
        event: u32,
        cpu: Option<u32>,
        unit: EventUnit,
        (start, end): (Timestamp, Timestamp),
        count: u64,
    ) -> Span {
        // The next sample's events began after these.
        let span = self.spans.span(event, cpu, unit, end, count);
        self.spread_count(event as usize, cpu, (start, end), count);
        span
    }

    /// Events of which no sample tells, at some time between two.
    pub fn not_sampled(&mut self, event: u32, cpu: u32, between: (Timestamp, Timestamp), count: u64) {
        self.spread_count(event as usize, Some(cpu), between, count);
    }

    /// Events that were counted of tasks without samples, at some time between two.
    pub fn of_unsampled_tasks(&mut self, event: u32, cpu: u32, between: (Timestamp, Timestamp), count: u64) {
        let add = |grid: &mut Self, slot: usize, part: f64| {
            grid.unsampled.resize(grid.counts.len(), 0.0);
            grid.unsampled[slot] += part;
        };
        self.spread_counts(event as usize, Some(cpu), between, count, add);
    }

    /// Lets what samples stand for weigh so much by event, and what was counted of tasks without samples as much as
    /// `of_unsampled` says; from now on they are one.
    pub fn weigh(&mut self, of_samples: &[f64], of_unsampled: &[f64]) {
        let weigh = |counts: &mut [f64], weights: &[f64]| {
            for counts in counts.chunks_mut(weights.len().max(1)) {
                counts.iter_mut().zip(weights).for_each(|(count, weight)| *count *= weight);
            }
        };
        weigh(&mut self.counts, of_samples);
        weigh(&mut self.unsampled, of_unsampled);
        let unsampled = std::mem::take(&mut self.unsampled);
        self.counts.iter_mut().zip(unsampled).for_each(|(count, more)| *count += more);
    }

    /// Records of a CPU that were lost between two times.
    pub fn lost_records(&mut self, cpu: Option<u32>, start: Timestamp, end: Timestamp) {
        let nanos = end.since(start).as_nanos() as f64;
        for index in 0..self.groups.len() {
            if self.groups[index].feeds(cpu) && !self.domains.is_empty() {
                self.spread(start.as_nanos(), end.as_nanos(), nanos, |grid, interval, part| {
                    let row = interval * grid.groups.len();
                    grid.lost[row + index] += part;
                });
            }
        }
    }

    fn spread_count(&mut self, event: usize, cpu: Option<u32>, between: (Timestamp, Timestamp), count: u64) {
        self.spread_counts(event, cpu, between, count, |grid, slot, part| grid.counts[slot] += part);
    }

    /// `add` is told the place among counts, and what comes there.
    fn spread_counts(
        &mut self,
        event: usize,
        cpu: Option<u32>,
        (start, end): (Timestamp, Timestamp),
        count: u64,
        add: impl Fn(&mut Self, usize, f64),
    ) {
        if self.domains.is_empty() || event >= self.events {
            return;
        }
        for index in 0..self.groups.len() {
            let group = &mut self.groups[index];
            if group.feeds(cpu) {
                group.sampled[event].insert(cpu.unwrap_or(0));
                let slot = index * self.events + event;
                self.spread(start.as_nanos(), end.as_nanos(), count as f64, |grid, interval, part| {
                    let row = interval * grid.groups.len() * grid.events;
                    add(grid, row + slot, part);
                });
            }
        }
    }

    /// A meter's reading. Those of one domain come in the order of time.
    pub fn reading(&mut self, domain: usize, time: Timestamp, energy: Joules) {
        let time = time.as_nanos();
        let Some(state) = self.domains.get_mut(domain) else { return };
        state.first.get_or_insert(time);
        state.readings += 1;
        let previous = state.last.replace((time, energy));
        if previous.is_none() {
            self.reach_back(time);
        }
        let Some((from, before)) = previous else { return };
        let more = (energy - before).as_joules();
        if time > from && more >= 0.0 {
            self.spread(from, time, more, |grid, interval, part| {
                let columns = grid.domains.len();
                grid.joules[interval * columns + domain] += part;
            });
        }
    }

    /// Lets the grid begin no later than a meter's first reading, which a file may have behind samples that were taken later.
    fn reach_back(&mut self, time: u64) {
        let origin = *self.origin.get_or_insert(time);
        // A time that is far off is damaged.
        if origin <= time || origin - time > LONGEST_ROUND.as_nanos() {
            return;
        }
        while (origin - time) / self.width >= self.most as u64 / 2 {
            self.merge_pairs();
        }
        let more = (origin - time).div_ceil(self.width);
        let prepend = |values: &mut Vec<f64>, columns: usize| {
            drop(values.splice(..0, std::iter::repeat_n(0.0, more as usize * columns)));
        };
        prepend(&mut self.counts, self.groups.len() * self.events);
        if !self.unsampled.is_empty() {
            prepend(&mut self.unsampled, self.groups.len() * self.events);
        }
        prepend(&mut self.lost, self.groups.len());
        prepend(&mut self.joules, self.domains.len());
        self.origin = Some(origin.saturating_sub(more * self.width));
        self.latest = (0, 0..0);
    }

    /// Spreads an amount evenly over the time from `from` to `to`.
    fn spread(&mut self, from: u64, to: u64, amount: f64, mut add: impl FnMut(&mut Self, usize, f64)) {
        let (latest, times) = &self.latest;
        if from >= times.start && to < times.end {
            return add(self, *latest, amount);
        }
        let origin = *self.origin.get_or_insert(from);
        // What comes before the first record seen lies before all that is measured.
        if to < origin {
            return;
        }
        while (to - origin) / self.width >= self.most as u64 {
            self.merge_pairs();
        }
        let from_known = from.max(origin);
        let last = ((to - origin) / self.width) as usize;
        self.grow(last + 1);
        let start = origin + last as u64 * self.width;
        self.latest = (last, start..start.saturating_add(self.width));
        if to <= from_known {
            return add(self, last, amount);
        }
        let per_nano = amount / (to - from) as f64;
        let first = ((from_known - origin) / self.width) as usize;
        for interval in first..=last {
            let start = origin + interval as u64 * self.width;
            let part = to.min(start + self.width) - from_known.max(start);
            if part > 0 {
                add(self, interval, per_nano * part as f64);
            }
        }
    }

    fn grow(&mut self, intervals: usize) {
        let (counts, joules) = (self.groups.len() * self.events, self.domains.len());
        if self.joules.len() < intervals * joules {
            self.lost.resize(intervals * self.groups.len(), 0.0);
            self.joules.resize(intervals * joules, 0.0);
            self.counts.resize(intervals * counts, 0.0);
        }
    }

    fn merge_pairs(&mut self) {
        let (counts, joules) = (self.groups.len() * self.events, self.domains.len());
        merge(&mut self.counts, counts);
        merge(&mut self.unsampled, counts);
        merge(&mut self.lost, self.groups.len());
        merge(&mut self.joules, joules);
        self.width *= 2;
        self.latest = (0, 0..0);
    }

    /// The intervals of these domains, to be fitted together; `refresh` is their meters' pace.
    pub fn of_domains(&self, domains: &[usize], refresh: Nanoseconds) -> Intervals {
        let mut result = Intervals {
            rows: Vec::new(),
            count_noise: vec![0.0; self.events],
            late_noise: vec![0.0; self.events],
            edge_noise: 0.0,
            pieces_of_code: None,
            static_terms: domains.len(),
            judged_together: 1,
        };
        let mut unsure: Vec<f64> = Vec::new();
        for (static_term, &domain) in domains.iter().enumerate() {
            let Some(state) = self.domains.get(domain) else { continue };
            let (Some(origin), Some(first), Some((last, _))) = (self.origin, state.first, state.last) else {
                continue;
            };
            self.add_noise(state.group, last.saturating_sub(first), &mut result);
            let between_readings = last.saturating_sub(first) as f64 / state.readings.max(1) as f64;
            unsure.push(
                (refresh.as_secs_f64().powi(2) / 12.0 + (SPREAD * between_readings * 1e-9).powi(2)).sqrt(),
            );
            let merged = self.pieces((READINGS * between_readings).max(refresh.as_nanos() as f64));
            let judged = (READINGS * between_readings)
                .max(REFRESHES * refresh.as_nanos() as f64)
                .max(last.saturating_sub(first) as f64 / JUDGED as f64);
            result.judged_together = result.judged_together.max(self.pieces(judged).div_ceil(merged));
            let width = self.width * merged as u64;
            let begin = (first.saturating_sub(origin)).div_ceil(self.width) as usize;
            let end = (last.saturating_sub(origin) / self.width) as usize;
            let mut start = begin;
            while start + merged <= end {
                let row = self.row(static_term, domain, start, merged, width);
                result.rows.push(Interval { follows: start > begin, ..row });
                start += merged;
            }
        }
        let watts = result.joules() / result.seconds().max(f64::MIN_POSITIVE);
        result.edge_noise = unsure.iter().map(|seconds| 2.0 * (watts * seconds).powi(2)).fold(0.0, f64::max);
        // What one interval of several domains is unsure of is the mean of them.
        let count = domains.len().max(1) as f64;
        for noise in [&mut result.count_noise, &mut result.late_noise] {
            noise.iter_mut().for_each(|noise| *noise /= count);
        }
        result
    }

    /// How many intervals of the grid are so many nanoseconds.
    fn pieces(&self, nanos: f64) -> usize {
        ((nanos / self.width as f64).ceil() as usize).max(1)
    }

    fn row(&self, static_term: usize, domain: usize, start: usize, merged: usize, width: u64) -> Interval {
        let per_interval = self.groups.len() * self.events;
        let group = self.domains[domain].group;
        let mut counts = vec![0.0; self.events];
        let (mut joules, mut lost) = (0.0, 0.0);
        for interval in start..start + merged {
            let row = interval * per_interval + group * self.events;
            let of_interval = self.counts.get(row..row + self.events).unwrap_or(&[]);
            counts.iter_mut().zip(of_interval).for_each(|(sum, count)| *sum += count);
            lost += self.lost.get(interval * self.groups.len() + group).copied().unwrap_or(0.0);
            joules += self.joules.get(interval * self.domains.len() + domain).copied().unwrap_or(0.0);
        }
        let busy = self.cycles.and_then(|cycles| counts.get(cycles)).copied().unwrap_or(0.0);
        let cpus = self.groups[group].sampled.iter().map(CpuSet::len).max().unwrap_or(0).max(1);
        let guessed = lost / (width as f64 * f64::from(cpus));
        Interval { static_term, follows: false, seconds: width as f64 * 1e-9, joules, counts, busy, guessed }
    }

    /// See [`SpanTracker::lateness_of_changes`].
    pub(crate) fn lateness_of_changes(&self, event: usize) -> f64 {
        self.spans.lateness_of_changes(event)
    }

    /// The variance of a count between two times: of both edges, and of each CPU; more where samples came late.
    fn add_noise(&self, group: usize, nanos: u64, intervals: &mut Intervals) {
        let total = |event: usize| self.between.total(event);
        let late = 2.0 * self.spans.lateness() / nanos.max(1) as f64;
        for event in 0..self.events {
            let cpus = self.groups[group].sampled[event].len();
            intervals.count_noise[event] += 2.0 * self.between.variance(event) * f64::from(cpus);
            // What holds up samples of cycles holds up those of other events too.
            if let Some(cycles) = self.cycles.filter(|&cycles| total(cycles) > 0.0) {
                intervals.late_noise[event] += late * (total(event) / total(cycles)).powi(2);
            }
        }
    }
}

fn merge(values: &mut Vec<f64>, columns: usize) {
    if columns == 0 {
        return;
    }
    let rows = values.len() / columns;
    for row in 0..rows.div_ceil(2) {
        for column in 0..columns {
            let second = values.get((2 * row + 1) * columns + column).copied().unwrap_or(0.0);
            values[row * columns + column] = values[2 * row * columns + column] + second;
        }
    }
    values.truncate(rows.div_ceil(2) * columns);
}

/// CPUs that a domain feeds; empty: all.
pub(crate) fn cpus_of(metadata: Option<&Metadata>, domain: &DomainInfo) -> Vec<u32> {
    if !domain.cpus.is_empty() {
        return domain.cpus.clone();
    }
    let (Some(metadata), Some(package)) = (metadata, domain.package) else { return Vec::new() };
    metadata.machine.cpus.iter().filter(|cpu| cpu.package == package).map(|cpu| cpu.cpu).collect()
}

#[cfg(test)]
#[path = "grid_tests.rs"]
mod tests;
