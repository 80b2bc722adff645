//! A lagging sensor's trace cut into stretches of steady power.
//!
//! While the power holds a level `P`, a sensor that charges like a capacitor shows
//! `P + A exp(-t / C)`, whatever came before: no step has to be waited out until the sensor has
//! settled. So a trace is cut where one such curve no longer follows it, into as few stretches as
//! explain it (the exact optimum, by dynamic programming: Killick, Fearnhead and Eckley 2012). The
//! curves of two neighbours meet where the power changed, between two refreshes.

use crate::numerics::{quantiles, robust};

/// A stretch of readings during which the power held one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// Index of its first reading.
    pub first: usize,
    /// One past its last reading.
    pub end: usize,
    /// The power, watts.
    pub level: f64,
    /// What the sensor showed above the level at the first reading, watts.
    pub lag: f64,
}

/// A trace cut into stretches.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// In time order, without gaps.
    pub stretches: Vec<Stretch>,
    /// Squared residuals in units of the noise, and a price for each stretch.
    pub cost: f64,
}

/// What a sensor shows during a stretch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Course {
    /// An exponential of this time constant, seconds.
    Exponential(f64),
    /// A straight line: an exponential without end, and what a window of a step shows.
    Straight,
}

impl Course {
    fn at(self, time: f64) -> f64 {
        match self {
            Self::Exponential(constant) => (-time / constant).exp(),
            Self::Straight => time,
        }
    }
}

/// Standard deviation of a reading; see [`robust::jitter`].
pub(super) fn jitter(watts: &[f64]) -> f64 {
    robust::jitter(watts).unwrap_or(0.0)
}

/// Standard deviation of a sensor's readings around its course: their jitter, their steps, and two
/// thousandths of their range, since no load is quite steady.
pub fn reading_noise(watts: &[f64]) -> f64 {
    let moves = watts.windows(2).map(|pair| (pair[1] - pair[0]).abs()).filter(|step| *step > 1e-6);
    let step = moves.fold(f64::MAX, f64::min);
    let rounding = if step < f64::MAX { step / 12f64.sqrt() } else { 0.0 };
    let (lowest, highest) = quantiles::range(watts.iter().copied());
    jitter(watts).hypot(rounding).hypot(0.002 * (highest - lowest).max(0.0))
}

/// Longer traces are cut in parts, so that the time to do it does not grow with the square of the length.
const LONGEST_PART: usize = 2500;

/// Cuts a trace. `times` in seconds, rising; `noise`: standard deviation of a reading, watts.
pub fn cut(times: &[f64], watts: &[f64], course: Course, noise: f64) -> Cut {
    let mut whole = Cut { stretches: Vec::new(), cost: 0.0 };
    let parts = times.len().div_ceil(LONGEST_PART).max(1);
    for part in 0..parts {
        let (from, to) = (times.len() * part / parts, times.len() * (part + 1) / parts);
        let found = cut_part(&times[from..to], &watts[from..to], course, noise);
        whole.cost += found.cost;
        whole.stretches.extend(found.stretches.into_iter().map(|stretch| Stretch {
            first: stretch.first + from,
            end: stretch.end + from,
            ..stretch
        }));
    }
    whole
}

fn cut_part(times: &[f64], watts: &[f64], course: Course, noise: f64) -> Cut {
    let count = times.len();
    let weight = 1.0 / noise.max(1e-9).powi(2);
    // Level, lag and place of a stretch, each at twice what the Bayesian criterion asks: readings are
    // not independent.
    let price = 6.0 * (count.max(2) as f64).ln();
    let mean = watts.iter().sum::<f64>() / count.max(1) as f64;
    let mut best = vec![(-price, 0usize); count + 1];
    let mut starts: Vec<(usize, Sums)> = Vec::new();
    for index in 0..count {
        starts.push((index, Sums::default()));
        let mut least = (f64::MAX, 0);
        for (start, sums) in &mut starts {
            sums.add(course.at(times[index] - times[*start]), watts[index] - mean);
            let cost = best[*start].0 + sums.residual() * weight + price;
            if cost < least.0 {
                least = (cost, *start);
            }
        }
        best[index + 1] = least;
        // What is worse already than beginning anew will not be better later.
        starts.retain(|(start, sums)| best[*start].0 + sums.residual() * weight <= least.0);
    }
    let mut stretches = Vec::new();
    let mut end = count;
    while end > 0 {
        let first = best[end].1;
        let mut sums = Sums::default();
        (first..end).for_each(|i| sums.add(course.at(times[i] - times[first]), watts[i] - mean));
        let (level, lag) = sums.line();
        stretches.push(Stretch { first, end, level: level + mean, lag });
        end = first;
    }
    stretches.reverse();
    Cut { stretches, cost: best[count].0 + price }
}

