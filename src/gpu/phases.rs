//! Bursts of load in a corrected trace, and the level that the GPU waits at between them.

use super::curve::Segment;
use crate::numerics::quantiles;
use crate::units::{Joules, Nanoseconds, Timestamp, Watts};

/// A stretch of time in which the GPU worked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// When it began.
    pub start: Timestamp,
    /// When it ended.
    pub end: Timestamp,
    /// All energy in it, idle included.
    pub energy: Joules,
}

impl Phase {
    /// Its length.
    pub fn duration(&self) -> Nanoseconds {
        self.end.since(self.start)
    }

    /// Its mean power.
    pub fn mean(&self) -> Watts {
        self.energy / self.duration()
    }
}

/// The power that the GPU falls back to right after a load ends: the "active idle" level, at which a
/// context is kept ready. It is above the level of a GPU that nobody uses, to which it may fall later.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IdleLevel {
    /// Its power.
    pub power: Watts,
    /// One standard error, by how far the levels after single loads lie apart and how steady they are.
    pub std_error: Watts,
}

/// The active idle level of a sensor that takes so long to settle after a change of load: the second after that counts,
/// and only of ends of load after which the GPU rests for longer.
///
/// The median, over all ends of load, of the level that follows within a second. `None` if no load
/// ends in the trace or the power hardly varies. Readings stand for the middle of their window, so that what is smeared
/// lies half of the settling before a switch and half behind it: of a rest that is shorter no reading tells the level.
pub fn idle_level(segments: &[Segment], noise: Watts, settling: Nanoseconds) -> Option<IdleLevel> {
    let middle = middle_level(segments, noise)?;
    let mut levels: Vec<f64> = Vec::new();
    let mut scatter: Vec<f64> = Vec::new();
    for end in 1..segments.len() {
        if segments[end - 1].power <= middle || segments[end].power > middle {
            continue;
        }
        let rest = segments[end..].iter().take_while(|segment| segment.power <= middle).count();
        let next_load = segments.get(end + rest).map(|segment| segment.start);
        if let Some((level, error)) = level_after_load(&segments[end..end + rest], next_load, settling) {
            levels.push(level);
            scatter.push(error);
        }
    }
    let power = quantiles::median(&mut levels)?;
    let ends = levels.len() as f64;
    let within = (scatter.iter().sum::<f64>() / ends).max(noise.as_watts());
    let between = spread(levels.iter().copied()).unwrap_or(0.0);
    let std_error = Watts::from_watts(within.hypot(between) / ends.sqrt());
    Some(IdleLevel { power: Watts::from_watts(power), std_error })
}

/// The level of one rest in watts, and how steady it is; `None` where it is too short for the sensor to settle.
fn level_after_load(
    rest: &[Segment],
    next_load: Option<Timestamp>,
    settling: Nanoseconds,
) -> Option<(f64, f64)> {
    let (first, last) = (rest.first()?, rest.last()?);
    if last.end.since(first.start) < settling {
        return None;
    }
    let half = Nanoseconds::from_nanos(settling.as_nanos() / 2);
    let from = first.start + half;
    let until = from + Nanoseconds::from_millis(1000);
    let is_settled = |segment: &&Segment| {
        let is_before_load = next_load.is_none_or(|load| segment.end + half <= load);
        settling == Nanoseconds::ZERO || segment.start >= from && is_before_load
    };
    let settled: Vec<&Segment> = rest.iter().filter(is_settled).collect();
    // The first may still hold a rest of the transition.
    let is_longer = |pair: &[&Segment]| pair[0].duration() > pair[1].duration();
    let count = settled.partition_point(|segment| segment.start < until);
    let skipped = usize::from(count > 2 && !is_longer(&settled[..2]));
    // Steady power may be one segment, of which the second after the load is a part.
    let soon: Vec<Segment> = settled[skipped..count]
        .iter()
        .map(|segment| Segment { end: segment.end.min(until), ..**segment })
        .collect();
    let level = by_time(soon.iter(), 0.5)?;
    // Where the power falls on within the second, that tells nothing of the level before.
    let off =
        |segment: &Segment| ((segment.power.as_watts() - level).abs(), segment.duration().as_secs_f64());
    let mut off: Vec<(f64, f64)> = soon.iter().map(off).collect();
    off.sort_by(|a, b| a.0.total_cmp(&b.0));
    let stays = quantiles::weighted(&off, |(_, span)| *span, 0.5)?.0 / NORMAL_MEDIAN;
    // A sensor may give few readings of a rest. They do not tell whether the level stays: what comes later does.
    let changes = soon.windows(2).filter(|pair| pair[0].power != pair[1].power).count();
    let is_slow = settling > Nanoseconds::ZERO && changes < 2;
    let settled = settled[skipped..].iter().map(|segment| segment.power.as_watts());
    let moves = spread(settled).filter(|_| is_slow);
    Some((level, moves.map_or(stays, |moves| moves.max(stays))))
}

