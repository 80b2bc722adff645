//! Times as HTTP writes them: `Sun, 06 Nov 1994 08:49:37 GMT`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Reads the form that all servers send; `None` for anything else.
pub(super) fn parse(text: &str) -> Option<SystemTime> {
    let (_, rest) = text.trim().split_once(", ")?;
    let [day, month, year, clock, "GMT"] = rest.split(' ').collect::<Vec<_>>()[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let (day, year): (u64, u64) = (day.parse().ok()?, year.parse().ok()?);
    let [hour, minute, second] = clock.split(':').collect::<Vec<_>>()[..] else { return None };
    let (hour, minute, second): (u64, u64, u64) =
        (hour.parse().ok()?, minute.parse().ok()?, second.parse().ok()?);
    let is_time =
        (1..=31).contains(&day) && (1970..=9999).contains(&year) && hour < 24 && minute < 60 && second <= 60;
    is_time.then(|| {
        // Days since 1970, with years that begin in March: the day that comes and goes is then their last.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
        let days = days - DAYS_TO_1970;
        UNIX_EPOCH + Duration::from_secs(((days * 24 + hour) * 60 + minute) * 60 + second)
    })
}

/// Days from the first of March of the year 0 to the first of January 1970.
const DAYS_TO_1970: u64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_date_1() {
        for (text, seconds) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199),
            ("Fri, 01 Mar 2024 00:00:00 GMT", 1_709_251_200),
            ("Tue, 24 Nov 2026 05:48:21 GMT", 1_795_499_301),
        ] {
            assert_eq!(parse(text), Some(UNIX_EPOCH + Duration::from_secs(seconds)), "{text}");
        }
        for wrong in [
            "",
            "soon",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Noe 1994 08:49:37 GMT",
            "Sun, 06 Nov 1969 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
