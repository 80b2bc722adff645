//! Numbers in tables for people.

use std::fmt;

/// A number with so many decimals, or with an exponent where these would say nothing or the digits fill the line.
pub struct Fixed(pub f64, pub usize);

/// From here on digits are counted, not read.
const MANY: f64 = 1e8;

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, decimals) = *self;
        let size = value.abs();
        let is_small = size > 0.0 && size < 0.5 * 10f64.powi(-(decimals as i32));
        let sign = if f.sign_plus() && !value.is_sign_negative() { "+" } else { "" };
        f.pad(&match is_small || size >= MANY {
            true => format!("{sign}{value:.3e}"),
            false => format!("{sign}{value:.decimals$}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_as_long_as_they_can_be_read() {
        for (value, plain, signed) in [
            (0.0, "0.00", "+0.00"),
            (-12.345, "-12.35", "-12.35"),
            (0.005, "0.01", "+0.01"),
            (0.004, "4.000e-3", "+4.000e-3"),
            (99_999_999.0, "99999999.00", "+99999999.00"),
            (1e8, "1.000e8", "+1.000e8"),
            (-1e300, "-1.000e300", "-1.000e300"),
        ] {
            assert_eq!(format!("{}", Fixed(value, 2)), plain);
            assert_eq!(format!("{:>+12}", Fixed(value, 2)), format!("{signed:>12}"));
        }
    }
}
