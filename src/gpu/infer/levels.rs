//! What a load draws, and what the GPU rests at, from all readings together of a load whose switching times are known.

use nalgebra::{Matrix3, RowVector3, Vector3};

use super::reference::load_curve;
use super::seen::{Charge, Cumulative};
use super::sums::Sums;
use crate::gpu::curve::PowerCurve;
use crate::gpu::refresh::Refresh;
use crate::gpu::sensor::{Delay, SensorKind, SensorModel};
use crate::numerics::quantiles;
use crate::numerics::search::golden_section;
use crate::units::{Joules, Nanoseconds, Timestamp, Watts};

/// Power before the first switch and after the last, between loads, and under load, in what the sensor shows; with what is
/// not known of them.
///
/// The mean over all lengths of the window and all delays that are plausible, each weighed by how well it explains the
/// readings: where a load is in step with the sensor, so that several explain them and each by other levels, their
/// differences are in the covariance. What readings cannot tell is held by what is likely of any load: rests of a load
/// lie at about the power before and after it (`REST_LIKE`), and load at about the highest reading (`HIGH_LIKE`).
#[derive(Debug, Clone, PartialEq)]
pub struct KnownLevels {
    mean: Vector3<f64>,
    covariance: Matrix3<f64>,
    /// What single lengths and delays make of the levels, with their weights.
    each: Vec<(f64, Vector3<f64>)>,
    /// Length of the window or the time constant in seconds, and one standard error of it.
    pub length: (f64, f64),
    /// What lies between a window's end and its answer.
    pub delay: Delay,
    /// Standard deviation of readings from what these levels make of them.
    pub residual: Watts,
    /// From the lowest to the highest reading.
    pub range: Watts,
    load: PowerCurve,
    first: Timestamp,
    last: Timestamp,
}

/// One standard deviation of the power between loads from that before and after them, as a share of the range: a card's
/// clocks stay up in short rests.
const REST_LIKE: f64 = 0.05;
/// The same of the power under load from the highest reading: a window in step with a load may see a small part of it.
const HIGH_LIKE: f64 = 3.0;
/// Readings that differ by less than this share of the highest do not show the load.
const LEAST_RANGE: f64 = 0.1;
/// Standard deviation in seconds of the time at which power follows a switch: a card's does not at once.
const EDGE: f64 = 1e-3;
/// How far readings of a steady load are off as a share of their range, about: what the time of a switch makes of one is
/// held against it.
const NOISE: f64 = 0.01;
/// Fewer readings tell no levels.
const FEWEST: usize = 8;

impl KnownLevels {
    /// From refreshes of a sensor; `None` with too few of them, or if they do not show the load.
    pub fn of(
        refreshes: &[Refresh],
        period: Nanoseconds,
        switches: &[Timestamp],
        model: &SensorModel,
    ) -> Option<Self> {
        let (&first, &last) = (switches.first()?, switches.last()?);
        let readings = Readings::of(refreshes, period, switches, model)?;
        let load = load_curve(switches, (readings.origin.min(first), last));
        let seen = Seen::new(&load, switches, readings.origin, model.kind);
        let mut points = grid(&readings, &seen, model);
        let spread = best(&points, readings.range * 0.02, &readings).1;
        let found = refined(&readings, &seen, model, &points, spread);
        points.extend(found);
        let (at, spread) = best(&points, spread, &readings);
        let apart = spread * readings.inflation(&seen, &points[at], spread).sqrt();
        Some(Self {
            residual: Watts::from_watts(spread),
            ..Self::mixture(&points, apart, &readings, (load, first, last))
        })
    }

