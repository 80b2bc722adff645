//! When GPU kernels took their joules: in which of the profile's pieces of time.

use std::collections::BTreeMap;

use crate::gpu::launches::Outstanding;
use crate::profile::{InSlice, TimeSlice};
use crate::units::Joules;

/// Puts what owners of launches took of a GPU into the pieces of time in which their launches ran, as those counted
/// the GPU's joules: who ran throughout has more in a piece of more power. All that the GPU counted is static so far, and
/// what is left of it remains so.
///
/// `cell` tells the profile's cell of an owner: of others there is none.
pub fn put_in_time(
    slices: &mut [TimeSlice],
    domain: usize,
    launches: &[Outstanding],
    joules: impl Iterator<Item = (u32, Joules)>,
    cell: impl Fn(u32) -> Option<u32>,
) {
    let mut shares: BTreeMap<u32, BTreeMap<usize, f64>> = BTreeMap::new();
    for launch in launches {
        let first = slices.partition_point(|slice| slice.end <= launch.start);
        for (at, slice) in slices.iter().enumerate().skip(first) {
            if slice.start >= launch.end {
                break;
            }
            let ran = launch.end.min(slice.end).since(launch.start.max(slice.start)).as_secs_f64();
            let length = slice.end.since(slice.start).as_secs_f64();
            let counted = slice.measured.get(domain).map_or(0.0, |joules| joules.as_joules());
            if ran > 0.0 && length > 0.0 && counted > 0.0 {
                *shares.entry(launch.owner).or_default().entry(at).or_default() += ran / length * counted;
            }
        }
    }
    for (owner, joules) in joules {
        let Some(of_owner) = shares.get(&owner) else { continue };
        let all: f64 = of_owner.values().sum();
        for (&at, share) in of_owner {
            let (slice, part) = (&mut slices[at], joules * (share / all));
            let taken = part.min(slice.balance.static_energy.max(Joules::ZERO));
            slice.balance.static_energy -= taken;
            match cell(owner) {
                Some(cell) => {
                    slice.balance.attributed += taken;
                    slice.by_cell.push(InSlice { cell, joules: part.as_joules() as f32, seconds: 0.0 });
                }
                None => slice.balance.other_processes += taken,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Balance;
    use crate::units::{Nanoseconds, Timestamp};

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(1_000_000_000) + Nanoseconds::from_millis(millis)
    }

    /// From and to milliseconds, with what each domain counted; the last one's was all static.
    fn slice(from: u64, to: u64, counted: Vec<f64>) -> TimeSlice {
        let measured: Vec<Joules> = counted.into_iter().map(Joules::from_joules).collect();
        let of_last = measured.last().copied().unwrap_or(Joules::ZERO);
        TimeSlice {
            start: at(from),
            end: at(to),
            measured,
            modelled: Joules::ZERO,
            balance: Balance { measured: of_last, static_energy: of_last, ..Balance::default() },
            by_cell: Vec::new(),
        }
    }

    #[test]
    fn kernels_take_their_joules_while_they_run() {
        let joules = Joules::from_joules;
        // 10 W, then 30 W, then 10 W.
        let mut slices: Vec<TimeSlice> = [1.0, 3.0, 1.0]
            .into_iter()
            .zip(0..)
            .map(|(counted, number)| slice(number * 100, number * 100 + 100, vec![0.0, counted]))
            .collect();
        let launch = |owner, start, end| Outstanding { owner, start: at(start), end: at(end), gpu: None };
        let launches = [launch(7, 50, 150), launch(9, 150, 200), launch(u32::MAX, 250, 300)];
        let spent = [(7, joules(1.0)), (9, joules(0.9)), (u32::MAX, joules(0.2))];
        let cell = |owner| (owner != u32::MAX).then_some(owner);
        put_in_time(&mut slices, 1, &launches, spent.into_iter(), cell);
        // Half of 1 J and half of 3 J: a quarter, and three quarters.
        let of =
            |slice: usize| slices[slice].by_cell.iter().map(|of| (of.cell, of.joules)).collect::<Vec<_>>();
        assert_eq!(of(0), [(7, 0.25)]);
        assert_eq!(of(1), [(7, 0.75), (9, 0.9)]);
        assert!(slices[2].by_cell.is_empty());
        let close = |a: Joules, b: f64| assert!((a.as_joules() - b).abs() < 1e-9, "{a} and {b} J");
        close(slices[2].balance.other_processes, 0.2);
        for (slice, idle) in slices.iter().zip([0.75, 1.35, 0.8]) {
            close(slice.balance.static_energy, idle);
            close(slice.balance.accounted(), slice.balance.measured.as_joules());
        }
    }

    /// 10 W for 100 ms and for 400 ms: a launch ran for half of each, and has a fifth of its joules in the first.
    #[test]
    fn longer_pieces_have_more_of_a_launch() {
        let joules = Joules::from_joules;
        let mut slices =
            vec![slice(0, 100, vec![1.0]), slice(100, 500, vec![4.0]), slice(500, 600, vec![0.0])];
        // It ends where a third begins, in which nothing was counted anyway; another one owns nothing.
        let launch = |owner, start, end| Outstanding { owner, start: at(start), end: at(end), gpu: None };
        let launches = [launch(3, 50, 100), launch(3, 300, 500), launch(4, 520, 560), launch(5, 0, 0)];
        let spent = [(3, joules(2.0)), (4, joules(1.0)), (5, joules(1.0)), (6, joules(1.0))];
        put_in_time(&mut slices, 0, &launches, spent.into_iter(), Some);
        let found: Vec<Vec<(u32, f32)>> = slices
            .iter()
            .map(|slice| slice.by_cell.iter().map(|of| (of.cell, of.joules)).collect())
            .collect();
        assert_eq!(found, [vec![(3, 0.4)], vec![(3, 1.6)], vec![]]);
        // No more is taken from a piece than it has.
        put_in_time(&mut slices, 0, &launches, [(3, joules(10.0))].into_iter(), Some);
        for slice in &slices {
            assert!((slice.balance.accounted() - slice.balance.measured).abs().as_joules() < 1e-9);
            assert!(slice.balance.static_energy >= Joules::ZERO);
        }
        assert_eq!(slices[0].balance.attributed, joules(1.0));
    }
}
