//! Single cells of power traces: times, powers, and the units that they or their columns are in.

use crate::units::Timestamp;

/// Nanoseconds per second.
const SECOND: f64 = 1e9;

/// A cell without the quotes around it.
pub(super) fn bare(cell: &str) -> &str {
    cell.trim().trim_matches('"').trim()
}

/// A number as tables write it; `decimal_comma` where commas do not separate cells.
fn number(text: &str, decimal_comma: bool) -> Option<f64> {
    let value: f64 = match text.split_once(',') {
        Some((whole, part)) if decimal_comma => format!("{whole}.{part}").parse().ok()?,
        _ => text.parse().ok()?,
    };
    value.is_finite().then_some(value)
}

/// A number and what is written behind it.
fn with_suffix(cell: &str) -> (&str, &str) {
    let split = cell.trim_end_matches(|c: char| c.is_alphabetic()).len();
    (cell[..split].trim(), cell[split..].trim())
}

/// Watts per unit, by the unit's sign or word.
fn watts_per(unit: &str) -> Option<f64> {
    Some(match unit {
        "W" | "w" | "watt" | "watts" | "Watt" | "Watts" => 1.0,
        "mW" | "mw" | "milliwatt" | "milliwatts" => 1e-3,
        "uW" | "µW" | "μW" | "uw" | "microwatt" | "microwatts" => 1e-6,
        "kW" | "kw" => 1e3,
        _ => return None,
    })
}

/// Nanoseconds per unit, by the unit's sign or word.
fn nanos_per(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" | "nsec" | "nanos" | "nanoseconds" => 1.0,
        "us" | "µs" | "μs" | "usec" | "micros" | "microseconds" => 1e3,
        "ms" | "msec" | "millis" | "milliseconds" => 1e6,
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        _ => return None,
    })
}

/// The last word of a column's name: where it has a unit, it is there.
fn last_word(name: &str) -> String {
    let name = name.trim_end_matches([']', ')', ' ']);
    name.rsplit(['[', '(', '_', ' ', '.', '/']).next().unwrap_or_default().to_owned()
}

/// Watts per unit of a column, where its name tells: `power.draw [W]`, `power_mw`, `gpu milliwatts`.
pub(super) fn power_unit(name: &str) -> Option<f64> {
    let word = last_word(name);
    watts_per(&word).or_else(|| watts_per(&word.to_ascii_lowercase()))
}

/// Nanoseconds per unit of a column of times, where its name tells: `time_ms`, `elapsed [s]`.
pub(super) fn time_unit(name: &str) -> Option<f64> {
    nanos_per(&last_word(&name.to_ascii_lowercase()))
}

/// A cell as watts; `unit` for cells that name none.
pub(super) fn parse_power(cell: &str, unit: f64, decimal_comma: bool) -> Option<f64> {
    let (value, suffix) = with_suffix(bare(cell));
    let unit = if suffix.is_empty() { unit } else { watts_per(suffix)? };
    Some(number(value, decimal_comma)? * unit)
}

/// A word that is a unit of power or time.
pub(super) fn names_unit(word: &str) -> bool {
    watts_per(word).is_some() || nanos_per(word).is_some()
}

/// A cell that names its unit of power.
pub(super) fn names_power(cell: &str) -> bool {
    watts_per(with_suffix(bare(cell)).1).is_some()
}

/// A cell that is a plain number, without a unit.
pub(super) fn plain_number(cell: &str, decimal_comma: bool) -> Option<f64> {
    number(bare(cell), decimal_comma)
}

/// How the cells of a column of times are to be read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TimeFormat {
    /// Nanoseconds per unit of a plain number; by its size if `None`.
    pub unit: Option<f64>,
    /// Numbers below zero are there: this is added to all, in the column's own unit.
    pub shift: f64,
    /// Commas do not separate cells.
    pub decimal_comma: bool,
}

/// A date such as `2023/07/30 17:29:56.995`, a time of day or a number, as nanoseconds.
pub(super) fn parse_time(cell: &str, format: TimeFormat) -> Option<Timestamp> {
    let cell = bare(cell);
    let (value, suffix) = with_suffix(cell);
    let unit = if suffix.is_empty() { format.unit } else { nanos_per(suffix).or(format.unit) };
    if suffix.is_empty() || nanos_per(suffix).is_some() {
        // A whole number need not lose its last digits in a float.
        if let (Ok(whole), true) = (value.parse::<u64>(), format.shift == 0.0) {
            let unit = unit.unwrap_or_else(|| unit_of_epoch(whole as f64));
            return whole.checked_mul(unit as u64).map(Timestamp::from_nanos);
        }
        if let Some(number) = number(value, format.decimal_comma).map(|number| number + format.shift) {
            let nanos = number * unit.unwrap_or_else(|| unit_of_epoch(number));
            return (0.0..1.8e19).contains(&nanos).then(|| Timestamp::from_nanos(nanos.round() as u64));
        }
    }
    match cell.split_once([' ', 'T']) {
        Some((date, clock)) => {
            let days = date_as_days(date)?;
            Some(Timestamp::from_nanos(days * 86_400_000_000_000 + clock_as_nanos(clock, format)?))
        }
        None => clock_as_nanos(cell, format).map(Timestamp::from_nanos),
    }
}

