//! Forms in which counters enter a fit, and their standardisation.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::clock_steps::ClockSteps;
use super::table::Table;
use crate::numerics::nnls::Sign;
use crate::numerics::quantiles::range;

/// What is done to the columns first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Columns {
    /// As they are.
    AsGiven,
    /// Counts divided by the run time.
    PerTime,
    /// Counts of one unit (names that start alike) added up, per time.
    Pooled,
    /// None of them: what is left is a constant, and clocks where they enter by steps.
    NoCounters,
}

/// What is done to each value then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Nothing.
    Linear,
    /// The square root: power saturates.
    Root,
    /// The logarithm of the value plus a hundredth of its column's mean.
    Log,
}

/// A form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// Columns.
    pub columns: Columns,
    /// Scale of their values.
    pub scale: Scale,
    /// Products with the clock columns are added: dynamic power is activity times frequency.
    pub clock_products: bool,
    /// Clocks enter by one term for each step from a clock that was measured to the next, in the place of their value:
    /// with coefficients of one sign that is any curve that only rises, as voltage does with the clock.
    #[serde(default)]
    pub clock_steps: bool,
}

impl Form {
    /// Counters of this kind and scale, and no more.
    pub fn plain(columns: Columns, scale: Scale) -> Self {
        Self { columns, scale, clock_products: false, clock_steps: false }
    }
}

/// A form fitted to training rows: what must be remembered to treat another row alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prepared {
    form: Form,
    /// Names of the terms that are used.
    pub names: Vec<String>,
    floors: Vec<f64>,
    kept: Vec<usize>,
    /// Of each term that is used: what it counts is idling, which lowers the power.
    falling: Vec<bool>,
    mean: Vec<f64>,
    deviation: Vec<f64>,
    limits: Vec<(f64, f64)>,
    /// Terms that were dropped, and why.
    pub dropped: Vec<(String, String)>,
    time: Option<usize>,
    counts: Vec<usize>,
    /// Columns of clocks, and their places among the terms before products.
    clocks: Vec<(usize, usize)>,
    /// Clocks that enter by steps.
    #[serde(default)]
    steps: Vec<ClockSteps>,
    columns: Vec<String>,
}

/// More terms than this are not looked at together, a fit takes time with the square of their number;
const MOST_TERMS: usize = 320;
/// nor more than so many for each row,
const TERMS_PER_ROW: usize = 4;
/// if there are more than this.
const FEW_TERMS: usize = 64;

