//! The verdict from the trace alone.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::exponential::{Exponential, best_exponential};
use super::step::{Shape, Transition, transitions};
use crate::gpu::correct;
use crate::gpu::phases;
use crate::gpu::refresh::{self, RefreshPeriod};
use crate::gpu::sensor::{SensorKind, SensorModel};
use crate::gpu::stretches::{jitter, reading_noise};
use crate::gpu::trace::PowerTrace;
use crate::numerics::quantiles;
use crate::numerics::search::golden_section;
use crate::units::{Nanoseconds, Watts};

/// What a trace tells about its sensor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The sensor.
    pub model: SensorModel,
    /// How its refresh period was found.
    pub refresh: RefreshPeriod,
    /// The best answers to single steps, if there are steps around which the sensor has settled.
    pub shapes: Option<Shapes>,
    /// The best time constant for the whole trace, settled or not, if that is the verdict.
    pub exponential: Option<Exponential>,
    /// What a reader must know about this verdict.
    pub notes: Vec<String>,
}

/// Both shapes put through the steps that stand apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shapes {
    /// The best exponential answer.
    pub rc: ShapeFit,
    /// The best straight answer.
    pub boxcar: ShapeFit,
    /// Load steps that were fitted.
    pub steps: usize,
    /// Load steps at which the load did not switch at once.
    pub dropped: usize,
}

/// One shape put through all steps with one length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShapeFit {
    /// Time constant or window.
    pub length: Nanoseconds,
    /// The length each step would have had by itself.
    pub by_step: Vec<Nanoseconds>,
    /// Root mean square residual as a share of the step.
    pub residual: f64,
}

/// Why a trace does not tell its sensor's kind.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Refusal {
    /// Not enough changes to see a period.
    #[error(
        "{readings} readings with {changes} changes of value are too few; record at least ten seconds with a load in the middle"
    )]
    TooShort {
        /// Polls.
        readings: usize,
        /// Changes of value.
        changes: usize,
    },
    /// The power hardly varies.
    #[error(
        "no load step: power only varies from {lowest} to {highest}. Record a trace in which a load starts or ends, \
         with two seconds of idle before and after it"
    )]
    NoStep {
        /// Lowest power.
        lowest: Watts,
        /// Highest power.
        highest: Watts,
    },
    /// Steps were found, but not one with enough readings around it.
    #[error(
        "{found} load steps, but none with steady readings on both sides: the load must stay on and off for longer \
         than the sensor takes to settle"
    )]
    NoCleanStep {
        /// Steps found.
        found: usize,
    },
    /// The power changes more slowly than any sensor lags.
    #[error(
        "no sharp edge: the power takes {length} to follow the load, and no known sensor needs more than {longest}, so it is \
         the load that rises or falls slowly. Record a load that starts and ends at once, with two seconds of rest before \
         and after it (`eprof gpu calibrate --load` makes one)"
    )]
    NoSharpEdge {
        /// What would have been the sensor's window or time constant.
        length: Nanoseconds,
        /// The longest that is believed.
        longest: Nanoseconds,
    },
    /// The power is never steady.
    #[error(
        "no sharp edge: the power goes up and down without a rest between, as a slow load does as well as a slow sensor. \
         Record a load that starts and ends at once, with two seconds of rest before and after it (`eprof gpu calibrate \
         --load` makes one)"
    )]
    NeverAtRest,
    /// Neither shape describes the steps.
    #[error(
        "bad fit: the best exponential (time constant {rc}) misses by {rc_residual} of the step and the best straight \
         line (window {boxcar}) by {boxcar_residual}; at most {limit} is accepted. The load may not switch at once, \
         or clocks may have changed during it"
    )]
    BadFit {
        /// Best time constant.
        rc: Nanoseconds,
        /// Its residual, a percentage as text.
        rc_residual: String,
        /// Best window.
        boxcar: Nanoseconds,
        /// Its residual.
        boxcar_residual: String,
        /// The limit.
        limit: String,
    },
    /// Both shapes describe the steps alike.
    #[error(
        "kinds cannot be told apart: an exponential of {rc} and a window of {boxcar} fit alike ({rc_residual}, \
         {boxcar_residual}). Record more load steps, or give the switching times (--steps) or a meter's log (--meter)"
    )]
    Ambiguous {
        /// Best time constant.
        rc: Nanoseconds,
        /// Its residual.
        rc_residual: String,
        /// Best window.
        boxcar: Nanoseconds,
        /// Its residual.
        boxcar_residual: String,
    },
}

