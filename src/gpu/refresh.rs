//! When did the sensor really measure? Polls repeat the sensor's last value until it refreshes.

use serde::{Deserialize, Serialize};

use super::trace::{PowerReading, PowerTrace};
use crate::numerics::quantiles::{median, quantile};
use crate::units::{Nanoseconds, Timestamp, Watts};

/// How often a sensor refreshes its value, as far as a trace tells.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RefreshPeriod {
    /// Mean time between refreshes; an upper bound if not `resolved`.
    pub period: Nanoseconds,
    /// Polls came often enough to see the sensor repeat itself.
    pub resolved: bool,
    /// Median time between polls.
    pub poll_interval: Nanoseconds,
    /// Changes of the value that the period was found from.
    pub changes: usize,
}

/// A new value of the sensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refresh {
    /// The sensor measured not before this
    pub earliest: Timestamp,
    /// and not after this.
    pub latest: Timestamp,
    /// The value.
    pub power: Watts,
}

impl Refresh {
    /// The middle of the time in which the sensor measured.
    pub fn time(&self) -> Timestamp {
        self.earliest + Nanoseconds::from_nanos(self.latest.since(self.earliest).as_nanos() / 2)
    }
}

/// Finds the refresh period from the times at which the polled value changes.
///
/// A sensor on a noisy load changes at every refresh, so the mean gap between changes is the period;
/// on a quiet load it may refresh to the same value, so only the stretches with the most frequent
/// changes count. `None` with fewer than four changes.
pub fn infer_period(trace: &PowerTrace) -> Option<RefreshPeriod> {
    let readings = trace.readings();
    let mut polls: Vec<f64> = readings.windows(2).map(|pair| seconds(pair[0].time, pair[1].time)).collect();
    let changes: Vec<Timestamp> =
        readings.windows(2).filter(|pair| pair[0].power != pair[1].power).map(|pair| pair[1].time).collect();
    let gaps: Vec<f64> = changes.windows(2).map(|pair| seconds(pair[0], pair[1])).collect();
    if gaps.len() < 3 {
        return None;
    }
    let poll = median(&mut polls)?;
    let slow_poll = quantile(&polls, 0.9)?;

    let window = (gaps.len() / 3).clamp(3, 16);
    let mut means: Vec<f64> =
        gaps.windows(window).map(|gaps| gaps.iter().sum::<f64>() / window as f64).collect();
    means.sort_by(f64::total_cmp);
    let rough = quantile(&means, 0.2)?;

    // A single period shows as a gap of at most one period and one poll; longer gaps hide refreshes.
    // A late poll makes one gap longer and the next shorter by as much.
    let longest = (rough + 1.1 * slow_poll).max(1.45 * rough);
    let mut runs: Vec<(f64, usize)> = Vec::new();
    let mut previous_was_single = false;
    for gap in gaps {
        let single = gap <= longest;
        match runs.last_mut() {
            Some(run) if single && previous_was_single => *run = (run.0 + gap, run.1 + 1),
            _ if single => runs.push((gap, 1)),
            _ => {}
        }
        previous_was_single = single;
    }
    // Both ends of a run are uncertain by a poll, so long runs tell most.
    let long = runs.iter().map(|run| run.1).max()?.div_ceil(2).min(8);
    let (time, count) =
        runs.iter().filter(|run| run.1 >= long).fold((0.0, 0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
    let period = if count == 0 { rough } else { time / count as f64 };
    let period = by_multiples(readings, period).unwrap_or(period);
    Some(RefreshPeriod {
        period: Nanoseconds::from_secs_f64(period),
        resolved: poll < 0.8 * period,
        poll_interval: Nanoseconds::from_secs_f64(poll),
        changes: changes.len(),
    })
}

/// A shorter period, if changes of the value keep to its multiples much better than to those of `period`.
///
/// A sensor that rounds to whole watts often refreshes to the value that it showed, and then the mean
/// gap between changes is longer than the period, but still made of whole ones.
fn by_multiples(readings: &[PowerReading], period: f64) -> Option<f64> {
    const FEWEST: usize = 12;
    /// Gaps of more periods tell nothing, as the sensor's clock drifts.
    const MOST_PERIODS: f64 = 5.0;
    // Changes whose time is known well.
    let known = |pair: &&[PowerReading]| {
        pair[0].power != pair[1].power && seconds(pair[0].time, pair[1].time) < period / 3.0
    };
    let middle = |pair: &[PowerReading]| {
        seconds(readings[0].time, pair[0].time) + seconds(pair[0].time, pair[1].time) / 2.0
    };
    let changes: Vec<f64> = readings.windows(2).filter(known).map(middle).collect();
    let mut gaps: Vec<f64> = changes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if gaps.len() < FEWEST {
        return None;
    }
    gaps.sort_by(f64::total_cmp);
    let shortest = quantile(&gaps, 0.1)?;
    let single = gaps.partition_point(|gap| *gap < 1.5 * shortest);
    let multiples = |period: f64| {
        let whole = move |gap: &f64| (*gap, (*gap / period).round());
        gaps.iter().map(whole).filter(|(_, periods)| (1.0..=MOST_PERIODS).contains(periods))
    };
    let mut shorter = gaps[single / 2];
    for _ in 0..4 {
        let (time, periods) =
            multiples(shorter).fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        shorter = if periods > 0.0 { time / periods } else { shorter };
    }
    let astray = |period: f64| {
        let (sum, count) = multiples(period)
            .fold((0.0, 0.0), |sum, (gap, periods)| (sum.0 + (gap / period - periods).abs(), sum.1 + 1.0));
        if count > 0.0 { sum / count } else { 0.5 }
    };
    // A quarter of a period is what any times are astray on average.
    (shorter < 0.97 * period && astray(shorter) < 0.15 && astray(shorter) < 0.75 * astray(period))
        .then_some(shorter)
}

/// Collapses polls to one value per refresh of the sensor.
///
/// Each change of the value bounds the time of a refresh from both sides: it came after the last poll
/// that saw the old value, by at most one period before the first that saw the new one. Where polls
/// show the value unchanged for longer than a period, the sensor refreshed to the same value, and
/// those refreshes are kept: a plateau is information. As the sensor runs on its own clock, bounds are
/// then narrowed by those of the neighbours.
pub fn refreshes(trace: &PowerTrace, period: &RefreshPeriod) -> Vec<Refresh> {
    let readings = trace.readings();
    let mut found: Vec<Refresh> = Vec::new();
    let (Some(first), Some(last)) = (readings.first(), readings.last()) else { return found };
    if !period.resolved || period.period == Nanoseconds::ZERO {
        return readings
            .iter()
            .map(|r| Refresh { earliest: r.time, latest: r.time, power: r.power })
            .collect();
    }
    let span = period.period.as_nanos();
    found.push(Refresh { earliest: first.time, latest: first.time, power: first.power });
    let mut polls = 0;
    for pair in readings.windows(2) {
        polls += 1;
        if pair[0].power == pair[1].power {
            continue;
        }
        let latest = pair[1].time;
        let earliest = pair[0].time.max(Timestamp::from_nanos(latest.as_nanos().saturating_sub(span)));
        fill_plateau(&mut found, pair[0].time, earliest, span, polls);
        polls = 0;
        found.push(Refresh { earliest, latest, power: pair[1].power });
    }
    fill_plateau(&mut found, last.time, last.time + period.period, span, polls);
    narrow(&mut found[1..], span as f64);
    // After a pause of the polls it may stay open which of two refreshes was seen: better none than a wrong one.
    found.retain(|refresh| refresh.latest.since(refresh.earliest).as_nanos() < span - span / 10);
    found
}

/// The paper's rule for the K20: a reading equal to the one before it and at most `gap` later carries
/// nothing new and is dropped.
pub fn drop_repeats(trace: &PowerTrace, gap: Nanoseconds) -> PowerTrace {
    let readings = trace.readings();
    let is_new = |index: &usize| match index.checked_sub(1).map(|before| readings[before]) {
        Some(before) => {
            before.power != readings[*index].power || readings[*index].time.since(before.time) > gap
        }
        None => true,
    };
    PowerTrace::new((0..readings.len()).filter(is_new).map(|index| readings[index]).collect())
}

/// Adds the refreshes that repeated the last value: those that polls up to `seen` confirm and that
/// lie at least half a period before the `next` one. While nobody polled nothing is known.
fn fill_plateau(found: &mut Vec<Refresh>, seen: Timestamp, next: Timestamp, period: u64, polls: u64) {
    let Some(last) = found.last().copied() else { return };
    let confirmed = seen.since(last.latest).as_nanos() / period;
    let room = (next.since(last.latest).as_nanos() + period / 2) / period;
    for step in 1..=confirmed.min(room.saturating_sub(1)).min(polls) {
        let shift = Nanoseconds::from_nanos(step * period);
        found.push(Refresh {
            earliest: last.earliest + shift,
            latest: last.latest + shift,
            power: last.power,
        });
    }
}

/// Narrows each refresh's bounds by its neighbours', one period away give or take the sensor's drift.
fn narrow(refreshes: &mut [Refresh], period: f64) {
    const DRIFT: f64 = 0.004;
    let mut bounds: Vec<(f64, f64)> =
        refreshes.iter().map(|r| (r.earliest.as_nanos() as f64, r.latest.as_nanos() as f64)).collect();
    let origin = bounds.first().map_or(0.0, |bound| bound.0);
    bounds.iter_mut().for_each(|bound| *bound = (bound.0 - origin, bound.1 - origin));
    let tighten = |bounds: &mut [(f64, f64)], from: usize, to: usize| {
        let distance = (bounds[to].0 + bounds[to].1 - bounds[from].0 - bounds[from].1) / 2.0;
        let direction = distance.signum();
        let about = (distance.abs() / period).round();
        // Wide bounds may be a period off: the one whole number of periods that fits, if it is only one.
        let fits =
            [about - 1.0, about, about + 1.0].into_iter().filter(|periods| *periods >= 1.0).map(|periods| {
                let slack = periods * DRIFT * period;
                let low = bounds[to].0.max(bounds[from].0 + direction * periods * period - slack);
                let high = bounds[to].1.min(bounds[from].1 + direction * periods * period + slack);
                (low, high)
            });
        let mut fits = fits.filter(|(low, high)| low <= high);
        let (best, other) = (fits.next(), fits.next());
        // Bounds that contradict mean that the sensor missed a beat: the chain starts anew there.
        if let (Some(best), None) = (best, other) {
            bounds[to] = best;
        }
    };
    // Across a hole without polls the number of periods is a guess: first learn all from near neighbours.
    for farthest in [2.5 * period, f64::INFINITY] {
        for (from, to) in
            (1..bounds.len()).map(|i| (i - 1, i)).chain((1..bounds.len()).rev().map(|i| (i, i - 1)))
        {
            let (early, late) = (from.min(to), from.max(to));
            if bounds[late].1 - bounds[early].0 <= farthest {
                tighten(&mut bounds, from, to);
            }
        }
    }
    for (refresh, bound) in refreshes.iter_mut().zip(bounds) {
        refresh.earliest = Timestamp::from_nanos((origin + bound.0).max(0.0) as u64);
        refresh.latest = Timestamp::from_nanos((origin + bound.1).max(0.0) as u64);
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.since(from).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sensor that refreshes every `period` ms (first at `phase`) to a new value, polled every `poll` ms.
    fn polled(period: f64, phase: f64, poll: f64, count: usize) -> PowerTrace {
        let reading = |index: usize| {
            let time = index as f64 * poll;
            let refresh = ((time - phase) / period).floor();
            PowerReading {
                time: Timestamp::from_nanos(((1000.0 + time) * 1e6) as u64),
                power: Watts::from_watts(100.0 + (refresh * 7.3).rem_euclid(11.0)),
            }
        };
        PowerTrace::new((0..count).map(reading).collect())
    }

    #[test]
    fn period_is_found_for_fast_and_slow_polls() {
        for (period, poll) in
            [(15.0, 0.283), (15.0, 4.7), (15.0, 9.0), (100.0, 7.0), (101.3, 13.0), (20.0, 8.0)]
        {
            let inferred = infer_period(&polled(period, 3.1, poll, 2000)).expect("changes");
            let error = inferred.period.as_secs_f64() * 1e3 / period - 1.0;
            assert!(inferred.resolved, "period {period}, poll {poll}");
            assert!(error.abs() < 0.02, "period {period}, poll {poll}: {:?}", inferred.period);
        }
    }

    #[test]
    fn polls_as_slow_as_the_sensor_give_only_a_bound() {
        let inferred = infer_period(&polled(10.0, 3.0, 12.0, 200)).expect("changes");
        assert!(!inferred.resolved);
        assert!(inferred.period.as_nanos() >= 11_900_000);
    }

    #[test]
    fn a_constant_value_has_no_period() {
        let constant =
            (0..50).map(|i| PowerReading { time: Timestamp::from_nanos(i), power: Watts::from_watts(5.0) });
        assert_eq!(infer_period(&PowerTrace::new(constant.collect())), None);
    }

    #[test]
    fn refresh_times_are_narrowed_well_below_the_poll_interval() {
        let trace = polled(101.3, 17.0, 13.0, 800);
        let period = infer_period(&trace).expect("changes");
        let all = refreshes(&trace, &period);
        let worst = all[2..all.len() - 2]
            .iter()
            .map(|refresh| {
                let since = (refresh.time().as_nanos() as f64 * 1e-6 - 1000.0 - 17.0).rem_euclid(101.3);
                since.min(101.3 - since)
            })
            .fold(0.0, f64::max);
        assert!(worst < 5.0, "{worst} ms");
    }

    #[test]
    fn equal_refreshes_are_kept_and_repeats_are_not() {
        let values =
            [10.0, 10.0, 10.0, 10.0, 30.0, 30.0, 31.0, 31.0, 30.0, 30.0, 31.0, 31.0, 30.0, 30.0, 31.0];
        let trace = PowerTrace::new(
            (0u64..)
                .zip(values)
                .map(|(i, w)| PowerReading {
                    time: Timestamp::from_nanos(i * 10_000_000),
                    power: Watts::from_watts(w),
                })
                .collect(),
        );
        let period = infer_period(&trace).expect("changes");
        assert_eq!(period.period, Nanoseconds::from_millis(20));
        let powers: Vec<f64> = refreshes(&trace, &period).iter().map(|r| r.power.as_watts()).collect();
        assert_eq!(powers, [10.0, 10.0, 30.0, 31.0, 30.0, 31.0, 30.0, 31.0]);
    }

    #[test]
    fn the_papers_rule_for_repeats() {
        let trace = PowerTrace::new(
            [(0u64, 5.0), (3, 5.0), (6, 5.0), (11, 5.0), (12, 6.0)]
                .map(|(ms, w)| PowerReading {
                    time: Timestamp::from_nanos(ms * 1_000_000),
                    power: Watts::from_watts(w),
                })
                .to_vec(),
        );
        let kept: Vec<u64> = drop_repeats(&trace, Nanoseconds::from_millis(4))
            .readings()
            .iter()
            .map(|r| r.time.as_nanos() / 1_000_000)
            .collect();
        assert_eq!(kept, [0, 11, 12]);
    }
}
