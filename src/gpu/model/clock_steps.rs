//! A clock as steps from one of the clocks that were measured to the next.

use serde::{Deserialize, Serialize};

use super::table::Table;

/// More clocks than these are not told apart: steps then span several.
const MOST_LEVELS: usize = 16;

/// The clocks between which a term rises from 0 to 1.
///
/// With a coefficient of one sign for each step, power may rise with the clock along any curve that never falls: it is
/// nearly flat where the voltage is, and steep above.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ClockSteps {
    /// Column of the clock.
    pub(super) clock: usize,
    /// Rising, at least two.
    levels: Vec<f64>,
}

impl ClockSteps {
    /// `None` for a clock that is always the same.
    pub(super) fn of(clock: usize, table: &Table) -> Option<Self> {
        let mut levels: Vec<f64> = table.rows.iter().map(|row| row[clock]).collect();
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        let last = levels.len().checked_sub(1).filter(|last| *last > 0)?;
        let steps = last.min(MOST_LEVELS - 1);
        let levels: Vec<f64> = (0..=steps).map(|step| levels[last * step / steps]).collect();
        let steps = Self { clock, levels };
        steps.is_sound(table.columns.len()).then_some(steps)
    }

    pub(super) fn count(&self) -> usize {
        self.levels.len().saturating_sub(1)
    }

    pub(super) fn names(&self, clock: &str) -> impl Iterator<Item = String> {
        self.levels.windows(2).map(move |step| format!("{clock} {} to {}", step[0], step[1]))
    }

    /// How much of each step lies below the clock of a row.
    pub(super) fn terms(&self, row: &[f64]) -> impl Iterator<Item = f64> {
        let clock = row[self.clock];
        self.levels.windows(2).map(move |step| ((clock - step[0]) / (step[1] - step[0])).clamp(0.0, 1.0))
    }

    /// Whether it fits a table of so many columns.
    pub(super) fn is_sound(&self, columns: usize) -> bool {
        self.clock < columns
            && self.levels.len() > 1
            && self.levels.iter().all(|level| level.is_finite())
            && self.levels.windows(2).all(|step| step[0] < step[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_clock_is_not_sound() {
        let steps = |clock: usize, levels: &[f64]| ClockSteps { clock, levels: levels.to_vec() };
        assert!(steps(2, &[1.0, 2.0]).is_sound(3) && !steps(3, &[1.0, 2.0]).is_sound(3));
        assert!(!steps(0, &[1.0]).is_sound(3) && !steps(0, &[1.0, 1.0]).is_sound(3));
        assert!(!steps(0, &[1.0, f64::INFINITY]).is_sound(3) && !steps(0, &[2.0, 1.0]).is_sound(3));
        let of = steps(0, &[1.0, 2.0, 4.0]);
        assert_eq!(of.terms(&[3.0]).collect::<Vec<_>>(), [1.0, 0.5]);
        assert_eq!((of.count(), steps(0, &[]).count()), (2, 0));
        assert_eq!(of.names("mhz").collect::<Vec<_>>(), ["mhz 1 to 2", "mhz 2 to 4"]);
    }
    #[test]
    fn steps_lead_from_the_lowest_clock_to_the_highest() {
        let table = |clocks: &[f64]| Table {
            columns: vec!["x".into(), "mhz".into()],
            rows: clocks.iter().map(|clock| vec![7.0, *clock]).collect(),
            power: vec![1.0; clocks.len()],
            groups: vec![String::new(); clocks.len()],
            clocks: vec![1],
            ..Table::default()
        };
        let levels = |clocks: &[f64]| ClockSteps::of(1, &table(clocks)).map(|steps| steps.levels);
        assert_eq!(levels(&[900.0, 300.0, 900.0, 600.0]), Some(vec![300.0, 600.0, 900.0]));
        assert_eq!((levels(&[900.0, 900.0]), levels(&[])), (None, None));
        // Of twenty clocks sixteen, the first and the last among them, as evenly as whole numbers allow.
        let clocks: Vec<f64> = (1..=20).map(|step| f64::from(step) * 100.0).collect();
        let expected =
            [1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14, 16, 17, 18, 20].map(|step| f64::from(step) * 100.0);
        assert_eq!(levels(&clocks), Some(expected.to_vec()));
        assert_eq!(
            levels(&clocks[..16]),
            Some(clocks[..16].to_vec()),
            "as many as may be are all told apart"
        );
        assert_eq!(levels(&[1.0, f64::NAN]), None);
        let steps = ClockSteps::of(1, &table(&[100.0, 200.0, 400.0])).expect("three clocks");
        for (clock, terms) in
            [(50.0, [0.0, 0.0]), (150.0, [0.5, 0.0]), (250.0, [1.0, 0.25]), (500.0, [1.0, 1.0])]
        {
            assert_eq!(steps.terms(&[7.0, clock]).collect::<Vec<_>>(), terms);
        }
    }
}
