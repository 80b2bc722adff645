//! Machines that no linear model of the sampled events describes: how far off joules per function are, by default
//! options, beside a profile by time, and whether the error bars hold the truth.

use std::ops::Range;

use eprof::hardware::RestPower;
use eprof::units::{Joules, Nanoseconds, Watts};
use eprof_testbed::simulate::Scenario;
use eprof_testbed::simulate::alternating::{Alternation, scenario};
use eprof_testbed::simulate::effects::{
    DataDependence, Frequencies, FrequencyStep, Pauses, Siblings, Warming,
};

use super::support::{Errors, QUICK, functions, options, play, true_joules};

/// Recordings of each machine.
const RUNS: Range<u64> = if QUICK { 0..1 } else { 0..5 };
/// Half the width of a 95 % interval in standard errors.
const TWO_SIDED_95: f64 = 1.959_964;
/// Order of the simulated domains, and of the rate of misses among the events.
const PACKAGE: usize = 0;
const CORES: usize = 1;
const DRAM: usize = 2;
const MISSES: usize = 4;

/// A machine that is worse than its model.
struct Machine {
    name: &'static str,
    /// What makes it so.
    spoil: fn(&mut Scenario),
    /// Limits in percent: the mean and the worst error of a function, reached times 1.5.
    limits: [f64; 2],
    /// The share of 95 % bars that hold the truth, at least.
    holds: f64,
}

const fn milliseconds(number: u64) -> Nanoseconds {
    Nanoseconds::from_millis(number)
}

fn linear(_: &mut Scenario) {}

/// Wide vectors, dividers: what a function costs beyond its sampled events, -10 to +35 % of its power.
fn hidden_event(machine: &mut Scenario) {
    for (function, more) in machine.functions.iter_mut().zip([0.0, 0.35, -0.1, 0.15, 0.25, -0.05]) {
        for domain in [PACKAGE, CORES] {
            function.watts[domain] *= 1.0 + more;
        }
    }
}

fn data(machine: &mut Scenario) {
    machine.effects.data = Some(DataDependence { swing: 0.3, hold: milliseconds(35) });
}

fn warming(machine: &mut Scenario) {
    machine.effects.warming = Some(Warming { more: 0.3, over: milliseconds(10_000) });
}

const STEPS: [FrequencyStep; 3] = [
    FrequencyStep { frequency: 1.0, voltage: 1.0 },
    FrequencyStep { frequency: 0.7, voltage: 0.88 },
    FrequencyStep { frequency: 0.45, voltage: 0.78 },
];

fn frequency_by_core(machine: &mut Scenario) {
    let steps = STEPS.to_vec();
    machine.effects.frequency = Some(Frequencies { steps, hold: milliseconds(60), by_package: false });
}

fn throttling(machine: &mut Scenario) {
    let steps = STEPS[..2].to_vec();
    machine.effects.frequency = Some(Frequencies { steps, hold: milliseconds(1_500), by_package: true });
}

fn siblings(machine: &mut Scenario) {
    machine.effects.siblings = Some(Siblings { speed: 0.6, power: 0.68 });
    // Every other core has both of its threads at work.
    for cpu in [3, 7] {
        machine.queues[cpu].tasks.clear();
    }
}

/// Lines are written back as well, which no sampled event counts: up to as much again as misses cost.
fn writes(machine: &mut Scenario) {
    for (function, share) in machine.functions.iter_mut().zip([0.0, 0.0, 0.5, 0.2, 0.9, 0.4]) {
        function.watts[DRAM] *= 1.0 + share;
    }
}

/// The ring and the last cache draw by traffic, in the package alone.
fn uncore(machine: &mut Scenario) {
    for function in &mut machine.functions {
        function.watts[PACKAGE] += 9e-9 * function.rates[MISSES];
    }
}

fn pauses(machine: &mut Scenario) {
    machine.effects.pauses = Some(Pauses { share: 0.3, hold: milliseconds(40), asleep: 0.5 });
}

fn late_meter(machine: &mut Scenario) {
    machine.meter.refresh_jitter = Nanoseconds::from_nanos(900_000);
    machine.meter.missed_moves = 0.05;
}

/// The package's counter is a model that knows no memory; and memory has none.
fn modelled_meter(machine: &mut Scenario) {
    for (function, share) in machine.functions.iter_mut().zip([1.0, 0.9, 1.0, 1.0, 0.95, 0.8]) {
        let mut metered = function.watts.clone();
        metered[PACKAGE] *= share;
        metered[CORES] *= share;
        function.metered = Some(metered);
    }
}

fn all_at_once(machine: &mut Scenario) {
    hidden_event(machine);
    data(machine);
    warming(machine);
    frequency_by_core(machine);
    writes(machine);
    uncore(machine);
    late_meter(machine);
}

