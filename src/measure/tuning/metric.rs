//! What a run is measured by: its own time, or a figure in its output.

use regex::bytes::Regex;

use super::error::TuningError;
use crate::pattern::fault;
use crate::tune::runs::Responses;

/// The measure of a run's speed.
#[derive(Debug, Clone)]
pub enum Metric {
    /// Seconds from start to end.
    WallTime,
    /// Seconds in the output.
    Seconds(Regex),
    /// Work per second in the output.
    Rate(Regex),
}

impl Metric {
    /// From the expressions of `--seconds` and `--rate`, of which at most one is given.
    ///
    /// # Errors
    /// An expression that is none, or has no group.
    pub fn new(seconds: Option<&str>, rate: Option<&str>) -> Result<Self, TuningError> {
        Ok(match (seconds, rate) {
            (Some(text), _) => Self::Seconds(compile(text)?),
            (None, Some(text)) => Self::Rate(compile(text)?),
            (None, None) => Self::WallTime,
        })
    }

    /// Which two figures this gives.
    pub fn responses(&self) -> Responses {
        match self {
            Metric::WallTime | Metric::Seconds(_) => Responses::Totals,
            Metric::Rate(_) => Responses::Rates,
        }
    }

    /// The expression, if there is one.
    pub fn expression(&self) -> Option<&str> {
        match self {
            Metric::WallTime => None,
            Metric::Seconds(regex) | Metric::Rate(regex) => Some(regex.as_str()),
        }
    }

    /// The two figures of a run that took `seconds` and `joules` and printed `output`; `None` if the
    /// expression finds no number above 0.
    ///
    /// A figure in the output speaks of a part of the run, so it is combined with the run's mean power:
    /// energy is power times the seconds found, efficiency the rate over power.
    pub fn values(&self, seconds: f64, joules: f64, output: &[u8]) -> Option<[f64; 2]> {
        let watts = joules / seconds;
        match self {
            Metric::WallTime => Some([seconds, joules]),
            Metric::Seconds(regex) => last_number(regex, output).map(|found| [found, found * watts]),
            Metric::Rate(regex) => last_number(regex, output).map(|found| [found, found / watts]),
        }
    }
}

fn compile(text: &str) -> Result<Regex, TuningError> {
    let refuse = |reason: String| TuningError::Regex { regex: text.into(), reason };
    let regex = Regex::new(text).map_err(|error| refuse(fault(text, &error).to_string()))?;
    if regex.captures_len() < 2 {
        return Err(refuse("put brackets around the number, as in `Rate: ([0-9.]+)`".into()));
    }
    Ok(regex)
}

/// The first group of the last match.
fn last_number(regex: &Regex, output: &[u8]) -> Option<f64> {
    let found = regex.captures_iter(output).filter_map(|captures| captures.get(1)).last()?;
    let number: f64 = std::str::from_utf8(found.as_bytes()).ok()?.trim().parse().ok()?;
    (number.is_finite() && number > 0.0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_match_counts() {
        let rate = Metric::new(None, Some(r"Rate \(MFlops/s\):\s+([0-9.eE+]+)")).expect("valid");
        let output = b"warm-up\nRate (MFlops/s):  100.0\nRate (MFlops/s):  2.5e3  Avg time (s): 0.1\n";
        assert_eq!(rate.values(2.0, 100.0, output), Some([2500.0, 50.0]));
        assert_eq!(rate.responses(), Responses::Rates);
    }

    #[test]
    fn seconds_found_take_the_runs_mean_power() {
        let seconds = Metric::new(Some("Avg time \\(s\\): ([0-9.]+)"), None).expect("valid");
        assert_eq!(seconds.values(2.0, 100.0, b"Avg time (s): 0.5"), Some([0.5, 25.0]));
        assert_eq!(Metric::WallTime.values(2.0, 100.0, b""), Some([2.0, 100.0]));
    }

    #[test]
    fn what_is_no_number_above_zero_is_none() {
        let seconds = Metric::new(Some("t=(\\S+)"), None).expect("valid");
        for output in ["t=abc", "t=0", "t=-1", "t=inf", "", "t=\u{e4}"] {
            assert_eq!(seconds.values(1.0, 1.0, output.as_bytes()), None, "{output}");
        }
        assert_eq!(seconds.values(1.0, 1.0, b"\xff\xfe t=3"), Some([3.0, 3.0]));
    }

    #[test]
    fn expressions_without_a_group_are_refused() {
        assert!(Metric::new(Some("[0-9]+"), None).expect_err("no group").to_string().contains("brackets"));
        assert!(Metric::new(None, Some("(")).is_err());
    }
}
