//! The verdict with help: a meter beside the GPU, or the times at which the load was switched.

use thiserror::Error;

use super::seen::{Charge, Cumulative};
use crate::gpu::curve::PowerCurve;
use crate::gpu::refresh::{self, RefreshPeriod};
use crate::gpu::sensor::{SensorKind, SensorModel};
use crate::gpu::stretches::jitter;
use crate::gpu::trace::PowerTrace;
use crate::numerics::jackknife;
use crate::numerics::line::Moments;
use crate::numerics::quantiles::{self, quantile};
use crate::numerics::search::{bisect, golden_section};
use crate::units::{Nanoseconds, Timestamp, Watts};

/// Why a reference does not help.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReferenceError {
    /// Trace and reference cover different times.
    #[error(
        "trace and reference share less than {0} readings, even after shifting by whole quarters of an hour (time \
         zones): they are of different runs"
    )]
    Apart(usize),
    /// No time zone is so far away.
    #[error("trace and reference are {0} apart, which is no time zone: they are of different runs")]
    DaysApart(Nanoseconds),
    /// They are of one run, of which there is too little.
    #[error(
        "only {inside} readings lie between the first and the last time of the reference, {span} apart: at least {least} are \
         needed. Poll more often, or record for longer"
    )]
    TooFew {
        /// Readings within the reference.
        inside: usize,
        /// How long the reference lasts.
        span: Nanoseconds,
        /// The least number.
        least: usize,
    },
    /// The load of the switching times leaves no trace.
    #[error(
        "the readings do not show the load: fewer than 8 lie beside it, or they differ by less than a tenth while it is \
         switched. It repeats in step with the sensor, or the times are of another run"
    )]
    Unseen,
    /// The trace has no refreshes.
    #[error("the trace changes too seldom to see the sensor's refreshes")]
    TooShort,
    /// The best answer does not follow the reference.
    #[error(
        "bad fit: the sensor follows the reference only to {residual} of its range; at most {limit} is accepted"
    )]
    BadFit {
        /// Residual, a percentage as text.
        residual: String,
        /// The limit.
        limit: String,
    },
}

impl ReferenceError {
    /// What a sensor leaves unexplained of the range of its readings, if that is too much.
    pub(in crate::gpu) fn unless_followed(residual: Watts, range: Watts) -> Result<(), Self> {
        const LIMIT: f64 = 0.15;
        let share = residual.as_watts() / range.as_watts();
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        if share > LIMIT {
            return Err(Self::BadFit { residual: percent(share), limit: percent(LIMIT) });
        }
        Ok(())
    }
}

/// How a trace's clock relates to the reference's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alignment {
    /// Quarters of an hour to add to the trace's times: a time zone.
    pub quarters: i64,
}

/// A sensor fitted to a reference.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceFit {
    /// The sensor, with the board's gain and offset if the reference is in watts.
    pub model: SensorModel,
    /// The refreshes as found.
    pub refresh: RefreshPeriod,
    /// Time from the end of the window to the refresh, and the difference of the clocks.
    pub delay: f64,
    /// Root mean square residual in watts.
    pub residual: Watts,
    /// The same as a share of the reference's range.
    pub residual_share: f64,
    /// The sensor reports `line.0 + line.1 * reference`, watts and watts per unit of the reference. With
    /// switching times as the reference these are the levels without load and what the load adds.
    pub line: (Watts, Watts),
    /// Residual of the best time constant as a share, for comparison.
    pub rc_residual_share: f64,
    /// Shortest and longest window that the trace allows: those whose residual is at most 5 % above the
    /// best, and as far as the best moves when parts of the trace are left out (95 %).
    pub plausible: (Nanoseconds, Nanoseconds),
}

