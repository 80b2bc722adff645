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
}

impl Sides {
    /// Adds another place that is drawn as the same. Nobody knows how their errors go together: this is the largest that both
    /// may have.
    pub fn add(&mut self, other: &Self) {
        for side in 0..2 {
            self.numbers[side] += other.numbers[side];
            self.weights[side] += other.weights[side];
            self.errors[side] += other.errors[side];
        }
    }

    fn change(&self) -> f64 {
        self.weights[1] - self.weights[0]
    }

    fn error(&self) -> f64 {
        self.errors[0].hypot(self.errors[1])
    }

    /// The size of a change that is no matter of chance.
    fn certain(&self) -> f64 {
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
        let sums = if tree.weight == Weight::Joules { tree.sums() } else { FxHashMap::default() };
        Self { sums, weight: tree.weight, direction: tree.direction() }
    }

    /// The largest standard error, of causes that one recording has alone, that a part of what a function took may have: what comes of chance is the root of that part as
    /// large, and all else is smaller. It is known of joules alone.
    pub fn most(&self, path: &[TreeFrame], weight: f64) -> f64 {
        if self.weight != Weight::Joules || weight <= 0.0 {
            return 0.0;
        }
        let is_code = |frame: &&TreeFrame| matches!(frame, TreeFrame::Key(_));
        let code = match self.direction {
            Direction::FromOutermost => path.last(),
            Direction::FromInnermost => path.iter().find(is_code),
        };
        match code.and_then(|code| self.sums.get(code)) {
            Some((own, _)) if own.joules > Joules::ZERO => {
                own.error_alone().as_joules() * (weight / own.weight(self.weight)).sqrt()
            }
            // Of what is no function nothing is known: it may be chance.
            _ => weight,
        }
    }
}

/// How much changed, in the picture's unit of which a joule has so many.
pub(super) struct Changes<'d> {
    places: FxHashMap<&'d str, Sides>,
    largest: f64,
    per_joule: Option<f64>,
}

impl<'d> Changes<'d> {
    /// Of paths; `total` is the larger of both recordings'.
    pub fn of(drawn: &'d [(Cow<'_, str>, Sides)], total: f64, per_joule: Option<f64>) -> Self {
        let places: FxHashMap<&str, Sides> = drawn.iter().map(|(path, sides)| (&**path, *sides)).collect();
        let largest = places.values().map(Sides::certain).fold(total * LEAST_SCALE, f64::max);
        Self { places, largest, per_joule }
    }

    /// The color of a place, and what its own code took more or less; `None` where that is nothing.
    pub fn paint(&self, path: &str) -> Option<Paint> {
        let sides = self.places.get(path)?;
        let (change, certain) = (sides.change(), sides.certain());
        if change == 0.0 {
            return None;
        }
        let amount = |weight: f64| match self.per_joule {
            Some(per_joule) => Joules::from_joules(weight / per_joule).to_string(),
            None => format!("{weight:.0}"),
        };
        let sign = if change < 0.0 { "−" } else { "+" };
        let error =
            if sides.error() > 0.0 { format!(" ± {}", amount(sides.error())) } else { String::new() };
        let chance = if certain == 0.0 { ", within two standard errors" } else { "" };
        Some(Paint {
            color: (certain > 0.0).then(|| self.shade(change)),
            said: format!("itself {sign}{}{error}{chance}", amount(change.abs())),
        })
    }

    /// Red for more, blue for less, as strong as the root of the change: a tenth is seen, too.
    fn shade(&self, change: f64) -> Color {
        let strength = (change.abs() / self.largest).sqrt().min(1.0);
        let pale = (250.0 - 150.0 * strength).round() as u8;
        if change > 0.0 { Color { r: 255, g: pale, b: pale } } else { Color { r: pale, g: pale, b: 255 } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(older: f64, newer: f64, errors: [f64; 2]) -> Sides {
        Sides { numbers: [older as u64, newer as u64], weights: [older, newer], errors }
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
        assert_eq!(of("a"), Some((Some((255, 100, 100)), "itself +4.000 J".to_owned())));
        // Twice the error of 0.5 J, and a hundredth more. Half of the strongest color, at a fourth of the largest change.
        assert_eq!(
            of("a;b"),
            Some((None, "itself −1.000 J ± 500.0 mJ, within two standard errors".to_owned()))
        );
        let strength = (1010.0_f64 / 4000.0).sqrt();
        let pale = (250.0 - 150.0 * strength).round() as u8;
        assert_eq!(of("a;c"), Some((Some((pale, pale, 255)), "itself −1.010 J ± 500.0 mJ".to_owned())));
        assert_eq!(of("a;d"), None, "nothing changed");
        assert_eq!(of("b"), None);
    }

    #[test]
    fn small_changes_are_pale() {
        let drawn: Vec<(Cow<'_, str>, Sides)> = vec![("a".into(), sides(1000.0, 1001.0, [0.0; 2]))];
        let color = Changes::of(&drawn, 2000.0, None).paint("a").and_then(|paint| paint.color).expect("more");
        // A hundredth of what would have the strongest color.
        assert_eq!((color.r, color.g, color.b), (255, 235, 235));
    }
}