    fn mixture(
        points: &[Point],
        spread: f64,
        readings: &Readings,
        (load, first, last): (PowerCurve, Timestamp, Timestamp),
    ) -> Self {
        let solved: Vec<Solved> = points.iter().map(|point| point.solve(spread, readings)).collect();
        let highest = solved.iter().map(|of| of.log_weight).fold(f64::MIN, f64::max);
        let weights: Vec<f64> = solved.iter().map(|of| (of.log_weight - highest).exp()).collect();
        let all: f64 = weights.iter().sum();
        let of = |value: &dyn Fn(&Point) -> f64| {
            let mean =
                points.iter().zip(&weights).map(|(point, weight)| weight * value(point)).sum::<f64>() / all;
            let square = |(point, weight): (&Point, &f64)| weight * (value(point) - mean).powi(2);
            (mean, (points.iter().zip(&weights).map(square).sum::<f64>() / all).sqrt())
        };
        let mean: Vector3<f64> =
            solved.iter().zip(&weights).map(|(of, weight)| of.mean * *weight).sum::<Vector3<f64>>() / all;
        let around = |(of, weight): (&Solved, &f64)| {
            let apart = of.mean - mean;
            (of.covariance + apart * apart.transpose()) * *weight
        };
        let covariance = solved.iter().zip(&weights).map(around).sum::<Matrix3<f64>>() / all;
        let (delay, delay_error) = of(&|point| point.delay);
        Self {
            mean,
            covariance,
            each: weights
                .iter()
                .copied()
                .zip(solved.iter().map(|of| of.mean))
                .filter(|of| of.0 > 1e-4)
                .collect(),
            length: of(&|point| point.length),
            delay: Delay { seconds: delay, std_error: delay_error },
            residual: Watts::from_watts(spread),
            range: Watts::from_watts(readings.range),
            load,
            first,
            last,
        }
    }

    /// Seconds by which a window may begin earlier or end later, by all that is plausible.
    pub fn margin(&self) -> f64 {
        let (length, error) = self.length;
        self.delay.std_error + 2.0 * error + 0.05 * length
    }

    /// Seconds of rest outside, of rest between loads, and under load, between two times.
    fn times(&self, start: Timestamp, end: Timestamp) -> RowVector3<f64> {
        let whole = end.since(start).as_secs_f64();
        let inside = end.min(self.last).since(start.max(self.first)).as_secs_f64();
        let on = self.load.energy(start, end.min(self.last)).as_joules();
        RowVector3::new(whole - inside, inside - on, on)
    }

    /// What the sensor would have shown of the time between two times, summed, and one standard error.
    pub fn energy(&self, start: Timestamp, end: Timestamp) -> (Joules, Joules) {
        self.weighed(self.times(start, end))
    }

    /// The same above the power before the first switch and after the last.
    pub fn above_rest(&self, start: Timestamp, end: Timestamp) -> (Joules, Joules) {
        let times = self.times(start, end);
        self.weighed(times - RowVector3::new(times.sum(), 0.0, 0.0))
    }

    /// Where the answers of single lengths and delays are not spread evenly to both sides, the error is that with which 95 %
    /// of them lie within the interval.
    fn weighed(&self, times: RowVector3<f64>) -> (Joules, Joules) {
        const NORMAL_95: f64 = 1.96;
        let mean = (times * self.mean)[0];
        let variance = (times * self.covariance * times.transpose())[0].max(0.0);
        let mut each: Vec<(f64, f64)> =
            self.each.iter().map(|(weight, levels)| ((times * levels)[0], *weight)).collect();
        each.sort_by(|a, b| a.0.total_cmp(&b.0));
        let beyond = |share: f64| {
            let edge =
                quantiles::weighted(&each, |(_, weight)| *weight, share).map_or(mean, |(value, _)| *value);
            (edge - mean).abs() / NORMAL_95
        };
        let error = variance.sqrt().max(beyond(0.025)).max(beyond(0.975));
        (Joules::from_joules(mean), Joules::from_joules(error))
    }

    /// Power before the first switch and after the last, and one standard error.
    pub fn rest(&self) -> (Watts, Watts) {
        self.level(0)
    }

    /// Power between loads.
    pub fn low(&self) -> (Watts, Watts) {
        self.level(1)
    }

    /// Power under load.
    pub fn high(&self) -> (Watts, Watts) {
        self.level(2)
    }

    fn level(&self, at: usize) -> (Watts, Watts) {
        let error = self.covariance[(at, at)].max(0.0).sqrt();
        (Watts::from_watts(self.mean[at]), Watts::from_watts(error))
    }

    /// By how much load lies above the rests between, and one standard error.
    pub fn contrast(&self) -> (Watts, Watts) {
        let (contrast, error) = self.weighed(RowVector3::new(0.0, -1.0, 1.0));
        (Watts::from_watts(contrast.as_joules()), Watts::from_watts(error.as_joules()))
    }
}

/// Readings near the load.
struct Readings {
    origin: Timestamp,
    tick: f64,
    /// Seconds, watts, and the standard deviation of the time.
    all: Vec<(f64, f64, f64)>,
    lowest: f64,
    highest: f64,
    range: f64,
}

