//! How the time is divided.

use std::time::Duration;

/// Seconds and rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// Rounds of visits of the idle machine and of each kernel.
    pub rounds: usize,
    /// The same at each set frequency.
    pub rounds_at_frequency: usize,
    /// Seconds of a visit.
    pub visit: f64,
    /// Seconds of a recording.
    pub recorded: f64,
}

/// Of the time, for kernels by themselves.
const ALONE: f64 = 0.4;
/// What a visit and a recording take beside: processes begin, caches warm up, reports are made.
const BESIDE_VISIT: f64 = 0.15;
const BESIDE_RECORDING: f64 = 1.0;
/// Shorter ones are the meters' resolution and nothing else.
const SHORTEST_VISIT: f64 = 0.25;
const SHORTEST_RECORDING: f64 = 1.0;
/// Fewer rounds tell nothing of the scatter.
const FEWEST_ROUNDS: usize = 3;
const MOST_ROUNDS: usize = 8;
/// A visit of the usual length; with more time there are more of them.
const USUAL_VISIT: f64 = 1.0;

impl Schedule {
    /// For so many kernels and recordings, some of them at frequencies of their own.
    pub fn new(time: Duration, kernels: usize, recordings: usize, frequencies: usize) -> Self {
        let time = time.as_secs_f64();
        let visits_of_a_round = (kernels + 1) as f64;
        let rounds_at_frequency = if frequencies > 0 { FEWEST_ROUNDS } else { 0 };
        let rounds = ALONE * time / (visits_of_a_round * (USUAL_VISIT + BESIDE_VISIT));
        let rounds = (rounds as usize).saturating_sub(frequencies * rounds_at_frequency);
        let rounds = rounds.clamp(FEWEST_ROUNDS, MOST_ROUNDS);
        let visits = (rounds + frequencies * rounds_at_frequency) as f64 * visits_of_a_round;
        let visit = (ALONE * time / visits - BESIDE_VISIT).max(SHORTEST_VISIT);
        let recorded = (1.0 - ALONE) * time / recordings.max(1) as f64 - BESIDE_RECORDING;
        Self { rounds, rounds_at_frequency, visit, recorded: recorded.max(SHORTEST_RECORDING) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_kept() {
        for (seconds, recordings, frequencies) in [(60, 4, 0), (120, 4, 0), (120, 8, 2), (600, 8, 2)] {
            let schedule = Schedule::new(Duration::from_secs(seconds), 5, recordings, frequencies);
            let rounds = schedule.rounds + frequencies * schedule.rounds_at_frequency;
            let taken = rounds as f64 * 6.0 * (schedule.visit + BESIDE_VISIT)
                + recordings as f64 * (schedule.recorded + BESIDE_RECORDING);
            assert!((taken / seconds as f64 - 1.0).abs() < 0.01, "{schedule:?} takes {taken} s");
            assert!(schedule.rounds >= 3 && schedule.recorded > 5.0, "{schedule:?}");
        }
    }

    #[test]
    fn little_time_still_measures_something() {
        let schedule = Schedule::new(Duration::from_secs(5), 5, 4, 0);
        let expected = Schedule { rounds: 3, rounds_at_frequency: 0, visit: 0.25, recorded: 1.0 };
        assert_eq!(schedule, expected);
    }
}