/// Sums for a line through points.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Sums {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        self.yy += y * y;
    }

    /// Around the means: squares of x, products, squares of y.
    fn centered(&self) -> (f64, f64, f64) {
        let n = self.count;
        (self.xx - self.x * self.x / n, self.xy - self.x * self.y / n, self.yy - self.y * self.y / n)
    }

    /// Too little of the exponential is left in the readings to tell it from the level.
    fn is_flat(&self, xx: f64) -> bool {
        xx <= 1e-9 * self.xx.max(1e-300)
    }

    fn residual(&self) -> f64 {
        if self.count < 3.0 {
            return 0.0;
        }
        let (xx, xy, yy) = self.centered();
        let explained = if self.is_flat(xx) { 0.0 } else { xy * xy / xx };
        (yy - explained).max(0.0)
    }

    /// Constant and slope.
    fn line(&self) -> (f64, f64) {
        let (xx, xy, _) = self.centered();
        let slope = if self.count < 2.0 || self.is_flat(xx) { 0.0 } else { xy / xx };
        ((self.y - slope * self.x) / self.count, slope)
    }
}

/// Where the power changed: for each pair of neighbours, the time at which their curves meet, if it
/// lies between the last reading of one and the first of the next (or a reading beside), else its middle.
pub fn switches(times: &[f64], stretches: &[Stretch], constant: f64) -> Vec<f64> {
    let meet = |pair: &[Stretch]| {
        let (before, after) = (pair[0], pair[1]);
        let (last, next) = (times[after.first - 1], times[after.first]);
        // Both curves as level + amplitude * u, where u is 1 at the later one's first reading.
        let before_lag = before.lag * (-(next - times[before.first]) / constant).exp();
        let u = (before.level - after.level) / (after.lag - before_lag);
        let time = if u > 0.0 { next - constant * u.ln() } else { f64::NAN };
        let reach = next - last;
        if (last - reach..=next + reach).contains(&time) {
            time.clamp(last, next)
        } else {
            (last + next) / 2.0
        }
    };
    stretches.windows(2).map(meet).collect()
}

