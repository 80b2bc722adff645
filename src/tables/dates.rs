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

/// Places at which times of day go past midnight: where they fall, if they fall by more than half a day each time. `None` where
/// they fall by less anywhere, as rows in another order do, or a clock that was set back; and of several falls, where they rise
/// by more than that anywhere, since rows to both sides of one midnight may be in no order.
pub fn midnights(clocks: &[u64]) -> Option<Vec<usize>> {
    let falls: Vec<usize> = (1..clocks.len()).filter(|&at| clocks[at] < clocks[at - 1]).collect();
    let rises = || clocks.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let is_in_order = falls.len() < 2 || rises().all(|rise| rise <= DAY / 2);
    let are_nights = falls.iter().all(|&at| clocks[at - 1] - clocks[at] > DAY / 2);
    (is_in_order && are_nights).then_some(falls)
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
    fn clocks_fall_by_a_day_at_midnight() {
        let hours = |hours: &[u64]| hours.iter().map(|hour| hour * 3_600_000_000_000).collect::<Vec<u64>>();
        let of = |clock: &[u64]| midnights(&hours(clock));
        assert_eq!(of(&[22, 23, 0, 1]), Some(vec![2]));
        assert_eq!(of(&[12, 23, 1, 13, 0]), Some(vec![2, 4]), "two nights");
        assert_eq!((of(&[1, 2, 3]), of(&[])), (Some(Vec::new()), Some(Vec::new())));
        // An hour that comes twice, rows in reverse order, and just half a day.
        assert_eq!((of(&[2, 1, 2]), of(&[4, 3, 2]), of(&[13, 1])), (None, None, None));
        assert_eq!(of(&[14, 1]), Some(vec![1]));
        assert_eq!(
            (of(&[0, 23, 1]), of(&[0, 23, 1, 22, 2])),
            (Some(vec![2]), None),
            "in no order around one midnight"
        );
    }

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
