//! From a recording to its profile: the survey and the plan, then the second pass.

use std::iter;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

use perf_data::RecordPosition;

use crate::analyze::aggregate::cells::{CellTable, NO_CPU};
use crate::analyze::aggregate::collect::Collected;
use crate::analyze::aggregate::gather::{Gathered, gather};
use crate::analyze::aggregate::samples::{SampleEnergy, SampleList};
use crate::analyze::build_ids::add_build_ids;
use crate::analyze::events::EventRoles;
use crate::analyze::intervals::grid::cpus_of;
use crate::analyze::intervals::losses::HORIZON;
use crate::analyze::intervals::shape::Shaper;
use crate::analyze::intervals::spans::Span;
use crate::analyze::intervals::survey::{Survey, survey};
use crate::analyze::model::estimate::estimate;
use crate::analyze::model::plan::Plan;
use crate::analyze::options::Options;
use crate::analyze::steps::{self, Owner, Step, StepChunks};
use crate::attribute::{self, Attribution, Attributor, Bucket, Charge, Quantum};
use crate::hardware::DomainInfo;
use crate::profile::{Division, DomainEnergy, ErrorTerms, NO_CELL, Profile, SampleTrail, TimeSlice};
use crate::recording::Recording;
use crate::units::{Joules, Nanoseconds, Timestamp};

/// Makes a profile of a recording. Damage in the recording ends or thins out the profile and is told
/// in its warnings.
pub fn analyze(recording: &Recording, options: &Options) -> Profile {
    let (mut profile, _) = run(recording, options, None);
    add_build_ids(&mut profile.modules, recording);
    profile
}

/// The energy of single samples, as [`analyze`] attributes it. Memory holds all samples.
pub fn analyze_samples(recording: &Recording, options: &Options) -> SampleEnergy {
    let (profile, positions) = run(recording, options, Some(SampleList::default()));
    SampleEnergy::new(positions, profile)
}

/// Both passes. The second one's halves are alike whatever thread they run in: attribution is told the same
/// steps in the same order.
fn run(
    recording: &Recording,
    options: &Options,
    samples: Option<SampleList>,
) -> (Profile, Vec<RecordPosition>) {
    let roles = EventRoles::new(recording);
    let threads = options.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, NonZero::get));
    if threads < 2 {
        let survey = survey(recording, &roles);
        let mut attribution = Attributing::new(recording, &roles, &survey, options);
        let mut chunks = StepChunks::new(|steps| attribution.take(steps));
        let gathered = gather(recording, &roles, options, samples, |step| chunks.push(step));
        drop(chunks);
        return profile_of(recording, &survey, options, attribution, gathered);
    }
    thread::scope(|scope| {
        let (mut sender, receiver) = steps::channel();
        let roles = &roles;
        let gathering =
            scope.spawn(move || gather(recording, roles, options, samples, |step| sender.push(step)));
        let survey = survey(recording, roles);
        let mut attribution = Attributing::new(recording, roles, &survey, options);
        receiver.for_each(|steps| attribution.take(steps));
        let gathered = gathering.join().unwrap_or_else(|panic| resume_unwind(panic));
        profile_of(recording, &survey, options, attribution, gathered)
    })
}

/// The other half of the second pass: joules for what was gathered.
struct Attributing<'r> {
    attributor: Attributor,
    shaper: Shaper<'r>,
    /// Where the steps at hand lie in time.
    shapes: Vec<Shape>,
    tallies: Tallies,
    errors: ErrorTerms,
    division: Option<Division>,
    warnings: Vec<String>,
    /// Losses that are told when they begin, the first of them last.
    long_losses: Vec<Quantum>,
    cells: CellTable,
    cpus_are_told_apart: bool,
    /// Sampled events.
    events: u32,
    trail: SampleTrail,
    /// The cells of launches by their numbers.
    launch_cells: Vec<u32>,
}

impl<'r> Attributing<'r> {
    fn new(recording: &Recording, roles: &'r EventRoles, survey: &Survey, options: &Options) -> Self {
        let metadata = recording.metadata();
        let plan = Plan::new(metadata, roles, survey, options);
        let attribute_options = attribute::Options {
            bucket: plan.bucket,
            static_power: plan.static_power,
            horizon: HORIZON,
            keep_buckets: options.keep_buckets,
            sharing: plan.sharing,
            // Where the model's coefficients have no error, it does not matter what depends on them.
            sensitivities: plan.covariances.iter().any(|covariance| !covariance.is_empty()),
        };
        let attributor = Attributor::new(
            metadata.map_or(&[][..], |metadata| &metadata.domains),
            |domain| cpus_of(metadata, domain),
            plan.weights,
            attribute_options,
            metadata.is_some_and(|metadata| metadata.system_wide_samples),
        );
        let errors = ErrorTerms {
            parameters: roles.sampled().len() + 1,
            covariances: plan.covariances,
            ..ErrorTerms::default()
        };
        Self {
            attributor,
            shaper: Shaper::new(roles),
            shapes: Vec::new(),
            tallies: Tallies::default(),
            errors,
            division: plan.division,
            warnings: plan.warnings,
            long_losses: survey.long_losses(),
            cells: CellTable::default(),
            cpus_are_told_apart: options.dimensions.cpus,
            events: roles.sampled().len() as u32,
            trail: SampleTrail::default(),
            launch_cells: Vec::new(),
        }
    }

