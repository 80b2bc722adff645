//! The balance of one domain of one machine, from what several recordings say of it.

use crate::profile::{BALANCE_TOLERANCE, Balance, MeterCurve, Profile};
use crate::units::{Joules, Timestamp};

use super::chance;
use super::machines::times;

/// What one recording says of a domain.
pub(super) struct Window<'a> {
    /// Which recording.
    pub part: usize,
    /// From when to when it measured.
    pub time: (Timestamp, Timestamp),
    /// Where its joules went.
    pub balance: Balance,
    /// When they were counted; evenly, where that is not known.
    pub curve: Option<&'a MeterCurve>,
    /// How far its functions' joules may be off by chance, in square joules.
    pub variance: f64,
}

/// The domain's balance.
pub(super) struct Found {
    pub balance: Balance,
    pub conflicts: Vec<Conflict>,
}

/// Recordings that contradict each other.
pub(super) struct Conflict {
    /// Which.
    pub parts: Vec<usize>,
    /// What their functions and recorders took together.
    taken: Joules,
    /// What was there for them.
    measured: Joules,
    /// The static energy that was there.
    static_energy: Joules,
    /// By what their functions are to be multiplied; `None` if static energy alone had to give way.
    pub factor: Option<f64>,
    /// Chance in what was sampled explains it.
    pub is_by_chance: bool,
}

impl Conflict {
    /// For the reader of a report.
    pub fn sentence(&self, machine: &str, domain: &str, parts: &[Profile]) -> String {
        let (taken, measured, recordings) = (self.taken, self.measured, self.parts.len());
        let names = self.parts.iter().filter_map(|&part| parts[part].recordings.first());
        let example = names.map(|origin| origin.title()).next().unwrap_or_default();
        let by_models = format!(
            "each of {recordings} recordings of {machine} ({example}, ...) divided the joules of {domain} by a model of its \
             own: their functions took {taken} together, "
        );
        match self.factor {
            None => format!(
                "{by_models}of {measured} in all, which leaves less than the {} that they hold for static",
                self.static_energy
            ),
            Some(factor) => {
                format!("{by_models}and only {measured} were there. They are scaled by {factor:.4}")
            }
        }
    }
}

impl<'a> Window<'a> {
    /// Of a domain of a profile of one recording.
    pub fn of(profile: &'a Profile, part: usize, domain: usize) -> Self {
        let curve = profile.recordings.first().and_then(|origin| origin.meters.get(domain));
        let window = curve.and_then(MeterCurve::window);
        Self {
            part,
            time: window.unwrap_or_else(|| times(profile)),
            balance: profile.domains[domain].balance,
            curve: curve.filter(|_| window.is_some()),
            variance: 0.0,
        }
    }

    /// The share of this window's time that lies between two times within it.
    fn share_of_time(&self, from: Timestamp, to: Timestamp) -> f64 {
        let whole = self.time.1.since(self.time.0).as_nanos();
        to.since(from).as_nanos() as f64 / whole.max(1) as f64
    }

    fn share_of_energy(&self, from: Timestamp, to: Timestamp) -> f64 {
        self.curve.map_or_else(|| self.share_of_time(from, to), |curve| curve.share(from, to))
    }
}

