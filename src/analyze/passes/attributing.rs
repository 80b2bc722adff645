//! The other half of the second pass: joules for what was gathered.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::analyze::aggregate::cell_counts::CellCounts;
use crate::analyze::aggregate::cells::CellTable;
use crate::analyze::events::EventRoles;
use crate::analyze::intervals::counted::CountWeights;
use crate::analyze::intervals::grid::cpus_of;
use crate::analyze::intervals::losses::HORIZON;
use crate::analyze::intervals::spans::Span;
use crate::analyze::intervals::survey::{Seen, Survey};
use crate::analyze::model::plan::Plan;
use crate::analyze::options::{CountedTime, Options};
use crate::analyze::passes::parts::{LaunchCells, PartsMaker};
use crate::analyze::passes::span_finder::SpanFinder;
use crate::analyze::sample_key::NO_CPU;
use crate::analyze::steps::{NotSampledStep, Owner, SampleStep, Step, stream_of_cpu};
use crate::attribute::{self, Attribution, Attributor, Charge, Quantum};
use crate::hardware::DomainKind;
use crate::profile::{
    Division, ErrorTerms, LostStretches, MOST_SAMPLE_TIMES, NO_CELL, SampleSequence, SampleTime, StackTable,
};
use crate::recording::Recording;
use crate::recording::metadata::Metadata;
use crate::units::{Nanoseconds, Timestamp};

/// Attributes joules to cells in the order of time.
pub(crate) struct Attributing<'r> {
    pub(super) attributor: Attributor,
    span_finder: SpanFinder<'r>,
    /// Where the steps at hand lie in time; of what is no sample it does not matter.
    spans: Vec<Span>,
    /// How much samples weigh.
    weights: CountWeights,
    /// By event, what they stand for beyond their periods.
    made_up: Vec<u64>,
    /// What was lost by each of the losses among them.
    lost: VecDeque<Vec<Quantum>>,
    /// Losses that are told when they begin, the first of them last.
    long_losses: Vec<Quantum>,
    errors: ErrorTerms,
    /// When samples were taken, as long as they are not too many.
    sample_times: Option<Vec<SampleTime>>,
    division: Option<Division>,
    warnings: Vec<String>,
    cpus_are_told_apart: bool,
    /// What is counted, if not all.
    counted: Option<CountedTime>,
    /// Sampled events.
    events: u32,
    /// The cells of the profile, or of the part at hand, and what was counted of each.
    pub(super) cells: CellTable,
    pub(super) cell_counts: CellCounts,
    /// The number that the first of these cells has in attribution.
    pub(super) first_cell: u32,
    kept: Kept<'r>,
    most_bytes: usize,
    bytes_of_joules: usize,
    cells_are_full: &'r AtomicBool,
}

/// What becomes of cells.
enum Kept<'r> {
    /// All are kept, or one for each event if they were too many.
    Whole {
        sequence: SampleSequence,
        /// The cells of launches by their numbers.
        launches: Vec<u32>,
        by_event: bool,
    },
    /// They are given away in parts.
    Parts(Box<PartsMaker<'r>>),
}

/// What was found of the whole recording.
pub(crate) struct Attributed {
    pub attribution: Attribution,
    pub cells: CellTable,
    pub cell_counts: CellCounts,
    pub launch_cells: Vec<u32>,
    pub errors: ErrorTerms,
    pub division: Option<Division>,
    pub warnings: Vec<String>,
    /// There were too many cells or call paths: there is one cell for each event.
    pub by_event: bool,
    /// By event, what samples stand for beyond their periods.
    pub made_up: Vec<u64>,
    /// What there was to be seen of samples meanwhile.
    pub seen: Seen,
    /// When samples were taken, if that was asked for and they are not too many.
    pub sample_times: Vec<SampleTime>,
}

impl Attributed {
    /// Where nothing was known beforehand: with the terms of errors that follow from what was seen.
    pub fn with_terms_of_seen(self) -> Self {
        let Seen { late, lost_stretches, .. } = &self.seen;
        let errors =
            ErrorTerms { late: late.clone(), lost: LostStretches::of(lost_stretches), ..self.errors };
        Self { errors, ..self }
    }
}

/// No sample is waited for that reaches back farther: what happened so long ago is distributed.
const LONGEST_HORIZON: Nanoseconds = Nanoseconds::from_millis(2_000);

/// How far back a sample's events can reach, late ones among them.
fn horizon(weights: &CountWeights) -> Nanoseconds {
    (HORIZON + weights.longest_gap()).min(LONGEST_HORIZON)
}

