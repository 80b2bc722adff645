//! Times as HTTP writes them: `Sun, 06 Nov 1994 08:49:37 GMT`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::NaiveDateTime;

/// Reads the form that all servers send; `None` for anything else, and for what lies before 1970.
pub(super) fn parse(text: &str) -> Option<SystemTime> {
    let time = NaiveDateTime::parse_from_str(text.trim(), "%a, %d %b %Y %H:%M:%S GMT").ok()?;
    let seconds = u64::try_from(time.and_utc().timestamp()).ok()?;
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

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
