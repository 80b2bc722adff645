//! From when to when, as a person reads it.

use std::fmt;

use chrono::DateTime;
use eprof::units::Timestamp;

/// Two times: dates and times of day (UTC) where they count from 1970, else seconds from any zero.
#[derive(Debug, Clone, Copy)]
pub struct TimeRange(pub (Timestamp, Timestamp));

const SECOND: u64 = 1_000_000_000;
/// 1973 and later.
const IS_DATE: u64 = 100_000_000 * SECOND;

impl fmt::Display for TimeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.0.0.as_nanos(), self.0.1.as_nanos());
        if from < IS_DATE || to < IS_DATE {
            return write!(f, "{} to {} s", seconds(from), seconds(to));
        }
        let [from, to] = [from, to].map(|nanos| {
            DateTime::from_timestamp((nanos / SECOND) as i64, (nanos % SECOND) as u32).unwrap_or_default()
        });
        let [from_day, to_day] = [from, to].map(|time| time.format("%F"));
        let [from_clock, to_clock] = [from, to].map(|time| time.format("%T%.3f"));
        match from.date_naive() == to.date_naive() {
            true => write!(f, "{from_day} {from_clock} to {to_clock}"),
            false => write!(f, "{from_day} {from_clock} to {to_day} {to_clock}"),
        }
    }
}

fn seconds(nanos: u64) -> String {
    format!("{}.{:03}", nanos / SECOND, nanos % SECOND / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_seconds() {
        let range = |from: u64, to: u64| {
            let at = |millis: u64| Timestamp::from_nanos(millis * 1_000_000);
            TimeRange((at(from), at(to))).to_string()
        };
        // date -u -d '2024-02-29 23:59:59.5' +%s, and of other days.
        assert_eq!(
            range(1_709_251_199_500, 1_709_251_200_000),
            "2024-02-29 23:59:59.500 to 2024-03-01 00:00:00.000"
        );
        assert_eq!(range(1_692_915_514_203, 1_692_915_574_000), "2023-08-24 22:18:34.203 to 22:19:34.000");
        assert_eq!(range(0, 62_500), "0.000 to 62.500 s");
        assert_eq!(range(1_000, 1_692_915_574_000), "1.000 to 1692915574.000 s");
    }
}