/// Largest residual that is accepted, as a share of the step.
const WORST_RESIDUAL: f64 = 0.06;
/// The slowest sensors known average over a second (NVIDIA's from Ampere on) or charge with a constant of 0.83 s (Tesla K20).
const LONGEST: Nanoseconds = Nanoseconds::from_millis(1500);
/// Of a load that starts and ends at once a slow sensor shows nothing of its lag for at least so much of the time. A sine moves
/// by less than a quarter of its fastest for a sixth of it.
const LEAST_REST: f64 = 0.25;
/// The kinds are told apart if the sum of squares of one is this many times the other's.
const CLEAR_RATIO: f64 = 1.5;

/// Finds out what sensor wrote a trace.
///
/// Each step of load is fitted with an exponential and with a straight answer, all steps sharing one
/// length, if there are steps around which the sensor has settled. Beside that the whole trace is taken
/// for stretches of steady power that charge a capacitor ([`Exponential`]): that needs no settling, so
/// where it explains the trace clearly better than straight lines do, it is the verdict. A lag that ends within one and a half refreshes shows too few readings to tell its
/// shape: then the sensor is taken for a boxcar of at most that window, for which nothing is deconvolved.
///
/// # Errors
/// [`Refusal`] with the reason.
pub fn calibrate(trace: &PowerTrace) -> Result<Calibration, Refusal> {
    let readings = trace.readings();
    let changes = readings.windows(2).filter(|pair| pair[0].power != pair[1].power).count();
    let period =
        refresh::infer_period(trace).ok_or(Refusal::TooShort { readings: readings.len(), changes })?;
    let refreshes = refresh::refreshes(trace, &period);
    let Some(origin) = refreshes.first().map(|refresh| refresh.time()) else {
        return Err(Refusal::TooShort { readings: readings.len(), changes });
    };
    let times: Vec<f64> =
        refreshes.iter().map(|refresh| refresh.time().since(origin).as_secs_f64()).collect();
    let watts: Vec<f64> = refreshes.iter().map(|refresh| refresh.power.as_watts()).collect();
    let noise = jitter(&watts);
    let (lowest, highest) = quantiles::range(watts.iter().copied());
    if highest - lowest < (12.0 * noise).max(0.08 * highest).max(2.0) {
        return Err(Refusal::NoStep {
            lowest: Watts::from_watts(lowest),
            highest: Watts::from_watts(highest),
        });
    }

    let tick = period.period.as_secs_f64();
    let shapes = Shapes::of(&times, &watts, tick, noise);
    let guess = shapes.as_ref().map_or(0.5, |shapes| shapes.rc.length.as_secs_f64());
    let exponential = best_exponential(&times, &watts, reading_noise(&watts), tick, guess);
    let by_steps = shapes.as_ref().map_err(Refusal::clone).and_then(|shapes| decide(shapes, &period));
    let steps_say_rc = matches!(by_steps, Ok((SensorKind::Rc { .. }, ..)));
    let exponential =
        exponential.filter(|found| found.explains(times.len()) && (found.outlasts(tick) || steps_say_rc));
    let (kind, length_error, notes) = match exponential {
        Some(found) => {
            let time_constant = Nanoseconds::from_secs_f64(found.constant);
            (SensorKind::Rc { time_constant }, found.std_error(), Vec::new())
        }
        None => believable(by_steps?)?,
    };
    let mut calibration = Calibration {
        model: SensorModel { refresh: Some(period.period), length_error, ..SensorModel::new(kind) },
        refresh: period,
        shapes: shapes.ok(),
        exponential,
        notes,
    };
    let idle = correct::correct(trace, &calibration.model).ok().and_then(|corrected| {
        phases::idle_level(&corrected.levels, corrected.level_noise, corrected.settling())
    });
    calibration.model = calibration.model.with_active_idle(idle);
    if calibration.model.active_idle.is_none() {
        calibration.notes.push(
            "no load ends in the trace with a rest after it in which the sensor settles, so the active idle level is not known"
                .into(),
        );
    }
    Ok(calibration)
}

/// What steps say of a sensor's length, unless no sensor is as slow. (A capacitor that explains all of a trace shows in sharp
/// edges all over it, and may be slower.)
fn believable(found: (SensorKind, f64, Vec<String>)) -> Result<(SensorKind, f64, Vec<String>), Refusal> {
    match found.0 {
        SensorKind::Rc { time_constant: length } | SensorKind::Boxcar { window: length }
            if length > LONGEST =>
        {
            Err(Refusal::NoSharpEdge { length, longest: LONGEST })
        }
        _ => Ok(found),
    }
}