/// The domains of GPUs whose launches were recorded.
fn divided_by_launches(metadata: Option<&Metadata>, roles: &EventRoles) -> Vec<bool> {
    let domains = metadata.map_or(&[][..], |metadata| &metadata.domains);
    domains.iter().map(|domain| roles.has_launches() && domain.kind == DomainKind::Gpu).collect()
}

impl<'r> Attributing<'r> {
    /// Cells may take `most_bytes`; if they take more, `cells_are_full` is set.
    pub fn new(
        recording: &Recording,
        roles: &'r EventRoles,
        survey: &Survey,
        options: &Options,
        most_bytes: usize,
        cells_are_full: &'r AtomicBool,
    ) -> Self {
        let metadata = recording.metadata();
        let plan = Plan::new(metadata, roles, survey, options);
        let attribute_options = attribute::Options {
            bucket: plan.bucket,
            static_power: plan.static_power,
            rises: plan.rises,
            divided_later: divided_by_launches(metadata, roles),
            horizon: horizon(&survey.weights),
            keep_buckets: options.keep_buckets,
            sharing: plan.sharing,
            // Where the model's coefficients have no error, it does not matter what depends on them.
            sensitivities: plan.covariances.iter().any(|covariance| !covariance.is_empty()),
        };
        let domains = metadata.map_or(&[][..], |metadata| &metadata.domains);
        let parameters = if attribute_options.sensitivities { roles.sampled().len() + 1 } else { 0 };
        let attributor = Attributor::new(
            domains,
            |domain| cpus_of(metadata, domain),
            plan.weights,
            attribute_options,
            metadata.is_some_and(|metadata| metadata.system_wide_samples),
        );
        let errors = ErrorTerms {
            parameters: roles.sampled().len() + 1,
            covariances: plan.covariances,
            late: (0..roles.sampled().len())
                .map(|event| survey.intervals.lateness_of_changes(event))
                .collect(),
            lost: survey.lost(),
            ..ErrorTerms::default()
        };
        // Joules, their variances where there are some, and what depends on the model.
        let bytes_of_joules = domains.len().max(1) * (2 * size_of::<f64>() + parameters * size_of::<f32>());
        Self {
            attributor,
            span_finder: SpanFinder::new(roles),
            spans: Vec::new(),
            weights: survey.weights.clone(),
            made_up: vec![0; roles.sampled().len()],
            lost: VecDeque::new(),
            long_losses: survey.long_losses(),
            errors,
            sample_times: options.keep_buckets.then(Vec::new),
            division: plan.division,
            warnings: plan.warnings,
            cpus_are_told_apart: options.dimensions.cpus,
            counted: options.counted,
            events: roles.sampled().len() as u32,
            cells: CellTable::default(),
            cell_counts: CellCounts::default(),
            first_cell: 0,
            kept: Kept::Whole { sequence: SampleSequence::default(), launches: Vec::new(), by_event: false },
            most_bytes,
            bytes_of_joules,
            cells_are_full,
        }
    }

    /// Gives cells away in parts. `pool_factors` are those of the whole recording.
    pub fn in_parts(self, maker: PartsMaker<'r>, pool_factors: Vec<f64>) -> Self {
        let attributor = self.attributor.with_pool_factors(pool_factors);
        Self { attributor, kept: Kept::Parts(Box::new(maker)), sample_times: None, ..self }
    }

    /// Takes the next steps and leaves none.
    ///
    /// All that is looked up at random is looked up for many steps at once: a CPU waits then for several places in
    /// memory at a time.
    pub fn take(&mut self, steps: &mut Vec<Step>) {
        // These come alone.
        if let [Step::PartEnds(_) | Step::TooLarge] = steps[..] {
            match steps.pop() {
                Some(Step::PartEnds(callers)) => self.end_part(*callers),
                _ => self.merge_cells(),
            }
            return;
        }
        steps.iter_mut().for_each(|step| self.find_cell(step));
        let mut spans = std::mem::take(&mut self.spans);
        spans.extend(steps.iter_mut().map(|step| self.span(step)));
        steps.iter().zip(spans.drain(..)).for_each(|(step, span)| self.attribute(step, span));
        steps.clear();
        self.spans = spans;
        self.make_room();
    }