/// Half of all values of a normal distribution are within this many standard deviations of the mean.
const NORMAL_MEDIAN: f64 = 0.674_489_75;

/// Standard deviation; `None` of nothing.
pub(super) fn spread(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
    (count > 0.0).then(|| (squares / (count - 1.0).max(1.0)).sqrt())
}

/// The level two fifths of the way from quiet to the highest power, below which no load is taken to lie;
/// `None` if there is no such contrast.
pub fn middle_level(segments: &[Segment], noise: Watts) -> Option<Watts> {
    let low = by_time(segments.iter(), 0.05)?;
    let high = segments.iter().map(|segment| segment.power.as_watts()).fold(f64::MIN, f64::max);
    (high - low > 10.0 * noise.as_watts() && high - low > 0.1 * high.abs())
        .then(|| Watts::from_watts(low + 0.4 * (high - low)))
}

/// The power that is not exceeded during this share of the time.
fn by_time<'a>(segments: impl Iterator<Item = &'a Segment>, share: f64) -> Option<f64> {
    let mut powers: Vec<(f64, f64)> =
        segments.map(|segment| (segment.power.as_watts(), segment.duration().as_secs_f64())).collect();
    powers.sort_by(|a, b| a.0.total_cmp(&b.0));
    quantiles::weighted(&powers, |(_, span)| *span, share).map(|(power, _)| *power)
}

/// A level a little above active idle: what lies above it is work.
///
/// Five standard deviations of a segment, or 5 % of the way to the highest power.
pub fn work_threshold(segments: &[Segment], active_idle: Watts, noise: Watts) -> Watts {
    let highest = segments.iter().map(|segment| segment.power.as_watts()).fold(f64::MIN, f64::max);
    let margin = (5.0 * noise.as_watts()).max(0.05 * (highest - active_idle.as_watts()));
    active_idle + Watts::from_watts(margin.max(0.0))
}

