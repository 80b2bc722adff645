//! From energies of kernels to the energy of an instruction.

use serde::Serialize;

use crate::numerics::line::{Moments, Slope};

/// One run of a kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// Turns of its loop, over all threads.
    pub turns: f64,
    /// Its energy in joules.
    pub joules: f64,
    /// Clock cycles of one thread.
    pub cycles: f64,
    /// Turns of one thread's loop.
    pub thread_turns: f64,
}

/// What was spent between two stretches of idling beyond idling, from readings of the energy so far
/// (seconds, joules) in both: two parallel lines, and the distance between them.
///
/// A sensor that averages, lags or stands still between refreshes shows energy late. In idling it is
/// late by the same joules before and after, which drop out. `None` with fewer than four readings in
/// either stretch. The idle level must be the same in both.
pub fn offset(before: &[(f64, f64)], after: &[(f64, f64)]) -> Option<f64> {
    if before.len() < 4 || after.len() < 4 {
        return None;
    }
    let (first, last) = (Moments::of(before), Moments::of(after));
    let idle = (first.xy + last.xy) / (first.xx + last.xx);
    idle.is_finite().then_some(last.mean.1 - first.mean.1 - idle * (last.mean.0 - first.mean.0))
}

/// The energy of one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct InstructionEnergy {
    /// Microjoules per instruction and thread.
    pub microjoules: f64,
    /// Standard error of the same.
    pub std_error: f64,
    /// Clock cycles that each copy adds to a thread.
    pub cycles: f64,
    /// The less straight of both energies over length.
    pub r2: f64,
    /// The assembler left copies out: they take no time.
    pub eliminated: bool,
}

/// Standard errors from which on a figure is taken to be more than none.
const SEEN: f64 = 2.0;

impl InstructionEnergy {
    /// Nothing says that it takes any energy.
    pub fn is_lost_in_its_error(&self) -> bool {
        // Of three lengths on one line an error may come out as zero, but then the figure is more.
        self.microjoules <= SEEN * self.std_error
    }
}

/// Cycles below which a copy cannot have run: even independent instructions issue once a cycle.
const FEWEST_CYCLES: f64 = 0.5;