    /// The end of a recording that is kept whole.
    pub fn finish(self) -> Attributed {
        let Self {
            attributor,
            span_finder,
            made_up,
            errors,
            sample_times,
            division,
            warnings,
            cells,
            cell_counts,
            kept,
            ..
        } = self;
        let mut sample_times = sample_times.unwrap_or_default();
        // Samples that come late come in another order.
        sample_times.sort_by_key(|sample| sample.end);
        let (sequence, launch_cells, by_event) = match kept {
            Kept::Whole { sequence, launches, by_event } => (sequence, launches, by_event),
            Kept::Parts(_) => Default::default(),
        };
        let attribution = attributor.finish();
        let errors = ErrorTerms { sequence, ..errors };
        let seen = span_finder.seen();
        Attributed {
            attribution,
            cells,
            cell_counts,
            launch_cells,
            errors,
            division,
            warnings,
            by_event,
            made_up,
            seen,
            sample_times,
        }
    }

    /// The end of a recording in parts, all but the last of which were given away; what is known of launches.
    pub fn finish_parts(mut self, callers: StackTable) -> Option<LaunchCells> {
        self.end_part(callers);
        let Self { attributor, kept: Kept::Parts(maker), .. } = self else { return None };
        Some(maker.finish(attributor.finish()))
    }

