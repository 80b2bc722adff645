//! Points in time that a user names.

use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, NaiveDate};

/// Microseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct When(pub i64);

const EXPECTED: &str = "expected a time such as 2026-11-23, 2026-11-23T10:00:00Z, or 2h, 30m, 45s, 7d ago";

impl FromStr for When {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(seconds) = ago(text) {
            let now =
                SystemTime::now().duration_since(UNIX_EPOCH).map_err(|_| "the clock stands before 1970")?;
            let now = i64::try_from(now.as_micros()).map_err(|_| EXPECTED)?;
            return seconds
                .checked_mul(1_000_000)
                .and_then(|ago| now.checked_sub(ago))
                .map(Self)
                .ok_or(EXPECTED);
        }
        if let Ok(date) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
            return date
                .and_hms_opt(0, 0, 0)
                .map(|time| Self(time.and_utc().timestamp_micros()))
                .ok_or(EXPECTED);
        }
        DateTime::parse_from_rfc3339(text).map(|time| Self(time.timestamp_micros())).map_err(|_| EXPECTED)
    }
}

/// The seconds of `2h` and the like.
fn ago(text: &str) -> Option<i64> {
    let unit = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86400,
        _ => return None,
    };
    let number: u32 = text[..text.len() - 1].parse().ok()?;
    i64::from(number).checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_times_and_spans() {
        let micros = |text: &str| text.parse::<When>().map(|when| when.0);
        assert_eq!(micros("1970-01-02"), Ok(86_400_000_000));
        assert_eq!(micros("1970-01-01T01:00:00.5+01:00"), Ok(500_000));
        assert_eq!(micros("1970-01-01T00:00:01Z"), Ok(1_000_000));
        let (old, new) = (micros("2h").expect("a span"), micros("1h").expect("a span"));
        assert!((3_590_000_000..3_610_000_000).contains(&(new - old)), "{old} {new}");
        for wrong in ["", "h", "2w", "-2h", "yesterday", "2026-13-01", "2026-11-23 10:00"] {
            assert!(micros(wrong).is_err(), "{wrong:?}");
        }
    }
}
