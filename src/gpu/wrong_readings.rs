//! Readings of a capacitor that no load explains. One value that is out of line takes the power that would have charged the
//! sensor to it far below nothing on one side and far above everything on the other: of a sensor that takes 60 times its
//! refresh to settle, 2 W too little are -120 W and +120 W, and whatever is sought by the height of the power finds only that.

use std::ops::Range;

use super::refresh::RefreshPeriod;
use super::sensor::charging_power;
use super::stretches::jitter;
use super::trace::{PowerReading, PowerTrace};
use crate::numerics::quantiles;
use crate::units::Nanoseconds;

/// Readings that a sensor with this lag cannot have shown beside those around them, whatever the GPU drew: the first of each
/// value, in time order.
#[derive(Debug, Clone, PartialEq)]
pub struct WrongReadings {
    /// A few, which were left out.
    pub left_out: Vec<PowerReading>,
    /// More than errors of a log are, or some without which those around them are as impossible: the sensor is another one.
    pub kept: Vec<PowerReading>,
}

/// At most so many values that follow each other are one error.
const LONGEST: usize = 6;
/// One of so many values may be wrong, and one of any few.
const ONE_OF: usize = 100;
/// Power below nothing by this many times its noise is no noise.
const BEYOND_NOISE: f64 = 8.0;

/// Polls that show one value.
#[derive(Debug, Clone, Copy)]
struct Shown {
    first: usize,
    /// One past its last poll.
    end: usize,
}

/// A trace of a sensor with this time constant without what is wrong in it, and what that is.
pub(super) fn left_out(
    trace: &PowerTrace,
    refresh: &RefreshPeriod,
    time_constant: Nanoseconds,
) -> (Option<PowerTrace>, Option<WrongReadings>) {
    let shown = values(trace);
    let Wrong { out_of_line, without_end } = Charge::of(trace, refresh, time_constant).wrong(&shown);
    if out_of_line.is_empty() && without_end.is_empty() {
        return (None, None);
    }
    let of = |wrong: &[usize]| wrong.iter().map(|at| trace.readings()[shown[*at].first]).collect();
    if out_of_line.len() > (shown.len() / ONE_OF).max(1) {
        let mut all = [out_of_line, without_end].concat();
        all.sort_unstable();
        return (None, Some(WrongReadings { left_out: Vec::new(), kept: of(&all) }));
    }
    let mut is_kept = vec![true; trace.readings().len()];
    out_of_line.iter().for_each(|at| is_kept[shown[*at].first..shown[*at].end].fill(false));
    let polls = trace.readings().iter().zip(is_kept);
    let kept = polls.filter_map(|(reading, kept)| kept.then_some(*reading)).collect();
    let wrong = WrongReadings { left_out: of(&out_of_line), kept: of(&without_end) };
    (Some(PowerTrace::new(kept)), Some(wrong))
}

/// Each change of the value begins another.
fn values(trace: &PowerTrace) -> Vec<Shown> {
    let readings = trace.readings();
    let same = readings.chunk_by(|a, b| a.power == b.power);
    same.scan(0, |end, polls| {
        let first = *end;
        *end += polls.len();
        Some(Shown { first, end: *end })
    })
    .collect()
}

/// Places among the values shown.
#[derive(Debug, Default)]
struct Wrong {
    /// Without these what lies around them is possible.
    out_of_line: Vec<usize>,
    /// Impossible beside the one before, whatever is left out.
    without_end: Vec<usize>,
}

/// What charges the sensor from one value to another.
#[derive(Debug, Clone, Copy)]
struct Charge<'t> {
    readings: &'t [PowerReading],
    period: f64,
    constant: f64,
    /// The lowest reading and the range of all.
    lowest: f64,
    range: f64,
    /// Standard deviation of a reading.
    noise: f64,
}

