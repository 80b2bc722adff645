use super::*;
use crate::gpu::launches::share;
use crate::numerics::random::Random;

const IDLE: f64 = 120.0;
/// Beyond idling, as an H100 drew for arithmetic, for memory and for waiting.
const WATTS: [f64; 3] = [279.0, 241.0, 79.0];

fn at(seconds: f64) -> Timestamp {
    Timestamp::from_nanos((10e9 + seconds * 1e9) as u64)
}

/// How a counter comes to its joules, which the fit is not told. It moves every 100.2 ms, up to 1 ms early or late, and
/// shows what was drawn until 12 ms before.
#[derive(Debug, Clone, Copy)]
struct Meter {
    /// Time constant of what it sees of power.
    smear: f64,
    /// It averages as long.
    window: f64,
    /// It looks at these times only, and takes power to have been the same since the last one.
    looks: Option<f64>,
}

const WHOLE: Meter = Meter { smear: 0.0, window: 0.0, looks: None };

/// The way of a simulation from its loads to readings: power in steps of half a millisecond.
struct Machine {
    power: Vec<f64>,
    launches: Vec<Outstanding>,
    spent: [f64; 3],
}

const STEP: f64 = 0.000_5;

impl Machine {
    /// Turns of three kernels from 1 s on, each about as long as `turn` says. What they draw grows by 2 % meanwhile, as
    /// of a card that warms.
    fn new(watts: [f64; 3], turn: f64, length: f64, random: &mut Random) -> Self {
        let steps = ((length + 4.0) / STEP) as usize;
        let mut machine = Self { power: vec![IDLE; steps], launches: Vec::new(), spent: [0.0; 3] };
        let mut time = 1.0;
        while time < 1.0 + length {
            for (owner, watts) in watts.iter().enumerate() {
                let longer = [1.0, 1.13, 1.01][owner];
                let end = time + (turn * longer * (1.0 + 0.02 * random.symmetric()) / STEP).round() * STEP;
                let (from, to) = ((time / STEP).round() as usize, (end / STEP).round() as usize);
                for power in machine.power.iter_mut().take(to).skip(from) {
                    let now = watts * (1.0 + 0.02 * (time / length - 0.5));
                    *power += now;
                    machine.spent[owner] += now * STEP;
                }
                let (start, end_at) = (at(time), at(end));
                machine.launches.push(Outstanding { start, end: end_at, owner: owner as u32, gpu: None });
                time = end;
            }
        }
        machine
    }

    /// Joules until each step, as the meter sees them.
    fn joules(&self, meter: Meter) -> Vec<f64> {
        let mut seen = IDLE;
        let keep = if meter.smear > 0.0 { (-STEP / meter.smear).exp() } else { 0.0 };
        let smeared: Vec<f64> = self
            .power
            .iter()
            .map(|power| {
                seen = keep * seen + (1.0 - keep) * power;
                seen
            })
            .collect();
        let window = ((meter.window / STEP) as usize).max(1);
        let look = meter.looks.map_or(1, |looks| (looks / STEP) as usize);
        let (mut sum, mut all, mut now) = (IDLE * window as f64, 0.0, IDLE);
        let mut joules = Vec::with_capacity(smeared.len());
        for (step, power) in smeared.iter().enumerate() {
            sum += power - step.checked_sub(window).map_or(IDLE, |before| smeared[before]);
            if step % look == 0 {
                now = sum / window as f64;
            }
            all += now * STEP;
            joules.push(all);
        }
        joules
    }

    /// Polls every 50 ms or so.
    fn readings(&self, meter: Meter, random: &mut Random) -> Vec<(Timestamp, Joules)> {
        let joules = self.joules(meter);
        let length = self.power.len() as f64 * STEP;
        let until = |seconds: f64| joules[((seconds / STEP) as usize).min(joules.len() - 1)];
        let phase = 0.1 * random.uniform();
        let moves: Vec<(f64, f64)> = (1..(length / 0.1002) as usize)
            .map(|number| phase + 0.1002 * number as f64 + 0.001 * random.symmetric())
            .map(|moves| (moves, until((moves - 0.012).max(0.0))))
            .collect();
        let (mut next, mut shown, mut time) = (0, 0.0, 0.05);
        let mut readings = Vec::new();
        while time < length - 0.2 {
            while next < moves.len() && moves[next].0 <= time {
                shown = moves[next].1;
                next += 1;
            }
            readings.push((at(time), Joules::from_joules(shown)));
            time += 0.050_2 + 0.003 * random.uniform();
        }
        readings
    }
}

