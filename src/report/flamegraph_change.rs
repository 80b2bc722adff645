//! The colors of a differential flamegraph: each place by what its own code took more or less than before, and grey where
//! chance explains that. The page's changes are these, by the same rules.

use std::borrow::Cow;

use inferno::flamegraph::color::Color;
use rustc_hash::FxHashMap;

use super::Weight;
use super::flamegraph_frames::Paint;
use super::select::Totals;
use super::tree::{CallTree, Direction};
use super::walk::TreeFrame;
use crate::units::Joules;

/// The share of the whole that a change has at least to be drawn in the strongest color: one of a few percent is not to look
/// as if it were all there is.
const LEAST_SCALE: f64 = 0.05;

/// What the code of one place took in both recordings, as the picture counts it: the older first.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sides {
    /// Whole numbers, of which widths are made.
    pub numbers: [u64; 2],
    pub weights: [f64; 2],
    /// Standard errors of the weights.
    pub errors: [f64; 2],
    /// Variances of the weights that come of nothing but which code each sample met.
    pub by_chance: [f64; 2],
}

impl Sides {
    /// Adds another place that is drawn as the same. Nobody knows how their errors go together: this is the largest that both
    /// may have. Samples meet each of them by a chance of its own.
    pub fn add(&mut self, other: &Self) {
        for side in 0..2 {
            self.numbers[side] += other.numbers[side];
            self.weights[side] += other.weights[side];
            self.errors[side] += other.errors[side];
            self.by_chance[side] += other.by_chance[side];
        }
    }

    pub fn change(&self) -> f64 {
        self.weights[1] - self.weights[0]
    }

    pub fn error(&self) -> f64 {
        let of_causes: f64 = self.errors.iter().map(|error| error * error).sum();
        (of_causes + self.by_chance.iter().sum::<f64>()).sqrt()
    }

    /// The size of a change that is no matter of chance.
    pub fn certain(&self) -> f64 {
        let size = self.change().abs();
        if size > 2.0 * self.error() { size } else { 0.0 }
    }
}

/// Errors of the places of a tree.
pub(super) struct PlaceErrors {
    sums: FxHashMap<TreeFrame, (Totals, Totals)>,
    weight: Weight,
    direction: Direction,
}

impl PlaceErrors {
    pub fn of(tree: &CallTree<'_>) -> Self {
        Self { sums: tree.sums(), weight: tree.weight, direction: tree.direction() }
    }

    /// What the code of a place took in the older (0) or newer recording (1), in a unit of which the weight's has so many.
    pub fn side(&self, side: usize, path: &[TreeFrame], weight: f64, per_weight: f64) -> Sides {
        let mut here = Sides::default();
        here.weights[side] = weight * per_weight;
        let variance = self.most(path, weight) * per_weight * per_weight;
        match self.weight {
            Weight::Joules => here.errors[side] = variance.sqrt(),
            Weight::Samples | Weight::Count => here.by_chance[side] = variance,
        }
        here
    }

    /// The largest variance, of causes that one recording has alone, that a part of what a function took may have: what comes
    /// of chance is as that part, and all else is smaller.
    fn most(&self, path: &[TreeFrame], weight: f64) -> f64 {
        match self.weight {
            _ if weight <= 0.0 => return 0.0,
            Weight::Samples => return weight,
            Weight::Joules | Weight::Count => {}
        }
        let is_code = |frame: &&TreeFrame| matches!(frame, TreeFrame::Key(_));
        let code = match self.direction {
            Direction::FromOutermost => path.last(),
            Direction::FromInnermost => path.iter().find(is_code),
        };
        let own = code.and_then(|code| self.sums.get(code)).map(|(own, _)| own);
        match own.and_then(|own| Some(own.variance_alone(self.weight)? / own.weight(self.weight))) {
            Some(of_part) if of_part.is_finite() => of_part * weight,
            // Of what is no function nothing is known: it may be chance.
            _ => weight * weight,
        }
    }
}

/// How much changed, in the picture's unit of which a joule has so many.
pub(super) struct Changes<'d> {
    places: FxHashMap<&'d str, Sides>,
    /// Of each place with all that is in it.
    totals: FxHashMap<&'d str, f64>,
    largest: f64,
    /// What both recordings took; smaller parts of it than [`ROUNDING`] come of sums of floating-point numbers.
    whole: f64,
    per_joule: Option<f64>,
}