/// Moves a trace by the whole number of quarters of an hour that brings it over the reference.
///
/// # Errors
/// [`ReferenceError::Apart`] when no shift does, [`ReferenceError::DaysApart`] when it would be more than any time zone's.
pub fn aligned(
    trace: &PowerTrace,
    reference: (Timestamp, Timestamp),
) -> Result<(PowerTrace, Alignment), ReferenceError> {
    const QUARTER: i128 = 900_000_000_000;
    const LEAST: usize = 20;
    /// No time zone is farther from another's clock than 14 hours from Greenwich's.
    const FARTHEST: i128 = 14 * 4;
    let (start, end) = trace.span().ok_or(ReferenceError::TooShort)?;
    let middle = |a: Timestamp, b: Timestamp| (i128::from(a.as_nanos()) + i128::from(b.as_nanos())) / 2;
    let distance = middle(reference.0, reference.1) - middle(start, end);
    // A reference that lies within the trace is where it belongs, though that be far from the middle.
    let is_within = start <= reference.0 && reference.1 <= end;
    let quarters = if is_within { 0 } else { (distance as f64 / QUARTER as f64).round() as i128 };
    if quarters.abs() > FARTHEST {
        return Err(ReferenceError::DaysApart(Nanoseconds::from_nanos(distance.unsigned_abs() as u64)));
    }
    let shift = |time: Timestamp| {
        Some(Timestamp::from_nanos(u64::try_from(i128::from(time.as_nanos()) + quarters * QUARTER).ok()?))
    };
    let moved: Vec<_> = trace
        .readings()
        .iter()
        .filter_map(|reading| {
            Some(crate::gpu::trace::PowerReading { time: shift(reading.time)?, ..*reading })
        })
        .collect();
    let inside = moved.iter().filter(|reading| (reference.0..=reference.1).contains(&reading.time)).count();
    if inside < LEAST && quarters == 0 && start <= reference.1 && end >= reference.0 {
        let span = reference.1.since(reference.0);
        return Err(ReferenceError::TooFew { inside, span, least: LEAST });
    }
    if inside < LEAST {
        return Err(ReferenceError::Apart(LEAST));
    }
    Ok((PowerTrace::new(moved), Alignment { quarters: quarters as i64 }))
}

/// A reference from switching times alone: 0 W before the first, then 1 W and 0 W in turn.
///
/// Its levels mean nothing, so a fit to it finds no gain: only the window.
pub fn load_curve(switches: &[Timestamp], span: (Timestamp, Timestamp)) -> PowerCurve {
    let mut knots = vec![(span.0, Watts::ZERO)];
    let mut level = Watts::ZERO;
    for switch in switches {
        knots.push((*switch, level));
        level = Watts::from_watts(1.0) - level;
        knots.push((*switch, level));
    }
    knots.push((span.1, level));
    PowerCurve::new(knots)
}

/// The same as far as it is known: what follows the last of an odd number of times may be load, or that time is only the end of
/// a program that was at rest.
pub fn known_load_curve(switches: &[Timestamp], (first, last): (Timestamp, Timestamp)) -> PowerCurve {
    let end = match switches.last() {
        Some(at) if !switches.len().is_multiple_of(2) && *at <= last => *at,
        _ => last,
    };
    let within: Vec<Timestamp> = switches.iter().copied().filter(|at| *at <= end).collect();
    load_curve(&within, (first, end))
}