const MACHINES: [Machine; 13] = [
    machine("linear in its events", linear, [2.6, 6.6], 0.9),
    machine("a hidden event, -10 to +35 %", hidden_event, [15.0, 29.0], 0.85),
    machine("data decide +-30 % of power", data, [1.0, 2.0], 0.9),
    machine("static power warms up by 30 %", warming, [3.4, 8.8], 0.9),
    machine("each core changes its frequency", frequency_by_core, [3.7, 5.4], 0.9),
    machine("the package throttles", throttling, [1.9, 4.5], 0.9),
    machine("siblings share cores", siblings, [2.1, 5.3], 0.9),
    machine("memory: writes cost as well", writes, [2.6, 6.8], 0.9),
    machine("uncore draws by traffic", uncore, [3.5, 9.5], 0.9),
    machine("pauses, package sleeps", pauses, [6.0, 9.0], 0.9),
    machine("a late and irregular meter", late_meter, [2.7, 6.9], 0.9),
    // What a meter does not see nobody finds: bars hold by chance, 24 and 12 of 30, and 24 and 22 where intervals begin elsewhere.
    machine("a meter that is a model", modelled_meter, [8.7, 20.0], 0.35),
    machine("most of these at once", all_at_once, [22.0, 54.0], 0.9),
];

const fn machine(name: &'static str, spoil: fn(&mut Scenario), limits: [f64; 2], holds: f64) -> Machine {
    Machine { name, spoil, limits, holds }
}

/// Six functions in turns on eight CPUs; what the machine draws at rest was seen before they began.
fn spoilt(machine: &Machine, turn: Nanoseconds, seed: u64) -> Scenario {
    let mut scenario = scenario(&Alternation {
        seed: 500 + seed,
        turn,
        duration: milliseconds(if QUICK { 4_000 } else { 20_000 }),
        joules_per_sample: Joules::from_joules(0.01),
        static_power_known: false,
        ..Alternation::default()
    });
    for domain in &mut scenario.domains {
        let watts = domain.static_power;
        domain.rest = Some(RestPower { power: watts, std_error: Watts::from_watts(0.01 * watts.as_watts()) });
    }
    (machine.spoil)(&mut scenario);
    scenario
}

/// One row of the table.
struct Row {
    eprof: Errors,
    by_time: Errors,
    sums: [f64; 2],
    held: usize,
    bars: usize,
}

fn row(machine: &Machine, turn: Nanoseconds) -> Row {
    let (mut found, mut by_time, mut sums) = (Vec::new(), Vec::new(), [f64::INFINITY, 0.0]);
    let (mut held, mut bars) = (0, 0);
    for seed in RUNS {
        let scenario = spoilt(machine, turn, seed);
        let (profile, truth) = play(&scenario, &options());
        let truth = true_joules(&profile, &truth);
        let all: f64 = truth.iter().sum();
        let said = functions(&profile, scenario.functions.len());
        for (said, truth) in said.iter().zip(&truth) {
            found.push((said.joules, *truth));
            by_time.push((said.time_share * all, *truth));
            held += usize::from((said.joules - truth).abs() <= TWO_SIDED_95 * said.std_error);
            bars += 1;
        }
        let sum = said.iter().map(|said| said.joules).sum::<f64>() / all;
        sums = [sums[0].min(sum), sums[1].max(sum)];
    }
    Row { eprof: Errors::of(found), by_time: Errors::of(by_time), sums, held, bars }
}

#[test]
fn machines_that_no_linear_model_describes() {
    println!(
        "\n{:<34} {:>9} {:>8} {:>7} {:>18} {:>10} {:>10} {:>7}",
        "by default options", "turn", "mean", "worst", "sums", "bars hold", "time: mean", "worst"
    );
    let mut failed = Vec::new();
    for machine in &MACHINES {
        for turn in [milliseconds(1), milliseconds(10)] {
            let Row { eprof, by_time, sums, held, bars } = row(machine, turn);
            println!(
                "{:<34} {:>6.1} ms {:>6.1} % {:>5.1} % {:>6.1} to {:>5.1} % {held:>5} of {bars} {:>8.1} % {:>5.1} %",
                machine.name,
                turn.as_secs_f64() * 1e3,
                eprof.mean,
                eprof.worst,
                100.0 * sums[0],
                100.0 * sums[1],
                by_time.mean,
                by_time.worst,
            );
            // In short recordings chance alone takes more.
            let is_off = eprof.mean > machine.limits[0] || eprof.worst > machine.limits[1];
            let is_too_sure = (held as f64) < machine.holds * bars as f64;
            if eprof.mean >= by_time.mean || (!QUICK && (is_off || is_too_sure)) {
                failed.push(machine.name);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
