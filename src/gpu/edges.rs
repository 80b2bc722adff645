//! Steps that a sensor smeared, put back to where they were.

use super::curve::Segment;
use crate::numerics::quantiles;
use crate::units::{Joules, Nanoseconds, Watts};

/// Replaces smeared transitions by steps.
///
/// Between two levels A and B, segments that only rise (or only fall) and last no longer than `smear`,
/// the time over which the sensor spreads a step, or are no more than two, are replaced by one step from A to B. Its time is
/// where the energy of the replaced segments is kept exactly. A change counts from four times `noise`
/// and 5 % of the trace's range. A slower or less regular transition is left as it is: then power did
/// change gradually.
pub fn sharpen(segments: &[Segment], smear: Nanoseconds, noise: Watts) -> Vec<Segment> {
    let (low, high) = quantiles::range(segments.iter().map(|segment| segment.power.as_watts()));
    let range = high - low;
    let least_step = (4.0 * noise.as_watts()).max(0.05 * range);
    let least_move = noise.as_watts().max(0.005 * range);

    // A step falls into one segment, or two where the time of the refresh between is uncertain.
    const MIXED: usize = 2;
    let mut sharp: Vec<Segment> = Vec::with_capacity(segments.len());
    let mut index = 0;
    while index < segments.len() {
        // The level after a change starts the search for the next one.
        let length = change(&segments[index..], least_move);
        let run = &segments[index..segments.len().min(index + length + 1)];
        sharp.push(segments[index]);
        match run {
            [first, between @ .., last] if !between.is_empty() => {
                let duration: Nanoseconds = between.iter().map(Segment::duration).sum();
                let smeared = between.len() <= MIXED || duration <= smear;
                if smeared && (last.power - first.power).as_watts().abs() > least_step {
                    sharp.extend(as_step(first, between, last));
                } else {
                    sharp.extend(between);
                }
            }
            _ => {}
        }
        index += length;
    }
    sharp
}

/// How many segments further the monotone change that starts after the first segment ends; 1 if the
/// power does not change there.
fn change(segments: &[Segment], least_move: f64) -> usize {
    let step = |index: usize| Some((segments.get(index + 1)?.power - segments.get(index)?.power).as_watts());
    let Some(direction) = step(0).filter(|step| step.abs() > least_move).map(f64::signum) else { return 1 };
    let mut level = 1;
    while step(level).is_some_and(|step| step * direction > least_move) {
        level += 1;
    }
    level
}

/// The segments between two levels as one step from the first's power to the last's.
fn as_step(first: &Segment, between: &[Segment], last: &Segment) -> impl Iterator<Item = Segment> {
    let start = first.end;
    let end = last.start;
    let duration = end.since(start);
    let energy: Joules = between.iter().map(Segment::energy).sum();
    let excess = energy - first.power * duration;
    let high = excess.as_joules() / (last.power - first.power).as_watts();
    let high = Nanoseconds::from_secs_f64(high.clamp(0.0, duration.as_secs_f64())).as_nanos();
    let edge = start + Nanoseconds::from_nanos(duration.as_nanos().saturating_sub(high));
    [Segment { start, end: edge, power: first.power }, Segment { start: edge, end, power: last.power }]
        .into_iter()
        .filter(|segment| segment.end > segment.start)
}

