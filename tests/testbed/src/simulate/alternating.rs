//! Functions that take turns faster than the meter moves.

use super::effects::Effects;
use super::paper;
use super::scenario::{Domain, Function, Meter, Queue, Sampling, Scenario, Step, Task};
use eprof::hardware::DomainKind;
use eprof::power_model::model::PowerModel;
use eprof::power_model::presets::Preset;
use eprof::units::{Joules, Nanoseconds, Watts};

/// How functions alternate, and what is wrong with the recording of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Alternation {
    /// Everything random follows from it.
    pub seed: u64,
    /// Packages.
    pub packages: u32,
    /// Cores of each.
    pub cores_per_package: u32,
    /// Cores of the machine that work; the others idle.
    pub busy: u32,
    /// Length of the recording.
    pub duration: Nanoseconds,
    /// How long a function runs before the next one's turn.
    pub turn: Nanoseconds,
    /// Turns are longer or shorter by at most this share.
    pub jitter: f64,
    /// The recording's coefficients are right times these, event by event; missing ones are 1.
    pub coefficient_errors: Vec<f64>,
    /// Joules of one sample.
    pub joules_per_sample: Joules,
    /// How sampling behaves.
    pub sampling: Sampling,
    /// Threads move to the next CPU this often.
    pub migrate_every: Option<Nanoseconds>,
    /// Another process shares this many of the working cores, half the time each.
    pub others: u32,
    /// The recording says what the static power is.
    pub static_power_known: bool,
}

impl Default for Alternation {
    fn default() -> Self {
        Self {
            seed: 1,
            packages: 1,
            cores_per_package: 8,
            busy: 8,
            duration: Nanoseconds::from_millis(20_000),
            turn: Nanoseconds::from_millis(1),
            jitter: 0.3,
            coefficient_errors: Vec::new(),
            joules_per_sample: Joules::from_joules(0.001),
            sampling: Sampling::default(),
            migrate_every: None,
            others: 0,
            static_power_known: true,
        }
    }
}

/// Watts of a package's cores, of what lies around them, and of its memory, whatever runs.
const CORES_STATIC_WATTS: f64 = 12.41;
const UNCORE_WATTS: f64 = 3.0;
const DRAM_STATIC_WATTS: f64 = 1.5;
/// Joules of a line from memory, in the memory's domain.
const JOULES_PER_MISS: f64 = 20e-9;

/// Events and rates as in the paper's table 4; watts as the model has them (within 3 % of the measured ones),
/// so that a recording with the right coefficients can be exact.
pub fn scenario(alternation: &Alternation) -> Scenario {
    let truth = model(&[]);
    let functions: Vec<Function> = paper::programs()
        .into_iter()
        .zip([1e4, 1e4, 2e4, 1e5, 2e6, 6e7])
        .map(|(program, misses)| function(&truth, program, misses))
        .collect();
    let believed = model(&alternation.coefficient_errors);
    let events =
        paper::events(&believed, &[DomainKind::Package, DomainKind::Dram], alternation.joules_per_sample);
    let domain = |kind, watts| Domain {
        kind,
        static_power: Watts::from_watts(watts),
        static_power_known: alternation.static_power_known,
        rest: None,
    };
    Scenario {
        seed: alternation.seed,
        packages: alternation.packages,
        cores_per_package: alternation.cores_per_package,
        duration: alternation.duration,
        domains: vec![
            domain(DomainKind::Package, CORES_STATIC_WATTS + UNCORE_WATTS),
            domain(DomainKind::Cores, CORES_STATIC_WATTS),
            domain(DomainKind::Dram, DRAM_STATIC_WATTS),
        ],
        meter: Meter::default(),
        events,
        sampling: alternation.sampling.clone(),
        queues: queues(alternation, functions.len()),
        functions,
        migrate_every: alternation.migrate_every,
        effects: Effects::default(),
    }
}

/// Sandy Bridge's cores by the preset, and memory beside them, each coefficient times its error; missing errors are
/// 1.
pub fn model(coefficient_errors: &[f64]) -> PowerModel {
    let mut model = Preset::SandyBridge.model();
    let mut cores = model.domains[&DomainKind::Cores].clone();
    model.events.push(Preset::Generic.model().events[4].clone());
    cores.joules_per_event.push(0.0);
    // Each event is sampled by what it costs here.
    cores.sampled_by = Vec::new();
    let mut dram = cores.clone();
    dram.joules_per_event = vec![0.0, 0.0, 0.0, 0.0, JOULES_PER_MISS];
    dram.static_power = Watts::from_watts(DRAM_STATIC_WATTS);
    let mut package = cores.clone();
    package.static_power = Watts::from_watts(CORES_STATIC_WATTS + UNCORE_WATTS);
    model.domains = [(DomainKind::Package, package), (DomainKind::Cores, cores), (DomainKind::Dram, dram)]
        .map(|(kind, mut domain)| {
            domain
                .joules_per_event
                .iter_mut()
                .zip(coefficient_errors)
                .for_each(|(cost, error)| *cost *= error);
            (kind, domain)
        })
        .into();
    model
}

fn function(model: &PowerModel, program: Function, misses_per_second: f64) -> Function {
    let mut rates = program.rates;
    rates.push(misses_per_second);
    let watts = [DomainKind::Package, DomainKind::Cores, DomainKind::Dram]
        .into_iter()
        .map(|domain| {
            let costs = model.domain(domain).map_or(&[][..], |domain| &domain.joules_per_event);
            costs.iter().zip(&rates).map(|(cost, rate)| cost * rate).sum()
        })
        .collect();
    Function { rates, watts, ..program }
}

fn queues(alternation: &Alternation, functions: usize) -> Vec<Queue> {
    let step = |function| Step { function, length: alternation.turn };
    let task = |first: usize, recorded| Task {
        recorded,
        // Every thread begins with another function, so that cores are never all in the same one.
        steps: (0..functions).map(|turn| step((first + turn) % functions)).collect(),
        repeat: true,
        jitter: alternation.jitter,
    };
    (0..alternation.busy)
        .map(|core| {
            let mut tasks = vec![task(core as usize, true)];
            if core < alternation.others {
                tasks.push(task(core as usize + 3, false));
            }
            Queue { slice: Nanoseconds::from_millis(4), tasks }
        })
        .collect()
}