/// Stretches whose power is above `threshold`.
pub fn above(segments: &[Segment], threshold: Watts) -> Vec<Phase> {
    let mut phases: Vec<Phase> = Vec::new();
    for segment in segments.iter().filter(|segment| segment.power > threshold) {
        match phases.last_mut() {
            Some(phase) if phase.end == segment.start => {
                phase.end = segment.end;
                phase.energy += segment.energy();
            }
            _ => phases.push(Phase { start: segment.start, end: segment.end, energy: segment.energy() }),
        }
    }
    phases
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a sensor that settles at once.
    fn active_idle(segments: &[Segment], noise: Watts) -> Option<Watts> {
        idle_level(segments, noise, Nanoseconds::ZERO).map(|level| level.power)
    }

    fn staircase(levels: &[(f64, f64)]) -> Vec<Segment> {
        let mut time = 0.0;
        let mut segments = Vec::new();
        for (seconds, watts) in levels {
            for _ in 0..(seconds * 100.0) as usize {
                let at = |t: f64| Timestamp::from_nanos((t * 1e9).round() as u64);
                segments.push(Segment {
                    start: at(time),
                    end: at(time + 0.01),
                    power: Watts::from_watts(*watts),
                });
                time += 0.01;
            }
        }
        segments
    }

    /// One segment of 10 ms for each power.
    fn powers(powers: &[f64]) -> Vec<Segment> {
        staircase(&powers.iter().map(|watts| (0.010_000_1, *watts)).collect::<Vec<_>>())
    }

    #[test]
    fn a_contrast_is_ten_times_the_noise_and_a_tenth_of_the_power() {
        let level = |high: f64, noise: f64| {
            middle_level(&powers(&[100.0, 100.0, high]), Watts::from_watts(noise)).map(Watts::as_watts)
        };
        assert_eq!(level(150.0, 4.9), Some(100.0 + 0.4 * 50.0));
        assert_eq!(level(150.0, 5.0), None);
        assert_eq!((level(111.0, 0.0), level(112.0, 0.0)), (None, Some(100.0 + 0.4 * 12.0)));
    }

    #[test]
    fn work_is_a_little_above_active_idle() {
        let threshold = |idle: f64, noise: f64| {
            work_threshold(&powers(&[20.0, 150.0]), Watts::from_watts(idle), Watts::from_watts(noise))
                .as_watts()
        };
        assert_eq!([threshold(50.0, 0.0), threshold(50.0, 0.9), threshold(50.0, 2.0)], [55.0, 55.0, 60.0]);
        assert_eq!(threshold(200.0, 0.0), 200.0, "never below it");
    }

    #[test]
    fn the_first_segment_after_a_load_counts_only_if_it_is_longer() {
        // A rest of the transition, then 50 W.
        let mut segments = powers(&[20.0, 150.0, 60.0, 50.0, 50.0]);
        assert_eq!(active_idle(&segments, Watts::ZERO), Some(Watts::from_watts(50.0)));
        // The first is as long as all the rest, and no rest of anything.
        segments[2].end = segments[2].end + Nanoseconds::from_millis(500);
        assert_eq!(active_idle(&segments, Watts::ZERO), Some(Watts::from_watts(60.0)));
        // Of two, both count.
        assert_eq!(
            active_idle(&powers(&[20.0, 150.0, 60.0, 50.0]), Watts::ZERO),
            Some(Watts::from_watts(50.0))
        );
        // 120 W are two fifths of the way from 100 to 150 W: no load lies as low as that.
        let at_the_middle = powers(&[100.0, 100.0, 150.0, 120.0, 120.0, 120.0]);
        assert_eq!(active_idle(&at_the_middle, Watts::ZERO), Some(Watts::from_watts(120.0)));
        // What comes a second later is another level, and so is what lies above the middle.
        let late = staircase(&[(2.0, 20.0), (1.0, 150.0), (1.0, 50.0), (5.0, 20.0)]);
        assert_eq!(active_idle(&late, Watts::ZERO), Some(Watts::from_watts(50.0)));
        let twice = staircase(&[(2.0, 20.0), (1.0, 150.0), (0.3, 50.0), (0.1, 150.0), (0.3, 40.0)]);
        assert_eq!(active_idle(&twice, Watts::ZERO), Some(Watts::from_watts(50.0)), "the upper of two");
    }

    #[test]
    fn work_is_what_lies_above_and_touches() {
        let mut segments = powers(&[60.0, 50.0, 60.0, 70.0]);
        let found = above(&segments, Watts::from_watts(50.0));
        assert_eq!(found.len(), 2, "the threshold itself is no work");
        assert_eq!(found[1].duration(), Nanoseconds::from_millis(20));
        assert!((found[1].mean().as_watts() - 65.0).abs() < 1e-9);
        segments[3].start = segments[3].start + Nanoseconds::from_nanos(1);
        assert_eq!(above(&segments, Watts::from_watts(50.0)).len(), 3);
    }

    #[test]
    fn active_idle_is_the_level_after_a_load_not_the_lowest() {
        let segments = staircase(&[(2.0, 20.0), (1.0, 158.5), (3.5, 52.5), (1.0, 44.0), (4.0, 20.0)]);
        assert_eq!(active_idle(&segments, Watts::ZERO), Some(Watts::from_watts(52.5)));
    }

    /// A window of a second goes down over a second after each load.
    #[test]
    fn a_slow_sensor_settles_before_its_idle_level_counts() {
        let down =
            |from: f64, to: f64| (1..=20).map(move |at| (0.05, from + (to - from) * f64::from(at) / 20.0));
        let rest = |idle: f64| (0..200).map(move |at| (0.010_000_1, idle + f64::from(at % 2)));
        let load =
            |idle: f64| [(1.0, 20.0), (2.0, 150.0)].into_iter().chain(down(150.0, idle)).chain(rest(idle));
        let segments = staircase(&load(50.0).chain(load(54.0)).collect::<Vec<_>>());
        let settling = Nanoseconds::from_millis(1000);
        let found = idle_level(&segments, Watts::from_watts(1.0), settling).expect("loads end");
        assert_eq!(found.power, Watts::from_watts(55.0), "the upper of two");
        // Two levels 5 W apart, of 50 or 51 and 54 or 55 W, which are known to 1 W each.
        assert!(
            (found.std_error.as_watts() - (12.5f64 + 1.0).sqrt() / 2f64.sqrt()).abs() < 1e-9,
            "{found:?}"
        );
        // Without a rest that long there is none.
        let short = staircase(&[(1.0, 20.0), (2.0, 150.0), (0.8, 50.0), (2.0, 150.0), (0.8, 50.0)]);
        assert_eq!(idle_level(&short, Watts::ZERO, settling), None);
        assert!(active_idle(&short, Watts::ZERO).is_some());
    }

    #[test]
    fn readings_that_touch_what_is_smeared_are_settled() {
        let at = |millis: u64| Timestamp::from_nanos(millis * 1_000_000);
        let segment = |(start, end, watts): (u64, u64, f64)| Segment {
            start: at(start),
            end: at(end),
            power: Watts::from_watts(watts),
        };
        // A rest of 400 ms between loads; of a sensor that settles in 200 ms its inner half counts.
        let segments = [
            (0, 1000, 20.0),
            (1000, 2000, 150.0),
            (2000, 2100, 60.0),
            (2100, 2200, 50.0),
            (2200, 2300, 44.0),
            (2300, 2400, 60.0),
            (2400, 3000, 150.0),
        ]
        .map(segment);
        let found = idle_level(&segments, Watts::ZERO, Nanoseconds::from_millis(200)).expect("a load ends");
        assert_eq!(found.power, Watts::from_watts(44.0), "the lower half of 50 and 44 W");
    }

    #[test]
    fn a_spread_has_one_value_less_than_there_are() {
        let of = |values: &[f64]| spread(values.iter().copied());
        assert_eq!((of(&[]), of(&[3.0]), of(&[1.0, 2.0, 3.0])), (None, Some(0.0), Some(1.0)));
        assert_eq!(of(&[0.0, 0.0, 4.0, 4.0, 2.0]), Some(2.0));
    }

    /// Levels of steady power, as they are found: 52 W after each of two loads, for 0.8 s after the second, and 25 W for long.
    #[test]
    fn of_a_long_level_only_what_lies_within_the_second_counts() {
        let steps =
            [(0.0, 25.0), (1.0, 140.0), (2.2, 52.0), (3.1, 90.0), (3.6, 52.0), (4.4, 25.0), (9.0, 25.0)];
        let at = |seconds: f64| Timestamp::from_nanos((seconds * 1e9).round() as u64);
        let segment = |pair: &[(f64, f64)]| Segment {
            start: at(pair[0].0),
            end: at(pair[1].0),
            power: Watts::from_watts(pair[0].1),
        };
        let segments: Vec<Segment> = steps.windows(2).map(segment).collect();
        let found = idle_level(&segments, Watts::from_watts(0.5), Nanoseconds::ZERO).expect("loads end");
        assert_eq!(found.power, Watts::from_watts(52.0));
        assert!((found.std_error.as_watts() - 0.5 / 2f64.sqrt()).abs() < 1e-9, "{found:?}");
    }

    /// One that gives few readings of a rest holds each of them for long: whether the level stays only later ones tell.
    #[test]
    fn a_level_that_was_read_once_is_as_uncertain_as_the_rest_moves() {
        let segments = staircase(&[(1.0, 20.0), (2.0, 150.0), (1.6, 60.0), (1.0, 50.0), (1.0, 40.0)]);
        let found = |settling: u64| {
            let level = idle_level(&segments, Watts::from_watts(1.0), Nanoseconds::from_millis(settling))
                .expect("it ends");
            (level.power.as_watts(), level.std_error.as_watts())
        };
        let (power, error) = found(1000);
        // 109 of 60 W, 100 of 50 and 100 of 40.
        assert!(power == 60.0 && (error - 8.232_4).abs() < 1e-3, "{power} {error}");
        assert_eq!(found(0), (60.0, 1.0), "what settles at once is read often");
    }

    #[test]
    fn a_flat_trace_has_no_active_idle() {
        assert_eq!(active_idle(&staircase(&[(2.0, 20.0), (2.0, 20.5)]), Watts::from_watts(0.2)), None);
        assert_eq!(active_idle(&[], Watts::ZERO), None);
    }

    #[test]
    fn bursts_are_found_with_their_energy() {
        let segments = staircase(&[(1.0, 20.0), (0.5, 150.0), (1.0, 50.0), (0.2, 120.0), (1.0, 50.0)]);
        let threshold = work_threshold(&segments, Watts::from_watts(50.0), Watts::from_watts(0.5));
        let phases = above(&segments, threshold);
        assert_eq!(phases.len(), 2);
        assert!((phases[0].energy.as_joules() - 75.0).abs() < 1e-9);
        assert!((phases[1].mean().as_watts() - 120.0).abs() < 1e-9);
    }
}
