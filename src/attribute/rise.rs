//! Static power that is not the same all the time.

use crate::units::{Joules, Timestamp, Watts};

/// Watts beyond a constant over time, as a line through points; before the first and behind the last they stay what they are
/// there.
#[derive(Debug, Clone, PartialEq)]
pub struct Rise(Vec<(Timestamp, Watts)>);

impl Rise {
    /// Of points in the order of time.
    pub fn new(points: Vec<(Timestamp, Watts)>) -> Self {
        Self(points)
    }

    fn at(&self, time: Timestamp) -> Watts {
        let behind = self.0.partition_point(|(of_point, _)| *of_point <= time);
        match (behind.checked_sub(1).map(|before| self.0[before]), self.0.get(behind)) {
            (Some((from, low)), Some((to, high))) => {
                low + (*high - low) * (time.since(from).as_secs_f64() / to.since(from).as_secs_f64())
            }
            (Some((_, watts)), None) => watts,
            (None, first) => first.map_or(Watts::ZERO, |(_, watts)| *watts),
        }
    }

    /// The joules between two times.
    pub fn between(&self, start: Timestamp, end: Timestamp) -> Joules {
        let inner = self.0.iter().map(|(time, _)| *time).filter(|time| (start..end).contains(time));
        let mut sum = Joules::ZERO;
        let mut from = start;
        for to in inner.chain([end]) {
            sum += (self.at(from) + self.at(to)) / 2.0 * to.since(from);
            from = to;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joules_under_the_line_by_hand() {
        let second = |number: f64| Timestamp::from_nanos((number * 1e9) as u64);
        let point = |at: f64, watts: f64| (second(at), Watts::from_watts(watts));
        let rise = Rise::new(vec![point(10.0, -1.0), point(12.0, 3.0), point(16.0, 3.0)]);
        let between = |from: f64, to: f64| rise.between(second(from), second(to)).as_joules();
        let close =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        // Before the first point, a triangle below and one above nothing, behind the last.
        close(between(8.0, 10.0), -2.0);
        close(between(10.0, 10.5), -0.25);
        close(between(10.0, 12.0), 2.0);
        close(between(11.0, 20.0), 2.0 + 24.0);
        close(between(8.0, 20.0), -2.0 + 2.0 + 24.0);
        close(between(9.0, 9.0), 0.0);
        close(Rise::new(Vec::new()).between(second(1.0), second(2.0)).as_joules(), 0.0);
    }
}
