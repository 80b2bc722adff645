//! How a PMU packs the terms of an event into `config`, `config1` and `config2`: sysfs's `format/`.

/// The configuration words of `perf_event_attr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigWord {
    /// `attr.config`
    Config,
    /// `attr.config1`
    Config1,
    /// `attr.config2`
    Config2,
}

/// The bits of one term, such as AMD's event select, `config:0-7,32-35`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitField {
    /// The word they lie in.
    pub word: ConfigWord,
    /// The bits, as a mask. The value's bits fill them from the lowest up.
    pub mask: u64,
}

impl BitField {
    /// Reads a line of `format/`; `None` if it is malformed or of a word not known here.
    pub fn parse(text: &str) -> Option<Self> {
        let (word, ranges) = text.trim().split_once(':')?;
        let word = match word {
            "config" => ConfigWord::Config,
            "config1" => ConfigWord::Config1,
            "config2" => ConfigWord::Config2,
            _ => return None,
        };
        let mut mask = 0;
        for range in ranges.split(',') {
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            let (low, high): (u32, u32) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
            if low > high || high > 63 {
                return None;
            }
            mask |= u64::MAX >> (63 - (high - low)) << low;
        }
        Some(Self { word, mask })
    }

    /// The largest value that fits.
    pub fn largest(self) -> u64 {
        u64::MAX.checked_shr(64 - self.mask.count_ones()).unwrap_or(0)
    }

    /// Puts `value` into the field's bits of `word`; `None` if it does not fit.
    pub fn insert(self, word: u64, value: u64) -> Option<u64> {
        if value > self.largest() {
            return None;
        }
        let (mut free, mut rest, mut bits) = (self.mask, value, 0);
        while rest != 0 {
            let lowest = free & free.wrapping_neg();
            if rest & 1 != 0 {
                bits |= lowest;
            }
            free &= !lowest;
            rest >>= 1;
        }
        Some(word & !self.mask | bits)
    }

    /// The value that lies in the field's bits of `word`.
    pub fn extract(self, word: u64) -> u64 {
        let (mut left, mut value, mut at) = (self.mask, 0, 0);
        while left != 0 {
            let lowest = left & left.wrapping_neg();
            value |= u64::from(word & lowest != 0) << at;
            left &= !lowest;
            at += 1;
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_range() {
        let umask = BitField::parse("config:8-15\n").expect("valid");
        assert_eq!(umask, BitField { word: ConfigWord::Config, mask: 0xff00 });
        assert_eq!(umask.insert(0xa2, 0x04), Some(0x04a2));
        assert_eq!(umask.insert(0, 0x100), None);
    }

    #[test]
    fn amd_event_select_is_in_two_parts() {
        let event = BitField::parse("config:0-7,32-35").expect("valid");
        assert_eq!(event.largest(), 0xfff);
        assert_eq!(event.insert(0, 0x1a0), Some(0x1_0000_00a0));
    }

    #[test]
    fn single_bits_and_other_words() {
        assert_eq!(BitField::parse("config:18"), Some(BitField { word: ConfigWord::Config, mask: 1 << 18 }));
        let whole = BitField::parse("config1:0-63").expect("valid");
        assert_eq!(whole, BitField { word: ConfigWord::Config1, mask: u64::MAX });
        assert_eq!(whole.insert(0, u64::MAX), Some(u64::MAX));
    }

    #[test]
    fn damaged_formats_are_refused() {
        for text in ["", "config", "config:", "config:64", "config:7-0", "config:a-b", "config9:0-7"] {
            assert_eq!(BitField::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_was_put_in_comes_out(mask: u64, word: u64, value: u64) {
            let field = BitField { word: ConfigWord::Config, mask };
            match field.insert(word, value) {
                Some(packed) => {
                    prop_assert_eq!(field.extract(packed), value);
                    prop_assert_eq!(packed & !mask, word & !mask);
                }
                None => prop_assert!(value > field.largest()),
            }
        }
    }
}