/// The balance of all windows: of those that overlap each stretch of time once.
pub(super) fn balance(windows: &[Window<'_>]) -> Found {
    let mut sorted: Vec<&Window<'_>> = windows.iter().collect();
    sorted.sort_by_key(|window| (window.time, window.part));
    let mut found = Found { balance: Balance::default(), conflicts: Vec::new() };
    let mut rest = sorted.as_slice();
    while let Some(first) = rest.first() {
        let mut end = first.time.1;
        let after = rest.iter().position(|window| {
            let is_apart = window.time.0 >= end && window.time != first.time;
            end = end.max(window.time.1);
            is_apart
        });
        let (together, others) = rest.split_at(after.unwrap_or(rest.len()));
        let (balance, conflict) = of_overlapping(together);
        found.balance = found.balance + balance;
        found.conflicts.extend(conflict);
        rest = others;
    }
    found
}

/// What a meter counted between two times, by all windows on it: the mean of those that cover each stretch.
pub(super) fn measured_between(windows: &[Window<'_>], from: Timestamp, to: Timestamp) -> Joules {
    between(windows.iter(), from, to, &metered)
}

/// The same of static energy.
pub(super) fn static_between(windows: &[Window<'_>], from: Timestamp, to: Timestamp) -> Joules {
    between(windows.iter(), from, to, &taken_anyway)
}

fn metered(window: &Window<'_>, from: Timestamp, to: Timestamp) -> Joules {
    window.balance.measured * window.share_of_energy(from, to)
}

fn taken_anyway(window: &Window<'_>, from: Timestamp, to: Timestamp) -> Joules {
    window.balance.static_energy * window.share_of_time(from, to)
}

/// The mean of what the windows that cover each stretch of time say of it, added up between two times.
fn between<'w, 'p: 'w>(
    windows: impl Iterator<Item = &'w Window<'p>> + Clone,
    from: Timestamp,
    to: Timestamp,
    of: &dyn Fn(&Window<'_>, Timestamp, Timestamp) -> Joules,
) -> Joules {
    let ends = windows.clone().flat_map(|window| [window.time.0, window.time.1]);
    let mut edges: Vec<Timestamp> = ends.map(|edge| edge.clamp(from, to)).collect();
    edges.sort_unstable();
    edges.dedup();
    let of_stretch = |stretch: &[Timestamp]| {
        let (from, to) = (stretch[0], stretch[1]);
        let covering = || windows.clone().filter(|window| window.time.0 <= from && window.time.1 >= to);
        let count = covering().count().max(1) as f64;
        covering().map(|window| of(window, from, to)).sum::<Joules>() / count
    };
    edges.windows(2).map(of_stretch).sum()
}

/// Of windows that overlap, one or more.
fn of_overlapping(windows: &[&Window<'_>]) -> (Balance, Option<Conflict>) {
    if let [window] = windows {
        return (window.balance, None);
    }
    let (start, end) = (Timestamp::default(), Timestamp::from_nanos(u64::MAX));
    let of_windows = || windows.iter().copied();
    let measured = between(of_windows(), start, end, &metered);
    let static_energy = between(of_windows(), start, end, &taken_anyway);
    let sum = |part: &dyn Fn(&Balance) -> Joules| {
        windows.iter().map(|window| part(&window.balance)).sum::<Joules>()
    };
    settle(
        Balance {
            measured,
            attributed: sum(&|balance| balance.attributed),
            static_energy,
            other_processes: Joules::ZERO,
            recorder: sum(&|balance| balance.recorder),
            lost: sum(&|balance| balance.lost),
        },
        windows,
    )
}

/// Others are what is left; nothing is less than nothing.
fn settle(mut balance: Balance, windows: &[&Window<'_>]) -> (Balance, Option<Conflict>) {
    let is_more = |joules: Joules| joules.as_joules() > BALANCE_TOLERANCE * balance.measured.as_joules();
    let taken = balance.attributed + balance.recorder;
    let room = (balance.measured - balance.static_energy).max(Joules::ZERO);
    let variance: f64 = windows.iter().map(|window| window.variance).sum();
    let conflict = |factor, excess: Joules| Conflict {
        parts: windows.iter().map(|window| window.part).collect(),
        taken,
        measured: balance.measured,
        static_energy: balance.static_energy,
        factor,
        is_by_chance: chance::explains(excess.as_joules(), variance),
    };
    let mut found = None;
    if is_more(taken - balance.measured) {
        let factor = balance.measured / taken;
        found = Some(conflict(Some(factor), taken - balance.measured));
        balance.attributed = balance.attributed * factor;
        balance.recorder = balance.recorder * factor;
        balance.static_energy = Joules::ZERO;
    } else if is_more(taken - room) {
        found = Some(conflict(None, taken - room));
        balance.static_energy = (balance.measured - taken).max(Joules::ZERO);
    }
    let left = balance.measured - balance.attributed - balance.static_energy - balance.recorder;
    // What a recorder had nobody to charge with may be another's functions.
    balance.lost = balance.lost.min(left.max(Joules::ZERO));
    balance.other_processes = (left - balance.lost).max(Joules::ZERO);
    (balance, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    fn joules(joules: f64) -> Joules {
        Joules::from_joules(joules)
    }

    /// Measured, functions, static, others, eprof, lost.
    fn balance_of(columns: [f64; 6]) -> Balance {
        let [measured, attributed, static_energy, other_processes, recorder, lost] = columns.map(joules);
        Balance { measured, attributed, static_energy, other_processes, recorder, lost }
    }

    fn window(part: usize, (from, to): (u64, u64), columns: [f64; 6]) -> Window<'static> {
        Window { part, time: (at(from), at(to)), balance: balance_of(columns), curve: None, variance: 0.0 }
    }

    fn columns(found: &Found) -> [f64; 6] {
        found.balance.columns().map(|joules| joules.as_joules())
    }

    #[test]
    fn windows_that_only_touch_keep_their_balances() {
        let (a, b) = ([10.0, 4.0, 3.0, 2.0, 0.5, 0.5], [20.0, 8.0, 6.0, 4.0, 1.0, 1.0]);
        let found = balance(&[window(0, (10, 20), a), window(1, (0, 10), b)]);
        assert_eq!((columns(&found), found.conflicts.len()), ([30.0, 12.0, 9.0, 6.0, 1.5, 1.5], 0));
        // A window without length keeps its balance, too, and so does what begins there; two of one moment have nothing.
        let found = balance(&[window(0, (10, 10), a), window(1, (10, 20), b)]);
        assert_eq!((columns(&found), found.conflicts.len()), ([30.0, 12.0, 9.0, 6.0, 1.5, 1.5], 0));
        let found = balance(&[window(0, (10, 10), [0.0; 6]), window(1, (10, 10), [0.0; 6])]);
        assert_eq!((columns(&found), found.conflicts.len()), ([0.0; 6], 0));
    }

    /// Of 12 J in 0..20 and 16 J in 10..30: 6 in the first ten, 7 as the mean in the next, 8 in the last.
    #[test]
    fn a_stretch_that_two_cover_is_their_mean() {
        let windows = [
            window(0, (0, 20), [12.0, 3.0, 4.0, 4.0, 0.5, 0.5]),
            window(1, (10, 30), [16.0, 5.0, 6.0, 4.0, 0.5, 0.5]),
        ];
        let found = balance(&windows);
        // Static power: 2, then 2.5, then 3.
        assert_eq!(columns(&found), [21.0, 8.0, 7.5, 21.0 - 8.0 - 7.5 - 2.0, 1.0, 1.0]);
        assert!(found.balance.holds() && found.conflicts.is_empty());
        let between = |from, to| measured_between(&windows, at(from), at(to)).as_joules();
        assert_eq!([between(0, 10), between(10, 20), between(20, 30)], [6.0, 7.0, 8.0]);
        assert_eq!(
            [between(5, 25), between(0, 99), between(30, 99), between(15, 15)],
            [14.0, 21.0, 0.0, 0.0]
        );
        assert_eq!(static_between(&windows, at(5), at(25)).as_joules(), 1.0 + 2.5 + 1.5);
        // The third begins where the second ends, and lies apart from both.
        let third = window(2, (30, 40), [5.0, 5.0, 0.0, 0.0, 0.0, 0.0]);
        let all: Vec<Window<'_>> = windows.into_iter().chain([third]).collect();
        assert_eq!(columns(&balance(&all))[..2], [26.0, 13.0]);
    }

    #[test]
    fn a_curve_tells_when_the_joules_were_counted() {
        let mut curve = MeterCurve::default();
        [(0, 0.0), (10, 9.0), (20, 10.0)]
            .iter()
            .for_each(|&(time, energy)| curve.push(at(time), joules(energy)));
        let with_curve =
            Window { curve: Some(&curve), ..window(0, (0, 20), [10.0, 0.0, 2.0, 8.0, 0.0, 0.0]) };
        let other = window(1, (10, 20), [3.0, 0.0, 1.0, 2.0, 0.0, 0.0]);
        let windows = [with_curve, other];
        assert_eq!(measured_between(&windows, at(0), at(10)).as_joules(), 9.0);
        // One says 1 J of the second half, the other 3.
        assert_eq!(measured_between(&windows, at(10), at(20)).as_joules(), 2.0);
        assert_eq!(columns(&balance(&windows)), [11.0, 0.0, 2.0, 9.0, 0.0, 0.0]);
    }

    /// Ten joules, of which three static: seven are there for functions and recorders.
    fn settled(attributed: f64, recorder: f64, lost: f64) -> (Balance, Option<Conflict>) {
        let windows = [window(3, (0, 10), [0.0; 6]), window(5, (0, 10), [0.0; 6])];
        let windows: Vec<&Window<'_>> = windows.iter().collect();
        settle(balance_of([10.0, attributed, 3.0, 99.0, recorder, lost]), &windows)
    }

    #[test]
    fn others_are_what_is_left_and_losses_take_no_more_than_that() {
        let parts = |(balance, conflict): (Balance, Option<Conflict>)| {
            assert!(balance.holds() && conflict.is_none());
            balance.columns().map(|joules| joules.as_joules())
        };
        assert_eq!(parts(settled(4.0, 1.0, 0.5)), [10.0, 4.0, 3.0, 1.5, 1.0, 0.5]);
        assert_eq!(parts(settled(4.0, 1.0, 5.0)), [10.0, 4.0, 3.0, 0.0, 1.0, 2.0]);
        // All the room, to the last joule, contradicts nobody.
        assert_eq!(parts(settled(6.0, 1.0, 1.0)), [10.0, 6.0, 3.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn static_energy_gives_way_and_then_functions_do() {
        let (balance, conflict) = settled(8.0, 1.0, 2.0);
        let conflict = conflict.expect("two joules too many");
        assert_eq!(balance, balance_of([10.0, 8.0, 1.0, 0.0, 1.0, 0.0]));
        assert_eq!((conflict.parts.as_slice(), conflict.factor), (&[3, 5][..], None));
        assert_eq!((conflict.taken, conflict.measured), (joules(9.0), joules(10.0)));
        assert_eq!(conflict.static_energy, joules(3.0));
        // All that was measured: nothing is left for static energy, and nothing is scaled.
        let (balance, conflict) = settled(9.0, 1.0, 0.0);
        assert_eq!(balance, balance_of([10.0, 9.0, 0.0, 0.0, 1.0, 0.0]));
        assert_eq!(conflict.map(|conflict| conflict.factor), Some(None));
        let (balance, conflict) = settled(18.0, 2.0, 1.0);
        assert_eq!(balance, balance_of([10.0, 9.0, 0.0, 0.0, 1.0, 0.0]));
        assert_eq!(conflict.and_then(|conflict| conflict.factor), Some(0.5));
    }

    #[test]
    fn a_conflict_is_said_in_its_figures() {
        let said = |attributed: f64, parts: &[Profile]| {
            settled(attributed, 1.0, 0.0)
                .1
                .map(|conflict| conflict.sentence("node7", "package-0", parts))
                .unwrap_or_default()
        };
        let named = |name: &str| Profile {
            recordings: vec![crate::profile::Origin { name: Some(name.to_owned()), ..Default::default() }],
            ..Profile::default()
        };
        let parts: Vec<Profile> = ["a", "b", "c", "d", "e", "f"].map(named).to_vec();
        let beginning = "each of 2 recordings of node7 (d, ...) divided the joules of package-0 by a model of its own: their \
                         functions took ";
        let expected = [
            "9.000 J together, of 10.00 J in all, which leaves less than the 3.000 J that they hold for static",
            "20.00 J together, and only 10.00 J were there. They are scaled by 0.5000",
        ];
        for (attributed, expected) in [8.0, 19.0].into_iter().zip(expected) {
            assert_eq!(said(attributed, &parts), format!("{beginning}{expected}"));
        }
    }
}
