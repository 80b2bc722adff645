//! Points in time and the spans between them.
//!
//! Only arithmetic that means something exists: the difference of two points is a span, a point and a span
//! make a point. Two points cannot be added.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// A span of time in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Nanoseconds(u64);

impl Nanoseconds {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// From nanoseconds.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// From milliseconds.
    #[inline]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }
    /// From seconds; negative and not-a-number become 0.
    #[inline]
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self((seconds * 1e9).round() as u64)
    }
    /// As nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// As seconds.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }
}

/// The sum of two spans; the longest there is if it does not fit.
impl Add for Nanoseconds {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Nanoseconds {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl Sum for Nanoseconds {
    #[inline]
    fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
        values.fold(Self::ZERO, Add::add)
    }
}

/// Seconds with a prefix that keeps three significant digits readable: `1.500 s`, `250.0 ms`.
impl fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.as_secs_f64();
        let (scale, unit) = match seconds {
            s if s >= 1e5 => (1e3, "ks"),
            s if s == 0.0 || s >= 0.9995 => (1.0, "s"),
            s if s >= 0.9995e-3 => (1e-3, "ms"),
            s if s >= 0.9995e-6 => (1e-6, "µs"),
            _ => (1e-9, "ns"),
        };
        let scaled = seconds / scale;
        let decimals = match scaled {
            s if s >= 99.95 => 1,
            s if s >= 9.995 => 2,
            _ => 3,
        };
        f.pad(&format!("{scaled:.decimals$} {unit}"))
    }
}

/// A point in time on the clock of a recording, whichever that was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Timestamp(u64);

impl Timestamp {
    /// From nanoseconds since the clock's own zero.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// Nanoseconds since the clock's own zero.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// The span from `earlier` to here; zero if `earlier` is in fact later.
    #[inline]
    pub fn since(self, earlier: Self) -> Nanoseconds {
        Nanoseconds(self.0.saturating_sub(earlier.0))
    }
}

/// The point so much later; the latest there is if it does not fit.
impl Add<Nanoseconds> for Timestamp {
    type Output = Self;
    #[inline]
    fn add(self, span: Nanoseconds) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_start_gives_no_negative_span() {
        let (early, late) = (Timestamp::from_nanos(5), Timestamp::from_nanos(9));
        assert_eq!(late.since(early), Nanoseconds::from_nanos(4));
        assert_eq!(early.since(late), Nanoseconds::ZERO);
        assert_eq!(early + Nanoseconds::from_nanos(4), late);
        assert_eq!(Timestamp::from_nanos(u64::MAX) + late.since(early), Timestamp::from_nanos(u64::MAX));
    }

    #[test]
    fn displayed_with_a_readable_prefix() {
        let shown = |nanos| Nanoseconds::from_nanos(nanos).to_string();
        assert_eq!(shown(0), "0.000 s");
        assert_eq!(shown(7), "7.000 ns");
        assert_eq!(shown(999_600), "1.000 ms");
        assert_eq!(shown(12_345), "12.35 µs");
        assert_eq!(Nanoseconds::from_millis(250).to_string(), "250.0 ms");
        assert_eq!(shown(123_456_000_000_000), "123.5 ks");
        assert_eq!(format!("{:>10}", Nanoseconds::from_millis(1500)), "   1.500 s");
    }
}
