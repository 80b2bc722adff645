//! Dates and clocks in cells.

use chrono::NaiveDate;

use super::marks::Marks;
use super::number::{Number, bare};

const NANOS_PER_SECOND: f64 = 1e9;
/// Nanoseconds of a day.
pub const DAY: u64 = 86_400_000_000_000;

/// `2023/07/30 17:29:56.995`, `30.07.2023T17:29` as nanoseconds since 1970, or `17:29:56` since midnight. A zone behind
/// it is not looked at.
pub fn date_or_clock(cell: &str) -> Option<u64> {
    let cell = bare(cell);
    match cell.split_once([' ', 'T']) {
        Some((date, clock)) => Some(date_as_days(date)? * DAY + clock_as_nanos(clock)?),
        None => clock_as_nanos(cell),
    }
}

/// A date without a clock, `2023-07-30` or `30.07.2023`, as nanoseconds from 1970 to when that day begins.
pub fn day(cell: &str) -> Option<u64> {
    date_as_days(bare(cell)).map(|days| days * DAY)
}

fn date_as_days(date: &str) -> Option<u64> {
    let is_short = |part: &str| part.len() <= 2;
    let (year, month, day) = match date.split(['/', '-', '.']).collect::<Vec<_>>()[..] {
        // Three groups of thousands have no four digits.
        [day, month, year] if date.contains('.') => {
            (is_short(day) && is_short(month) && year.len() == 4).then_some((year, month, day))?
        }
        [year, month, day, ..] if !date.contains('.') => (year, month, day),
        _ => return None,
    };
    let (year, month, day): (u32, u32, u32) = (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
    let plausible = (1970..2500).contains(&year);
    let date = NaiveDate::from_ymd_opt(year as i32, month, day).filter(|_| plausible)?;
    u64::try_from(date.signed_duration_since(NaiveDate::default()).num_days()).ok()
}

/// `17:29:56.995`, with or without a zone behind it, which is not looked at.
fn clock_as_nanos(clock: &str) -> Option<u64> {
    let clock = clock.trim().trim_end_matches('Z');
    let clock = clock.split(['+', '-']).next().unwrap_or(clock);
    let mut parts = clock.split(':');
    let (hour, minute): (u64, u64) = (parts.next()?.trim().parse().ok()?, parts.next()?.parse().ok()?);
    // No clock has thousands of seconds: whatever mark there is separates the fraction.
    let seconds = Number::read_plain(parts.next().unwrap_or("0"), Marks::UNTOLD)?;
    let plausible = hour < 24 && minute < 60 && (0.0..61.0).contains(&seconds);
    plausible
        .then(|| (hour * 3600 + minute * 60) * 1_000_000_000 + (seconds * NANOS_PER_SECOND).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_as_many_write_them() {
        // date -u -d '2023-08-24 22:18:34' +%s%N
        const THEN: Option<u64> = Some(1_692_915_514_000_000_000);
        for cell in
            ["2023-08-24 22:18:34", "2023/08/24T22:18:34Z", "24.08.2023 22:18:34", "\"24.8.2023 22:18:34\""]
        {
            assert_eq!(date_or_clock(cell), THEN, "{cell}");
        }
        assert_eq!(date_or_clock("00:01:02.5"), Some(62_500_000_000));
        // date -u -d '2023-08-24' +%s
        for cell in ["2023-08-24", "24.08.2023", " 2023/8/24 "] {
            assert_eq!(day(cell), Some(1_692_835_200_000_000_000), "{cell}");
        }
        for cell in ["", "x", "12.012.2024", "1.234.567", "31.02.2024", "2024.5", "24", "2023-13-01", "0:61"]
        {
            assert_eq!((date_or_clock(cell), day(cell)), (None, None), "{cell}");
        }
    }
}
