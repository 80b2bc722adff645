//! Places of a call tree by the watts that code draws there: one function may draw more where one caller has it work than
//! where another does, above all a function that was inlined into several.

use inferno::flamegraph::color::Color;
use rustc_hash::FxHashMap;

use super::Weight;
use super::frame_names::FrameNames;
use super::node_paths::NodePaths;
use super::nodes::Nodes;
use super::tree::{CallTree, Direction};
use super::walk::TreeFrame;
use crate::units::{Joules, Nanoseconds, Watts};

/// From so many times the lowest power on, the highest is another.
const LEAST_TELLING: f64 = 1.1;
/// This share of all joules at each end of the scale is of code that ran too shortly to tell its power.
const BEYOND_THE_SCALE: f64 = 0.005;
/// Where chance makes a larger error of a place's joules than this part of them, its power is not told.
const MOST_CHANCE: f64 = 0.25;
/// The place of everything.
const ALL: u32 = 0;

/// The power of each place of a call tree as it is drawn, where places are told apart by the names on the way to them.
pub(super) struct Heat<'n> {
    /// Numbers of names.
    names: FxHashMap<&'n str, u32>,
    /// Places by the one that each lies in, and its name.
    places: FxHashMap<(u32, u32), u32>,
    watts: Vec<Option<Watts>>,
    lowest: Watts,
    highest: Watts,
    /// Which code's power it is.
    pub of: &'static str,
}

/// What the code of a place took.
#[derive(Clone, Copy, Default)]
struct Spent {
    joules: Joules,
    time: Nanoseconds,
    /// The part of the joules' variance that comes of chance.
    by_chance: f64,
}

impl Spent {
    fn add(&mut self, other: Self) {
        self.joules += other.joules;
        self.time += other.time;
        self.by_chance += other.by_chance;
    }

    /// `None` where no time is known, or chance decides.
    fn watts(&self) -> Option<Watts> {
        let is_known = self.by_chance.max(0.0).sqrt() <= self.joules.as_joules() * MOST_CHANCE;
        (self.time > Nanoseconds::ZERO && is_known).then(|| self.joules / self.time)
    }
}

impl<'n> Heat<'n> {
    /// Of the branches that are no lighter than a share of the whole. `None` where no power is known of any code.
    pub fn of(tree: &CallTree<'_>, names: &'n FrameNames<'_>, lightest: f64) -> Option<Self> {
        if tree.weight != Weight::Joules || tree.summary.is_by_time {
            return None;
        }
        let nodes = Nodes::all(tree, lightest);
        let mut spent = spent_in(tree, &nodes);
        let of = match tree.direction() {
            Direction::FromOutermost => "a frame's own code",
            Direction::FromInnermost => {
                // The power is of the code that a path begins with, where it was called like that.
                for node in (1..spent.len()).rev() {
                    let below = spent[node];
                    spent[nodes.parents[node] as usize].add(below);
                }
                "the code at the stack's end, called so"
            }
        };
        let mut heat = Self {
            names: FxHashMap::default(),
            places: FxHashMap::default(),
            watts: Vec::new(),
            lowest: Watts::ZERO,
            highest: Watts::ZERO,
            of,
        };
        let mut of_place = vec![Spent::default()];
        let mut place_of = vec![ALL; spent.len()];
        for (node, spent) in spent.iter().enumerate().skip(1) {
            let Some(frame) = nodes.frame_of(node as u32) else { continue };
            let place = heat.make_place(place_of[nodes.parents[node] as usize], names.of(frame));
            place_of[node] = place;
            of_place.resize(of_place.len().max(place as usize + 1), Spent::default());
            if matches!(frame, TreeFrame::Key(_)) {
                of_place[place as usize].add(*spent);
            }
        }
        heat.watts = of_place.iter().map(Spent::watts).collect();
        let mut known: Vec<(Joules, Watts)> =
            of_place.iter().filter_map(|spent| Some((spent.joules, spent.watts()?))).collect();
        known.sort_by(|(_, a), (_, b)| a.as_watts().total_cmp(&b.as_watts()));
        let all: Joules = known.iter().map(|(joules, _)| *joules).sum();
        heat.lowest = edge(known.iter(), all)?;
        heat.highest = edge(known.iter().rev(), all)?;
        Some(heat)
    }

