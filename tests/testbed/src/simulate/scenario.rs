//! What is to be simulated: a machine, its meters and counters, and what runs on it.

use std::collections::BTreeMap;

use eprof::hardware::{DomainKind, RestPower, Role};
use eprof::units::{Joules, Nanoseconds, Watts};

use super::effects::Effects;

/// A machine and the work on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Everything random follows from it.
    pub seed: u64,
    /// Packages.
    pub packages: u32,
    /// Cores of each package, one hardware thread each.
    pub cores_per_package: u32,
    /// How long the recording lasts.
    pub duration: Nanoseconds,
    /// Energy domains of each package.
    pub domains: Vec<Domain>,
    /// How the energy counters behave.
    pub meter: Meter,
    /// Events that are sampled.
    pub events: Vec<Event>,
    /// How sampling behaves.
    pub sampling: Sampling,
    /// Code that can run.
    pub functions: Vec<Function>,
    /// What runs: one queue per CPU at most.
    pub queues: Vec<Queue>,
    /// Every queue moves to the next CPU this often.
    pub migrate_every: Option<Nanoseconds>,
    /// What happens beside the functions.
    pub effects: Effects,
}

/// An energy domain of a package.
#[derive(Debug, Clone, PartialEq)]
pub struct Domain {
    /// What it counts: package, cores or memory.
    pub kind: DomainKind,
    /// Power whatever runs.
    pub static_power: Watts,
    /// The recording says how much that is.
    pub static_power_known: bool,
    /// What the recorder saw of it before the program began.
    pub rest: Option<RestPower>,
}

/// The energy counters.
#[derive(Debug, Clone, PartialEq)]
pub struct Meter {
    /// Time between two moves of a counter.
    pub refresh: Nanoseconds,
    /// Each comes earlier or later by at most this.
    pub refresh_jitter: Nanoseconds,
    /// Step of a counter.
    pub resolution: Joules,
    /// Time between two readings.
    pub interval: Nanoseconds,
    /// Each comes later by at most this.
    pub interval_jitter: Nanoseconds,
    /// This share of the moves does not happen; the next one makes up for it.
    pub missed_moves: f64,
}

impl Default for Meter {
    /// RAPL: every millisecond, in steps of 2^-16 J; read every 10 ms.
    fn default() -> Self {
        Self {
            refresh: Nanoseconds::from_millis(1),
            refresh_jitter: Nanoseconds::from_nanos(50_000),
            resolution: Joules::from_joules(1.0 / 65536.0),
            interval: Nanoseconds::from_millis(10),
            interval_jitter: Nanoseconds::from_nanos(200_000),
            missed_moves: 0.0,
        }
    }
}

/// A sampled event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// Its role in the model.
    pub role: Role,
    /// Events between two samples.
    pub period: u64,
    /// What the recording says that an event costs, by kind of domain: the model, right or wrong.
    pub joules_per_event: BTreeMap<DomainKind, f64>,
}

/// How sampling behaves.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Mean time from an overflow to its interrupt; exponentially distributed.
    pub skid: Nanoseconds,
    /// Most samples of one event on one CPU in one tick of 4 ms, after which the kernel throttles it.
    pub most_per_tick: Option<u32>,
    /// Share of the time in which records are lost.
    pub lost_share: f64,
    /// On each CPU they are lost in one stretch of each span of this length.
    pub lost_once_in: Nanoseconds,
    /// Everything on every CPU is sampled, not only the recorded program.
    pub system_wide: bool,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            skid: Nanoseconds::from_nanos(2_000),
            most_per_tick: None,
            lost_share: 0.0,
            lost_once_in: Nanoseconds::from_millis(100),
            system_wide: true,
        }
    }
}

/// Code, and what it does to counters and meters.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Number of the code that it is a state of, where the same code does now this and now that; by default its own.
    pub code: Option<usize>,
    /// Events per second while it runs on one core, in the order of [`Scenario::events`].
    pub rates: Vec<f64>,
    /// Power that it adds, in the order of [`Scenario::domains`]. This is the truth; the model's
    /// coefficients need not explain it.
    pub watts: Vec<f64>,
    /// What the meters say of it, where they are a model of the machine and not a measurement.
    pub metered: Option<Vec<f64>>,
}

impl Function {
    /// Watts as the meters see them.
    pub fn metered(&self) -> &[f64] {
        self.metered.as_deref().unwrap_or(&self.watts)
    }
}

/// Tasks that share a CPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    /// Time that a task has before it is the next one's turn.
    pub slice: Nanoseconds,
    /// The tasks.
    pub tasks: Vec<Task>,
}

/// A thread and what it does.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Belongs to the recorded program, not to others.
    pub recorded: bool,
    /// What it does, one after the other.
    pub steps: Vec<Step>,
    /// Begins again after the last step.
    pub repeat: bool,
    /// Steps are longer or shorter by at most this share.
    pub jitter: f64,
}

/// A stretch of CPU time in one function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Index of the function.
    pub function: usize,
    /// CPU time.
    pub length: Nanoseconds,
}

impl Scenario {
    /// Number of CPUs.
    pub fn cpus(&self) -> u32 {
        self.packages * self.cores_per_package
    }

    /// Tasks of all queues, in order; a task's index is its number in [`super::truth::Truth`] too.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.queues.iter().flat_map(|queue| &queue.tasks)
    }

    /// Whether it can be simulated: indices and lengths fit together, nothing endless or infinite.
    ///
    /// # Errors
    /// A sentence that says what does not fit.
    pub fn check(&self) -> Result<(), String> {
        let positive = |span: Nanoseconds| span > Nanoseconds::ZERO;
        let sound = |values: &[f64], count: usize| {
            values.len() == count && values.iter().all(|value| value.is_finite() && *value >= 0.0)
        };
        let rules = [
            (self.cpus() > 0 && self.cpus() <= 4096, "the machine has 1 to 4096 CPUs"),
            (self.queues.len() <= self.cpus() as usize, "there are no more queues than CPUs"),
            (self.domains.len() <= 8 && !self.domains.is_empty(), "a package has 1 to 8 domains"),
            (positive(self.duration), "the recording lasts some time"),
            (positive(self.meter.interval) && positive(self.meter.refresh), "meters need time"),
            (self.meter.refresh_jitter < self.meter.refresh, "a refresh is not jittered before the last one"),
            (self.meter.resolution > Joules::ZERO, "a meter has a resolution"),
            (self.events.iter().all(|event| event.period > 0), "periods are positive"),
            ((0.0..1.0).contains(&self.sampling.lost_share), "the share of lost records is from 0 to 1"),
            (self.migrate_every.is_none_or(positive), "migrations take time"),
            (self.queues.iter().all(|queue| positive(queue.slice)), "slices take time"),
            (
                self.functions.iter().all(|function| {
                    sound(&function.rates, self.events.len()) && sound(&function.watts, self.domains.len())
                }),
                "a function has a rate for each event and watts for each domain, none negative",
            ),
            (
                self.tasks().all(|task| {
                    (0.0..1.0).contains(&task.jitter)
                        && task
                            .steps
                            .iter()
                            .all(|step| step.function < self.functions.len() && positive(step.length))
                }),
                "steps are of known functions and take time",
            ),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, rule)| Err(rule.to_owned()))
    }
}
