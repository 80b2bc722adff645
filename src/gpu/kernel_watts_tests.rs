use super::*;
use crate::gpu::launches::share;
use crate::numerics::random::Random;

const IDLE: f64 = 120.0;
/// Beyond idling, as an H100 drew for arithmetic, for memory and for waiting.
const WATTS: [f64; 3] = [279.0, 241.0, 79.0];

fn at(seconds: f64) -> Timestamp {
    Timestamp::from_nanos((10e9 + seconds * 1e9) as u64)
}

/// Turns of the three from 1 s on, each as long as `turn` says, and what a counter shows that moves every 100 ms as an
/// H100's does: seen 28 ms late and up to 2 ms irregularly, polled every 50 ms.
fn machine(turn: f64, length: f64) -> (Vec<(Timestamp, Joules)>, Vec<Outstanding>, [f64; 3]) {
    let mut random = Random::seeded(7);
    let (mut launches, mut spans, mut spent) = (Vec::new(), Vec::new(), [0.0; 3]);
    let mut time = 1.0;
    while time < 1.0 + length {
        for (owner, watts) in WATTS.iter().enumerate() {
            let end = time + turn * (1.0 + 0.02 * random.symmetric());
            launches.push(Outstanding { start: at(time), end: at(end), owner: owner as u32, gpu: None });
            spans.push((time, end, *watts));
            spent[owner] += watts * (end - time);
            time = end;
        }
    }
    let joules = |until: f64| {
        IDLE * until
            + spans.iter().map(|(start, end, watts)| watts * (until.min(*end) - start).max(0.0)).sum::<f64>()
    };
    let moves: Vec<(f64, f64)> = (1..=((length + 4.0) / 0.1) as usize)
        .map(|number| {
            let drawn = 0.1 * number as f64 + 0.001 * random.symmetric();
            (drawn + 0.028 + 0.002 * random.symmetric(), joules(drawn))
        })
        .collect();
    let readings = (0..((length + 4.0) / 0.05) as usize)
        .map(|poll| 0.05 * poll as f64 + 0.003 * random.uniform())
        .map(|time| {
            let shown = moves.iter().rev().find(|(seen, _)| *seen <= time).map_or(0.0, |(_, joules)| *joules);
            (at(time), Joules::from_joules(shown))
        })
        .collect();
    (readings, launches, spent)
}

#[track_caller]
fn assert_shares(turn: f64, length: f64, within: f64) {
    let (readings, launches, spent) = machine(turn, length);
    let shares = share(&readings, &launches, Some(Nanoseconds::from_millis(100)));
    for (owner, truth) in spent.iter().enumerate() {
        let own = &shares.by_owner[&(owner as u32)];
        let (found, error) = (own.joules.as_joules(), own.variance.sqrt());
        println!("turns of {turn} s, {owner}: {found:.1} ± {error:.1} J of {truth:.1}");
        assert!((found / truth - 1.0).abs() < within, "{found} J of {truth}");
        assert!((found - truth).abs() < 3.0 * error + 0.03 * truth, "{found} ± {error} J of {truth}");
    }
    let all: f64 =
        shares.by_owner.values().map(|own| own.joules.as_joules()).sum::<f64>() + shares.idle.as_joules();
    let counted = readings[readings.len() - 1].1 - readings[0].1;
    assert!((all - counted.as_joules()).abs() < 1e-6, "all of it is somewhere: {all}");
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
    let (readings, mut launches, _) = machine(0.05, 6.0);
    for launch in &mut launches {
        launch.owner = 0;
    }
    let twice: Vec<Outstanding> =
        launches.iter().flat_map(|launch| [*launch, Outstanding { owner: 1, ..*launch }]).collect();
    let shares = share(&readings, &twice, Some(Nanoseconds::from_millis(100)));
    let [first, second] = [0, 1].map(|owner| shares.by_owner[&owner]);
    assert!((first.joules / second.joules - 1.0).abs() < 1e-6);
    let error = first.variance.sqrt() / first.joules.as_joules();
    // Two that differ by a half each, and are smeared by 0.15 each: 0.5 √(2 (0.5² + 0.15²)).
    assert!((error - 0.369).abs() < 0.01, "{error}");
}

#[test]
fn a_meter_without_a_clock_is_not_fitted() {
    let step =
        |start: f64, end: f64| SeenStep { start: at(start), end: at(end), energy: Joules::from_joules(10.0) };
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
