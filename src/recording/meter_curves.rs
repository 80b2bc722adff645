//! What several recorders read of one meter, put together in time.

use crate::units::{Joules, Nanoseconds, Timestamp};

/// With a reading of the same recorder within this time, no other one is asked.
const CLOSELY: Nanoseconds = Nanoseconds::from_millis(1000);

/// What one meter counted, in the order of time.
pub(super) type Curve = Vec<(Timestamp, Joules)>;

/// Leaves out what went backwards, as attribution does.
pub(super) fn ordered(curve: &mut Curve) {
    curve.sort_by_key(|(time, _)| *time);
    let mut highest: Option<(Timestamp, Joules)> = None;
    curve.retain(|&(time, energy)| {
        let is_later = highest.is_none_or(|(last, most)| time > last && energy >= most);
        if is_later {
            highest = Some((time, energy));
        }
        is_later
    });
}

/// What one recorder read of a meter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub curve: &'a [(Timestamp, Joules)],
    /// All the time, and not now and then.
    pub is_close: bool,
}

impl Source<'_> {
    /// The next reading after a time.
    fn after(&self, time: Timestamp) -> Option<(Timestamp, Joules)> {
        self.curve.get(self.curve.partition_point(|(at, _)| *at <= time)).copied()
    }

    /// The last reading that was not after a time.
    fn until(&self, time: Timestamp) -> Option<(Timestamp, Joules)> {
        let after = self.curve.partition_point(|(at, _)| *at <= time);
        self.curve.get(after.checked_sub(1)?).copied()
    }
}

/// One curve of what several recorders read of one meter: from the one that read closely to the next. Each of them counts from a
/// zero of its own, which is found where the curve is known already.
pub(super) fn joined(sources: &[Source<'_>]) -> Curve {
    let begins = |source: &&Source<'_>| source.curve.first().map(|(time, _)| *time);
    let close =
        sources.iter().filter(|source| source.is_close && !source.curve.is_empty()).min_by_key(begins);
    let first = close.or_else(|| sources.iter().filter(|source| !source.curve.is_empty()).min_by_key(begins));
    let Some(mut current) = first.copied() else { return Curve::new() };
    let mut zero = Joules::ZERO;
    let mut curve: Curve = current.curve.first().copied().into_iter().collect();
    while let Some(&(now, so_far)) = curve.last() {
        let own = current.after(now).filter(|(time, _)| time.since(now) <= CLOSELY);
        let (time, energy) = match own {
            Some(next) => next,
            None => {
                // Of those who know the curve's zero by now, who goes on first; or else who begins next.
                let start = curve[0].0;
                let next = |known: bool| {
                    let follows = sources.iter().filter_map(|source| {
                        let anchor = source.until(now).filter(|(time, _)| *time >= start);
                        Some((source.after(now)?, anchor, source))
                    });
                    follows
                        .filter(|(_, anchor, _)| anchor.is_some() == known)
                        .min_by_key(|((time, _), ..)| *time)
                };
                let Some((next, anchor, source)) = next(true).or_else(|| next(false)) else { break };
                zero = match anchor {
                    Some((time, energy)) => at(&curve, time) - energy,
                    None => so_far - next.1,
                };
                current = *source;
                next
            }
        };
        // Two readings of one meter at one time differ by what it counts between its steps.
        curve.push((time, (zero + energy).max(so_far)));
    }
    curve
}

/// The energy at a time within a curve.
fn at(curve: &[(Timestamp, Joules)], time: Timestamp) -> Joules {
    let next = curve.partition_point(|(point, _)| *point < time);
    match (next.checked_sub(1).and_then(|before| curve.get(before)), curve.get(next)) {
        (Some(&(t0, e0)), Some(&(t1, e1))) => {
            e0 + (e1 - e0) * (time.since(t0).as_nanos() as f64 / t1.since(t0).as_nanos().max(1) as f64)
        }
        (Some(&(_, energy)), None) | (None, Some(&(_, energy))) => energy,
        (None, None) => Joules::ZERO,
    }
}

/// The part of a curve between two times, with what it was at them.
pub(super) fn within(curve: &[(Timestamp, Joules)], (start, end): (Timestamp, Timestamp)) -> Curve {
    let (Some(&(first, _)), Some(&(last, _))) = (curve.first(), curve.last()) else { return Curve::new() };
    let (start, end) = (start.max(first), end.min(last));
    if start >= end {
        return Curve::new();
    }
    let inside = curve.iter().copied().filter(|(time, _)| *time > start && *time < end);
    [(start, at(curve, start))].into_iter().chain(inside).chain([(end, at(curve, end))]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    /// What a recorder reads at these times of a meter that counts 2 W until 5 s and 6 W from then on.
    fn read(times: impl IntoIterator<Item = u64>) -> Curve {
        let joules = |millis: u64| 0.002 * millis as f64 + 0.004 * millis.saturating_sub(5000) as f64;
        let mut zero = None;
        let point = |millis| {
            let energy = joules(millis);
            (time(millis), Joules::from_joules(energy - *zero.get_or_insert(energy)))
        };
        times.into_iter().map(point).collect()
    }

    fn joules(curve: &Curve, from: u64, to: u64) -> f64 {
        (at(curve, time(to)) - at(curve, time(from))).as_joules()
    }

    #[test]
    fn who_takes_over_goes_on_where_the_first_one_ended() {
        // Killed after 6 s, without a last word; another one reads closely from 6.15 s, and has read at 3 s before. A third
        // one reads now and then.
        let holder = read((0..=6000).step_by(10));
        let next = read([3, 3003].into_iter().chain((6150..12_000).step_by(10)));
        let third = read([7, 6007, 11_500]);
        let all = [(&holder, true), (&next, false), (&third, false)];
        for turn in 0..3 {
            let mut sources = all.map(|(curve, is_close)| Source { curve, is_close });
            sources.rotate_left(turn);
            let curve = joined(&sources);
            let whole = read((0..=11_990).step_by(10));
            for (from, to) in [(0, 11_990), (0, 5000), (5990, 6200), (6150, 11_990)] {
                let (found, expected) = (joules(&curve, from, to), joules(&whole, from, to));
                assert!((found - expected).abs() < 1e-9, "{from} to {to}: {found} J instead of {expected}");
            }
            assert!(curve.len() > 1100 && curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        }
    }

    #[test]
    fn a_gap_that_nobody_saw_counts_nothing() {
        let (before, after) = (read([0, 500, 1000]), read([3000, 3500, 4000]));
        let sources = [&after, &before].map(|curve| Source { curve, is_close: true });
        let curve = joined(&sources);
        assert_eq!(curve.len(), 6);
        assert!((joules(&curve, 0, 4000) - 4.0).abs() < 1e-9 && joules(&curve, 1000, 3000).abs() < 1e-9);
    }

    #[test]
    fn a_window_ends_between_readings() {
        let curve = within(&read((0..=4000).step_by(100)), (time(250), time(1050)));
        assert_eq!((curve[0].0, curve[curve.len() - 1].0), (time(250), time(1050)));
        assert!((joules(&curve, 250, 1050) - 1.6).abs() < 1e-9 && curve.len() == 10);
        assert!(within(&curve, (time(2000), time(3000))).is_empty());
        assert!(joined(&[]).is_empty() && within(&Curve::new(), (time(0), time(1))).is_empty());
    }
}