/// A change of so small a share of the whole is none.
pub(super) const ROUNDING: f64 = 1e-12;

impl<'d> Changes<'d> {
    /// Of paths in the order of [`by_names`]; `total` is the larger of both recordings'.
    ///
    /// [`by_names`]: super::flamegraph_frames::by_names
    pub fn of(drawn: &'d [(Cow<'_, str>, Sides)], total: f64, per_joule: Option<f64>) -> Self {
        let places: FxHashMap<&str, Sides> = drawn.iter().map(|(path, sides)| (&**path, *sides)).collect();
        let largest = places.values().map(Sides::certain).fold(total * LEAST_SCALE, f64::max);
        Self { places, totals: totals(drawn), largest, whole: total, per_joule }
    }

    /// The color of a place, which is of its own code, and what it took more or less with all that is in it, and itself;
    /// `None` where both are nothing.
    pub fn paint(&self, path: &str) -> Option<Paint> {
        let own = self.places.get(path).copied().unwrap_or_default();
        let total = self.totals.get(path).copied().unwrap_or_default();
        let mut said: Vec<String> = self.said("total", total).into_iter().collect();
        let certain = own.certain();
        if let Some(change) = self.said("itself", own.change()) {
            let error = own.error();
            let error = if error > 0.0 { format!(" ± {}", self.amount(error)) } else { String::new() };
            let chance = if certain == 0.0 { ", within two standard errors" } else { "" };
            said.push(format!("{change}{error}{chance}"));
        }
        (!said.is_empty()).then(|| Paint {
            color: (certain > 0.0).then(|| self.shade(own.change())),
            said: format!("change: {}", said.join(", ")),
        })
    }

    /// What is said of everything, which has the color that it has in every picture.
    pub fn said_of_everything(&self) -> Option<String> {
        let change = self.places.values().map(Sides::change).sum();
        Some(format!("change: {}", self.said("total", change)?))
    }

    /// A change; `None` if there is none.
    fn said(&self, of: &str, change: f64) -> Option<String> {
        let sign = if change < 0.0 { "−" } else { "+" };
        let is_any = change.abs() > self.whole * ROUNDING;
        is_any.then(|| format!("{of} {sign}{}", self.amount(change.abs())))
    }

    /// As people read it.
    fn amount(&self, weight: f64) -> String {
        match self.per_joule {
            Some(per_joule) => Joules::from_joules(weight / per_joule).to_string(),
            None => format!("{weight:.0}"),
        }
    }

    /// Red for more, blue for less, as strong as the root of the change: a tenth is seen, too.
    fn shade(&self, change: f64) -> Color {
        let strength = (change.abs() / self.largest).sqrt().min(1.0);
        let pale = (250.0 - 150.0 * strength).round() as u8;
        if change > 0.0 { Color { r: 255, g: pale, b: pale } } else { Color { r: pale, g: pale, b: 255 } }
    }
}