impl<'t> Charge<'t> {
    fn of(trace: &'t PowerTrace, refresh: &RefreshPeriod, time_constant: Nanoseconds) -> Self {
        let readings = trace.readings();
        let watts: Vec<f64> = readings.iter().map(|reading| reading.power.as_watts()).collect();
        let (low, high) = quantiles::range(watts.iter().copied());
        let noise = jitter(&watts);
        // What is out of line may be the lowest itself.
        let mut sorted = watts;
        sorted.sort_by(f64::total_cmp);
        let lowest = quantiles::quantile(&sorted, 1.0 / ONE_OF as f64).unwrap_or(low);
        Self {
            readings,
            period: refresh.period.as_secs_f64(),
            constant: time_constant.as_secs_f64(),
            lowest,
            range: high - low,
            noise,
        }
    }

    /// The share of a value that is left when the sensor shows the next one, at least. Nobody saw when it refreshed: to the
    /// first value after the last poll that showed another, to the next at most a period after the last poll that showed
    /// the first, and not after the first poll that shows the next.
    fn kept(&self, from: Shown, to: Shown) -> f64 {
        let seconds =
            |from: usize, to: usize| self.readings[to].time.since(self.readings[from].time).as_secs_f64();
        let since = seconds(from.first.saturating_sub(1), to.first)
            .min(seconds(from.end - 1, to.first) + self.period);
        (-since / self.constant).exp()
    }

    /// The power that charges the sensor from one value to the other, in watts, if it is possible: no GPU draws less than
    /// nothing. What lies below the lowest reading by less than the range of all may be a doubt of a refresh's time.
    fn possible(&self, from: Shown, to: Shown) -> Option<f64> {
        let kept = self.kept(from, to);
        let noise = self.noise * 2f64.sqrt() / (1.0 - kept);
        let value = |shown: Shown| self.readings[shown.first].power;
        let watts = charging_power(value(from), value(to), kept).as_watts();
        let is_impossible = watts < (self.lowest - self.range).min(0.0) - BEYOND_NOISE * noise;
        (!is_impossible).then_some(watts)
    }

    /// Which values are out of line: the fewest without which what lies around is possible, and those of which it varies least.
    fn wrong(&self, shown: &[Shown]) -> Wrong {
        let mut wrong = Wrong::default();
        let mut behind = 1;
        for at in 1..shown.len() {
            if at < behind || self.possible(shown[at - 1], shown[at]).is_some() {
                continue;
            }
            // Down to a value that is too low, or down from one that is too high.
            let low = (1..=LONGEST).map(|length| at..at + length);
            let high = (1..=LONGEST).filter_map(|length| Some(at.checked_sub(length)?..at));
            let varying = |hole: Range<usize>| {
                let variation = self.variation(shown, &hole)?;
                Some((hole, variation))
            };
            let holes = low.chain(high).filter_map(varying);
            match holes.min_by(|a, b| a.0.len().cmp(&b.0.len()).then(a.1.total_cmp(&b.1))) {
                Some((hole, _)) => {
                    behind = hole.end + 1;
                    wrong.out_of_line.extend(hole);
                }
                None => wrong.without_end.push(at),
            }
        }
        wrong.out_of_line.sort_unstable();
        wrong.out_of_line.dedup();
        wrong
    }

    /// How much the power varies around a hole; `None` if it is impossible there too, or if nothing is around it.
    fn variation(&self, shown: &[Shown], hole: &Range<usize>) -> Option<f64> {
        /// Values that are looked at on each side.
        const AROUND: usize = LONGEST + 1;
        let before = shown.get(hole.start.saturating_sub(AROUND)..hole.start)?;
        let behind = shown.get(hole.end..(hole.end + AROUND).min(shown.len()))?;
        if before.is_empty() || behind.is_empty() {
            return None;
        }
        let around: Vec<Shown> = before.iter().chain(behind).copied().collect();
        let watts: Option<Vec<f64>> = around.windows(2).map(|pair| self.possible(pair[0], pair[1])).collect();
        Some(watts?.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum())
    }
}

#[cfg(test)]
#[path = "wrong_readings_tests.rs"]
mod tests;