/// What shares say of each of three kernels, and what they spent.
fn shared(meter: Meter, watts: [f64; 3], turn: f64, length: f64, seed: u64) -> [(f64, f64, f64); 3] {
    let mut random = Random::seeded(seed);
    let machine = Machine::new(watts, turn, length, &mut random);
    let readings = machine.readings(meter, &mut random);
    let shares = share(&readings, &machine.launches, Some(Nanoseconds::from_millis(100)));
    let all: f64 =
        shares.by_owner.values().map(|own| own.joules.as_joules()).sum::<f64>() + shares.idle.as_joules();
    let counted = readings[readings.len() - 1].1 - readings[0].1;
    assert!((all - counted.as_joules()).abs() < 1e-6, "all of it is somewhere: {all}");
    [0, 1, 2].map(|owner| {
        let own = &shares.by_owner[&(owner as u32)];
        (own.joules.as_joules(), own.variance.sqrt(), machine.spent[owner])
    })
}

#[track_caller]
fn assert_shares(turn: f64, length: f64, within: f64) {
    for (found, error, truth) in shared(WHOLE, WATTS, turn, length, 7) {
        println!("turns of {turn} s: {found:.1} ± {error:.1} J of {truth:.1}");
        assert!((found / truth - 1.0).abs() < within, "{found} J of {truth}");
        assert!((found - truth).abs() < 3.0 * error + 0.03 * truth, "{found} ± {error} J of {truth}");
    }
}

/// Whatever the meter does to what it sees, bars hold: of kernels of any watts, in turns longer and shorter than a
/// refresh, by counters that smear, average, or look now and then.
#[test]
fn bars_hold_however_a_meter_comes_to_its_joules() {
    let meters = [
        WHOLE,
        Meter { smear: 0.015, ..WHOLE },
        Meter { smear: 0.03, ..WHOLE },
        Meter { window: 0.05, ..WHOLE },
        Meter { window: 0.016, looks: Some(0.02), ..WHOLE },
        Meter { smear: 0.015, looks: Some(0.025), ..WHOLE },
        Meter { smear: 0.006, looks: Some(0.01), ..WHOLE },
    ];
    let (mut all, mut all_held) = (0, 0);
    for turn in [0.002, 0.005, 0.02, 0.035, 0.05, 0.1, 0.2, 0.5] {
        let (mut rows, mut held, mut worst, mut error_sum, mut bar_sum) = (0, 0, 0.0f64, 0.0, 0.0);
        for (number, meter) in meters.iter().enumerate() {
            for seed in 0..1 {
                let mut random = Random::seeded(31 * seed + number as u64);
                let watts = [0; 3].map(|_| 200.0 * (random.symmetric() + random.symmetric() * 0.3).exp());
                for (found, error, truth) in shared(*meter, watts, turn, 8.0, 100 + seed) {
                    // A kernel's own watts drift by a hundredth.
                    let off = (found - truth).abs() / (1.96 * error + 0.01 * truth);
                    rows += 1;
                    held += u32::from(off <= 1.0);
                    worst = worst.max(off);
                    error_sum += (found / truth - 1.0).abs();
                    bar_sum += error / truth;
                }
            }
        }
        let mean = |sum: f64| 100.0 * sum / f64::from(rows);
        println!(
            "turns of {:3.0} ms: {:.1} % off, bars ± {:.1} %, {held} of {rows} hold, at worst {worst:.1} times the bar",
            turn * 1e3,
            mean(error_sum),
            mean(bar_sum)
        );
        (all, all_held) = (all + rows, all_held + held);
    }
    println!("{all_held} of {all}");
    assert!(f64::from(all_held) >= 0.93 * f64::from(all), "{all_held} of {all}");
}

/// By time alone each would have 200 W: the third 2.5 times its own.
#[test]
fn kernels_that_take_turns_within_a_refresh_get_their_own_watts() {
    assert_shares(0.05, 12.0, 0.15);
    assert_shares(0.5, 6.0, 0.05);
}

