//! Error bars hold the truth as often as they say, on a simulated machine of known truth.
//!
//! Three threads take turns on one CPU for random times. Two events are sampled by fixed periods, a meter
//! is read every 10 ms, and the model's coefficients are wrong by as much as their covariance says.

use eprof::attribute::{Attributor, Charge, EventWeights, Options, Quantum, Sharing};
use eprof::hardware::{DomainInfo, DomainKind, Method};
use eprof::numerics::random::Random;
use eprof::profile::{
    BucketReason, CallersId, Cell, Division, DomainDivision, DomainEnergy, ErrorTerms, EventTotals, Profile,
    RecordingId, SampleSequence, StackTable, Thread, ThreadIndex,
};
use eprof::report::{self, Grouping, Report};
use eprof::symbolize::Symbols;
use eprof::units::{Joules, Nanoseconds, Timestamp, Watts};

/// Joules of a cycle and of an instruction.
const COSTS: [f64; 2] = [0.4e-9, 0.5e-9];
/// How wrong the model's coefficients are, as a share of them.
const MODEL_ERROR: f64 = 0.05;
/// Cycles and instructions per nanosecond of each thread: 1.6, 2.7 and 4.2 W.
const RATES: [[f64; 2]; 3] = [[3.0, 0.8], [3.0, 3.0], [3.0, 6.0]];
/// Events between two samples: about a millisecond of each.
const PERIODS: [f64; 2] = [3e6, 3e6];
const STATIC_WATTS: f64 = 5.0;
const SECONDS: f64 = 4.0;
const READING_NS: u64 = 10_000_000;

/// From 0 to 1, never 0.
fn uniform(random: &mut Random) -> f64 {
    (random.bits() as f64 + 1.0) / 1.844_674_407_370_955_2e19
}

/// Box and Muller.
fn normal(random: &mut Random) -> f64 {
    (-2.0 * uniform(random).ln()).sqrt() * (std::f64::consts::TAU * uniform(random)).cos()
}

/// A sample: its end in nanoseconds, event and thread.
type Sample = (u64, usize, usize);

/// What happened: samples, readings of dynamic and static joules, and the joules of each thread.
struct Happened {
    samples: Vec<Sample>,
    readings: Vec<(u64, f64)>,
    truth: [f64; 3],
}

fn simulate(random: &mut Random, mean_turn_ns: f64) -> Happened {
    let mut happened = Happened { samples: Vec::new(), readings: vec![(0, 0.0)], truth: [0.0; 3] };
    let mut to_next = PERIODS.map(|period| period * uniform(random));
    let (mut now, mut thread, mut joules) = (0.0, 0usize, 0.0);
    while now < SECONDS * 1e9 {
        let turn = (-uniform(random).ln() * mean_turn_ns).min(SECONDS * 1e9 - now);
        let watts: f64 = (0..2).map(|event| COSTS[event] * RATES[thread][event]).sum::<f64>();
        for event in 0..2 {
            let rate = RATES[thread][event];
            let mut at = to_next[event] / rate;
            while at <= turn {
                happened.samples.push(((now + at) as u64, event, thread));
                at += PERIODS[event] / rate;
            }
            to_next[event] = (at - turn) * rate;
        }
        // Readings within the turn see the energy up to then.
        let mut next = happened.readings.len() as u64 * READING_NS;
        while (next as f64) <= now + turn {
            let so_far = joules + watts * (next as f64 - now);
            happened.readings.push((next, so_far + STATIC_WATTS * next as f64 * 1e-9));
            next += READING_NS;
        }
        joules += watts * turn;
        happened.truth[thread] += watts * turn;
        now += turn;
        thread = (thread + 1 + usize::from(uniform(random) < 0.5)) % 3;
    }
    happened.samples.sort_unstable();
    happened
}

fn package() -> DomainInfo {
    DomainInfo {
        package: Some(0),
        refresh: Some(Nanoseconds::from_millis(1)),
        ..DomainInfo::new("package-0", DomainKind::Package, "simulated", Method::Measured)
    }
}