/// Finds the window, or the time constant, through which a reference looks like the trace.
///
/// For each window and delay the reference is averaged before each refresh and fitted by gain and
/// offset. The least sum of squares wins. `calibrate_gain`: the reference is in watts, so gain and
/// offset tell the board's error.
///
/// # Errors
/// [`ReferenceError`] when the two do not overlap or do not agree.
pub fn fit_to_reference(
    trace: &PowerTrace,
    reference: &PowerCurve,
    calibrate_gain: bool,
) -> Result<ReferenceFit, ReferenceError> {
    let refresh = refresh::infer_period(trace).ok_or(ReferenceError::TooShort)?;
    let (first, last) = reference.span().ok_or(ReferenceError::Apart(20))?;
    let tick = refresh.period.as_secs_f64();
    let longest_window = (12.0 * tick).max(1.5);
    let margin = Nanoseconds::from_secs_f64(longest_window.min(last.since(first).as_secs_f64() / 4.0));
    let refreshes = refresh::refreshes(trace, &refresh);
    let longest_doubt = longest_doubt(&refreshes);
    let readings: Vec<(f64, f64)> = refreshes
        .iter()
        .filter(|refresh| refresh.latest.since(refresh.earliest) <= longest_doubt)
        .filter(|refresh| refresh.time() > first + margin && refresh.time() < last)
        .map(|refresh| (refresh.time().since(first).as_secs_f64(), refresh.power.as_watts()))
        .collect();
    if readings.len() < 20 {
        return Err(ReferenceError::Apart(20));
    }
    let cumulative = Cumulative::new(reference, first);
    let window = |window: f64| {
        let cumulative = &cumulative;
        move |time: f64| cumulative.mean(time - window, time)
    };
    let capacitor = |constant: f64| {
        let charge = Charge::new(&cumulative, constant);
        move |time: f64| charge.at(time)
    };
    let windows: Vec<f64> = log_grid(0.05 * tick.min(0.25), longest_window, 28);
    let boxcar = search(&readings, &windows, tick, window);
    let constants: Vec<f64> = log_grid(0.05 * tick, longest_window / 2.0, 20);
    let rc = search(&readings, &constants, tick, capacitor);
    // An exponential much shorter than the refresh period is a window for all that can be seen.
    let use_rc = rc.fit.residual < 0.8 * boxcar.fit.residual && rc.length > 0.3 * tick;
    let best = if use_rc { &rc } else { &boxcar };
    let (spread, points) = match use_rc {
        true => {
            let spread = spread_of_parts(&readings, &rc, tick, capacitor);
            (spread, points(&readings, rc.delay, capacitor(rc.length)))
        }
        false => {
            let spread = spread_of_parts(&readings, &boxcar, tick, window);
            (spread, points(&readings, boxcar.delay, window(boxcar.length)))
        }
    };
    let (gain_error, level_error) = scale_of_parts(&points);

    let (low, high) = quantiles::range(readings.iter().map(|(_, watts)| *watts));
    let range = (high - low).max(1e-9);
    let share = best.fit.residual / range;
    ReferenceError::unless_followed(Watts::from_watts(best.fit.residual), Watts::from_watts(range))?;
    let kind = match use_rc {
        true => SensorKind::Rc { time_constant: Nanoseconds::from_secs_f64(rc.length) },
        false => SensorKind::Boxcar { window: Nanoseconds::from_secs_f64(boxcar.length) },
    };
    let length_error = spread.ln() / NORMAL_95;
    let mut model = SensorModel { refresh: Some(refresh.period), length_error, ..SensorModel::new(kind) };
    // Whatever the shape is called, the line through the closer fit is the better scale.
    let scale = if rc.fit.residual < boxcar.fit.residual { &rc.fit } else { &boxcar.fit };
    if calibrate_gain && scale.slope > 0.0 {
        model.gain = 1.0 / scale.slope;
        model.offset = Watts::from_watts(-scale.constant / scale.slope);
        model.gain_error = gain_error;
        let shape = Watts::from_watts(misfit(&points)) * model.gain;
        model.offset_error = Watts::from_watts(level_error.as_watts().hypot(shape.as_watts()));
    }
    Ok(ReferenceFit {
        model,
        refresh,
        delay: best.delay,
        residual: Watts::from_watts(best.fit.residual),
        residual_share: share,
        line: (Watts::from_watts(scale.constant), Watts::from_watts(scale.slope)),
        rc_residual_share: rc.fit.residual / range,
        plausible: (
            Nanoseconds::from_secs_f64(best.plausible.0.min(best.length / spread)),
            Nanoseconds::from_secs_f64(best.plausible.1.max(best.length * spread)),
        ),
    })
}

/// When a poll was held up, it is not known well when the sensor measured what it brought: such readings
/// would tell of a window what is the driver's.
fn longest_doubt(refreshes: &[refresh::Refresh]) -> Nanoseconds {
    let mut doubts: Vec<u64> =
        refreshes.iter().map(|refresh| refresh.latest.since(refresh.earliest).as_nanos()).collect();
    doubts.sort_unstable();
    Nanoseconds::from_nanos(2 * quantile(&doubts, 0.5).unwrap_or(0))
}

struct Found {
    length: f64,
    delay: f64,
    fit: Affine,
    plausible: (f64, f64),
}