/// What each place took more or less with all that is in it, by its path.
fn totals<'d>(drawn: &'d [(Cow<'_, str>, Sides)]) -> FxHashMap<&'d str, f64> {
    let mut totals: FxHashMap<&str, f64> = FxHashMap::default();
    // The places on the way to the path before, and what is known of their sums.
    let mut open: Vec<(&str, f64)> = Vec::new();
    let mut close = |open: &mut Vec<(&'d str, f64)>, depth: usize| {
        while open.len() > depth {
            let Some((place, sum)) = open.pop() else { break };
            *totals.entry(place).or_default() += sum;
            if let Some((_, outer)) = open.last_mut() {
                *outer += sum;
            }
        }
    };
    for (path, sides) in drawn {
        let before = open.last().map_or("", |(place, _)| *place);
        let names = before.split(';').zip(path.split(';'));
        let same = names.take_while(|(open, name)| open == name).count().min(open.len());
        close(&mut open, same);
        let mut end = open.last().map_or(0, |(place, _)| place.len() + 1);
        for name in path.split(';').skip(same) {
            end += name.len();
            open.push((&path[..end], 0.0));
            end += 1;
        }
        if let Some((_, own)) = open.last_mut() {
            *own += sides.change();
        }
    }
    close(&mut open, 0);
    totals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(older: f64, newer: f64, errors: [f64; 2]) -> Sides {
        Sides { numbers: [older as u64, newer as u64], weights: [older, newer], errors, by_chance: [0.0; 2] }
    }

    #[test]
    fn changes_within_two_standard_errors_have_no_color() {
        let drawn: Vec<(Cow<'_, str>, Sides)> = vec![
            ("a".into(), sides(1000.0, 5000.0, [0.0; 2])),
            ("a;b".into(), sides(4000.0, 3000.0, [300.0, 400.0])),
            ("a;c".into(), sides(4000.0, 2990.0, [300.0, 400.0])),
            ("a;d".into(), sides(7.0, 7.0, [1.0, 1.0])),
        ];
        let changes = Changes::of(&drawn, 10_000.0, Some(1000.0));
        let of = |path: &str| {
            changes.paint(path).map(|paint| (paint.color.map(|it| (it.r, it.g, it.b)), paint.said))
        };
        // With all that it called 4 − 1 − 1.01 J.
        assert_eq!(
            of("a"),
            Some((Some((255, 100, 100)), "change: total +1.990 J, itself +4.000 J".to_owned()))
        );
        // Twice the error of 0.5 J, and a hundredth more. Half of the strongest color, at a fourth of the largest change.
        assert_eq!(
            of("a;b"),
            Some((
                None,
                "change: total −1.000 J, itself −1.000 J ± 500.0 mJ, within two standard errors".to_owned()
            ))
        );
        let strength = (1010.0_f64 / 4000.0).sqrt();
        let pale = (250.0 - 150.0 * strength).round() as u8;
        assert_eq!(
            of("a;c"),
            Some((Some((pale, pale, 255)), "change: total −1.010 J, itself −1.010 J ± 500.0 mJ".to_owned()))
        );
        assert_eq!(of("a;d"), None, "nothing changed");
        assert_eq!(changes.said_of_everything().as_deref(), Some("change: total +1.990 J"));
        assert_eq!(of("b"), None);
    }

    #[test]
    fn numbers_of_samples_have_the_errors_of_numbers() {
        let samples = |older: f64, newer: f64| Sides {
            weights: [older, newer],
            by_chance: [older, newer],
            ..Sides::default()
        };
        // 63.3 is the error of both together.
        assert_eq!(samples(1_993.0, 2_006.0).certain(), 0.0);
        assert_eq!(samples(1_993.0, 2_123.0).certain(), 130.0);
        // A place that is drawn as the same is met by a chance of its own.
        let mut of_threads = Sides::default();
        (0..100).for_each(|_| of_threads.add(&samples(20.0, 22.0)));
        assert_eq!((of_threads.change(), of_threads.error()), (200.0, 4_200.0_f64.sqrt()));
        assert!(of_threads.certain() > 0.0);
    }

    #[test]
    fn a_caller_tells_the_change_of_what_it_called() {
        let drawn: Vec<(Cow<'_, str>, Sides)> = vec![
            ("a".into(), sides(3000.0, 3000.0, [0.0; 2])),
            ("a;b".into(), sides(1000.0, 4000.0, [0.0; 2])),
            // It took nothing itself.
            ("a;c;d".into(), sides(3000.0, 1000.0, [0.0; 2])),
            ("a(int);b".into(), sides(5.0, 5.0, [0.0; 2])),
        ];
        let changes = Changes::of(&drawn, 10_000.0, Some(1000.0));
        let said = |path: &str| changes.paint(path).map(|paint| (paint.color.is_some(), paint.said));
        assert_eq!(said("a"), Some((false, "change: total +1.000 J".to_owned())));
        assert_eq!(said("a;c"), Some((false, "change: total −2.000 J".to_owned())));
        assert_eq!(said("a;c;d"), Some((true, "change: total −2.000 J, itself −2.000 J".to_owned())));
        assert_eq!(said("a(int)"), None);
    }

    #[test]
    fn small_changes_are_pale() {
        let drawn: Vec<(Cow<'_, str>, Sides)> = vec![("a".into(), sides(1000.0, 1001.0, [0.0; 2]))];
        let color = Changes::of(&drawn, 2000.0, None).paint("a").and_then(|paint| paint.color).expect("more");
        // A hundredth of what would have the strongest color.
        assert_eq!((color.r, color.g, color.b), (255, 235, 235));
    }
}