impl Shapes {
    fn of(times: &[f64], watts: &[f64], tick: f64, noise: f64) -> Result<Self, Refusal> {
        let all = transitions(times, watts, tick, noise);
        let found = all.len();
        let (low, high) = quantiles::range(watts.iter().copied());
        let steps = clean(all, tick, high - low);
        if steps.is_empty() {
            return Err(Refusal::NoCleanStep { found });
        }
        let followed: Vec<Transition> =
            steps.iter().filter(|step| is_followed(step, tick)).cloned().collect();
        let dropped = steps.len() - followed.len();
        let steps = if followed.is_empty() { steps } else { followed };
        let (rc, boxcar) = (fit_shape(&steps, Shape::Rc, tick), fit_shape(&steps, Shape::Boxcar, tick));
        let length = if rc.residual <= boxcar.residual { rc.length } else { boxcar.length }.as_secs_f64();
        if length > 2.0 * tick && resting_share(watts, (length / 4.0 / tick) as usize) < LEAST_REST {
            return Err(Refusal::NeverAtRest);
        }
        Ok(Self { rc, boxcar, steps: steps.len(), dropped })
    }
}

/// The kind by single steps, one standard error of its length as a share of it, and what is to be said.
fn decide(shapes: &Shapes, period: &RefreshPeriod) -> Result<(SensorKind, f64, Vec<String>), Refusal> {
    let Shapes { rc, boxcar, steps, dropped } = shapes;
    let mut notes = Vec::new();
    if *dropped > 0 {
        let all = dropped + steps;
        notes.push(format!("{dropped} of {all} load steps left out: the load did not switch at once there"));
    }
    if !period.resolved {
        notes.push(format!(
            "every poll saw a new value: the sensor refreshes at least every {}, how often is not known",
            period.poll_interval
        ));
    }
    let tick = period.period.as_secs_f64();
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    if rc.residual.min(boxcar.residual) > WORST_RESIDUAL {
        return Err(Refusal::BadFit {
            rc: rc.length,
            rc_residual: percent(rc.residual),
            boxcar: boxcar.length,
            boxcar_residual: percent(boxcar.residual),
            limit: percent(WORST_RESIDUAL),
        });
    }
    // Within two refreshes a step leaves too few readings to tell a shape, or from a load that rises in two.
    let clearly_rc = rc.residual < 0.02
        && (boxcar.residual / rc.residual).powi(2) > 4.0
        && rc.length.as_secs_f64() > 0.4 * tick;
    if boxcar.length.as_secs_f64() < 2.0 * tick && rc.length.as_secs_f64() < 1.2 * tick && !clearly_rc {
        notes.push(format!(
            "the sensor settles within about one refresh: its window is at most {0}, half of that is assumed, and \
             nothing is deconvolved. `eprof gpu calibrate` tells the window by a meter's log (--meter) or the switching \
             times of the load (--steps), and `gpu correct --sensor` takes what it saves",
            period.period
        ));
        let window = Nanoseconds::from_nanos(period.period.as_nanos() / 2);
        // Anything up to the refresh period, evenly.
        return Ok((SensorKind::Boxcar { window }, 1.0 / 3f64.sqrt(), notes));
    }
    let (best, other) = if rc.residual <= boxcar.residual { (rc, boxcar) } else { (boxcar, rc) };
    if (other.residual / best.residual).powi(2) < CLEAR_RATIO {
        return Err(Refusal::Ambiguous {
            rc: rc.length,
            rc_residual: percent(rc.residual),
            boxcar: boxcar.length,
            boxcar_residual: percent(boxcar.residual),
        });
    }
    let spread = spread(&best.by_step);
    if spread > 0.3 {
        notes.push(format!(
            "the steps differ: lengths spread by {:.0} % around the common one",
            spread * 100.0
        ));
    }
    let kind = if rc.residual <= boxcar.residual {
        SensorKind::Rc { time_constant: rc.length }
    } else {
        SensorKind::Boxcar { window: boxcar.length }
    };
    Ok((kind, best.std_error(), notes))
}

/// Steps of at least a quarter of the range with readings on both sides, judged by a first fit.
fn clean(steps: Vec<Transition>, tick: f64, range: f64) -> Vec<Transition> {
    let usable = |step: &Transition| {
        let before = step.times.iter().filter(|time| **time < step.switched.0 + 1.5 * tick).count();
        step.times.len() >= 7 && before >= 2 && {
            let change = step.watts[step.watts.len() - 1] - step.watts[0];
            change.abs() > 0.25 * range
        }
    };
    steps.into_iter().filter(usable).collect()
}