impl Readings {
    /// Rest before and after counts as far as it is like what lies between: a GPU that nobody uses for long draws less.
    fn of(
        refreshes: &[Refresh],
        period: Nanoseconds,
        switches: &[Timestamp],
        model: &SensorModel,
    ) -> Option<Self> {
        let (&first, &last) = (switches.first()?, switches.last()?);
        let length = length_of(model, period).as_secs_f64();
        let around = Nanoseconds::from_secs_f64((5.0 * length).max(2.0));
        let origin = Timestamp::from_nanos(first.as_nanos().saturating_sub(around.as_nanos()));
        // A trace that ends under load has no rest behind it.
        let until = if switches.len().is_multiple_of(2) { last + around } else { last };
        let mut doubts: Vec<u64> =
            refreshes.iter().map(|of| of.latest.since(of.earliest).as_nanos()).collect();
        doubts.sort_unstable();
        // Of a poll that was held up it is not known well when the sensor measured what it brought.
        let longest = 2 * quantiles::quantile(&doubts, 0.5).unwrap_or(0);
        let all: Vec<(f64, f64, f64)> = refreshes
            .iter()
            .filter(|of| of.latest.since(of.earliest).as_nanos() <= longest)
            .filter(|of| (origin..=until).contains(&of.time()))
            .map(|of| {
                let doubt = of.latest.since(of.earliest).as_secs_f64() / 12f64.sqrt();
                (of.time().since(origin).as_secs_f64(), of.power.as_watts(), doubt)
            })
            .collect();
        let loaded = first.since(origin).as_secs_f64();
        if all.iter().all(|(time, ..)| *time < loaded) {
            return None;
        }
        let (lowest, highest) = quantiles::range(all.iter().map(|(_, watts, _)| *watts));
        let range = highest - lowest;
        let tick = period.as_secs_f64();
        (all.len() >= FEWEST && range > LEAST_RANGE * highest.abs()).then_some(Self {
            origin,
            tick,
            all,
            lowest,
            highest,
            range,
        })
    }

    /// How many readings tell as much as one that errs by itself, as those after each other err alike.
    fn inflation(&self, seen: &Seen, point: &Point, spread: f64) -> f64 {
        let mean = point.solve(spread, self).mean;
        let shares = seen.through(point.length);
        let off: Vec<f64> =
            self.all.iter().map(|(time, watts, _)| watts - (shares(time - point.delay) * mean)[0]).collect();
        let square: f64 = off.iter().map(|off| off * off).sum();
        let mut sum = 1.0;
        for lag in 1..off.len() / 8 {
            let alike = off.iter().zip(&off[lag..]).map(|(a, b)| a * b).sum::<f64>() / square;
            // Where all are right, none of them is like another.
            if alike.is_nan() || alike <= 0.1 {
                break;
            }
            sum += 2.0 * alike;
        }
        sum
    }
}

fn length_of(model: &SensorModel, period: Nanoseconds) -> Nanoseconds {
    match model.kind {
        SensorKind::Rc { time_constant } => time_constant,
        SensorKind::Boxcar { window } => window,
        SensorKind::Counter => period,
    }
}

/// What a sensor sees of a load: the shares of rest outside, of rest between and of load in its readings.
struct Seen {
    on: Cumulative,
    inside: Cumulative,
    switches: Vec<f64>,
    is_capacitor: bool,
}

impl Seen {
    fn new(load: &PowerCurve, switches: &[Timestamp], origin: Timestamp, kind: SensorKind) -> Self {
        let (first, last) = (switches[0], switches[switches.len() - 1]);
        let span = load.span().unwrap_or((first, last));
        let later = last + Nanoseconds::from_millis(1);
        let inside = load_curve(&[first, last], (span.0, later));
        let on = PowerCurve::new(
            load.knots().iter().copied().chain([(last, Watts::ZERO), (later, Watts::ZERO)]).collect(),
        );
        Self {
            on: Cumulative::new(&on, origin),
            inside: Cumulative::new(&inside, origin),
            switches: switches.iter().map(|at| at.since(origin).as_secs_f64()).collect(),
            is_capacitor: matches!(kind, SensorKind::Rc { .. }),
        }
    }

