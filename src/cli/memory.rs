//! How much memory a verb may take for what it reads.

use eprof::analyze::MemoryLimit;
use eprof::machine::Roots;
use eprof::machine::memory::FreeMemory;

/// Taken by default if a quarter of what is free is less.
const USUAL_LEAST: u64 = 256 << 20;

/// What `--memory` says, such as `512M`.
pub fn parse(text: &str) -> Result<MemoryLimit, String> {
    const EXPECTED: &str = "expected a size, such as 512M or 2G";
    let text = text.trim();
    let text = text.strip_suffix("iB").or_else(|| text.strip_suffix('B')).unwrap_or(text);
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        "t" | "T" => 40,
        _ => return Err(EXPECTED.to_owned()),
    };
    let number: f64 = digits.trim().parse().map_err(|_| EXPECTED)?;
    let bytes = number * f64::from(2u32).powi(shift);
    if !bytes.is_finite() || bytes < 0.0 {
        return Err(EXPECTED.to_owned());
    }
    MemoryLimit::from_bytes(bytes as usize).map_err(|error| error.to_string())
}

/// The limit where none is given: a quarter of what is free in the machine or up to a limit, at least 256 MiB, and in
/// no case more than three quarters of what is left up to a limit.
pub fn usual() -> MemoryLimit {
    usual_of(FreeMemory::of_process(&Roots::default()))
}

fn usual_of(free: FreeMemory) -> MemoryLimit {
    let FreeMemory { in_machine, within_limits } = free;
    let quarter = in_machine.into_iter().chain(within_limits).min().unwrap_or(0) / 4;
    let most = within_limits.map_or(u64::MAX, |left| left / 4 * 3);
    let bytes = quarter.max(USUAL_LEAST).min(most);
    MemoryLimit::from_bytes(bytes as usize).unwrap_or(MemoryLimit::LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn sizes_are_in_powers_of_1024() {
        for (text, mib) in [("512M", 512), ("2G", 2048), ("1.5GiB", 1536), ("65536k", 64), ("134217728", 128)]
        {
            assert_eq!(parse(text).map(|limit| limit.bytes() as u64), Ok(mib * MIB), "{text}");
        }
        for wrong in ["", "M", "512X", "-1G", "nan", "1e999", "12MM"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(
            parse("63M"),
            Err("with less than 64 MiB of memory no recording can be analyzed".to_owned())
        );
    }

    #[test]
    fn a_quarter_of_what_is_free() {
        let usual = |in_machine: Option<u64>, within_limits: Option<u64>| {
            let [in_machine, within_limits] =
                [in_machine, within_limits].map(|free| free.map(|mib| mib * MIB));
            usual_of(FreeMemory { in_machine, within_limits }).bytes() as u64 / MIB
        };
        assert_eq!(usual(Some(16_000), None), 4_000);
        assert_eq!(usual(Some(500), None), 256);
        assert_eq!(usual(None, None), 256);
        assert_eq!(usual(Some(16_000), Some(2_000)), 500);
        assert_eq!(usual(Some(16_000), Some(300)), 225, "more would be refused");
        assert_eq!(usual(Some(16_000), Some(10)), 64);
    }
}