/// The difference between the loop with and the loop without the instruction, per copy: slopes over at
/// least three lengths, so that whatever a launch costs drops out.
pub fn difference(with: &[Run], without: &[Run], copies: u32) -> Option<InstructionEnergy> {
    let slope = |runs: &[Run], point: fn(&Run) -> (f64, f64)| {
        Slope::through(&runs.iter().map(point).collect::<Vec<_>>())
    };
    let energy = |runs| slope(runs, |run| (run.turns, run.joules));
    let time = |runs| slope(runs, |run| (run.thread_turns, run.cycles));
    let (with_energy, without_energy) = (energy(with)?, energy(without)?);
    let copies = f64::from(copies);
    let cycles = (time(with)?.value - time(without)?.value) / copies;
    Some(InstructionEnergy {
        microjoules: (with_energy.value - without_energy.value) / copies * 1e6,
        std_error: with_energy.std_error.hypot(without_energy.std_error) / copies * 1e6,
        cycles,
        r2: with_energy.r_squared.min(without_energy.r_squared),
        eliminated: cycles < FEWEST_CYCLES,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(joules_per_turn: f64, cycles_per_turn: f64) -> Vec<Run> {
        [1e6, 2e6, 3e6]
            .map(|turns| Run {
                turns,
                joules: 0.7 + turns * joules_per_turn,
                cycles: 500.0 + turns * cycles_per_turn,
                thread_turns: turns,
            })
            .to_vec()
    }

    #[test]
    fn what_a_launch_costs_drops_out() {
        let found = difference(&runs(12e-6, 60.0), &runs(2e-6, 20.0), 10).expect("three lengths");
        assert!((found.microjoules - 1.0).abs() < 1e-9 && found.std_error < 1e-6);
        assert!((found.cycles - 4.0).abs() < 1e-9 && !found.eliminated);
    }

    #[test]
    fn what_is_not_twice_its_error_is_not_seen() {
        let found = |microjoules, std_error| {
            let energy =
                InstructionEnergy { microjoules, std_error, cycles: 4.0, r2: 1.0, eliminated: false };
            energy.is_lost_in_its_error()
        };
        assert!(!found(2.01, 1.0) && found(1.99, 1.0) && found(-5.0, 1.0) && !found(1.0, 0.0));
    }

    #[test]
    fn copies_that_take_no_time_were_eliminated() {
        assert!(difference(&runs(2.1e-6, 20.0), &runs(2e-6, 20.0), 10).expect("three lengths").eliminated);
        assert_eq!(difference(&runs(1.0, 1.0)[..2], &runs(1.0, 1.0), 10), None);
    }

    #[test]
    fn energy_beyond_idling_is_the_distance_of_two_parallel_lines() {
        // 50 W idle read 20 ms late, 7 J on top between 1 s and 2 s.
        let late = |t: f64, extra: f64| (t, 50.0 * (t - 0.02) + extra);
        let before: Vec<_> = (0..10).map(|i| late(f64::from(i) * 0.1, 0.0)).collect();
        let after: Vec<_> = (0..10).map(|i| late(2.1 + f64::from(i) * 0.1, 7.0)).collect();
        assert!((offset(&before, &after).expect("enough") - 7.0).abs() < 1e-9);
        assert_eq!(offset(&before[..3], &after), None);
    }
    #[test]
    fn errors_of_both_loops_count() {
        // Points 1, 2, 4 over 1, 2, 3: a slope of 1.5 with an error of 1/sqrt(12), and 27/28 of the variance.
        let rough = |scale: f64| -> Vec<Run> {
            let run = |(turns, joules)| Run {
                turns,
                joules: scale * joules,
                cycles: 6.0 * turns,
                thread_turns: turns,
            };
            [(1.0, 1.0), (2.0, 2.0), (3.0, 4.0)].map(run).to_vec()
        };
        let straight: Vec<Run> =
            runs(0.5, 1.0).iter().map(|run| Run { turns: run.turns / 1e6, ..*run }).collect();
        let found = difference(&rough(1.0), &straight, 10).expect("three lengths");
        let error = 1e6 / 12f64.sqrt() / 10.0;
        assert!((found.std_error / error - 1.0).abs() < 1e-6, "{found:?} {error}");
        assert!((found.r2 - 27.0 / 28.0).abs() < 1e-9, "{found:?}");
        assert!((difference(&straight, &rough(1.0), 10).expect("three").r2 - 27.0 / 28.0).abs() < 1e-9);
        let found = difference(&rough(4.0), &rough(3.0), 10).expect("three lengths");
        assert!((found.std_error / (5.0 * error) - 1.0).abs() < 1e-6, "{found:?}");
        assert!((found.microjoules / 1.5e5 - 1.0).abs() < 1e-9 && found.cycles.abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn half_a_cycle_is_enough_and_four_readings_are() {
        let eliminated =
            |with: f64| difference(&runs(1.0, with), &runs(1.0, 1.0), 2).expect("three").eliminated;
        assert!(eliminated(1.98) && !eliminated(2.02));
        let line = |from: f64| {
            (0..4).map(|i| (from + f64::from(i), 10.0 * (from + f64::from(i)))).collect::<Vec<_>>()
        };
        assert!(offset(&line(0.0), &line(9.0)).is_some_and(|joules| joules.abs() < 1e-9));
        assert_eq!((offset(&line(0.0)[1..], &line(9.0)), offset(&line(0.0), &line(9.0)[1..])), (None, None));
        // Readings of one moment have no slope.
        assert_eq!(offset(&[(1.0, 5.0); 4], &[(1.0, 5.0); 4]), None);
    }
}
