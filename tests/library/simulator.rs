//! The simulator itself: its recordings hold what its truth says.

use eprof::numerics::random::Random;
use eprof::recording::energy::EnergyReading;
use eprof::recording::metadata::{CPU_TIMES_EVENT, METADATA_EVENT};
use eprof::recording::{Recording, energy};
use eprof::units::{Joules, Nanoseconds};
use eprof_testbed::simulate::alternating::{Alternation, scenario};
use eprof_testbed::simulate::scenario::Sampling;
use eprof_testbed::simulate::{Truth, at, function_at, simulate};
use perf_data::record::Record;
use proptest::prelude::*;

/// Small enough to look at every record.
fn short() -> Alternation {
    Alternation {
        duration: Nanoseconds::from_millis(500),
        joules_per_sample: Joules::from_joules(0.01),
        ..Alternation::default()
    }
}

fn play(alternation: &Alternation) -> (Recording, Truth) {
    let simulation = simulate(&scenario(alternation)).expect("a scenario that fits together");
    (Recording::from_bytes(simulation.recording).expect("a recording"), simulation.truth)
}

/// Counts by kind of record: samples of events, readings, losses, throttlings.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    events: Vec<u64>,
    readings: usize,
    last_energy: Vec<f64>,
    lost: u64,
    throttled: usize,
    functions: Vec<u64>,
    pids: std::collections::BTreeSet<u32>,
    cpus: std::collections::BTreeSet<u32>,
}

fn count(recording: &Recording) -> Counts {
    let domains = recording.metadata().expect("metadata").domains.len();
    let mut counts = Counts {
        events: vec![0; 5],
        last_energy: vec![0.0; domains],
        functions: vec![0; 6],
        ..Counts::default()
    };
    let mut records = recording.records();
    while let Some((_, context, record)) = records.next().expect("an undamaged recording") {
        match record {
            Record::Lost { count } => counts.lost += count,
            Record::Throttle(true) => counts.throttled += 1,
            Record::Sample(sample) => {
                let event = context.event.expect("an event").0 as usize;
                let name = &recording.events()[event].name;
                if name == METADATA_EVENT || name == CPU_TIMES_EVENT {
                    continue;
                }
                if energy::domain_of_event(name).is_some() {
                    let reading = EnergyReading::from_bytes(sample.raw).expect("a reading");
                    counts.last_energy[event - 7] = reading.energy.as_joules();
                    counts.readings += 1;
                    continue;
                }
                counts.events[event] += sample.period.expect("a period");
                let function = function_at(sample.ip.expect("an address") - 0x40_0000).expect("a function");
                counts.functions[function] += 1;
                counts.pids.extend(context.pid);
                counts.cpus.extend(context.cpu);
            }
            _ => {}
        }
    }
    counts
}

#[test]
fn the_same_seed_writes_the_same_bytes() {
    let bytes = |seed| simulate(&scenario(&Alternation { seed, ..short() })).expect("fits").recording;
    assert_eq!(bytes(3), bytes(3));
    assert_ne!(bytes(3), bytes(4));
}

#[test]
fn counters_and_meters_tell_the_truth() {
    let alternation = short();
    let (recording, truth) = play(&alternation);
    let counts = count(&recording);
    // Every event's count: rate times time, within one period per CPU and the steps of skid.
    let scenario = scenario(&alternation);
    for (event, about) in scenario.events.iter().enumerate() {
        let expected: f64 = (truth.functions.iter().zip(&scenario.functions))
            .map(|(truth, function)| truth.cpu_time.as_secs_f64() * function.rates[event])
            .sum();
        let counted = counts.events[event] as f64;
        let slack = about.period as f64 * 8.0;
        assert!((counted - expected).abs() < slack, "{}: {counted} of {expected}", about.name);
    }
    // Every domain's last reading: the true energy, but for the last millisecond.
    for (domain, energy) in counts.last_energy.iter().enumerate() {
        let total = truth.total(domain).as_joules();
        let watts = total / 0.5;
        assert!((total - energy).abs() < 0.0012 * watts + 1e-4, "{domain}: {energy} of {total}");
    }
    assert!(counts.readings >= 3 * 48);
    assert_eq!((counts.lost, counts.throttled), (0, 0));
}

#[test]
fn cores_and_functions_add_up() {
    let alternation = Alternation {
        packages: 2,
        busy: 12,
        others: 3,
        migrate_every: Some(Nanoseconds::from_millis(70)),
        ..short()
    };
    let (recording, truth) = play(&alternation);
    for domain in 0..6 {
        let by_cpu: Joules =
            truth.by_cpu[domain / 3 * 8..][..8].iter().map(|joules| joules[domain % 3]).sum();
        let dynamic = truth.total(domain) - truth.static_energy[domain];
        assert!((by_cpu - dynamic).abs() < Joules::from_joules(1e-9), "{domain}");
    }
    assert!(truth.others[0] > Joules::ZERO);
    let counts = count(&recording);
    assert_eq!(counts.pids.len(), 2);
    // Twelve threads that move on every 70 ms reach all sixteen CPUs in half a second.
    assert_eq!(counts.cpus.len(), 16);
}

