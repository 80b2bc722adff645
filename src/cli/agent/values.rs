//! Spans of time, sizes and shares, as options and configuration files give them.

use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

/// A text or a number of a configuration file: both are read as an option's text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Text(String),
    Number(serde_json::Number),
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        match text {
            Text::Text(text) => text,
            Text::Number(number) => number.to_string(),
        }
    }
}

macro_rules! read_from_text {
    ($name:ident) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::from(Text::deserialize(deserializer)?).parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

/// A span of time: `90`, `60s`, `15m`, `6h`, `7d`, `2w`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

/// Bytes: `500M`, `10G`, in powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

/// A share above 0 and at most 1: `1%`, `0.01`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(pub f64);

read_from_text!(Span);
read_from_text!(Bytes);
read_from_text!(Share);

/// A number and what stands behind it.
fn number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || format!("'{text}' is no span of time, such as 60s, 15m, 6h or 7d");
        let (number, unit) = number(text).ok_or_else(form)?;
        let seconds = match unit {
            "" | "s" => 1.0,
            "ms" => 1e-3,
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            "w" => 7.0 * 86_400.0,
            _ => return Err(form()),
        };
        Duration::try_from_secs_f64(number * seconds).map(Self).map_err(|_| form())
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || format!("'{text}' is no size, such as 500M or 10G");
        let (number, unit) = number(text).ok_or_else(form)?;
        let unit = unit.strip_suffix("iB").or_else(|| unit.strip_suffix('i')).unwrap_or(unit);
        let power = match unit.strip_suffix('B').unwrap_or(unit) {
            "" => 0,
            "k" | "K" => 1,
            "M" => 2,
            "G" => 3,
            "T" => 4,
            _ => return Err(form()),
        };
        let bytes = number * 1024f64.powi(power);
        if bytes < u64::MAX as f64 { Ok(Self(bytes as u64)) } else { Err(form()) }
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || format!("'{text}' is no share of the time above 0 and up to 1, such as 1% or 0.01");
        let share = match number(text).ok_or_else(form)? {
            (number, "%") => number / 100.0,
            (number, "") => number,
            _ => return Err(form()),
        };
        if share > 0.0 && share <= 1.0 { Ok(Self(share)) } else { Err(form()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_understood_and_nonsense_is_not() {
        let span = |text: &str| text.parse::<Span>().map(|span| span.0.as_secs_f64());
        assert_eq!(
            ["90", "60s", "1.5m", "7d", "500ms"].map(span),
            [90.0, 60.0, 90.0, 604_800.0, 0.5].map(Ok)
        );
        for wrong in ["", "d", "-1s", "1 fortnight", "1e400", "99999999999999999999d"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
        let bytes = |text: &str| text.parse::<Bytes>().map(|bytes| bytes.0);
        assert_eq!(
            ["1", "4K", "2Gi", "1GiB", "1MB"].map(bytes),
            [1, 4096, 2 << 30, 1 << 30, 1 << 20].map(Ok)
        );
        assert!(["-1", "10X", "G", "1e30T", "99999999T"].map(bytes).iter().all(Result::is_err));
        let share = |text: &str| text.parse::<Share>().map(|share| share.0);
        assert_eq!(["1%", "0.25", "100%", "1"].map(share), [0.01, 0.25, 1.0, 1.0].map(Ok));
        assert!(["0", "0%", "101%", "2", "nan", "x"].map(share).iter().all(Result::is_err));
    }
}
