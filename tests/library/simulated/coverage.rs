//! Do the error bars hold the truth as often as they say?

use eprof::units::{Joules, Nanoseconds};
use eprof_testbed::simulate::alternating::{Alternation, scenario};
use eprof_testbed::simulate::scenario::Sampling;

use super::support::{QUICK, calibrated, functions, play, true_joules};

/// Half the width of a 95 % interval in standard errors.
pub const TWO_SIDED_95: f64 = 1.959_964;

/// Share of the intervals that hold the truth, and the mean of squared errors over variances, of runs that differ by chance.
fn coverage(runs: u64, like: &Alternation) -> (f64, f64) {
    let (mut held, mut count, mut squares) = (0, 0, 0.0);
    for seed in 0..runs {
        let scenario = scenario(&Alternation { seed: 1000 + seed, ..like.clone() });
        let (profile, truth) = play(&scenario, &calibrated());
        let (found, truth) = (functions(&profile, scenario.functions.len()), true_joules(&profile, &truth));
        // What was lost has a row of its own: the functions' joules say how the whole was divided among them.
        let all: f64 = truth.iter().sum();
        let seen = found.iter().map(|found| found.joules).sum::<f64>() / all;
        let seen = if like.sampling.lost_share > 0.0 { seen } else { 1.0 };
        for (found, truth) in found.iter().zip(truth) {
            let off = (found.joules - truth * seen) / found.std_error;
            held += u32::from(off.abs() <= TWO_SIDED_95);
            squares += off * off;
            count += 1;
        }
    }
    (f64::from(held) / f64::from(count), squares / f64::from(count))
}

#[test]
fn error_bars_hold_the_truth() {
    let runs = if QUICK { 10 } else { 200 };
    let regularities: &[f64] = if QUICK { &[0.95] } else { &[0.3, 0.6, 0.95] };
    let turns: &[u64] =
        if QUICK { &[200_000, 10_000_000] } else { &[200_000, 1_000_000, 10_000_000, 100_000_000] };
    println!("\n95 % error bars over {runs} runs of six functions: share that holds the truth");
    println!("       turn  of length  holds   mean squared error / variance");
    let mut cases = Vec::new();
    for &turn in turns {
        for &jitter in regularities {
            let like = Alternation {
                turn: Nanoseconds::from_nanos(turn),
                jitter,
                duration: Nanoseconds::from_millis(2_000),
                joules_per_sample: Joules::from_joules(0.02),
                ..Alternation::default()
            };
            let (share, squares) = coverage(runs, &like);
            let percent = [100.0 * jitter, 100.0 * share];
            println!(
                "{:8.1} ms  +-{:3.0} %  {:6.1} %  {squares:5.2}",
                turn as f64 / 1e6,
                percent[0],
                percent[1]
            );
            cases.push(share);
        }
    }
    let mean = cases.iter().sum::<f64>() / cases.len() as f64;
    println!("all: {:.1} %", 100.0 * mean);
    // Turns of nearly the same length may fall into step with the samples.
    assert!(cases.iter().all(|share| (0.85..).contains(share)), "{cases:?}");
    assert!(QUICK || (0.93..=0.97).contains(&mean), "{mean}");
}

/// Three tenths of the records are lost, in stretches of a tenth to twice a turn's length.
#[test]
fn error_bars_hold_what_was_lost() {
    let runs = if QUICK { 20 } else { 100 };
    println!("\n95 % error bars over {runs} runs of six functions, 30 % lost: share that holds the truth");
    println!("       turn    stretch   holds   mean squared error / variance");
    let mut cases = Vec::new();
    for (turn, stretch) in [(10, 60), (10, 600), (100, 60), (100, 600), (1000, 60), (1000, 600)] {
        let sampling = Sampling {
            lost_share: 0.3,
            lost_once_in: Nanoseconds::from_millis(stretch * 10 / 3),
            ..Sampling::default()
        };
        let (share, squares) = coverage(
            runs,
            &Alternation {
                turn: Nanoseconds::from_millis(turn),
                duration: Nanoseconds::from_millis(20_000),
                joules_per_sample: Joules::from_joules(0.02),
                sampling,
                ..Alternation::default()
            },
        );
        println!("{turn:8} ms {stretch:7} ms  {:6.1} %  {squares:5.2}", 100.0 * share);
        cases.push(share);
    }
    let mean = cases.iter().sum::<f64>() / cases.len() as f64;
    println!("all: {:.1} %", 100.0 * mean);
    assert!(cases.iter().all(|share| (0.91..).contains(share)), "{cases:?}");
    assert!((0.93..=0.985).contains(&mean), "{mean}");
}
