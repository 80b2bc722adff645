//! The paper's machine and programs: eight Sandy Bridge cores at 2.9 GHz, table 4.

use super::effects::Effects;
use super::scenario::{Domain, Event, Function, Meter, Queue, Sampling, Scenario, Step, Task};
use eprof::hardware::DomainKind;
use eprof::power_model::model::PowerModel;
use eprof::power_model::paper::PROGRAMS;
use eprof::power_model::presets::Preset;
use eprof::units::{Joules, Nanoseconds, Watts};

/// Cores of the paper's socket.
const CORES: u32 = 8;
/// What the idle socket's cores draw.
const STATIC_WATTS: f64 = 12.41;
/// Joules of one sample: the paper's intervals are a hundredth of those of table 3.
const JOULES_PER_SAMPLE: f64 = 0.01;

/// The events of a model, each sampled once per `energy` of its share in the first of the domains in which
/// it costs anything.
pub fn events(model: &PowerModel, domains: &[DomainKind], energy: Joules) -> Vec<Event> {
    (0..model.events.len())
        .filter_map(|event| {
            Some(Event {
                name: model.events[event].name.clone(),
                role: model.events[event].role?,
                period: domains.iter().find_map(|&domain| model.period(domain, event, energy))?,
                joules_per_event: model.joules_per_event(event),
            })
        })
        .collect()
}

/// The six programs of table 4: rates as measured, and watts as measured, not as the model has them.
pub fn programs() -> Vec<Function> {
    PROGRAMS
        .iter()
        .map(|program| Function {
            name: program.name.to_owned(),
            code: None,
            rates: program.rates_per_core().to_vec(),
            watts: vec![(program.package_watts() - STATIC_WATTS) / f64::from(CORES)],
            metered: None,
        })
        .collect()
}

fn machine(seed: u64, duration: Nanoseconds, steps: &[Step]) -> Scenario {
    let task = Task { recorded: true, steps: steps.to_vec(), repeat: true, jitter: 0.0 };
    Scenario {
        seed,
        packages: 1,
        cores_per_package: CORES,
        duration,
        domains: vec![Domain {
            kind: DomainKind::Cores,
            static_power: Watts::from_watts(STATIC_WATTS),
            static_power_known: true,
            rest: None,
        }],
        meter: Meter::default(),
        events: events(
            &Preset::SandyBridge.model(),
            &[DomainKind::Cores],
            Joules::from_joules(JOULES_PER_SAMPLE),
        ),
        sampling: Sampling::default(),
        functions: programs(),
        queues: (0..CORES)
            .map(|_| Queue { slice: Nanoseconds::from_millis(4), tasks: vec![task.clone()] })
            .collect(),
        migrate_every: None,
        effects: Effects::default(),
    }
}

/// One of the six programs on all cores.
pub fn program(number: usize, seed: u64, duration: Nanoseconds) -> Scenario {
    machine(seed, duration, &[Step { function: number, length: Nanoseconds::from_millis(1000) }])
}

/// Section 4.1: the paper's own program for 9 s, stress for 10 s, the streams in L3 and L2 for 12 s each, one
/// after another on all cores, without the pauses between them; `scale` times as long.
pub fn sequence(seed: u64, scale: f64) -> Scenario {
    let steps = [(1, 9.0), (0, 10.0), (4, 12.0), (3, 12.0)]
        .map(|(function, seconds)| Step { function, length: Nanoseconds::from_secs_f64(seconds * scale) });
    machine(seed, steps.iter().map(|step| step.length).sum(), &steps)
}

/// The paper's time-based sampling beside it: samples of all cores every 10 ms, so many of them to a bucket.
pub fn time_based_bucket(samples: u32) -> Nanoseconds {
    Nanoseconds::from_nanos(10_000_000 * u64::from(samples) / u64::from(CORES))
}
