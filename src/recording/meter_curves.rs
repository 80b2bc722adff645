//! What several recorders read of one meter, put together in time.

use std::collections::BTreeMap;

use crate::units::{Joules, Nanoseconds, Timestamp};

/// Time from one moment to another.
type Window = (Timestamp, Timestamp);

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

/// Energy between two moments.
#[derive(Debug, Clone, Copy)]
struct Piece {
    end: Timestamp,
    /// The reader's own count at the two moments.
    energy: (Joules, Joules),
    /// Whose count that is, by its place among the sources; `None` of what is left of readings that lie far apart.
    source: Option<usize>,
}

/// What is known of a meter: pieces by their beginnings, none of which meets another.
#[derive(Debug, Default)]
struct Pieces(BTreeMap<Timestamp, Piece>);

impl Pieces {
    /// The stretches between two moments of which nothing is known, and the joules that are known of the rest.
    fn unknown(&self, (start, end): Window) -> (Vec<Window>, Joules) {
        let before = self.0.range(..start).next_back();
        let within = before.into_iter().chain(self.0.range(start..end));
        let (mut unknown, mut known, mut reached) = (Vec::new(), Joules::ZERO, start);
        for (&from, piece) in within.filter(|(_, piece)| piece.end > start) {
            if from > reached {
                unknown.push((reached, from));
            }
            let common = (from.max(start), piece.end.min(end));
            known += (piece.energy.1 - piece.energy.0) * share(common, (from, piece.end));
            reached = common.1;
        }
        if reached < end {
            unknown.push((reached, end));
        }
        (unknown, known)
    }

    /// Adds what one that reads closely counted, where nothing is known.
    fn add_close(&mut self, number: usize, source: &Source<'_>) {
        let mut added = Vec::new();
        for pair in source.curve.windows(2).filter(|pair| pair[1].0.since(pair[0].0) <= CLOSELY) {
            let whole = (pair[0].0, pair[1].0);
            let at = |time: Timestamp| {
                if time == whole.1 { pair[1].1 } else { at(pair, time) }
            };
            let (unknown, _) = self.unknown(whole);
            added.extend(unknown.into_iter().map(|(start, end)| {
                (start, Piece { end, energy: (at(start), at(end)), source: Some(number) })
            }));
        }
        self.0.extend(added);
    }

    /// Adds two readings that lie far apart: what they say beyond what is known lies evenly where nothing is.
    fn add_coarse(&mut self, pair: &[(Timestamp, Joules)]) {
        let (unknown, known) = self.unknown((pair[0].0, pair[1].0));
        let rest = (pair[1].1 - pair[0].1 - known).max(Joules::ZERO);
        let length: u64 = unknown.iter().map(|(start, end)| end.since(*start).as_nanos()).sum();
        for (start, end) in unknown {
            let joules = rest * (end.since(start).as_nanos() as f64 / length as f64);
            self.0.insert(start, Piece { end, energy: (Joules::ZERO, joules), source: None });
        }
    }

    /// Curves of what is known without a break.
    fn stretches(&self) -> Vec<Curve> {
        let mut stretches: Vec<Curve> = Vec::new();
        let (mut zero, mut source) = (Joules::ZERO, None);
        for (&start, piece) in &self.0 {
            let last = stretches.last().and_then(|curve| curve.last()).copied();
            match last.filter(|(end, _)| start.since(*end) <= CLOSELY) {
                Some((end, so_far)) => {
                    // Its own count, as it is, where the same reader goes on.
                    if piece.source.is_none() || piece.source != source || end < start {
                        zero = so_far - piece.energy.0;
                    }
                    if end < start {
                        stretches.last_mut().expect("it has a last one").push((start, so_far));
                    }
                }
                None => {
                    zero = Joules::ZERO;
                    stretches.push(vec![(start, piece.energy.0)]);
                }
            }
            source = piece.source;
            let curve = stretches.last_mut().expect("there is one");
            let so_far = curve.last().map_or(Joules::ZERO, |(_, energy)| *energy);
            // Two readings of one meter at one time differ by what it counts between its steps.
            curve.push((piece.end, (zero + piece.energy.1).max(so_far)));
        }
        stretches
    }
}

