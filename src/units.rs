//! Physical quantities and points in time, as types.
//!
//! Only arithmetic that means something exists: joules add up, joules over a time are watts, the
//! difference of two points in time is a span. There is no `Joules + Watts` and no `From<f64>`; a
//! constructor always names the unit of what it is given. The types of time are those of perf.data.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

pub use perf_data::{Nanoseconds, Timestamp};
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

/// A count with its thousands apart: `1,234,567`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        let counts = [0, 999, 1000, 12_345_678].map(grouped);
        assert_eq!(counts, ["0", "999", "1,000", "12,345,678"]);
    }

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
    fn displayed_with_a_readable_prefix() {
        assert_eq!(Joules::from_joules(12.345).to_string(), "12.35 J");
        assert_eq!(Joules::from_joules(0.004567).to_string(), "4.567 mJ");
        assert_eq!(Joules::from_joules(123456.0).to_string(), "123.5 kJ");
        assert_eq!(Joules::ZERO.to_string(), "0.000 J");
    }
}