    /// The square of what a share of load is in doubt by, where the reading's time is by `doubt` and each switch's by
    /// [`EDGE`].
    fn doubt(&self, time: f64, length: f64, share: f64, doubt: f64) -> f64 {
        let until = |time: f64| self.switches.partition_point(|at| *at <= time);
        let on = |time: f64| f64::from(u8::from(until(time) % 2 == 1));
        let before = if self.is_capacitor { share } else { on(time - length) };
        let edges = (until(time) - until(time - length)) as f64;
        (((on(time) - before) * doubt).powi(2) + edges * EDGE.powi(2)) / length.powi(2)
    }

    fn through(&self, length: f64) -> impl Fn(f64) -> RowVector3<f64> + '_ {
        let charges =
            self.is_capacitor.then(|| (Charge::new(&self.on, length), Charge::new(&self.inside, length)));
        move |time| {
            let (on, inside) = match &charges {
                Some((on, inside)) => (on.at(time), inside.at(time)),
                None => (self.on.mean(time - length, time), self.inside.mean(time - length, time)),
            };
            RowVector3::new(1.0 - inside, inside - on, on)
        }
    }
}

/// One length and one delay, with the sums of what the sensor would see by them.
struct Point {
    length: f64,
    delay: f64,
    log_prior: f64,
    gram: Matrix3<f64>,
    moment: Vector3<f64>,
    square: f64,
}

/// What levels explain the readings by a length and a delay.
struct Solved {
    mean: Vector3<f64>,
    covariance: Matrix3<f64>,
    log_weight: f64,
}

impl Point {
    fn at(readings: &Readings, seen: &Seen, model: &SensorModel, length: f64, delay: f64) -> Self {
        let shares = seen.through(length);
        let mut sums = Sums::default();
        let mut within: Vec<(f64, f64)> = Vec::new();
        let (mut by_time, mut log_norm) = (0.0, 0.0);
        for (time, watts, doubt) in &readings.all {
            let row = shares(time - delay);
            // Above the lowest, so that sums of squares keep their digits.
            let above = watts - readings.lowest;
            if row[0] > 1e-9 {
                let by_time = seen.doubt(time - delay, length, row[2], *doubt) / NOISE.powi(2);
                let weight = (1.0 + by_time).recip();
                log_norm += 0.5 * weight.ln();
                sums.add(row * weight.sqrt(), above * weight.sqrt());
            } else {
                within.push((row[2], above));
                by_time += seen.doubt(time - delay, length, row[2], *doubt);
            }
        }
        sums.add_mixtures(&within, by_time);
        let Sums { gram, moment, square } = sums;
        let (expected, scale) = expected_delay(model, readings.tick);
        let by_delay = -(1.0 + ((delay - expected) / scale).powi(2)).ln();
        let given = length_of(model, Nanoseconds::from_secs_f64(readings.tick)).as_secs_f64();
        let by_length = match model.length_error {
            error if error > 0.0 => -0.5 * ((length / given).ln() / error).powi(2),
            _ => 0.0,
        };
        Self { length, delay, log_prior: by_delay + by_length + log_norm, gram, moment, square }
    }

    fn solve(&self, spread: f64, readings: &Readings) -> Solved {
        let range = readings.range;
        let precision = |deviation: f64| deviation.powi(-2);
        let (rest_like, rest, high) =
            (precision(REST_LIKE * range), precision(range), precision(HIGH_LIKE * range));
        // Rest about at the lowest reading, what lies between loads about as much, load about at the highest.
        let prior =
            Matrix3::new(rest + rest_like, -rest_like, 0.0, -rest_like, rest_like, 0.0, 0.0, 0.0, high);
        let expected = Vector3::new(0.0, 0.0, high * (readings.highest - readings.lowest));
        let data = spread.powi(-2);
        let whole = self.gram * data + prior;
        let moment = self.moment * data + expected;
        let covariance = whole.try_inverse().unwrap_or_else(|| Matrix3::identity() * range * range);
        let above = covariance * moment;
        let cost = self.square * data - moment.dot(&above);
        let log_weight =
            self.log_prior - 0.5 * cost + 0.5 * covariance.determinant().max(f64::MIN_POSITIVE).ln();
        Solved { mean: above.add_scalar(readings.lowest), covariance, log_weight }
    }

    /// Sum of the squares of what the levels leave unexplained.
    fn unexplained(&self, spread: f64, readings: &Readings) -> f64 {
        let above = self.solve(spread, readings).mean.add_scalar(-readings.lowest);
        (self.square - 2.0 * self.moment.dot(&above) + above.dot(&(self.gram * above))).max(0.0)
    }
}