/// Today is 1.8e9 s, 1.8e12 ms, 1.8e15 us, 1.8e18 ns after 1970; less is seconds since any zero.
fn unit_of_epoch(number: f64) -> f64 {
    match number {
        n if n >= 1e17 => 1.0,
        n if n >= 1e14 => 1e3,
        n if n >= 1e11 => 1e6,
        _ => SECOND,
    }
}

/// The unit of times since any zero that name none, by how far apart they are: a sensor is polled
/// every 0.2 ms to 1 s. `None` for times since 1970, which their size tells.
pub(super) fn unit_of_steps(first: f64, typical_step: f64) -> Option<f64> {
    if first >= 1e9 {
        return None;
    }
    match typical_step {
        step if step < 2.0 => None,
        step if step < 1e3 => Some(1e6),
        step if step < 1e6 => Some(1e3),
        _ => Some(1.0),
    }
}

fn date_as_days(date: &str) -> Option<u64> {
    let mut date = date.split(['/', '-']).map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let plausible = (1970..2500).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    plausible.then(|| days_since_1970(year, month, day))
}

/// `17:29:56.995`, with or without a zone behind it, which is not looked at.
fn clock_as_nanos(clock: &str, format: TimeFormat) -> Option<u64> {
    let clock = clock.trim().trim_end_matches('Z');
    let clock = clock.split(['+', '-']).next().unwrap_or(clock);
    let mut parts = clock.split(':');
    let (hour, minute): (u64, u64) = (parts.next()?.trim().parse().ok()?, parts.next()?.parse().ok()?);
    let seconds = number(parts.next().unwrap_or("0"), format.decimal_comma)?;
    let plausible = hour < 24 && minute < 60 && (0.0..61.0).contains(&seconds);
    plausible.then(|| (hour * 3600 + minute * 60) * 1_000_000_000 + (seconds * SECOND).round() as u64)
}

/// Days from 1970-01-01 in the Gregorian calendar, counting years from March so that the leap day is
/// a year's last.
fn days_since_1970(year: i64, month: i64, day: i64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (month * 306 + 5) / 10 + day - 1;
    const UNTIL_1970: i64 = 719_468;
    (days - UNTIL_1970).max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(cell: &str, unit: Option<f64>) -> Option<u64> {
        parse_time(cell, TimeFormat { unit, ..TimeFormat::default() }).map(|time| time.as_nanos())
    }

    #[test]
    fn times_of_many_kinds() {
        // date -u -d '2023-08-24 22:18:34.203' +%s%N
        const THEN: Option<u64> = Some(1_692_915_514_203_000_000);
        for cell in [
            "2023/08/24 22:18:34.203",
            "\"2023-08-24T22:18:34.203Z\"",
            "2023-08-24 22:18:34.203+00:00",
            "1692915514203",
            "1692915514.203",
            "1692915514203000000",
        ] {
            let found = nanos(cell, None).map(|nanos| (nanos + 500) / 1000 * 1000);
            assert_eq!(found, THEN, "{cell}");
        }
        assert_eq!(nanos("133.25 ms", None), Some(133_250_000));
        assert_eq!(nanos("00:01:02.5", None), Some(62_500_000_000));
        assert_eq!(nanos("15", Some(1e6)), Some(15_000_000));
        assert_eq!(nanos("[N/A]", None), None);
        assert_eq!(nanos("2023/13/24 22:18:34", None), None);
        let comma = TimeFormat { decimal_comma: true, ..TimeFormat::default() };
        assert_eq!(parse_time("0,015", comma), Some(Timestamp::from_nanos(15_000_000)));
    }

    #[test]
    fn powers_and_their_units() {
        assert_eq!(parse_power("35.50 W", 1e-3, false), Some(35.5));
        assert_eq!(parse_power("35500", 1e-3, false), Some(35.5));
        assert_eq!(parse_power("35,5", 1.0, true), Some(35.5));
        assert_eq!(parse_power("[N/A]", 1.0, false), None);
        assert_eq!(parse_power("61 C", 1.0, false), None, "degrees are no watts");
        for (name, unit) in [
            ("power.draw [W]", Some(1.0)),
            ("power_mw", Some(1e-3)),
            ("Power (mW)", Some(1e-3)),
            ("power1_uW", Some(1e-6)),
            ("gpu_power", None),
        ] {
            assert_eq!(power_unit(name), unit, "{name}");
        }
    }
}
