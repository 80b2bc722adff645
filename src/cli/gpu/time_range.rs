//! From when to when, as a person reads it.

use std::fmt;

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
        let ([from_day, to_day], [from, to]) = ([from, to].map(date), [from, to].map(clock));
        match from_day == to_day {
            true => write!(f, "{from_day} {from} to {to}"),
            false => write!(f, "{from_day} {from} to {to_day} {to}"),
        }
    }
}

fn seconds(nanos: u64) -> String {
    format!("{}.{:03}", nanos / SECOND, nanos % SECOND / 1_000_000)
}

fn clock(nanos: u64) -> String {
    let (of_day, millis) = (nanos / SECOND % 86_400, nanos % SECOND / 1_000_000);
    format!("{:02}:{:02}:{:02}.{millis:03}", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

/// The date of a time in the Gregorian calendar, counting years from March so that the leap day is a year's last.
fn date(nanos: u64) -> String {
    const UNTIL_1970: u64 = 719_468;
    const FOUR_CENTURIES: u64 = 146_097;
    let days = nanos / SECOND / 86_400 + UNTIL_1970;
    let of_era = days % FOUR_CENTURIES;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = days / FOUR_CENTURIES * 400 + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
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
        assert_eq!(date(4_102_444_799 * SECOND), "2099-12-31");
        assert_eq!(date(951_782_400 * SECOND), "2000-02-29");
        assert_eq!(range(0, 62_500), "0.000 to 62.500 s");
        assert_eq!(range(1_000, 1_692_915_574_000), "1.000 to 1692915574.000 s");
    }
}