/// The terms that go with the power most, by their correlation with it in these rows; `None`: all.
fn most_telling(terms: &[Vec<f64>], power: &[f64]) -> Option<BTreeSet<usize>> {
    let width = terms.first().map_or(0, Vec::len);
    let most = (TERMS_PER_ROW * terms.len()).clamp(FEW_TERMS, MOST_TERMS);
    if width <= most {
        return None;
    }
    let count = terms.len() as f64;
    let mean_power = power.iter().sum::<f64>() / count;
    let correlation = |index: usize| {
        let mean = terms.iter().map(|row| row[index]).sum::<f64>() / count;
        let (mut products, mut squares) = (0.0, 0.0);
        for (row, power) in terms.iter().zip(power) {
            products += (row[index] - mean) * (power - mean_power);
            squares += (row[index] - mean).powi(2);
        }
        if squares > 0.0 && products.is_finite() { products.abs() / squares.sqrt() } else { 0.0 }
    };
    let mut ranked: Vec<(f64, usize)> = (0..width).map(|index| (correlation(index), index)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    Some(ranked.into_iter().take(most).map(|(_, index)| index).collect())
}

impl Prepared {
    /// Learns means and deviations from the rows of a table, and gives them standardised.
    ///
    /// A term whose values are all equal, or in which a single row differs from all others, is
    /// dropped: with that row left out it has no variance and its coefficient no meaning.
    pub fn learn(form: Form, table: &Table) -> (Self, Vec<Vec<f64>>) {
        let mut prepared = Self {
            form,
            names: Vec::new(),
            floors: Vec::new(),
            kept: Vec::new(),
            falling: Vec::new(),
            mean: Vec::new(),
            deviation: Vec::new(),
            limits: Vec::new(),
            dropped: Vec::new(),
            time: table.time,
            counts: table.counts.clone(),
            clocks: Vec::new(),
            steps: Vec::new(),
            columns: table.columns.clone(),
        };
        if form.clock_steps {
            prepared.steps = table.clocks.iter().filter_map(|clock| ClockSteps::of(*clock, table)).collect();
        }
        let singles = prepared.single_names();
        let place =
            |clock: &usize| Some((*clock, singles.iter().position(|name| *name == table.columns[*clock])?));
        prepared.clocks = table.clocks.iter().filter_map(place).collect();
        let combined: Vec<Vec<f64>> = table.rows.iter().map(|row| prepared.combine(row)).collect();
        // As many as there are names, also for no rows: other rows will be scaled by them.
        let width = singles.len();
        let count = combined.len().max(1) as f64;
        prepared.floors =
            (0..width).map(|j| 0.01 * combined.iter().map(|row| row[j].abs()).sum::<f64>() / count).collect();
        let names = prepared.term_names();
        let terms: Vec<Vec<f64>> = table.rows.iter().map(|row| prepared.terms(row)).collect();
        let telling = most_telling(&terms, &table.power);
        let first_step = names.len() - prepared.steps.iter().map(ClockSteps::count).sum::<usize>();
        for (index, name) in names.into_iter().enumerate() {
            if index < first_step && telling.as_ref().is_some_and(|telling| !telling.contains(&index)) {
                prepared.dropped.push((name, "too many columns: others go with the power more".to_owned()));
                continue;
            }
            let values = || terms.iter().map(|row| row[index]);
            let mean = values().sum::<f64>() / count;
            let deviation = (values().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
            let (low, high) = range(values());
            let at_low = values().filter(|value| value - low <= 1e-9 * (high - low)).count();
            let at_high = values().filter(|value| high - value <= 1e-9 * (high - low)).count();
            if !deviation.is_finite() || deviation <= 1e-9 * mean.abs().max(1e-12) {
                prepared.dropped.push((name, "constant".to_owned()));
            } else if at_low.max(at_high) + 1 >= terms.len() && terms.len() > 2 {
                prepared.dropped.push((name, "only one row differs".to_owned()));
            } else {
                let reach = 0.5 * (high - low) / deviation;
                prepared.limits.push(((low - mean) / deviation - reach, (high - mean) / deviation + reach));
                prepared.kept.push(index);
                prepared.falling.push(name.to_ascii_lowercase().contains("idle"));
                prepared.names.push(name);
                prepared.mean.push(mean);
                prepared.deviation.push(deviation);
            }
        }
        let standardised = terms.iter().map(|terms| prepared.standardise(terms)).collect();
        (prepared, standardised)
    }

    /// The signs that physics gives the coefficients of a fit with a constant: no unit's work lowers the power,
    /// and no idling raises it.
    pub fn signs(&self) -> Vec<Sign> {
        let sign = |falls: &bool| if *falls { Sign::NonPositive } else { Sign::NonNegative };
        std::iter::once(Sign::Free).chain(self.falling.iter().map(sign)).collect()
    }

    /// A row of the original columns in this form, standardised. Values far outside what was learnt
    /// (by more than half the learnt range) are brought back to that distance.
    pub fn apply(&self, row: &[f64]) -> Vec<f64> {
        self.standardise(&self.terms(row))
    }

    /// The original columns that this form expects, in order.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Which of them is the run time.
    pub(super) fn time(&self) -> Option<usize> {
        self.time
    }

    /// Which of them are counts.
    pub(super) fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Whether all that was learnt fits together, as it may not if it comes from a file.
    pub(super) fn is_sound(&self) -> bool {
        let (columns, singles) = (self.columns.len(), self.single_names().len());
        let products = if self.form.clock_products { singles * self.clocks.len() } else { 0 };
        let terms = singles + products + self.steps.iter().map(ClockSteps::count).sum::<usize>();
        let kept = self.kept.len();
        self.time.is_none_or(|time| time < columns)
            && self.counts.iter().all(|count| *count < columns)
            && self.clocks.iter().all(|(clock, place)| *clock < columns && *place < singles)
            && self.steps.iter().all(|steps| steps.is_sound(columns))
            && self.floors.len() == singles
            && self.kept.iter().all(|term| *term < terms)
            && [
                self.names.len(),
                self.falling.len(),
                self.mean.len(),
                self.deviation.len(),
                self.limits.len(),
            ]
            .iter()
            .all(|length| *length == kept)
            && self.limits.iter().all(|(low, high)| low <= high)
    }

    /// All terms of a row of the original columns, as they are before being standardised.
    fn terms(&self, row: &[f64]) -> Vec<f64> {
        let mut terms = self.scale(&self.combine(row));
        self.steps.iter().for_each(|steps| terms.extend(steps.terms(row)));
        terms
    }

    /// The columns that are counters or clocks in this form.
    fn used(&self) -> impl Iterator<Item = usize> + '_ {
        let is_by_steps = |index: &usize| self.steps.iter().any(|steps| steps.clock == *index);
        let is_used = |index: &usize| match self.form.columns {
            Columns::NoCounters => false,
            Columns::AsGiven => true,
            Columns::PerTime | Columns::Pooled => Some(*index) != self.time,
        };
        (0..self.columns.len()).filter(is_used).filter(move |index| !is_by_steps(index))
    }

    fn combine(&self, row: &[f64]) -> Vec<f64> {
        let per_time = |index: usize| match self.time {
            Some(time) if self.counts.contains(&index) && row[time] != 0.0 => row[index] / row[time],
            _ => row[index],
        };
        match self.form.columns {
            Columns::NoCounters => Vec::new(),
            Columns::AsGiven => self.used().map(|index| row[index]).collect(),
            Columns::PerTime => self.used().map(per_time).collect(),
            Columns::Pooled => {
                let mut pools: Vec<(&str, f64)> = Vec::new();
                for index in self.used() {
                    let pool = self.pool_of(index);
                    match pools.iter_mut().find(|(known, _)| *known == pool) {
                        Some((_, sum)) => *sum += per_time(index),
                        None => pools.push((pool, per_time(index))),
                    }
                }
                pools.into_iter().map(|(_, sum)| sum).collect()
            }
        }
    }

    /// What a count is added up under: its name up to the first underscore.
    fn pool_of(&self, index: usize) -> &str {
        let name = self.columns[index].as_str();
        if self.counts.contains(&index) { name.split('_').next().unwrap_or(name) } else { name }
    }

    fn single_names(&self) -> Vec<String> {
        match self.form.columns {
            Columns::NoCounters => Vec::new(),
            Columns::AsGiven | Columns::PerTime => {
                self.used().map(|index| self.columns[index].clone()).collect()
            }
            Columns::Pooled => {
                let mut pools: Vec<String> = Vec::new();
                for index in self.used() {
                    let pool = self.pool_of(index).to_owned();
                    if !pools.contains(&pool) {
                        pools.push(pool);
                    }
                }
                pools
            }
        }
    }

    fn term_names(&self) -> Vec<String> {
        let singles = self.single_names();
        let mut names = singles.clone();
        if self.form.clock_products {
            for (clock, _) in &self.clocks {
                names.extend(singles.iter().map(|name| format!("{} x {name}", self.columns[*clock])));
            }
        }
        self.steps.iter().for_each(|steps| names.extend(steps.names(&self.columns[steps.clock])));
        names
    }

    fn scale(&self, row: &[f64]) -> Vec<f64> {
        let mut terms: Vec<f64> = row
            .iter()
            .enumerate()
            .map(|(index, value)| match self.form.scale {
                Scale::Linear => *value,
                Scale::Root => value.abs().sqrt(),
                Scale::Log => (value.abs() + self.floors[index] + 1e-12).ln(),
            })
            .collect();
        if self.form.clock_products {
            let singles = terms.clone();
            for (_, place) in &self.clocks {
                terms.extend(singles.iter().map(|term| term * singles[*place]));
            }
        }
        terms
    }

    fn standardise(&self, terms: &[f64]) -> Vec<f64> {
        self.before_limits(terms).map(|(term, (low, high))| term.clamp(low, high)).collect()
    }

    /// Whether a term of this row lies so far from those that were learnt from that its limit stands for it.
    pub(super) fn is_beyond(&self, row: &[f64]) -> bool {
        self.before_limits(&self.terms(row)).any(|(term, (low, high))| !(low..=high).contains(&term))
    }

    /// Standardised terms, each with its limits.
    fn before_limits(&self, terms: &[f64]) -> impl Iterator<Item = (f64, (f64, f64))> {
        let all = self.kept.iter().zip(&self.mean).zip(&self.deviation).zip(&self.limits);
        all.map(|(((index, mean), deviation), limits)| ((terms[*index] - mean) / deviation, *limits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table {
            columns: ["time", "l1_read", "l1_write", "occupancy", "warp_serialize", "constant", "clock"]
                .map(String::from)
                .to_vec(),
            rows: (1..=8)
                .map(|i| {
                    let x = f64::from(i);
                    vec![
                        x,
                        1000.0 * x * x,
                        500.0 * x,
                        0.1 * x,
                        if i == 4 { 200.0 } else { 0.0 },
                        3.0,
                        1.0 + x,
                    ]
                })
                .collect(),
            power: vec![100.0; 8],
            groups: (0..8).map(|i| i.to_string()).collect(),
            time: Some(0),
            counts: vec![1, 2],
            clocks: vec![6],
            ..Table::default()
        }
    }

    /// Seventy terms, of which the first six go with nothing, and one does not vary.
    #[test]
    fn terms_that_tell_least_are_left_out() {
        let power: Vec<f64> = (0..12).map(|row| f64::from(row * row)).collect();
        let term = |row: usize, index: usize| match index {
            // As far from the mean on either side: no correlation with anything that is symmetric.
            0..6 => (row % 2) as f64 * 1e6 + (index as f64),
            6 => 5.0,
            index => power[row] * index as f64 + 0.1 * (row % 3) as f64,
        };
        let rows = |width: usize| -> Vec<Vec<f64>> {
            (0..12).map(|row| (0..width).map(|index| term(row, index)).collect()).collect()
        };
        assert_eq!(most_telling(&rows(64), &power), None);
        let kept = most_telling(&rows(70), &power).expect("more than there may be");
        assert_eq!(kept.len(), 64);
        assert!((7..70).all(|index| kept.contains(&index)) && !kept.contains(&6), "{kept:?}");
        assert_eq!(most_telling(&[], &[]), None);
    }

    #[test]
    fn counts_become_rates_and_useless_columns_go() {
        let form = Form::plain(Columns::PerTime, Scale::Linear);
        let (prepared, rows) = Prepared::learn(form, &table());
        // 500 x / x is constant, and only one row has any warp_serialize.
        assert_eq!(prepared.names, ["l1_read", "occupancy", "clock"]);
        assert_eq!(prepared.dropped.len(), 3);
        let mean = rows.iter().map(|row| row[0]).sum::<f64>() / 8.0;
        let variance = rows.iter().map(|row| row[0].powi(2)).sum::<f64>() / 8.0;
        assert!(mean.abs() < 1e-12 && (variance - 1.0).abs() < 1e-12);
        assert_eq!(prepared.apply(&table().rows[2]), rows[2]);
    }

    #[test]
    fn pools_and_products_are_named() {
        let form =
            Form { columns: Columns::Pooled, scale: Scale::Linear, clock_products: true, clock_steps: false };
        let (prepared, _) = Prepared::learn(form, &table());
        assert!(prepared.names.contains(&"l1".to_owned()), "{:?}", prepared.names);
        assert!(prepared.names.contains(&"clock x l1".to_owned()), "{:?}", prepared.names);
    }

    /// The clock goes from 2 to 9 in steps of one: seven terms in its place, each rising from 0 to 1 between two clocks.
    #[test]
    fn clocks_enter_by_steps() {
        for (columns, others) in [(Columns::NoCounters, 0), (Columns::PerTime, 2)] {
            let form = Form { clock_steps: true, ..Form::plain(columns, Scale::Linear) };
            let (prepared, rows) = Prepared::learn(form, &table());
            let steps = &prepared.names[others..];
            // A step that only one row has is none: without that row nothing tells it.
            assert_eq!(
                steps,
                ["clock 3 to 4", "clock 4 to 5", "clock 5 to 6", "clock 6 to 7", "clock 7 to 8"]
            );
            assert!(!prepared.names.contains(&"clock".to_owned()) && prepared.is_sound());
            let mut between = table().rows[3].clone();
            between[6] = 5.25;
            let (at, next) = (&rows[3][others..], &rows[4][others..]);
            for ((found, at), next) in prepared.apply(&between)[others..].iter().zip(at).zip(next) {
                assert!((found - (0.75 * at + 0.25 * next)).abs() < 1e-12);
            }
            let text = serde_json::to_string(&prepared).expect("JSON");
            let read: Prepared = serde_json::from_str(&text).expect("what was stored");
            assert_eq!(read.apply(&between), prepared.apply(&between));
        }
    }

    #[test]
    fn no_rows_teach_nothing_and_break_nothing() {
        for columns in [Columns::AsGiven, Columns::PerTime, Columns::Pooled, Columns::NoCounters] {
            for scale in [Scale::Linear, Scale::Root, Scale::Log] {
                let form = Form { columns, scale, clock_products: true, clock_steps: false };
                let (prepared, rows) = Prepared::learn(form, &table().subset(&[]));
                assert!(rows.is_empty() && prepared.names.is_empty() && prepared.is_sound());
                assert!(prepared.apply(&table().rows[0]).is_empty());
            }
        }
    }

    #[test]
    fn a_value_far_outside_does_not_explode() {
        let form = Form::plain(Columns::PerTime, Scale::Linear);
        let (prepared, _) = Prepared::learn(form, &table());
        let mut row = table().rows[2].clone();
        row[1] = 1e12;
        assert!(prepared.apply(&row)[0] < 5.0);
    }

    /// Beside the textbook's correlation, of terms that are mostly chance.
    #[test]
    fn terms_are_ranked_by_their_correlation() {
        let mut random = crate::numerics::random::Random::seeded(9);
        let power: Vec<f64> = (0..15).map(|_| 50.0 + 30.0 * random.uniform()).collect();
        let rows: Vec<Vec<f64>> = power
            .iter()
            .map(|power| {
                (0..90)
                    .map(|index| 40.0 + power * f64::from(index) / 90.0 + 20.0 * random.uniform())
                    .collect()
            })
            .collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let correlation = |index: usize| {
            let term: Vec<f64> = rows.iter().map(|row| row[index]).collect();
            let (of_term, of_power) = (mean(&term), mean(&power));
            let product: f64 = term.iter().zip(&power).map(|(a, b)| (a - of_term) * (b - of_power)).sum();
            let squares: f64 = term.iter().map(|value| (value - of_term).powi(2)).sum();
            (product / squares.sqrt()).abs()
        };
        let mut ranked: Vec<usize> = (0..90).collect();
        ranked.sort_by(|a, b| correlation(*b).total_cmp(&correlation(*a)));
        // Four for each of fifteen rows would be 60; 64 are always looked at.
        assert_eq!(most_telling(&rows, &power), Some(ranked[..64].iter().copied().collect()));
    }

    /// What a file says must fit together: terms are the columns, and their products with the clock.
    #[test]
    fn only_what_fits_together_is_sound() {
        let form = Form { clock_products: true, ..Form::plain(Columns::AsGiven, Scale::Linear) };
        let (learnt, _) = Prepared::learn(form, &table());
        let singles = learnt.single_names().len();
        assert!(learnt.is_sound() && learnt.clocks.len() == 1 && !learnt.kept.is_empty());
        let is_sound = |change: &dyn Fn(&mut Prepared)| {
            let mut changed = learnt.clone();
            change(&mut changed);
            changed.is_sound()
        };
        assert!(is_sound(&|learnt| learnt.kept[0] = 2 * singles - 1));
        assert!(!is_sound(&|learnt| learnt.kept[0] = 2 * singles));
        assert!(is_sound(&|learnt| learnt.limits[0] = (1.0, 1.0)));
        assert!(!is_sound(&|learnt| learnt.limits[0] = (1.0, 0.9)));
        assert!(!is_sound(&|learnt| learnt.limits[0] = (f64::NAN, 1.0)));
        assert!(!is_sound(&|learnt| learnt.mean.clear()) && !is_sound(&|learnt| learnt.floors.clear()));
        assert!(!is_sound(&|learnt| learnt.clocks[0].1 = singles));
        assert!(!is_sound(&|learnt| learnt.time = Some(learnt.columns.len())));
    }
}