#[test]
fn without_the_right_to_see_others_only_the_program_is_sampled() {
    let sampling = Sampling { system_wide: false, ..Sampling::default() };
    let (recording, truth) = play(&Alternation { others: 8, sampling, ..short() });
    assert_eq!(count(&recording).pids.len(), 1);
    assert!(truth.others[0] > Joules::ZERO);
    assert!(!recording.metadata().expect("metadata").system_wide_samples);
}

#[test]
fn lost_records_are_counted_and_their_share_is_right() {
    let sampling = Sampling { lost_share: 0.1, ..Sampling::default() };
    let alternation = Alternation { sampling, joules_per_sample: Joules::from_joules(0.001), ..short() };
    let (recording, _) = play(&alternation);
    let counts = count(&recording);
    let samples: u64 = counts.functions.iter().sum();
    let share = counts.lost as f64 / (counts.lost + samples) as f64;
    assert!((share - 0.1).abs() < 0.03, "{share}");
}

#[test]
fn events_that_come_too_often_are_throttled() {
    let sampling = Sampling { most_per_tick: Some(2), ..Sampling::default() };
    let alternation = Alternation { sampling, joules_per_sample: Joules::from_joules(0.001), ..short() };
    let (recording, truth) = play(&alternation);
    let counts = count(&recording);
    assert!(counts.throttled > 100);
    let cycles = truth.functions.iter().map(|f| f.cpu_time.as_secs_f64() * 3e9).sum::<f64>();
    assert!((counts.events[0] as f64) < 0.9 * cycles);
}

#[test]
fn many_cores_can_be_simulated() {
    let alternation = Alternation {
        packages: 2,
        cores_per_package: 128,
        busy: 256,
        duration: Nanoseconds::from_millis(100),
        ..short()
    };
    let (recording, truth) = play(&alternation);
    assert_eq!(count(&recording).cpus.len(), 256);
    assert!((truth.functions.iter().map(|f| f.cpu_time.as_secs_f64()).sum::<f64>() - 25.6).abs() < 1e-6);
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let mut broken = scenario(&short());
    broken.functions[0].rates.pop();
    let error = simulate(&broken).expect_err("a rate is missing");
    assert!(error.to_string().contains("a rate for each event"), "{error}");
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let numbers = |seed| {
        let mut random = Random::seeded(seed);
        (0..5).map(|_| random.uniform()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(7), numbers(7));
    assert_ne!(numbers(7), numbers(8));
}

#[test]
fn means_are_right() {
    let mut random = Random::seeded(1).part(3);
    let n = 100_000;
    let uniform: f64 = (0..n).map(|_| random.uniform()).sum::<f64>() / f64::from(n);
    let exponential: f64 = (0..n).map(|_| random.exponential(4.0)).sum::<f64>() / f64::from(n);
    assert!((uniform - 0.5).abs() < 0.005);
    assert!((exponential - 4.0).abs() < 0.05);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The last readings are the true energies, but for what came after the counters' last move and for one
    /// step of them; and the truth's curves end at its sums.
    #[test]
    fn readings_add_up_to_the_truth(
        seed: u64,
        packages in 1u32..3,
        cores_per_package in 1u32..9,
        busy_share in 0.0f64..1.0,
        others in 0u32..4,
        turn in 100_000u64..20_000_000,
        migrate in prop::option::of(1u64..40),
    ) {
        let cpus = packages * cores_per_package;
        let alternation = Alternation {
            seed,
            packages,
            cores_per_package,
            busy: ((f64::from(cpus) * busy_share) as u32).max(1),
            others,
            turn: Nanoseconds::from_nanos(turn),
            migrate_every: migrate.map(Nanoseconds::from_millis),
            duration: Nanoseconds::from_millis(60),
            joules_per_sample: Joules::from_joules(0.02),
            ..Alternation::default()
        };
        let (recording, truth) = play(&alternation);
        let (counts, scenario) = (count(&recording), scenario(&alternation));
        let end = at(scenario.duration.as_nanos());
        for (domain, energy) in counts.last_energy.iter().enumerate() {
            let kind = domain % scenario.domains.len();
            let most = scenario.functions.iter().map(|function| function.watts[kind]).fold(0.0, f64::max);
            let watts = scenario.domains[kind].static_power.as_watts() + most * f64::from(cores_per_package);
            let slack = watts * 1.1e-3 + scenario.meter.resolution.as_joules();
            let total = truth.total(domain).as_joules();
            prop_assert!((-1e-9..=slack).contains(&(total - energy)), "{domain}: {energy} of {total}");
            prop_assert!((truth.energy_at(domain, end).as_joules() - total).abs() < 1e-6 * total);
        }
    }
}