    /// Charges a sample to its cell.
    fn find_cell(&mut self, step: &mut Step) {
        match step {
            Step::Sample(sample) => self.find_cell_of(sample),
            Step::NotSampled(not_sampled) => self.find_cell_of(&mut not_sampled.step),
            Step::Launch { key, cpu, event } => {
                let cpu = self.told_apart(*cpu);
                match &mut self.kept {
                    Kept::Whole { launches, by_event, .. } => {
                        let cell = if *by_event { *event } else { self.cells.cell(*key, cpu, *event) };
                        self.cell_counts.count(cell, 1, Nanoseconds::ZERO);
                        launches.push(cell);
                    }
                    Kept::Parts(maker) => maker.launch(*key, cpu, *event),
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn find_cell_of(&mut self, sample: &mut SampleStep) {
        if let Owner::Cell { is_idle, key } = sample.owner {
            let (cpu, event) = (self.told_apart(sample.cpu), sample.event);
            let cell = match self.kept {
                Kept::Whole { by_event: true, .. } => event,
                _ => self.first_cell + self.cells.cell(key, cpu, event),
            };
            sample.owner = Owner::Charge { is_idle, charge: Charge::Cell(cell) };
        }
    }

    /// Finds where a step lies in time, and counts a sample in its cell.
    #[inline]
    fn span(&mut self, step: &mut Step) -> Span {
        match step {
            Step::Sample(sample) => {
                let span = self.span_finder.sample(sample);
                let span = self.weigh(sample, span);
                let cell = match sample.owner {
                    Owner::Charge { charge: Charge::Cell(cell), .. } => {
                        let cell = cell - self.first_cell;
                        match self.counted {
                            None => self.cell_counts.count(cell, sample.count, span.running),
                            Some(counted) => {
                                let time = counted.part_of(span.start, sample.end, span.running);
                                match counted.has(sample.end) {
                                    true => self.cell_counts.count(cell, sample.count, time),
                                    false => self.cell_counts.count_unseen(cell, 0, time),
                                }
                            }
                        }
                        cell
                    }
                    _ => NO_CELL,
                };
                match &mut self.kept {
                    Kept::Whole { sequence, .. } => sequence.push(sample.stream(self.events), cell),
                    Kept::Parts(maker) => maker.sampled(sample.end, cell),
                }
                self.note_time(span.start, sample.end, cell);
                span
            }
            Step::NotSampled(not_sampled) => {
                let NotSampledStep { since, running, step } = &mut **not_sampled;
                let weight = self.weights.of_unsampled(step.event);
                step.count = (step.count as f64 * weight).round() as u64;
                let running = Nanoseconds::from_nanos((running.as_nanos() as f64 * weight).round() as u64);
                if let Owner::Charge { charge: Charge::Cell(cell), .. } = step.owner {
                    self.cell_counts.count_unseen(cell - self.first_cell, step.count, running);
                }
                Span { start: *since, running }
            }
            Step::Lost(lost) => {
                match &mut self.kept {
                    Kept::Whole { sequence, .. } => sequence.push_lost(stream_of_cpu(lost.cpu), lost.records),
                    Kept::Parts(maker) => maker.lost(),
                }
                self.lost.push_back(self.span_finder.lost(lost));
                Span::NONE
            }
            _ => Span::NONE,
        }
    }

    /// Remembers when a sample was taken.
    #[inline]
    fn note_time(&mut self, start: Timestamp, end: Timestamp, cell: u32) {
        let Some(times) = self.sample_times.as_mut().filter(|_| cell != NO_CELL) else { return };
        if times.len() < MOST_SAMPLE_TIMES {
            times.push(SampleTime { start, end, cell });
        } else {
            self.sample_times = None;
        }
    }

    /// Lets a sample stand for what was counted. Where it lies in time, its own period says.
    #[inline]
    fn weigh(&mut self, sample: &mut SampleStep, span: Span) -> Span {
        let cpu = (sample.cpu != NO_CPU).then_some(sample.cpu);
        let weight = self.weights.of(sample.event, cpu, sample.end);
        let late = self.weights.of_late(sample.event, cpu, sample.end);
        if weight == 1.0 && late.is_none() {
            return span;
        }
        let mut start = span.start;
        let mut count = (sample.count as f64 * weight).round() as u64;
        if let Some(made_up) = late {
            // What ran since the sample before it was this one's.
            start = start.min(made_up.late.since);
            count += made_up.count;
        }
        if self.counted.is_none_or(|counted| counted.has(sample.end)) {
            self.made_up[sample.event as usize] += count.saturating_sub(sample.count);
        }
        let weight = count as f64 / sample.count.max(1) as f64 * self.weights.of_time(sample.event);
        sample.count = count;
        let running = Nanoseconds::from_nanos((span.running.as_nanos() as f64 * weight).round() as u64);
        Span { start, running }
    }

    #[inline]
    fn attribute(&mut self, step: &Step, span: Span) {
        match step {
            Step::Sample(sample) => self.attribute_sample(sample, span),
            Step::NotSampled(not_sampled) => self.attribute_sample(&not_sampled.step, span),
            Step::Lost(_) => {
                let lost = self.lost.pop_front().unwrap_or_default();
                lost.into_iter().for_each(|lost| self.attributor.quantum(lost));
            }
            Step::Reading { domain, time, energy } => {
                self.long_losses_until(*time);
                self.attributor.reading(*domain as usize, *time, *energy);
            }
            Step::CpuTimes(time, times) => self.attributor.cpu_times(*time, &times.0, &times.1),
            Step::Launch { .. } | Step::PartEnds(_) | Step::TooLarge => {}
        }
    }

    #[inline]
    fn attribute_sample(&mut self, sample: &SampleStep, span: Span) {
        self.long_losses_until(sample.end);
        if let Owner::Charge { is_idle: false, charge } = sample.owner {
            self.attributor.quantum(sample.quantum(span, charge));
        }
    }

    /// Tells of the long losses that began by then.
    fn long_losses_until(&mut self, time: Timestamp) {
        while self.long_losses.last().is_some_and(|loss| loss.start <= time)
            && let Some(loss) = self.long_losses.pop()
        {
            self.attributor.quantum_ahead(loss);
        }
    }

    fn told_apart(&self, cpu: u32) -> u32 {
        if self.cpus_are_told_apart { cpu } else { NO_CPU }
    }

    /// Gives away what is settled; says so if the rest is too much.
    fn make_room(&mut self) {
        if let Kept::Parts(maker) = &mut self.kept {
            maker.give_settled(&mut self.attributor);
        }
        let bytes = self.cells.bytes(self.bytes_of_joules) + self.attributor.bytes_in_buckets();
        if bytes <= self.most_bytes {
            return;
        }
        match self.kept {
            Kept::Whole { by_event: false, .. } => self.merge_cells(),
            Kept::Whole { .. } => {}
            Kept::Parts(_) => self.cells_are_full.store(true, Ordering::Relaxed),
        }
    }

    fn end_part(&mut self, callers: StackTable) {
        if let Kept::Parts(maker) = &mut self.kept {
            let cells = std::mem::take(&mut self.cells);
            self.first_cell += cells.len() as u32;
            maker.end_part(callers, cells, std::mem::take(&mut self.cell_counts));
            maker.give_settled(&mut self.attributor);
        }
    }

    /// From now on there is one cell for each event, which has what the event's cells had.
    fn merge_cells(&mut self) {
        let Kept::Whole { launches, by_event, .. } = &mut self.kept else { return };
        if std::mem::replace(by_event, true) {
            return;
        }
        self.cells_are_full.store(true, Ordering::Relaxed);
        self.sample_times = None;
        let cells = std::mem::take(&mut self.cells);
        let event_of = |cell| cells.event_of(cell).unwrap_or(0);
        // Launches are an event beside those that are sampled.
        self.attributor.merge_cells_by_event(self.events + 1, event_of);
        self.cell_counts = std::mem::take(&mut self.cell_counts).merge(event_of);
        launches.iter_mut().for_each(|cell| *cell = event_of(*cell));
    }
}
