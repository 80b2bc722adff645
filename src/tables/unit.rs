//! Units of measure as tables write them.

/// What a unit measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Seconds.
    Time,
    /// Joules.
    Energy,
    /// Watts.
    Power,
    /// Hertz.
    Frequency,
    /// Bytes.
    Size,
    /// Bytes per second.
    Throughput,
    /// Volts.
    Voltage,
    /// Amperes.
    Current,
}

/// A unit: how much it is of the quantity's own, which is named in [`Quantity`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// What it measures.
    pub quantity: Quantity,
    /// Seconds, joules, watts and so on per unit.
    pub factor: f64,
}

/// The unit with this sign or name. Case tells milli from mega where both are used: `mJ` and `MJ`, but
/// `MW` is what upper-case headings make of `mW`, as nothing here draws megawatts.
pub fn known(text: &str) -> Option<Unit> {
    let of = |quantity: Quantity, factor: Option<f64>| factor.map(|factor| Unit { quantity, factor });
    of(Quantity::Power, watts_per(text))
        .or_else(|| of(Quantity::Energy, joules_per(text)))
        .or_else(|| of(Quantity::Time, seconds_per(text)))
        .or_else(|| of(Quantity::Frequency, hertz_per(text)))
        .or_else(|| bytes_per(text))
        .or_else(|| of(Quantity::Voltage, with_prefix(text, &["V", "v", "volt", "volts"])))
        .or_else(|| of(Quantity::Current, with_prefix(text, &["A", "amp", "amps", "ampere", "amperes"])))
}

/// The factor that turns values in this unit into the quantity's own unit; `None` for units of other
/// quantities.
pub fn factor(text: &str, quantity: Quantity) -> Option<f64> {
    known(text).filter(|unit| unit.quantity == quantity).map(|unit| unit.factor)
}

fn seconds_per(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => 1e-3,
        "us" | "µs" | "μs" | "usec" | "usecs" | "micros" | "microsecond" | "microseconds" => 1e-6,
        "ns" | "nsec" | "nsecs" | "nanos" | "nanosecond" | "nanoseconds" => 1e-9,
        "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => return None,
    })
}

fn joules_per(unit: &str) -> Option<f64> {
    if let Some(factor) = with_prefix(unit, &["J", "j", "joule", "joules", "Joule", "Joules"]) {
        return Some(factor);
    }
    let hours = with_prefix(unit, &["Wh", "wh", "WH"]).map(|factor| factor * 3600.0);
    hours.or_else(|| with_prefix(unit, &["Ws", "ws"]))
}

fn watts_per(unit: &str) -> Option<f64> {
    let unit = if unit == "MW" { "mW" } else { unit };
    let bases = ["W", "w", "watt", "watts", "Watt", "Watts"];
    with_prefix(unit, &bases).or_else(|| with_prefix(&unit.to_ascii_lowercase(), &bases))
}

fn hertz_per(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "hz" | "hertz" => 1.0,
        "khz" => 1e3,
        "mhz" => 1e6,
        "ghz" => 1e9,
        _ => return None,
    })
}

fn bytes_per(unit: &str) -> Option<Unit> {
    let lower = unit.to_ascii_lowercase();
    let (size, quantity) = match lower.rsplit_once('/') {
        Some((size, "s" | "sec" | "second")) => (size, Quantity::Throughput),
        Some(_) => return None,
        None => (lower.as_str(), Quantity::Size),
    };
    let prefix = ["bytes", "byte", "b"].iter().find_map(|base| size.strip_suffix(base))?;
    let factor = match prefix {
        "" => 1.0,
        "k" | "kilo" => 1e3,
        "m" | "mega" => 1e6,
        "g" | "giga" => 1e9,
        "t" | "tera" => 1e12,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        "ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(Unit { quantity, factor })
}

/// A unit that is one of `bases`, with or without a prefix.
fn with_prefix(unit: &str, bases: &[&str]) -> Option<f64> {
    bases.iter().find_map(|base| {
        Some(match unit.strip_suffix(base)? {
            "" => 1.0,
            "n" | "nano" | "Nano" => 1e-9,
            "u" | "µ" | "μ" | "micro" | "Micro" => 1e-6,
            "m" | "milli" | "Milli" => 1e-3,
            "k" | "K" | "kilo" | "Kilo" => 1e3,
            "M" | "mega" | "Mega" => 1e6,
            _ => return None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_and_names() {
        use Quantity::*;
        for (text, quantity, expected) in [
            ("W", Power, 1.0),
            ("mw", Power, 1e-3),
            ("MW", Power, 1e-3),
            ("µW", Power, 1e-6),
            ("milliwatts", Power, 1e-3),
            ("kW", Power, 1e3),
            ("UW", Power, 1e-6),
            ("MILLIWATTS", Power, 1e-3),
            ("J", Energy, 1.0),
            ("mJ", Energy, 1e-3),
            ("MJ", Energy, 1e6),
            ("uj", Energy, 1e-6),
            ("Wh", Energy, 3600.0),
            ("mWh", Energy, 3.6),
            ("KWH", Energy, 3.6e6),
            ("Ws", Energy, 1.0),
            ("ms", Time, 1e-3),
            ("MS", Time, 1e-3),
            ("µs", Time, 1e-6),
            ("min", Time, 60.0),
            ("MHZ", Frequency, 1e6),
            ("KiB", Size, 1024.0),
            ("Mbyte", Size, 1e6),
            ("GB/s", Throughput, 1e9),
            ("mV", Voltage, 1e-3),
            ("A", Current, 1.0),
        ] {
            let found = factor(text, quantity).unwrap_or_else(|| panic!("{text} is no {quantity:?}"));
            assert!((found / expected - 1.0).abs() < 1e-12, "{text}: {found}");
        }
        for text in ["", "C", "W/m", "flops/W", "parsec", "%", "J/s", "limit"] {
            assert_eq!(known(text), None, "{text}");
        }
        assert_eq!(factor("W", Energy), None);
    }
}