/// Splits segments where the power is known to have changed, at the borders of `levels`: before the
/// border the level before it holds, and the rest of the segment's energy comes after. Borders that agree
/// with a segment's own change nothing.
pub fn split(segments: &[Segment], levels: &[Segment]) -> Vec<Segment> {
    let mut parts = Vec::with_capacity(segments.len() + levels.len());
    let mut borders =
        levels.iter().skip(1).zip(levels).map(|(after, before)| (after.start, *before, *after)).peekable();
    for segment in segments {
        let mut rest = *segment;
        while let Some((border, before, after)) = borders.next_if(|(border, ..)| *border < segment.end) {
            if border <= rest.start {
                continue;
            }
            let first = Segment { end: border, power: before.power, ..rest };
            let left = Segment { start: border, end: rest.end, power: after.power };
            // What does not fit the two levels goes to both parts alike.
            let excess = (rest.energy() - first.energy() - left.energy()) / rest.duration();
            parts.push(Segment { power: first.power + excess, ..first });
            rest = Segment { power: left.power + excess, ..left };
        }
        parts.push(rest);
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::Timestamp;

    fn staircase(powers: &[f64]) -> Vec<Segment> {
        let at = |index: usize| Timestamp::from_nanos(index as u64 * 10_000_000);
        (0..powers.len())
            .map(|i| Segment { start: at(i), end: at(i + 1), power: Watts::from_watts(powers[i]) })
            .collect()
    }

    fn sharpened(powers: &[f64], noise: f64, smear: u64) -> bool {
        let before = staircase(powers);
        sharpen(&before, Nanoseconds::from_millis(smear), Watts::from_watts(noise)) != before
    }

    #[test]
    fn a_change_counts_beyond_four_times_the_noise_and_a_twentieth_of_the_range() {
        // Between 10 and 18 W: 8 W are four times 2 W.
        let steps = [10.0, 10.0, 14.0, 18.0, 18.0];
        assert!(sharpened(&steps, 1.99, 0) && !sharpened(&steps, 2.0, 0));
        // Of a range of 160 W, 8 W are a twentieth.
        let beside = |range: f64| [0.0, range, range, 10.0, 10.0, 14.0, 18.0, 18.0];
        assert!(sharpened(&beside(159.0), 0.0, 0) && !sharpened(&beside(160.0), 0.0, 0));
    }

    #[test]
    fn a_change_goes_on_as_long_as_it_moves_by_more_than_the_noise() {
        // The third step is no more than the noise: the change ends there.
        assert_eq!(change(&staircase(&[0.0, 10.0, 20.0, 21.0, 30.0]), 1.0), 2);
        assert_eq!(change(&staircase(&[0.0, 10.0, 20.0, 21.5, 30.0]), 1.0), 4);
        assert_eq!(change(&staircase(&[0.0, 1.0, 20.0]), 1.0), 1);
        assert_eq!(change(&staircase(&[9.0, 5.0, 1.0, 3.0]), 1.0), 2);
        // A two hundredth of the range is such a move, too: 0.5 W of 100 W.
        let powers = |step: f64| [10.0, 60.0, 60.0 + step, 110.0, 10.0, 10.0];
        let first = |step: f64| {
            let sharp = sharpen(&staircase(&powers(step)), Nanoseconds::from_millis(20), Watts::ZERO);
            sharp[1].power
        };
        assert_eq!(first(0.4), Watts::from_watts(60.0));
        assert_eq!(first(0.6), Watts::from_watts(10.0));
    }

    #[test]
    fn two_mixed_segments_are_a_step_however_short_the_smear() {
        assert!(sharpened(&[10.0, 10.0, 40.0, 70.0, 100.0, 100.0], 0.0, 0));
        assert!(!sharpened(&[10.0, 10.0, 30.0, 50.0, 70.0, 100.0, 100.0], 0.0, 29));
        assert!(sharpened(&[10.0, 10.0, 30.0, 50.0, 70.0, 100.0, 100.0], 0.0, 30));
    }

    #[test]
    fn a_step_is_where_the_energy_between_is_kept() {
        let at = Timestamp::from_nanos;
        let sharp =
            sharpen(&staircase(&[100.0, 100.0, 80.0, 30.0, 20.0, 20.0]), Nanoseconds::ZERO, Watts::ZERO);
        // 1.1 J over 100 W and 20 W in 20 ms: 8.75 ms at 100 W.
        let found: Vec<_> = sharp.iter().map(|segment| (segment.start, segment.power.as_watts())).collect();
        let expected = [
            (at(0), 100.0),
            (at(10_000_000), 100.0),
            (at(20_000_000), 100.0),
            (at(28_750_000), 20.0),
            (at(40_000_000), 20.0),
            (at(50_000_000), 20.0),
        ];
        assert_eq!(found, expected);
        // What begins or ends with a mixed segment that is none leaves no segment of no length.
        let sharp = sharpen(&staircase(&[10.0, 10.0, 10.4, 110.0, 110.0]), Nanoseconds::ZERO, Watts::ZERO);
        assert!(sharp.iter().all(|segment| segment.end > segment.start));
    }

    #[test]
    fn borders_at_the_ends_of_segments_split_nothing() {
        let at = Timestamp::from_nanos;
        let level = |start: u64, end: u64, watts| Segment {
            start: at(start),
            end: at(end),
            power: Watts::from_watts(watts),
        };
        let segments = staircase(&[10.0, 60.0, 110.0]);
        let levels = [
            level(0, 10_000_000, 10.0),
            level(10_000_000, 20_000_000, 60.0),
            level(20_000_000, 30_000_000, 110.0),
        ];
        assert_eq!(split(&segments, &levels), segments);
        // Two borders in one segment.
        let levels = [
            level(0, 12_000_000, 10.0),
            level(12_000_000, 16_000_000, 60.0),
            level(16_000_000, 30_000_000, 110.0),
        ];
        let parts = split(&segments, &levels);
        let starts: Vec<u64> = parts.iter().map(|part| part.start.as_nanos() / 1_000_000).collect();
        assert_eq!(starts, [0, 10, 12, 16, 20]);
        let energy = |segments: &[Segment]| segments.iter().map(Segment::energy).sum::<Joules>();
        assert!((energy(&segments) - energy(&parts)).abs().as_joules() < 1e-12);
    }

    #[test]
    fn a_mixed_interval_is_split_where_its_energy_says() {
        let sharp =
            sharpen(&staircase(&[10.0, 10.0, 85.0, 110.0, 110.0]), Nanoseconds::from_millis(20), Watts::ZERO);
        // 85 W is three quarters of the way from 10 to 110: the step came after a quarter of 10 ms.
        let step =
            sharp.iter().find(|segment| segment.power == Watts::from_watts(110.0)).expect("high level");
        assert_eq!(step.start, Timestamp::from_nanos(22_500_000));
    }

    #[test]
    fn a_slow_ramp_is_left_alone() {
        let ramp = staircase(&[10.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 60.0]);
        assert_eq!(sharpen(&ramp, Nanoseconds::from_millis(30), Watts::ZERO), ramp);
        assert_ne!(sharpen(&ramp, Nanoseconds::from_millis(40), Watts::ZERO), ramp);
    }

    #[test]
    fn a_segment_is_split_where_the_power_is_known_to_change() {
        let at = Timestamp::from_nanos;
        let levels = [
            Segment { start: at(0), end: at(17_500_000), power: Watts::from_watts(10.0) },
            Segment { start: at(17_500_000), end: at(40_000_000), power: Watts::from_watts(110.0) },
        ];
        let segments = staircase(&[10.0, 39.0, 110.0, 112.0]);
        let parts = split(&segments, &levels);
        let powers: Vec<f64> = parts.iter().map(|part| part.power.as_watts()).collect();
        let expected = [10.0, 14.0, 114.0, 110.0, 112.0];
        assert!(
            powers.iter().zip(expected).all(|(power, expected)| (power - expected).abs() < 1e-9),
            "{powers:?}"
        );
        assert_eq!(powers.len(), expected.len());
        assert_eq!((parts[1].end, parts[2].start), (at(17_500_000), at(17_500_000)));
        let energy = |segments: &[Segment]| segments.iter().map(Segment::energy).sum::<Joules>();
        assert!((energy(&segments) - energy(&parts)).abs().as_joules() < 1e-12);
        assert_eq!(split(&segments, &[]), segments);
    }

    proptest! {
        #[test]
        fn energy_and_time_are_kept(powers in prop::collection::vec(-10.0f64..300.0, 1..60), smear in 0u64..80) {
            let before = staircase(&powers);
            let after = sharpen(&before, Nanoseconds::from_millis(smear), Watts::from_watts(2.0));
            let energy = |segments: &[Segment]| segments.iter().map(Segment::energy).sum::<Joules>();
            prop_assert!((energy(&before) - energy(&after)).abs().as_joules() < 1e-6);
            prop_assert!(after.windows(2).all(|pair| pair[0].end == pair[1].start));
            prop_assert_eq!(after.last().map(|s| s.end), before.last().map(|s| s.end));
        }
    }
}