/// Seconds between a window's end and its answer, and how far that may be off: as far as a fifth of a refresh where it was
/// never measured. Clocks may differ by more, so far off is not out of the question.
fn expected_delay(model: &SensorModel, tick: f64) -> (f64, f64) {
    const CLOSEST: f64 = 1e-3;
    model.delay.map_or((0.0, 0.2 * tick), |delay| (delay.seconds, delay.std_error.max(CLOSEST)))
}

/// Lengths to both sides of that of the model.
const LENGTHS: i32 = 6;

/// All lengths and delays that may be.
fn grid(readings: &Readings, seen: &Seen, model: &SensorModel) -> Vec<Point> {
    let tick = readings.tick;
    let length = length_of(model, Nanoseconds::from_secs_f64(tick)).as_secs_f64();
    let steps = if model.length_error > 0.0 { LENGTHS } else { 0 };
    let lengths = (-steps..=steps)
        .map(|step| length * (2.0 * model.length_error * f64::from(step) / f64::from(LENGTHS)).exp());
    let reach = (1.2 * tick).max(0.1);
    let (expected, _) = expected_delay(model, tick);
    let step = (length / 12.0).clamp(reach / 120.0, reach / 24.0);
    let count = (reach / step).ceil() as i32;
    lengths
        .flat_map(|length| (-count..=count).map(move |at| (length, expected + step * f64::from(at))))
        .map(|(length, delay)| Point::at(readings, seen, model, length, delay))
        .collect()
}

/// Which explains the readings best, and how far they then are off.
fn best(points: &[Point], spread: f64, readings: &Readings) -> (usize, f64) {
    let weight = |at: &usize| points[*at].solve(spread, readings).log_weight;
    let at = (0..points.len()).max_by(|a, b| weight(a).total_cmp(&weight(b))).unwrap_or(0);
    let free = (readings.all.len() as f64 - 4.0).max(1.0);
    let found = (points[at].unexplained(spread, readings) / free).sqrt();
    (at, found.max(1e-4 * readings.range))
}

/// The delay of a window of another length: what is found of the middle of a window hardly depends on its length.
fn delay_of(other: f64, (length, delay): (f64, f64)) -> f64 {
    delay + (length - other) / 2.0
}

/// Between the points of a grid: of each length the best delays, which are narrower than its steps where readings are
/// explained closely; and the best length of all.
fn refined(
    readings: &Readings,
    seen: &Seen,
    model: &SensorModel,
    points: &[Point],
    spread: f64,
) -> Vec<Point> {
    let point = |length: f64, delay: f64| Point::at(readings, seen, model, length, delay);
    let weight = |of: &Point| of.solve(spread, readings).log_weight;
    let step = points.windows(2).map(|pair| (pair[1].delay - pair[0].delay).abs()).fold(f64::MAX, f64::min);
    let best_delay = |length: f64, delay: f64| {
        golden_section(delay - step, delay + step, |delay| -weight(&point(length, delay)))
    };
    let around = |length: f64, delay: f64| {
        [-0.25, -0.06, 0.0, 0.06, 0.25].map(|part: f64| point(length, delay + part * step))
    };
    let mut found = Vec::new();
    let mut best: Option<(f64, f64, f64)> = None;
    for of_length in points.chunk_by(|a, b| a.length == b.length) {
        let Some(coarse) = of_length.iter().max_by(|a, b| weight(a).total_cmp(&weight(b))) else { continue };
        let delay = best_delay(coarse.length, coarse.delay);
        found.extend(around(coarse.length, delay));
        let reached = weight(&point(coarse.length, delay));
        if best.is_none_or(|(before, ..)| reached > before) {
            best = Some((reached, coarse.length, delay));
        }
    }
    if let (Some((_, length, delay)), true) = (best, model.length_error > 0.0) {
        let at = |log: f64| {
            let longer = length * log.exp();
            (longer, delay_of(longer, (length, delay)))
        };
        let by = 2.0 * model.length_error / f64::from(LENGTHS);
        let (length, delay) = at(golden_section(-by, by, |log| -weight(&point(at(log).0, at(log).1))));
        found.extend(around(length, best_delay(length, delay)));
    }
    found
}

#[cfg(test)]
#[path = "levels_tests.rs"]
mod tests;