/// Turns of 5 ms: what can be told of them depends on chance, and bars hold.
#[test]
fn turns_of_a_twentieth_of_a_refresh_have_wide_bars() {
    assert_shares(0.005, 20.0, 2.0);
}

/// Work that is always the same mixture tells nothing: all have the mean, and the bars say how little that is.
#[test]
fn what_never_differs_is_doubtful() {
    let mut random = Random::seeded(7);
    let machine = Machine::new(WATTS, 0.05, 6.0, &mut random);
    let readings = machine.readings(WHOLE, &mut random);
    let mut launches = machine.launches;
    for launch in &mut launches {
        launch.owner = 0;
    }
    let twice: Vec<Outstanding> =
        launches.iter().flat_map(|launch| [*launch, Outstanding { owner: 1, ..*launch }]).collect();
    let shares = share(&readings, &twice, Some(Nanoseconds::from_millis(100)));
    let [first, second] = [0, 1].map(|owner| shares.by_owner[&owner]);
    assert!((first.joules / second.joules - 1.0).abs() < 1e-6);
    let error = first.variance.sqrt() / first.joules.as_joules();
    // Two that differ by a half each, of which only the sum is known: 0.5 √(2 · 0.5²).
    assert!((error - 0.354).abs() < 0.01, "{error}");
}

#[test]
fn a_meter_without_a_clock_is_not_fitted() {
    let step = |start: f64, end: f64| SeenStep {
        start: at(start),
        end: at(end),
        unchanged: at(end - 0.004),
        energy: Joules::from_joules(10.0),
    };
    let mut time = 0.0;
    let steps: Vec<SeenStep> = (0..40)
        .map(|number| {
            let next = time + [0.02, 0.19, 0.02, 0.17][number % 4];
            let step = step(time, next);
            time = next;
            step
        })
        .collect();
    let launches: Vec<Outstanding> = (0..2)
        .map(|owner| Outstanding { start: at(0.5 * f64::from(owner)), end: at(2.0), owner, gpu: None })
        .collect();
    let fit = |steps: &[SeenStep], refresh: u64| {
        KernelWatts::fit(steps, &launches, Watts::ZERO, Nanoseconds::from_millis(refresh))
    };
    assert!(fit(&steps, 100).is_none());
    let regular: Vec<SeenStep> =
        (0..40).map(|number| step(0.1 * f64::from(number), 0.1 * f64::from(number + 1))).collect();
    assert!(fit(&regular, 100).is_some());
    assert!(fit(&regular, 130).is_none(), "another period than it is said to have");
    assert!(fit(&regular[..8], 100).is_none(), "too few");
}

/// Halves of 20 J, of turns that are a tenth more or less: each could be off by sqrt(2) x 10 J x 0.1 x 0.5. Alone nothing is.
#[test]
fn what_turns_differ_by_is_in_doubt_where_two_share_a_step() {
    let step = |start: f64, end: f64| SeenStep {
        start: at(start),
        end: at(end),
        unchanged: at(end - 0.001),
        energy: Joules::from_joules(1.0),
    };
    let launches: Vec<Outstanding> = (0..2)
        .map(|owner| Outstanding { start: at(0.5 * f64::from(owner)), end: at(2.0), owner, gpu: None })
        .collect();
    let regular: Vec<SeenStep> =
        (0..40).map(|number| step(0.1 * f64::from(number), 0.1 * f64::from(number + 1))).collect();
    let fit = KernelWatts::fit(&regular, &launches, Watts::ZERO, Nanoseconds::from_millis(100));
    let fit = KernelWatts { from_turn_to_turn: 0.1, ..fit.expect("a fit") };
    let of = |part: f64, parts: &[f64]| fit.variance_of_turn(20.0, part, parts.iter().copied()).sqrt();
    assert!((of(0.5, &[0.5, 0.5]) - 2f64.sqrt() * 0.5).abs() < 1e-12);
    assert_eq!(of(1.0, &[1.0]), 0.0);
    // A fifth of it, beside two of two fifths: 20 J x 0.2 x 0.1 x sqrt(0.64 + 0.32).
    assert!((of(0.2, &[0.4, 0.2, 0.4]) - 0.4 * 0.96f64.sqrt()).abs() < 1e-12);
}