/// How much of a stretch of time another one is, 0 to 1.
fn share(part: Window, whole: Window) -> f64 {
    let length = |(start, end): Window| end.since(start).as_nanos() as f64;
    length(part) / length(whole).max(1.0)
}

/// What several recorders read of one meter, as curves of what is known without a break, in the order of time. Each recorder counts
/// from a zero of its own.
///
/// Where several read closely, the first of them counts until it ends. Of readings that lie far apart, as those of who waits for his turn,
/// what closer ones tell within them is taken for known, and the rest lies evenly where nobody read closely: the nearest two
/// readings say first what they know. A break of less than a second stays within a curve, and counts nothing.
pub(super) fn joined(sources: &[Source<'_>]) -> Vec<Curve> {
    let mut order: Vec<usize> = (0..sources.len()).filter(|&at| !sources[at].curve.is_empty()).collect();
    order.sort_by_key(|&at| (!sources[at].is_close, sources[at].curve[0].0));
    let mut pieces = Pieces::default();
    order.iter().for_each(|&at| pieces.add_close(at, &sources[at]));
    let pairs = order.iter().flat_map(|&at| sources[at].curve.windows(2));
    let length = |pair: &&[(Timestamp, Joules)]| pair[1].0.since(pair[0].0);
    let mut coarse: Vec<&[(Timestamp, Joules)]> = pairs.filter(|pair| length(pair) > CLOSELY).collect();
    coarse.sort_by_key(length);
    coarse.into_iter().for_each(|pair| pieces.add_coarse(pair));
    pieces.stretches()
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
            let [curve] = &joined(&sources)[..] else { panic!("one curve") };
            let whole = read((0..=11_990).step_by(10));
            for (from, to) in [(0, 11_990), (0, 5000), (5990, 6200), (6150, 11_990)] {
                let (found, expected) = (joules(curve, from, to), joules(&whole, from, to));
                assert!((found - expected).abs() < 1e-9, "{from} to {to}: {found} J instead of {expected}");
            }
            assert!(curve.len() > 1100 && curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        }
    }

    #[test]
    fn a_gap_that_nobody_saw_ends_a_curve_unless_it_is_short() {
        let (before, after) = (read([0, 500, 1000]), read([3000, 3500, 4000]));
        let sources = [&after, &before].map(|curve| Source { curve, is_close: true });
        assert_eq!(joined(&sources), [before.clone(), after.clone()]);
        // A third one that knows what was counted from before until behind it, and when nothing more.
        let around = read([500, 3500]);
        let [curve] = &joined(&[sources[0], Source { curve: &around, is_close: false }, sources[1]])[..]
        else {
            panic!("one curve")
        };
        assert!(
            (joules(curve, 0, 4000) - 8.0).abs() < 1e-9 && (joules(curve, 1000, 3000) - 4.0).abs() < 1e-9
        );
        let soon = read([1600, 2000]);
        let [curve] = &joined(&[sources[1], Source { curve: &soon, is_close: true }])[..] else {
            panic!("one curve")
        };
        assert!(joules(curve, 1000, 1600).abs() < 1e-9 && (joules(curve, 0, 2000) - 2.8).abs() < 1e-9);
    }

    /// Who reads closely for a while does not take away what others know of the time around it.
    #[test]
    fn what_was_read_now_and_then_counts_around_a_close_reader() {
        // 2 W until 5 s and 6 W from then on: 10 and 30 J; the close one has 2 s of each.
        let (close, coarse) = (read((3000..=7000).step_by(10)), read([0, 10_000]));
        let sources = [Source { curve: &coarse, is_close: false }, Source { curve: &close, is_close: true }];
        let [curve] = &joined(&sources)[..] else { panic!("one curve") };
        assert!((joules(curve, 0, 10_000) - 40.0).abs() < 1e-9, "{}", joules(curve, 0, 10_000));
        assert!(
            (joules(curve, 3000, 5000) - 4.0).abs() < 1e-9 && (joules(curve, 5000, 7000) - 12.0).abs() < 1e-9
        );
        // 24 J are left for 6 s.
        assert!(
            (joules(curve, 0, 3000) - 12.0).abs() < 1e-9 && (joules(curve, 7000, 10_000) - 12.0).abs() < 1e-9
        );
        assert!(curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
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