/// Share of the readings from which on the power moves by less than a quarter of its fastest over so many readings.
fn resting_share(watts: &[f64], over: usize) -> f64 {
    let moves: Vec<f64> =
        watts.iter().zip(watts.iter().skip(over.max(1))).map(|(now, then)| (then - now).abs()).collect();
    let (_, fastest) = quantiles::range(moves.iter().copied());
    moves.iter().filter(|step| **step < fastest / 4.0).count() as f64 / moves.len().max(1) as f64
}

/// One of the shapes describes this step by itself.
fn is_followed(step: &Transition, tick: f64) -> bool {
    let alone = std::slice::from_ref(step);
    [Shape::Rc, Shape::Boxcar]
        .into_iter()
        .any(|shape| misfit(alone, shape, best_length(alone, shape, tick)).sqrt() <= WORST_RESIDUAL)
}

/// Sum over the steps of squared residuals as shares of the step, per reading.
fn misfit(steps: &[Transition], shape: Shape, length: f64) -> f64 {
    let shares = |step: &Transition| {
        let fit = step.fit(shape, length)?;
        Some((fit.residual / step.range().powi(2).max(1e-9), step.times.len()))
    };
    let sums = steps.iter().filter_map(shares).fold((0.0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    if sums.1 == 0 { f64::MAX } else { sums.0 / sums.1 as f64 }
}

fn fit_shape(steps: &[Transition], shape: Shape, tick: f64) -> ShapeFit {
    let length = best_length(steps, shape, tick);
    let by_step = steps
        .iter()
        .map(|step| Nanoseconds::from_secs_f64(best_length(std::slice::from_ref(step), shape, tick)));
    ShapeFit {
        length: Nanoseconds::from_secs_f64(length),
        by_step: by_step.collect(),
        residual: misfit(steps, shape, length).sqrt(),
    }
}

/// The length with the least misfit: a logarithmic grid, then a search around its best point.
fn best_length(steps: &[Transition], shape: Shape, tick: f64) -> f64 {
    const POINTS: u32 = 28;
    let longest =
        steps.iter().filter_map(|step| Some(step.times.last()? - step.times.first()?)).fold(tick, f64::max);
    let (low, high) = ((0.1 * tick).ln(), (0.8 * longest).max(tick).ln());
    let width = (high - low) / f64::from(POINTS);
    let misfit = |log: f64| misfit(steps, shape, log.exp());
    let best = (0..=POINTS)
        .map(|point| low + width * f64::from(point))
        .map(|log| (log, misfit(log)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map_or(low, |best| best.0);
    golden_section(best - width, best + width, misfit).exp()
}

/// Half the distance between the quartiles as a share of the median.
fn spread(lengths: &[Nanoseconds]) -> f64 {
    let mut sorted: Vec<f64> = lengths.iter().map(|length| length.as_secs_f64()).collect();
    sorted.sort_by(f64::total_cmp);
    let quartiles = [0.25, 0.5, 0.75].map(|share| quantiles::quantile(&sorted, share).unwrap_or(0.0));
    if sorted.len() < 2 { 0.0 } else { (quartiles[2] - quartiles[0]) / 2.0 / quartiles[1].max(1e-12) }
}

impl ShapeFit {
    /// One standard error of the length as a share of it: that of the mean of the steps' own lengths, from their quartiles
    /// (1.349 standard deviations apart where errors are normal); of one step, as good as nothing is known.
    fn std_error(&self) -> f64 {
        const OF_ONE: f64 = 0.3;
        const QUARTILES: f64 = 1.349;
        match self.by_step.len() {
            0 | 1 => OF_ONE,
            steps => spread(&self.by_step) * 2.0 / QUARTILES / (steps as f64).sqrt(),
        }
    }
}

impl Calibration {
    /// Residual of the kind that was chosen, as a share of the step or of the range.
    pub fn residual(&self) -> f64 {
        let steps =
            |shape: fn(&Shapes) -> &ShapeFit| self.shapes.as_ref().map(|shapes| shape(shapes).residual);
        let found = match self.model.kind {
            SensorKind::Rc { .. } => self.exponential.map(|found| found.residual),
            _ => steps(|shapes| &shapes.boxcar),
        };
        found.or_else(|| steps(|shapes| &shapes.rc)).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Nanoseconds {
        Nanoseconds::from_secs_f64(seconds)
    }

    fn fit(length: f64, residual: f64) -> ShapeFit {
        ShapeFit { length: seconds(length), by_step: vec![seconds(length); 4], residual }
    }

    /// Of a sensor that refreshes every 100 ms.
    fn verdict(rc: ShapeFit, boxcar: ShapeFit) -> Result<(SensorKind, f64, Vec<String>), Refusal> {
        let period = RefreshPeriod {
            period: Nanoseconds::from_millis(100),
            resolved: true,
            poll_interval: Nanoseconds::from_millis(10),
            changes: 50,
        };
        decide(&Shapes { rc, boxcar, steps: 4, dropped: 0 }, &period)
    }

    fn kind(rc: ShapeFit, boxcar: ShapeFit) -> &'static str {
        match verdict(rc, boxcar) {
            Ok((SensorKind::Rc { .. }, ..)) => "rc",
            Ok((SensorKind::Boxcar { .. }, ..)) => "boxcar",
            Ok((SensorKind::Counter, ..)) => "counter",
            Err(Refusal::Ambiguous { .. }) => "ambiguous",
            Err(Refusal::BadFit { .. }) => "bad",
            Err(_) => "another",
        }
    }

    #[test]
    fn the_better_shape_is_chosen_if_it_is_clearly_better() {
        // Squares of 1.5 to 1, to both sides.
        let times = 1.5f64.sqrt();
        assert_eq!(kind(fit(0.8, 0.02), fit(1.0, 0.02 * times * 1.001)), "rc");
        assert_eq!(kind(fit(0.8, 0.02), fit(1.0, 0.02 * times * 0.999)), "ambiguous");
        assert_eq!(kind(fit(0.8, 0.02 * times * 1.001), fit(1.0, 0.02)), "boxcar");
        assert_eq!(kind(fit(0.8, 0.02 * times * 0.999), fit(1.0, 0.02)), "ambiguous");
        // The length is the better one's, and its error that of the mean of four equal ones.
        let (found, error, notes) = verdict(fit(0.8, 0.01), fit(1.0, 0.05)).expect("clear");
        assert_eq!((found, error), (SensorKind::Rc { time_constant: seconds(0.8) }, 0.0));
        assert_eq!(notes, [""; 0]);
        let (found, ..) = verdict(fit(0.8, 0.05), fit(1.0, 0.01)).expect("clear");
        assert_eq!(found, SensorKind::Boxcar { window: seconds(1.0) });
    }

    #[test]
    fn a_sine_hardly_rests() {
        let sine: Vec<f64> = (0..600).map(|i| (f64::from(i) * std::f64::consts::TAU / 60.0).sin()).collect();
        // The arc sine of a quarter, to both sides of each turn.
        let share = 2.0 * 0.25f64.asin() / std::f64::consts::PI;
        assert!((resting_share(&sine, 3) - share).abs() < 0.03, "{}", resting_share(&sine, 3));
        // Up within 10 readings and down again, with rests of 20.
        let level = |i: u32| {
            f64::from(match i % 60 {
                0..20 => 0,
                at @ 20..30 => at - 20,
                30..50 => 10,
                at => 60 - at,
            })
        };
        let steps: Vec<f64> = (0..600).map(level).collect();
        assert!((resting_share(&steps, 1) - 40.0 / 60.0).abs() < 0.02, "{}", resting_share(&steps, 1));
        assert_eq!(resting_share(&[], 4), 0.0);
    }

    #[test]
    fn a_misfit_of_six_per_cent_is_the_largest() {
        assert_eq!(kind(fit(0.8, 0.06), fit(1.0, 0.5)), "rc");
        assert_eq!(kind(fit(0.8, 0.0601), fit(1.0, 0.5)), "bad");
        assert_eq!(kind(fit(0.8, 0.5), fit(1.0, 0.06)), "boxcar");
        let refused = verdict(fit(0.8, 0.07), fit(1.0, 0.08)).expect_err("too bad").to_string();
        for part in ["time constant 800.0 ms) misses by 7.0 %", "(window 1.000 s) by 8.0 %; at most 6.0 %"] {
            assert!(refused.contains(part), "{refused}");
        }
    }

    /// A window of less than two refreshes and a time constant of less than 1.2: nothing tells the shape, but an exponential
    /// that is good, twice as good as a line, and longer than 0.4 of a refresh.
    #[test]
    fn what_settles_within_a_refresh_is_taken_for_half_of_one() {
        let short = |rc: ShapeFit, boxcar: ShapeFit| {
            let (kind, error, notes) = verdict(rc, boxcar).ok()?;
            let is_half =
                kind == SensorKind::Boxcar { window: Nanoseconds::from_millis(50) } && !notes.is_empty();
            Some(is_half.then_some(error))
        };
        let assumed = Some(Some(1.0 / 3f64.sqrt()));
        assert_eq!(short(fit(0.119, 0.03), fit(0.199, 0.05)), assumed);
        assert_eq!(short(fit(0.120, 0.03), fit(0.199, 0.05)), Some(None));
        assert_eq!(short(fit(0.119, 0.03), fit(0.200, 0.05)), Some(None));
        // Clearly an exponential.
        assert_eq!(short(fit(0.041, 0.0199), fit(0.1, 0.0399)), Some(None));
        assert_eq!(short(fit(0.041, 0.0200), fit(0.1, 0.0599)), assumed, "not good enough");
        assert_eq!(short(fit(0.041, 0.0199), fit(0.1, 0.0397)), assumed, "not twice as good");
        assert_eq!(short(fit(0.040, 0.0100), fit(0.1, 0.0399)), assumed, "too short");
    }

    #[test]
    fn what_a_reader_must_know_is_noted() {
        let period = RefreshPeriod {
            period: Nanoseconds::from_millis(100),
            resolved: false,
            poll_interval: Nanoseconds::from_millis(90),
            changes: 50,
        };
        let spread =
            |lengths: [f64; 4]| ShapeFit { by_step: lengths.map(seconds).to_vec(), ..fit(0.8, 0.01) };
        let noted = |rc: ShapeFit, dropped| {
            let shapes = Shapes { rc, boxcar: fit(1.0, 0.05), steps: 4, dropped };
            decide(&shapes, &period).expect("clear").2
        };
        let even = noted(fit(0.8, 0.01), 0);
        assert!(even.len() == 1 && even[0].starts_with("every poll saw a new value"), "{even:?}");
        // Quartiles of 0.7, 0.9 and 2 s.
        let all = noted(spread([0.4, 0.7, 0.9, 2.0]), 2);
        assert!(all.len() == 3 && all[0].starts_with("2 of 6 load steps left out"), "{all:?}");
        assert!(all[2].starts_with("the steps differ: lengths spread by 72 %"), "{all:?}");
        // Of 11 % nothing is said.
        assert_eq!(noted(spread([0.7, 0.8, 0.9, 1.0]), 0).len(), 1);
    }

    #[test]
    fn lengths_of_steps_tell_their_error() {
        assert_eq!(spread(&[]), 0.0);
        assert_eq!(spread(&[seconds(1.0)]), 0.0);
        // Quartiles of 1, 2, 3, 4, 5 are 2, 3 and 4.
        let five: Vec<Nanoseconds> = (1..=5).map(|at| seconds(f64::from(at))).collect();
        assert!((spread(&five) - 1.0 / 3.0).abs() < 1e-12, "{}", spread(&five));
        let of = |by_step: Vec<Nanoseconds>| ShapeFit { by_step, ..fit(1.0, 0.01) }.std_error();
        assert_eq!((of(Vec::new()), of(vec![seconds(1.0)])), (0.3, 0.3));
        assert!((of(five) - 2.0 / 3.0 / 1.349 / 5f64.sqrt()).abs() < 1e-12);
    }

    fn step(before: usize, after: usize, height: f64) -> Transition {
        let count = before + after;
        Transition {
            times: (0..count).map(|at| at as f64 * 0.1).collect(),
            watts: (0..count).map(|at| if at < before { 20.0 } else { 20.0 + height }).collect(),
            switched: (before as f64 * 0.1 - 0.2, before as f64 * 0.1),
        }
    }

    #[test]
    fn steps_need_readings_on_both_sides_and_a_quarter_of_the_range() {
        let kept = |step: Transition, range: f64| clean(vec![step], 0.1, range).len();
        assert_eq!((kept(step(3, 4, 100.0), 100.0), kept(step(3, 3, 100.0), 100.0)), (1, 0));
        // Readings before 1.5 refreshes behind the beginning of its switching.
        assert_eq!((kept(step(2, 8, 100.0), 100.0), kept(step(1, 9, 100.0), 100.0)), (1, 0));
        assert_eq!((kept(step(4, 4, 26.0), 100.0), kept(step(4, 4, 25.0), 100.0)), (1, 0));
        assert_eq!(kept(step(4, 4, -26.0), 100.0), 1);
    }
}
