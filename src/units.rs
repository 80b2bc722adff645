//! Physical quantities and points in time, as types.
//!
//! Only arithmetic that means something exists: joules add up, joules over a time are watts, the
//! difference of two points in time is a span. There is no `Joules + Watts` and no `From<f64>`; a
//! constructor always names the unit of what it is given.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use serde::{Deserialize, Serialize};

macro_rules! additive_quantity {
    ($name:ident) => {
        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }
        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }
        impl SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                self.0 -= other.0;
            }
        }
        impl Neg for $name {
            type Output = Self;
            fn neg(self) -> Self {
                Self(-self.0)
            }
        }
        impl Mul<f64> for $name {
            type Output = Self;
            fn mul(self, factor: f64) -> Self {
                Self(self.0 * factor)
            }
        }
        impl Div<f64> for $name {
            type Output = Self;
            fn div(self, divisor: f64) -> Self {
                Self(self.0 / divisor)
            }
        }
        /// The ratio of two quantities of one kind is a plain number.
        impl Div for $name {
            type Output = f64;
            fn div(self, other: Self) -> f64 {
                self.0 / other.0
            }
        }
        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
                values.fold(Self::ZERO, Add::add)
            }
        }
        impl<'a> Sum<&'a $name> for $name {
            fn sum<I: Iterator<Item = &'a Self>>(values: I) -> Self {
                values.copied().sum()
            }
        }
    };
}

/// An amount of energy.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Joules(f64);

/// Energy per time.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Watts(f64);

additive_quantity!(Joules);
additive_quantity!(Watts);

impl Joules {
    /// No energy.
    pub const ZERO: Self = Self(0.0);

    /// From joules.
    pub const fn from_joules(joules: f64) -> Self {
        Self(joules)
    }
    /// From millijoules, the unit of NVML's energy counter.
    pub fn from_millijoules(millijoules: u64) -> Self {
        Self(millijoules as f64 * 1e-3)
    }
    /// From microjoules, the unit of powercap and hwmon.
    pub fn from_microjoules(microjoules: u64) -> Self {
        Self(microjoules as f64 * 1e-6)
    }
    /// As joules.
    pub const fn as_joules(self) -> f64 {
        self.0
    }
    /// The larger of two amounts.
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
    /// The smaller of two amounts.
    pub fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }
    /// The amount without its sign.
    pub fn abs(self) -> Self {
        Self(self.0.abs())
    }
}

impl Watts {
    /// No power.
    pub const ZERO: Self = Self(0.0);

    /// From watts.
    pub const fn from_watts(watts: f64) -> Self {
        Self(watts)
    }
    /// From milliwatts, the unit of NVML's power reading.
    pub fn from_milliwatts(milliwatts: u64) -> Self {
        Self(milliwatts as f64 * 1e-3)
    }
    /// From microwatts, the unit of hwmon and power_supply.
    pub fn from_microwatts(microwatts: u64) -> Self {
        Self(microwatts as f64 * 1e-6)
    }
    /// As watts.
    pub const fn as_watts(self) -> f64 {
        self.0
    }
}

/// A span of time in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanoseconds(u64);

impl Nanoseconds {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// From nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// From milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }
    /// From seconds; negative and not-a-number become 0.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self((seconds * 1e9).round() as u64)
    }
    /// As nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// As seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }
}

impl Add for Nanoseconds {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Nanoseconds {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl Sum for Nanoseconds {
    fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
        values.fold(Self::ZERO, Add::add)
    }
}

/// A point in time on the recording's clock (CLOCK_MONOTONIC in eprof's own recordings).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// From nanoseconds since the clock's own zero.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// Nanoseconds since the clock's own zero.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// The span from `earlier` to here; zero if `earlier` is in fact later.
    pub fn since(self, earlier: Self) -> Nanoseconds {
        Nanoseconds(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Nanoseconds> for Timestamp {
    type Output = Self;
    fn add(self, span: Nanoseconds) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Div<Nanoseconds> for Joules {
    type Output = Watts;
    fn div(self, span: Nanoseconds) -> Watts {
        Watts(self.0 / span.as_secs_f64())
    }
}
impl Mul<Nanoseconds> for Watts {
    type Output = Joules;
    fn mul(self, span: Nanoseconds) -> Joules {
        Joules(self.0 * span.as_secs_f64())
    }
}

/// Joules with a prefix that keeps three significant digits readable: `12.3 J`, `4.56 mJ`.
impl fmt::Display for Joules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&with_prefix(self.0, "J"))
    }
}

/// Watts with a prefix that keeps three significant digits readable.
impl fmt::Display for Watts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&with_prefix(self.0, "W"))
    }
}

/// Seconds with a prefix that keeps three significant digits readable.
impl fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&with_prefix(self.as_secs_f64(), "s"))
    }
}

fn with_prefix(value: f64, unit: &str) -> String {
    const PREFIXES: [(f64, &str); 5] = [(1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e3, "k")];
    let magnitude = value.abs();
    let (scale, prefix) = match magnitude {
        m if m >= 1e5 => PREFIXES[4],
        m if m == 0.0 || m >= 0.9995 => PREFIXES[0],
        m if m >= 0.9995e-3 => PREFIXES[1],
        m if m >= 0.9995e-6 => PREFIXES[2],
        _ => PREFIXES[3],
    };
    let scaled = value / scale;
    let decimals = match scaled.abs() {
        s if s >= 99.95 => 1,
        s if s >= 9.995 => 2,
        _ => 3,
    };
    format!("{scaled:.decimals$} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_is_energy_over_time() {
        let energy = Joules::from_joules(30.0);
        let span = Nanoseconds::from_millis(1500);
        assert_eq!(energy / span, Watts::from_watts(20.0));
        assert_eq!(Watts::from_watts(20.0) * span, energy);
    }

    #[test]
    fn constructors_name_their_unit() {
        assert_eq!(Joules::from_microjoules(2_500_000), Joules::from_joules(2.5));
        assert_eq!(Joules::from_millijoules(2_500), Joules::from_joules(2.5));
        assert_eq!(Watts::from_milliwatts(1_500), Watts::from_watts(1.5));
    }

    #[test]
    fn a_later_start_gives_no_negative_span() {
        let (early, late) = (Timestamp::from_nanos(5), Timestamp::from_nanos(9));
        assert_eq!(late.since(early), Nanoseconds::from_nanos(4));
        assert_eq!(early.since(late), Nanoseconds::ZERO);
    }

    #[test]
    fn displayed_with_a_readable_prefix() {
        assert_eq!(Joules::from_joules(12.345).to_string(), "12.35 J");
        assert_eq!(Joules::from_joules(0.004567).to_string(), "4.567 mJ");
        assert_eq!(Joules::from_joules(123456.0).to_string(), "123.5 kJ");
        assert_eq!(Joules::ZERO.to_string(), "0.000 J");
        assert_eq!(Nanoseconds::from_millis(250).to_string(), "250.0 ms");
    }
}