/// The best length and delay: a grid of both, refined around its best point. `sensor` is given a length, and
/// what it returns a time: it is what such a sensor would show then.
fn search<S: Fn(f64) -> f64>(
    readings: &[(f64, f64)],
    lengths: &[f64],
    tick: f64,
    sensor: impl Fn(f64) -> S,
) -> Found {
    // The clocks of meter and host, and the driver between refresh and answer, may differ by this.
    let reach = (1.2 * tick).max(0.1);
    let best_delay = |seen: &S, from: f64, to: f64, steps: u32| {
        (0..=steps)
            .map(|step| from + (to - from) * f64::from(step) / f64::from(steps))
            .map(|delay| (delay, affine(readings, delay, seen)))
            .min_by(|a, b| a.1.residual.total_cmp(&b.1.residual))
            .unwrap_or((0.0, affine(readings, 0.0, seen)))
    };
    let refined = |length: f64| {
        let seen = sensor(length);
        let (coarse, _) = best_delay(&seen, -reach, reach, 24);
        best_delay(&seen, coarse - reach / 12.0, coarse + reach / 12.0, 12)
    };
    let residual_of = |length: f64| refined(length).1.residual;
    let residuals: Vec<f64> = lengths.iter().map(|length| residual_of(*length)).collect();
    let best = (0..lengths.len()).min_by(|a, b| residuals[*a].total_cmp(&residuals[*b])).unwrap_or(0);
    let log = |index: usize| lengths[index.min(lengths.len() - 1)].ln();
    let length =
        golden_section(log(best.saturating_sub(1)), log(best + 1), |log| residual_of(log.exp())).exp();
    let (delay, fit) = refined(length);
    // How far the length may be from the best before the sum of squares grows by a tenth.
    let limit = 1.05 * fit.residual;
    let plausible = |towards: usize| {
        let (inside, _) = bisect(length.ln(), log(towards), 8, |log| residual_of(log.exp()) <= limit);
        inside.exp()
    };
    let plausible = (plausible(best.saturating_sub(3)), plausible(best + 3));
    Found { length, delay, fit, plausible }
}

/// By what factor the best length may be off, from how far it moves when a part of the trace is left
/// out: the jackknife's 95 % interval. The residual of all readings does not tell it, as only those
/// near a switch of the load know of the length, and polls that came late mislead whole stretches.
fn spread_of_parts<S: Fn(f64) -> f64>(
    readings: &[(f64, f64)],
    best: &Found,
    tick: f64,
    sensor: impl Fn(f64) -> S,
) -> f64 {
    /// Student's t for one less than the parts.
    const T: f64 = 2.571;
    /// No best is looked for farther away, by factor.
    const REACH: f64 = 3.0;
    let best_without = |part: usize| {
        let rest = without_part(readings, part);
        let residual = |log: f64| {
            let seen = sensor(log.exp());
            let delays = (-2..=2).map(|step| best.delay + 0.1 * tick * f64::from(step));
            delays.map(|delay| affine(&rest, delay, &seen).residual).fold(f64::MAX, f64::min)
        };
        // There may be several minima: the nearest to the least of some steps is looked for.
        const STEPS: i32 = 8;
        let log = |step: i32| best.length.ln() + REACH.ln() * f64::from(step) / f64::from(STEPS);
        let least =
            (-STEPS..=STEPS).map(|step| (step, residual(log(step)))).min_by(|a, b| a.1.total_cmp(&b.1));
        let step = least.map_or(0, |(step, _)| step);
        golden_section(log(step - 1), log(step + 1), residual)
    };
    let logs: Vec<f64> = (0..PARTS).map(best_without).collect();
    (T * jackknife::variance(&logs).sqrt()).exp().min(REACH)
}