    /// Takes the next steps and leaves none.
    ///
    /// All that is looked up at random is looked up for many steps at once: a CPU waits then for several places in
    /// memory at a time.
    fn take(&mut self, steps: &mut Vec<Step>) {
        steps.iter_mut().for_each(|step| self.find_cell(step));
        let mut shapes = std::mem::take(&mut self.shapes);
        shapes.extend(steps.iter().map(|step| self.shape(step)));
        steps.drain(..).zip(shapes.drain(..)).for_each(|(step, shape)| self.attribute(step, shape));
        self.shapes = shapes;
    }

    /// Charges a sample to its cell.
    fn find_cell(&mut self, step: &mut Step) {
        match step {
            Step::Sample(sample) => {
                if let Owner::Cell { is_idle, key } = sample.owner {
                    let cell = self.cells.cell(key, self.told_apart(sample.cpu), sample.event);
                    sample.owner = Owner::Charge { is_idle, charge: Charge::Cell(cell) };
                }
            }
            Step::Launch { key, cpu, event } => {
                let cell = self.cells.cell(*key, self.told_apart(*cpu), *event);
                self.tallies.count(cell, 1, Nanoseconds::ZERO);
                self.launch_cells.push(cell);
            }
            _ => {}
        }
    }

    /// Finds where a step lies in time, and counts a sample in its cell.
    fn shape(&mut self, step: &Step) -> Shape {
        match step {
            Step::Sample(sample) => {
                let span = self.shaper.sample(sample);
                let cell = match sample.owner {
                    Owner::Charge { charge: Charge::Cell(cell), .. } => {
                        self.tallies.count(cell, sample.count, span.running);
                        cell
                    }
                    _ => NO_CELL,
                };
                self.trail.push(sample.stream(self.events), cell);
                Shape::Sample(span)
            }
            Step::Lost(lost) => Shape::Lost(self.shaper.lost(lost)),
            _ => Shape::None,
        }
    }