/// The profile that a model of these coefficients makes of it.
fn profile(happened: &Happened, costs: [f64; 2]) -> Profile {
    let options = Options {
        bucket: Joules::from_joules(0.5),
        static_power: vec![Watts::from_watts(STATIC_WATTS)],
        rises: Vec::new(),
        divided_later: Vec::new(),
        horizon: Nanoseconds::from_millis(200),
        keep_buckets: false,
        sharing: Sharing::ByBucket,
        sensitivities: true,
    };
    let weights = EventWeights::new(2, 1, |event, _| costs[event]);
    let mut attributor = Attributor::new(&[package()], |_| Vec::new(), weights, options, true);
    let mut sequence = SampleSequence::default();
    let mut last = [0; 2];
    let mut readings = happened.readings.iter().peekable();
    let mut samples = [[0u64; 2]; 3];
    for &(end, event, thread) in &happened.samples {
        while let Some((time, joules)) = readings.next_if(|(time, _)| *time <= end) {
            attributor.reading(0, Timestamp::from_nanos(*time), Joules::from_joules(*joules));
        }
        let cell = (thread * 2 + event) as u32;
        attributor.quantum(Quantum {
            start: Timestamp::from_nanos(last[event]),
            end: Timestamp::from_nanos(end),
            cpu: Some(0),
            event: event as u32,
            count: PERIODS[event] as u64,
            running: Nanoseconds::ZERO,
            charge: Charge::Cell(cell),
        });
        sequence.push(event as u32, cell);
        samples[thread][event] += 1;
        last[event] = end;
    }
    readings.for_each(|(time, joules)| {
        attributor.reading(0, Timestamp::from_nanos(*time), Joules::from_joules(*joules));
    });
    let attribution = attributor.finish();
    let balance = attribution.balances[0];
    let mut stacks = StackTable::default();
    let stack = stacks.push(CallersId::NONE, None);
    let cell = |index: usize| Cell {
        stack,
        thread: ThreadIndex(index as u32 / 2),
        cpu: Some(0),
        event: index as u32 % 2,
        samples: samples[index / 2][index % 2],
        count: 1,
        time: Nanoseconds::ZERO,
    };
    let name = |index: u32| format!("thread-{index}");
    let covariance = |row: usize, column: usize| match (row == column, COSTS.get(row)) {
        (true, Some(cost)) => (cost * MODEL_ERROR).powi(2),
        _ => 0.0,
    };
    Profile {
        duration: Nanoseconds::from_secs_f64(SECONDS),
        domains: vec![DomainEnergy { info: package(), balance }],
        events: ["cycles", "instructions"]
            .map(|name| EventTotals { name: name.to_owned(), samples: 1, count: 1, ..EventTotals::default() })
            .to_vec(),
        stacks,
        threads: (0..3)
            .map(|tid| Thread {
                pid: 1,
                tid,
                name: name(tid),
                process_name: name(tid),
                recording: RecordingId(0),
                cgroup: None,
            })
            .collect(),
        cells: (0..6).map(cell).collect(),
        cell_joules: attribution.cell_joules,
        division: Some(Division {
            model: "simulated".to_owned(),
            source: String::new(),
            is_exact: true,
            left_out: vec![None; 2],
            domains: vec![Some(DomainDivision {
                joules_per_event: costs.to_vec(),
                std_errors: vec![0.0; 2],
                static_power: None,
                static_std_error: Watts::ZERO,
                static_rise: None,
                is_calibrated: false,
                explained: None,
                mean_error: 0.0,
                unexplained: None,
                believed_unexplained: 0.0,
                intervals: 0,
            })],
            bucket: Joules::from_joules(0.5),
            bucket_reason: BucketReason::Asked,
            static_is_spread: false,
            in_place_of_time: None,
            is_by_time: false,
        }),
        errors: Some(ErrorTerms {
            parameters: 3,
            sensitivities: attribution.sensitivities,
            covariances: vec![(0..9).map(|at| covariance(at / 3, at % 3)).collect()],
            sequence,
            ..ErrorTerms::default()
        }),
        ..Profile::default()
    }
}

/// How often the truth lies within 1.96 standard errors, and the root mean square of the error in
/// standard errors, over many runs with turns of this mean length.
fn coverage(mean_turn_ns: f64, seed: u64, model_error: f64) -> (f64, f64) {
    const RUNS: u64 = 60;
    let (mut held, mut square, mut cases) = (0, 0.0, 0);
    for run in 0..RUNS {
        let mut random = Random::seeded(seed.wrapping_mul(0x1234_5677).wrapping_add(run * 0x9_8765_4321));
        let happened = simulate(&mut random, mean_turn_ns);
        let costs = COSTS.map(|cost| cost * (1.0 + model_error * normal(&mut random)));
        let profile = profile(&happened, costs);
        let options = report::Options { by: Grouping::Thread, ..report::Options::default() };
        let report = Report::new(&profile, &Symbols::default(), &options).expect("a sound profile");
        for row in &report.rows {
            let thread: usize = row.name.as_str()["thread-".len()..].parse().expect("a number");
            let error = row.own.joules.as_joules() - happened.truth[thread];
            let in_bars = error / row.own.standard_error().as_joules();
            held += u32::from(in_bars.abs() <= 1.96);
            square += in_bars * in_bars;
            cases += 1;
        }
    }
    (f64::from(held) / f64::from(cases), (square / f64::from(cases)).sqrt())
}

#[test]
fn bars_of_95_percent_hold_the_truth_in_95_percent() {
    let turns = [0.1e6, 0.5e6, 2e6, 10e6, 50e6];
    let mut all = 0.0;
    for (at, mean_turn_ns) in turns.into_iter().enumerate() {
        let (held, spread) = coverage(mean_turn_ns, at as u64 + 1, MODEL_ERROR);
        println!(
            "turns of {:>5.1} ms: {:.1}% held, errors of {spread:.2} bars",
            mean_turn_ns * 1e-6,
            held * 100.0
        );
        assert!((0.88..=0.995).contains(&held), "turns of {mean_turn_ns} ns: {held}");
        all += held / turns.len() as f64;
    }
    println!("all: {:.1}%", all * 100.0);
    assert!((0.93..=0.97).contains(&all), "{all}");
}