/// The standard errors of the gain, as a share of it, and of what the least reading stands for, by parts left out in turn.
///
/// The parts are stretches of time that tell equally much of the line, not equally long ones: where a trace has one rest, a
/// sixth of the time may be all of it, and without it there is no line.
fn scale_of_parts(points: &[(f64, f64)]) -> (f64, Watts) {
    let (least, _) = quantiles::range(points.iter().map(|(_, watts)| *watts));
    let parts = parts_by_leverage(points);
    let without = |part: usize| -> Vec<(f64, f64)> {
        let other = points.iter().zip(&parts).filter(|(_, of)| **of != part);
        other.map(|(point, _)| *point).collect()
    };
    let lines: Vec<Affine> =
        (0..PARTS).map(|part| line(&without(part))).filter(|line| line.slope > 0.0).collect();
    let gains: Vec<f64> = lines.iter().map(|line| line.slope.recip()).collect();
    let of_least: Vec<f64> = lines.iter().map(|line| (least - line.constant) / line.slope).collect();
    let gain = gains.iter().sum::<f64>() / gains.len().max(1) as f64;
    let std_error = |without: &[f64]| jackknife::variance(without).sqrt();
    (std_error(&gains) / gain.max(f64::MIN_POSITIVE), Watts::from_watts(std_error(&of_least)))
}

/// How far the readings of one load may all be off since the sensor is not quite of its shape, in watts as it shows them: what
/// the line leaves beyond the jitter from one reading to the next, of the mean of all loads.
fn misfit(points: &[(f64, f64)]) -> f64 {
    let line = line(points);
    let left: Vec<f64> = points.iter().map(|(x, watts)| watts - line.constant - line.slope * x).collect();
    let chance = jitter(&left);
    let (low, high) = quantiles::range(points.iter().map(|(x, _)| *x));
    let is_load = |point: &(f64, f64)| point.0 > (low + high) / 2.0;
    let switches = points.windows(2).filter(|pair| is_load(&pair[0]) != is_load(&pair[1])).count();
    let beyond = (line.residual * line.residual - chance * chance).max(0.0);
    (beyond / (switches as f64 / 2.0).max(1.0)).sqrt()
}

/// Which part each point is in, of such that have the same sum of leverages: a point's is `1 / n + (x - m)^2 / S`, with the
/// mean `m` of all `x` and `S` the sum of the squares.
fn parts_by_leverage(points: &[(f64, f64)]) -> Vec<usize> {
    let count = points.len() as f64;
    let mean = points.iter().map(|point| point.0).sum::<f64>() / count;
    let squares: f64 = points.iter().map(|point| (point.0 - mean).powi(2)).sum();
    let leverage =
        |x: f64| 1.0 / count + if squares > 0.0 { (x - mean).powi(2) / squares } else { 1.0 / count };
    // All together have 2, one for each coefficient of the line.
    let before = points.iter().scan(0.0, |sum, (x, _)| {
        let of_point = leverage(*x);
        *sum += of_point;
        Some(*sum - of_point / 2.0)
    });
    before.map(|before| ((before / 2.0 * PARTS as f64) as usize).min(PARTS - 1)).collect()
}

/// Into how many parts a trace is cut, each of which is left out in turn.
const PARTS: usize = 6;

fn without_part(readings: &[(f64, f64)], part: usize) -> Vec<(f64, f64)> {
    let is_other = |(index, _): &(usize, &(f64, f64))| index * PARTS / readings.len() != part;
    readings.iter().enumerate().filter(is_other).map(|(_, reading)| *reading).collect()
}

/// Standard deviations in half of an interval of 95 %.
const NORMAL_95: f64 = 1.96;

fn log_grid(low: f64, high: f64, points: u32) -> Vec<f64> {
    (0..=points).map(|point| low * (high / low).powf(f64::from(point) / f64::from(points))).collect()
}

struct Affine {
    slope: f64,
    constant: f64,
    residual: f64,
}

/// Readings as a line of what the sensor should have seen, so much earlier than they came.
fn affine(readings: &[(f64, f64)], delay: f64, seen: impl Fn(f64) -> f64) -> Affine {
    line(&points(readings, delay, seen))
}

/// What the sensor should have seen, and what was read.
fn points(readings: &[(f64, f64)], delay: f64, seen: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    readings.iter().map(|(time, watts)| (seen(time - delay), *watts)).collect()
}

fn line(points: &[(f64, f64)]) -> Affine {
    let moments = Moments::of(points);
    let slope = moments.slope().unwrap_or(0.0);
    let residual = (moments.unexplained(slope) / points.len() as f64).sqrt();
    Affine { slope, constant: moments.intercept(slope), residual }
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