    fn attribute(&mut self, step: Step, shape: Shape) {
        match (step, shape) {
            (Step::Sample(sample), Shape::Sample(span)) => {
                self.long_losses_until(sample.end);
                if let Owner::Charge { is_idle: false, charge } = sample.owner {
                    self.attributor.quantum(sample.quantum(span, charge));
                }
            }
            (_, Shape::Lost(quanta)) => quanta.into_iter().for_each(|lost| self.attributor.quantum(lost)),
            (Step::Reading { domain, time, energy }, _) => {
                self.long_losses_until(time);
                self.attributor.reading(domain as usize, time, energy);
            }
            (Step::CpuTimes(time, times), _) => {
                let (times, own) = *times;
                self.attributor.cpu_times(time, &times);
                self.attributor.own_times(time, &own);
            }
            _ => {}
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
}

/// Where a step lies in time.
enum Shape {
    Sample(Span),
    Lost(Vec<Quantum>),
    None,
}

/// How many samples each cell has, and what they stand for.
#[derive(Default)]
struct Tallies(Vec<(u64, u64, Nanoseconds)>);

impl Tallies {
    fn count(&mut self, cell: u32, count: u64, time: Nanoseconds) {
        let cell = cell as usize;
        if self.0.len() <= cell {
            self.0.resize(cell + 1, (0, 0, Nanoseconds::ZERO));
        }
        let (samples, counts, times) = &mut self.0[cell];
        *samples += 1;
        *counts = counts.saturating_add(count);
        *times += time;
    }

    /// What was counted of each cell.
    fn into_iter(self) -> impl Iterator<Item = (u64, u64, Nanoseconds)> {
        self.0.into_iter().chain(iter::repeat_with(Default::default))
    }
}

/// Puts together what both halves of the second pass found.
fn profile_of(
    recording: &Recording,
    survey: &Survey,
    options: &Options,
    attribution: Attributing,
    mut gathered: Gathered,
) -> (Profile, Vec<RecordPosition>) {
    let Attributing { attributor, tallies, errors, division, warnings, cells, trail, launch_cells, .. } =
        attribution;
    let attribution = attributor.finish();
    let Collected { callers, addresses, without_callers } = gathered.collected;
    let mut tallies = tallies.into_iter();
    let (cells, stacks, cut_cells) = cells.finish(&mut tallies);
    let stacks = callers.with_stacks_of(stacks);
    let launch_cells = [gathered.launch_cells, launch_cells].concat();
    let cut: u64 =
        cut_cells.iter().filter_map(|&cell| cells.get(cell as usize)).map(|cell| cell.samples).sum();
    let without_callers = without_callers + cut;
    let positions = gathered.samples.as_mut().map(SampleList::take_positions).unwrap_or_default();
    let times = tallies.map(|(_, _, time)| time);
    let cells = gathered.samples.map_or(cells, |samples| samples.into_cells(times));
    let (start, end) = time_range(gathered.sampled, survey);
    let mut profile = Profile {
        start,
        duration: end.since(start),
        events: gathered.totals,
        modules: gathered.modules,
        threads: gathered.threads,
        addresses,
        stacks,
        cells,
        division,
        warnings: [gathered.jit_warnings, warnings].concat(),
        ..Profile::default()
    };
    if let Some(metadata) = recording.metadata() {
        profile.cpus = metadata.machine.cpus.clone();
        profile.warnings.extend(metadata.warnings.iter().cloned());
        let errors = ErrorTerms { trail, ..errors };
        add_energy(&mut profile, &metadata.domains, attribution, errors);
        gathered.launches.settle(&mut profile, &launch_cells);
    }
    if let Some(watts) = options.watts
        && profile.domains.is_empty()
    {
        let seen = survey.highest_cpu.map_or(1, |cpu| cpu.saturating_add(1));
        let cpus = recording.features().cpus.map_or(seen, |count| count.online);
        let (domain, joules) = estimate(&profile.cells, profile.duration, cpus, watts);
        profile.domains = vec![domain];
        profile.cell_joules = joules;
    }
    if without_callers > 0 {
        profile.warnings.push(format!(
            "{without_callers} samples are shown without their callers: there are too many different call \
             stacks to keep them all"
        ));
    }
    for event in profile.events.iter().filter(|event| event.lost > 0) {
        profile.warnings.push(format!(
            "{} records were lost (event {}): the rings were full; lower the rate (-F) or raise \
             kernel.perf_event_mlock_kb",
            event.lost, event.name
        ));
    }
    for event in profile.events.iter().filter(|event| event.throttled > 0) {
        profile.warnings.push(format!(
            "the kernel throttled event {} {} times: its rate was above kernel.perf_event_max_sample_rate",
            event.name, event.throttled
        ));
    }
    profile.warnings.extend(gathered.end.warnings());
    (profile, positions)
}

fn add_energy(profile: &mut Profile, domains: &[DomainInfo], attribution: Attribution, errors: ErrorTerms) {
    let columns = domains.len();
    profile.domains = domains
        .iter()
        .zip(attribution.balances)
        .map(|(info, balance)| DomainEnergy { info: info.clone(), balance })
        .collect();
    let slice = |bucket: Bucket| TimeSlice {
        start: bucket.start,
        end: bucket.end,
        measured: bucket.measured,
        modelled: bucket.modelled,
        by_cell: bucket.by_cell,
    };
    profile.slices = attribution.buckets.into_iter().map(slice).collect();
    // Cells that never got a quantum have no row yet.
    profile.cell_joules = attribution.cell_joules;
    profile.cell_joules.resize(profile.cells.len() * columns, Joules::ZERO);
    if profile.division.is_some() {
        let mut sensitivities = attribution.sensitivities;
        if !sensitivities.is_empty() {
            sensitivities.resize(profile.cells.len() * columns * errors.parameters, 0.0);
        }
        profile.errors = Some(ErrorTerms { sensitivities, ..errors });
    }
    if attribution.refused_readings > 0 {
        profile.warnings.push(format!(
            "{} energy readings went backwards and were left out: a counter was reset or its clock jumped",
            attribution.refused_readings
        ));
    }
}

/// The recorded time: of the meters where there are any, else of the samples.
fn time_range(sampled: Option<(Timestamp, Timestamp)>, survey: &Survey) -> (Timestamp, Timestamp) {
    let readings = || survey.readings.iter().flatten();
    let first = readings().map(|[(time, _), _]| *time).min();
    let last = readings().map(|[_, (time, _)]| *time).max();
    let sampled = sampled.unwrap_or_default();
    (first.unwrap_or(sampled.0), last.unwrap_or(sampled.1))
}