/// Root mean square of what a capacitor that is charged by these levels, one after the other, shows
/// differently from the readings: unlike the stretches themselves it cannot jump.
pub fn misfit(times: &[f64], watts: &[f64], stretches: &[Stretch], constant: f64) -> f64 {
    let switches = switches(times, stretches, constant);
    let Some(first) = stretches.first() else { return 0.0 };
    let mut shown = first.level + first.lag;
    let (mut now, mut sum) = (times[0], 0.0);
    for (index, stretch) in stretches.iter().enumerate() {
        let charge =
            |shown: f64, level: f64, span: f64| level + (shown - level) * (-span.max(0.0) / constant).exp();
        if let Some(before) = index.checked_sub(1) {
            shown = charge(shown, stretches[before].level, switches[before] - now);
            now = switches[before];
        }
        for at in stretch.first..stretch.end {
            shown = charge(shown, stretch.level, times[at] - now);
            now = times[at];
            sum += (shown - watts[at]).powi(2);
        }
    }
    (sum / times.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a capacitor of 0.8 s shows every 15 ms of these powers, from their times on.
    fn charged(powers: &[(f64, f64)], end: f64, noise: f64) -> (Vec<f64>, Vec<f64>) {
        let (mut shown, mut now, mut index) = (powers[0].1, 0.0, 0);
        let (mut times, mut watts) = (Vec::new(), Vec::new());
        for step in 0..(end / 0.015) as usize {
            let time = step as f64 * 0.015;
            while let Some(next) = powers.get(index + 1).filter(|next| next.0 <= time) {
                shown = powers[index].1 + (shown - powers[index].1) * (-(next.0 - now) / 0.8f64).exp();
                now = next.0;
                index += 1;
            }
            shown = powers[index].1 + (shown - powers[index].1) * (-(time - now) / 0.8f64).exp();
            now = time;
            times.push(time);
            watts.push(shown + noise * (((step as f64 + 1.0) * 0.618_034).fract() - 0.5) * 12f64.sqrt());
        }
        (times, watts)
    }

    const POWERS: [(f64, f64); 5] = [(0.0, 30.0), (1.007, 150.0), (1.411, 55.0), (2.003, 120.0), (2.5, 55.0)];

    #[test]
    fn noise_by_hand() {
        // No jitter, steps of 1 W, a range of 4 W.
        let found = reading_noise(&[10.0, 11.0, 12.0, 13.0, 14.0]);
        assert!((found - (1.0f64 / 12.0 + 0.008f64.powi(2)).sqrt()).abs() < 1e-12, "{found}");
        assert_eq!(reading_noise(&[5.0, 5.0, 5.0]), 0.0);
        // Less than a millionth of a watt is no step.
        let found = reading_noise(&[5.0, 5.0 + 5e-7, 5.0, 7.0, 7.0, 7.0]);
        assert!(
            (found
                - (4.0f64 / 12.0
                    + 0.004f64.powi(2)
                    + jitter(&[5.0, 5.0 + 5e-7, 5.0, 7.0, 7.0, 7.0]).powi(2))
                .sqrt())
            .abs()
                < 1e-6
        );
    }

    /// What a cut costs is what its parts are off by, and a price for each: the least of all cuts, tried one by one.
    #[test]
    fn the_cut_is_the_cheapest_of_all() {
        let times: Vec<f64> = (0..9).map(f64::from).collect();
        let watts = [10.0, 10.1, 9.9, 10.0, 30.0, 30.1, 29.9, 30.2, 30.0];
        for (course, noise) in
            [(Course::Straight, 0.1), (Course::Exponential(2.0), 0.1), (Course::Straight, 8.0)]
        {
            let price = 6.0 * 9f64.ln();
            let residual = |from: usize, to: usize| {
                let points: Vec<(f64, f64)> =
                    (from..to).map(|i| (course.at(times[i] - times[from]), watts[i])).collect();
                let moments = crate::numerics::line::Moments::of(&points);
                if to - from < 3 { 0.0 } else { moments.unexplained(moments.slope().unwrap_or(0.0)) }
            };
            let least = (0u32..1 << 8).map(|borders| {
                let mut from = 0;
                let mut cost = 0.0;
                for to in 1..=9usize {
                    if to == 9 || borders & (1 << (to - 1)) != 0 {
                        cost += residual(from, to) / (noise * noise) + price;
                        from = to;
                    }
                }
                cost
            });
            let least = least.fold(f64::MAX, f64::min);
            let found = cut(&times, &watts, course, noise);
            assert!(
                (found.cost - least).abs() < 1e-6 * least.abs(),
                "{course:?} {noise}: {} {least}",
                found.cost
            );
        }
    }

    #[test]
    fn lines_by_hand() {
        let mut sums = Sums::default();
        [(1.0, 3.0), (2.0, 5.0), (3.0, 10.0)].iter().for_each(|(x, y)| sums.add(*x, *y));
        let (constant, slope) = sums.line();
        assert!((constant + 1.0).abs() < 1e-12 && (slope - 3.5).abs() < 1e-12);
        // 26 less 24.5.
        assert!((sums.residual() - 1.5).abs() < 1e-12, "{}", sums.residual());
        let mut level = Sums::default();
        (0..3).for_each(|y| level.add(2.0, f64::from(y)));
        assert_eq!((level.line(), level.residual()), ((1.0, 0.0), 2.0));
        let mut two = Sums::default();
        [(1.0, 3.0), (2.0, 5.0)].iter().for_each(|(x, y)| two.add(*x, *y));
        assert_eq!((two.line(), two.residual()), ((1.0, 2.0), 0.0));
    }

    #[test]
    fn curves_meet_where_the_power_changed() {
        let stretch = |first, end, level, lag| Stretch { first, end, level, lag };
        // From 0 W towards 100 W from 1.5 s on, with a constant of 1 s.
        let times = [0.0, 1.0, 2.0, 3.0];
        let lag = -100.0 * (-0.5f64).exp();
        let found = switches(&times, &[stretch(0, 2, 0.0, 0.0), stretch(2, 4, 100.0, lag)], 1.0);
        assert!((found[0] - 1.5).abs() < 1e-12, "{found:?}");
        // Curves that meet a reading too far away, or not at all: the middle.
        for lag in [-100.0 * (1.2f64).exp(), -100.0 * (-2.2f64).exp(), 50.0] {
            let found = switches(&times, &[stretch(0, 2, 0.0, 0.0), stretch(2, 4, 100.0, lag)], 1.0);
            assert_eq!(found, [1.5], "{lag}");
        }
        // Up to a reading beside it is between the two.
        let found =
            switches(&times, &[stretch(0, 2, 0.0, 0.0), stretch(2, 4, 100.0, -100.0 * (0.5f64).exp())], 1.0);
        assert_eq!(found, [2.0]);
        // What such levels show: nothing until the switch, then the charge.
        let watts = times.map(|time: f64| 100.0 * (1.0 - (1.5 - time).min(0.0).exp()));
        let parts = [stretch(0, 2, 0.0, 0.0), stretch(2, 4, 100.0, lag)];
        assert!(misfit(&times, &watts, &parts, 1.0) < 1e-12);
        let off = watts.map(|watts| watts + 2.0);
        assert!((misfit(&times, &off, &parts, 1.0) - 2.0).abs() < 1e-12);
        assert_eq!(misfit(&times, &watts, &[], 1.0), 0.0);
    }

    #[test]
    fn levels_and_switches_are_found_though_the_sensor_never_settles() {
        let (times, watts) = charged(&POWERS, 6.0, 0.3);
        let found = cut(&times, &watts, Course::Exponential(0.8), 0.3);
        assert_eq!(found.stretches.len(), POWERS.len(), "{:?}", found.stretches);
        let switches = switches(&times, &found.stretches, 0.8);
        for (stretch, (_, level)) in found.stretches.iter().zip(POWERS) {
            assert!((stretch.level - level).abs() < 2.0, "{stretch:?}, {level} W");
        }
        for (switch, (time, _)) in switches.iter().zip(&POWERS[1..]) {
            assert!((switch - time).abs() < 0.015, "{switch} s, {time} s");
        }
        assert!(misfit(&times, &watts, &found.stretches, 0.8) < 0.5);
    }

    #[test]
    fn another_time_constant_costs_more() {
        let (times, watts) = charged(&POWERS, 6.0, 0.3);
        let cost = |course| cut(&times, &watts, course, 0.3).cost;
        let least = cost(Course::Exponential(0.8));
        assert!(cost(Course::Exponential(0.7)) > least && cost(Course::Exponential(0.9)) > least);
        assert!(cost(Course::Straight) > least + 50.0);
    }

    #[test]
    fn long_traces_are_cut_in_parts_without_gaps() {
        let (times, watts) = charged(&[(0.0, 30.0), (50.0, 90.0)], 90.0, 0.2);
        let found = cut(&times, &watts, Course::Exponential(0.8), 0.2).stretches;
        assert!(found.windows(2).all(|pair| pair[0].end == pair[1].first) && found.len() <= 4, "{found:?}");
        assert_eq!((found[0].first, found[found.len() - 1].end), (0, times.len()));
        assert_eq!(cut(&[], &[], Course::Straight, 1.0).stretches, []);
    }
}
