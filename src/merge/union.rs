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