    fn make_place(&mut self, within: u32, name: &'n str) -> u32 {
        let new_name = self.names.len() as u32;
        let name = *self.names.entry(name).or_insert(new_name);
        let new_place = self.places.len() as u32 + 1;
        *self.places.entry((within, name)).or_insert(new_place)
    }

    /// The watts at which the scale begins and ends.
    pub fn scale(&self) -> (Watts, Watts) {
        (self.lowest, self.highest)
    }

    /// Code differs so much in power that it is to be seen at first sight.
    pub fn tells(&self) -> bool {
        self.highest > self.lowest * LEAST_TELLING
    }

    /// The place of everything, from which [`Heat::place`] goes on.
    pub fn all(&self) -> Option<u32> {
        Some(ALL)
    }

    /// The place of a name within another; `None` of what is no place of the tree.
    pub fn place(&self, within: Option<u32>, name: &str) -> Option<u32> {
        self.places.get(&(within?, *self.names.get(name)?)).copied()
    }

    /// What code draws at a place; `None` where it has none of its own, and where nobody knows.
    pub fn watts(&self, place: Option<u32>) -> Option<Watts> {
        self.watts.get(place? as usize).copied().flatten()
    }

    /// From pale yellow to red, through orange.
    pub fn shade(&self, watts: Watts) -> Color {
        let range = (self.highest - self.lowest).as_watts();
        // What adding up in another order leaves is no difference.
        let differs = range > 1e-6 * self.highest.as_watts();
        let heat = if differs { ((watts - self.lowest).as_watts() / range).clamp(0.0, 1.0) } else { 0.5 };
        let between = |cold: f64, hot: f64| (cold + (hot - cold) * heat).round() as u8;
        Color { r: between(250.0, 215.0), g: between(230.0, 40.0), b: between(140.0, 30.0) }
    }
}

/// The power at which more joules than those beyond the scale have been passed.
fn edge<'w>(mut order: impl Iterator<Item = &'w (Joules, Watts)>, all: Joules) -> Option<Watts> {
    let mut sum = Joules::ZERO;
    let found = order.find(|(joules, _)| {
        sum += *joules;
        sum > all * BEYOND_THE_SCALE
    });
    found.map(|(_, watts)| *watts)
}

/// What was spent by the stacks that end in each node.
fn spent_in(tree: &CallTree<'_>, nodes: &Nodes) -> Vec<Spent> {
    // The square of an error by chance is, of a part of the joules, that part as large.
    let chance: FxHashMap<TreeFrame, f64> = tree
        .sums()
        .into_iter()
        .filter(|(_, (own, _))| own.joules > Joules::ZERO)
        .map(|(frame, (own, _))| (frame, own.by_chance / own.joules.as_joules()))
        .collect();
    let mut spent = vec![Spent::default(); nodes.parents.len()];
    tree.parts().for_each_part(&mut |part| {
        let mut paths = NodePaths::new(tree, part);
        for (_, totals, path) in tree.cells(part) {
            let (node, code) = match tree.direction() {
                Direction::FromOutermost => {
                    let (node, innermost) = paths.find(nodes, path);
                    // Code of a branch that is not drawn is not the code of what it lies in.
                    let is_drawn = innermost.is_some() && nodes.frame_of(node) == innermost;
                    (node, innermost.filter(|_| is_drawn))
                }
                Direction::FromInnermost => {
                    let frames = tree.frames_of(part, path);
                    let code = frames.iter().copied().find(|frame| matches!(frame, TreeFrame::Key(_)));
                    (nodes.of(&frames), code)
                }
            };
            if let Some(code) = code {
                let by_chance =
                    chance.get(&code).map_or(0.0, |per_joule| per_joule * totals.joules.as_joules());
                spent[node as usize].add(Spent { joules: totals.joules, time: totals.time, by_chance });
            }
        }
    });
    spent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watts_are_told_where_chance_does_not_decide() {
        let joules = Joules::from_joules(2.0);
        let time = Nanoseconds::from_millis(500);
        let watts = |by_chance| Spent { joules, time, by_chance }.watts();
        assert_eq!(watts(0.25), Some(Watts::from_watts(4.0)), "0.5 of 2 J");
        assert_eq!(watts(0.26), None);
        assert_eq!(Spent { joules, time: Nanoseconds::ZERO, by_chance: 0.0 }.watts(), None);
    }
}
