//! A recording of a machine on which programs take turns, each of whose intervals was measured alone on a real one.

use eprof::hardware::{DomainKind, RestPower, Role};
use eprof::numerics::nnls::{self, Sign};
use eprof::power_model::model::{DomainModel, PowerModel, Scale};
use eprof::power_model::presets::Preset;
use eprof::units::{Joules, Nanoseconds, Watts};
use eprof_testbed::simulate::Scenario;
use eprof_testbed::simulate::effects::{Effects, Waits};
use eprof_testbed::simulate::paper;
use eprof_testbed::simulate::scenario::{Domain, Function, Meter, Queue, Sampling, Step, Task};
use nalgebra::DMatrix;

use super::traces::{Row, Trace};

/// Samples of cycles per second where all CPUs are busy.
const SAMPLES_PER_SECOND: f64 = 16_000.0;
/// What a CPU that waits does anyhow.
const LEAST_BUSY: f64 = 0.002;

/// The generic preset's events that the machine counted.
fn preset(trace: &Trace) -> PowerModel {
    let mut model = Preset::Generic.model();
    let kept: Vec<usize> = trace
        .roles
        .iter()
        .map(|role| {
            model.events.iter().position(|event| event.role == Some(*role)).expect("the generic one has all")
        })
        .collect();
    model.events = kept.iter().map(|&event| model.events[event].clone()).collect();
    for domain in model.domains.values_mut() {
        domain.joules_per_event = kept.iter().map(|&event| domain.joules_per_event[event]).collect();
    }
    model
}

/// Programs in turns of `turn`, one interval of each at a time, for so long. Each of a program's intervals is as likely to be
/// among those that are played.
pub fn interleaved(trace: &Trace, turn: Nanoseconds, duration: Nanoseconds, seed: u64) -> Scenario {
    let rounds = (duration.as_nanos() / turn.as_nanos()) as usize / trace.programs.len();
    let (mut functions, mut busy) = (Vec::new(), Vec::new());
    // By program, the functions of the intervals that are played.
    let mut played: Vec<Vec<usize>> = Vec::new();
    for (number, program) in trace.programs.iter().enumerate() {
        let count = program.rows.len().min(rounds.max(1));
        let rows = (0..count).map(|at| &program.rows[at * program.rows.len() / count]);
        played.push((functions.len()..functions.len() + count).collect());
        for row in rows {
            functions.push(Function { code: Some(number), ..function(trace, &program.name, row) });
            busy.push((row.rates[0] / trace.capacity).clamp(LEAST_BUSY, 1.0));
        }
    }
    let steps = (0..rounds.max(1)).flat_map(|round| {
        played
            .iter()
            .map(move |functions| Step { function: functions[round % functions.len()], length: turn })
    });
    let task = Task { recorded: true, steps: steps.collect(), repeat: true, jitter: 0.3 };
    let model = preset(trace);
    let cycles = model.event(Role::Clk, Default::default()).expect("cycles");
    let per_cycle = model.domain(DomainKind::Package).expect("a package").joules_per_event[cycles];
    let mut events = paper::events(
        &model,
        &[DomainKind::Package, DomainKind::Dram],
        Joules::from_joules(per_cycle * trace.capacity / SAMPLES_PER_SECOND),
    );
    // The recorder writes costs where a calibration knows them; of this machine nothing is known.
    events.iter_mut().for_each(|event| event.joules_per_event.clear());
    Scenario {
        seed,
        packages: 1,
        cores_per_package: 1,
        duration,
        domains: trace.domains.iter().zip(&trace.rest).map(|(kind, watts)| domain(*kind, *watts)).collect(),
        meter: Meter::default(),
        events,
        sampling: Sampling::default(),
        functions,
        queues: vec![Queue { slice: Nanoseconds::from_millis(4), tasks: vec![task] }],
        migrate_every: None,
        effects: Effects {
            waits: Some(Waits { busy, hold: Nanoseconds::from_nanos(500_000) }),
            ..Effects::default()
        },
    }
}

/// What the machine does in an interval, beyond rest. A meter that says less than at rest says rest.
fn function(trace: &Trace, program: &str, row: &Row) -> Function {
    let beyond = row.watts.iter().zip(&trace.rest).map(|(watts, rest)| (watts - rest).max(0.0));
    Function {
        name: program.to_owned(),
        code: None,
        rates: row.rates.clone(),
        watts: beyond.collect(),
        metered: None,
    }
}

/// Its power at rest was seen before the programs began, as the recorder does.
fn domain(kind: DomainKind, watts: f64) -> Domain {
    Domain {
        kind,
        static_power: Watts::from_watts(watts),
        static_power_known: false,
        rest: Some(RestPower { power: Watts::from_watts(watts), std_error: Watts::from_watts(0.01 * watts) }),
    }
}

/// The best that costs of the sampled events can do: none negative, fitted to the very intervals that are played.
pub fn best_model(trace: &Trace, scenario: &Scenario) -> PowerModel {
    let mut model = preset(trace);
    model.name = "best".to_owned();
    model.scale = Scale::Joules;
    let rows = scenario.functions.len();
    let columns = trace.roles.len();
    let design = DMatrix::from_fn(rows, columns, |row, column| scenario.functions[row].rates[column]);
    model.domains = trace
        .domains
        .iter()
        .enumerate()
        .map(|(at, kind)| {
            let watts = DMatrix::from_fn(rows, 1, |row, _| scenario.functions[row].watts[at]);
            let moment = design.tr_mul(&watts);
            let gram = design.tr_mul(&design);
            let signs = vec![Sign::NonNegative; columns];
            let costs = nnls::solve(&gram, moment.as_slice(), &signs, None).expect("columns that differ");
            let domain = DomainModel {
                static_power: Watts::from_watts(trace.rest[at]),
                static_std_error: None,
                joules_per_event: costs,
                sampled_by: Vec::new(),
                std_errors: Vec::new(),
                quality: None,
            };
            (*kind, domain)
        })
        .collect();
    model
}
