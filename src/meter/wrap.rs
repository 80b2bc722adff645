//! Counters that start again from zero: 32-bit energy registers and what the kernel makes of them.

/// A counter of limited range, made endless.
///
/// The difference of two readings is taken modulo the range. A difference of more than half of it is
/// taken for a step backwards (a reset, or a kernel that lost the sign of its own difference) and is
/// refused, so a counter must be read before half its range has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappingCounter {
    /// Values of the counter lie below this; `None`: all 64 bits.
    modulus: Option<u64>,
    last: Option<u64>,
    total: u64,
}

/// A reading that cannot follow the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the counter went from {from} back to {to}")]
pub struct WentBackwards {
    /// The last good reading.
    pub from: u64,
    /// The refused one.
    pub to: u64,
}

impl WrappingCounter {
    /// A counter whose values lie below `modulus`.
    pub fn below(modulus: u64) -> Self {
        Self { modulus: Some(modulus.max(1)), last: None, total: 0 }
    }

    /// A counter of so many bits, 1 to 64.
    pub fn of_bits(bits: u32) -> Self {
        Self { modulus: 1u64.checked_shl(bits), last: None, total: 0 }
    }

    /// Takes the next reading and tells what has been counted since the first one.
    ///
    /// # Errors
    /// If the reading lies behind the last one. Counting then goes on from the new reading; what was
    /// counted in between is lost.
    pub fn advance(&mut self, raw: u64) -> Result<u64, WentBackwards> {
        let Some(from) = self.last.replace(raw) else { return Ok(self.total) };
        let step = match self.modulus {
            // A reading beyond the range is no reading of this counter.
            Some(modulus) if raw >= modulus => return Err(WentBackwards { from, to: raw }),
            Some(modulus) if raw < from => (modulus - from.min(modulus)).saturating_add(raw),
            Some(_) => raw - from,
            None => raw.wrapping_sub(from),
        };
        if step > self.modulus.map_or(u64::MAX / 2, |modulus| modulus / 2) {
            return Err(WentBackwards { from, to: raw });
        }
        self.total = self.total.saturating_add(step);
        Ok(self.total)
    }

    /// The counter was set to `raw`; what was counted so far stays.
    pub fn start_again(&mut self, raw: u64) {
        self.last = Some(raw);
    }

    /// It begins anew after so many; `None`: after all that 64 bits hold.
    pub fn range(&self) -> Option<u64> {
        self.modulus
    }

    /// What may be counted between two readings.
    pub fn longest_step(&self) -> u64 {
        self.modulus.map_or(u64::MAX / 2, |modulus| modulus / 2)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Half the range is the last step that is taken; one more could as well be a step back.
    #[test]
    fn the_longest_step_is_half_the_range() {
        for (mut counter, longest) in [
            (WrappingCounter::below(100), 50),
            (WrappingCounter::of_bits(32), 1 << 31),
            (WrappingCounter::of_bits(64), u64::MAX / 2),
        ] {
            assert_eq!(counter.longest_step(), longest);
            assert_eq!(counter.advance(0), Ok(0));
            assert_eq!(counter.advance(longest), Ok(longest));
            let mut other = counter.clone();
            other.start_again(0);
            assert_eq!(other.advance(longest + 1), Err(WentBackwards { from: 0, to: longest + 1 }));
        }
        assert_eq!(
            (WrappingCounter::of_bits(4).range(), WrappingCounter::of_bits(64).range()),
            (Some(16), None)
        );
        assert_eq!(WrappingCounter::below(0).range(), Some(1));
    }

    #[test]
    fn a_reading_beyond_the_range_follows_none() {
        let mut counter = WrappingCounter::below(100);
        assert_eq!(counter.advance(99), Ok(0));
        assert!(counter.advance(100).is_err());
        // Counting goes on from there, as if the range had ended.
        assert_eq!(counter.advance(7), Ok(7));
    }

    #[test]
    fn by_hand() {
        let mut counter = WrappingCounter::below(100);
        assert_eq!(counter.advance(95), Ok(0), "the first reading is zero");
        assert_eq!(counter.advance(99), Ok(4));
        assert_eq!(counter.advance(3), Ok(8), "99 to 103");
        assert_eq!(counter.advance(3), Ok(8));
    }

    #[test]
    fn a_step_backwards_is_refused_and_counting_goes_on() {
        let mut counter = WrappingCounter::of_bits(64);
        assert_eq!(counter.advance(1 << 40), Ok(0));
        // The kernel's 32-bit trap: a difference taken as signed.
        let back = (1 << 40) - (1 << 31);
        assert_eq!(counter.advance(back), Err(WentBackwards { from: 1 << 40, to: back }));
        assert_eq!(counter.advance(back + 7), Ok(7));
    }

    #[test]
    fn a_counter_that_was_set_back_on_purpose_goes_on() {
        let mut counter = WrappingCounter::of_bits(64);
        assert_eq!(counter.advance(100), Ok(0));
        assert_eq!(counter.advance(150), Ok(50));
        counter.start_again(0);
        assert_eq!(counter.advance(7), Ok(57));
    }

    #[test]
    fn a_reading_beyond_the_range_is_refused() {
        let mut counter = WrappingCounter::of_bits(18);
        assert_eq!(counter.advance(5), Ok(0));
        assert!(counter.advance(1 << 18).is_err());
    }

    proptest! {
        /// However the true count goes on, as long as no step passes half the range.
        #[test]
        fn wraps_change_nothing(
            bits in 4u32..=64,
            start: u64,
            steps in proptest::collection::vec(0.0..1.0f64, 1..200),
        ) {
            let modulus = 1u128 << bits;
            let mut counter = WrappingCounter::of_bits(bits);
            let mut truth = u128::from(start);
            prop_assert_eq!(counter.advance((truth % modulus) as u64), Ok(0));
            let mut counted = 0u64;
            for share in steps {
                let step = (share * (counter.longest_step().min(1 << 50) as f64)) as u64;
                truth += u128::from(step);
                counted += step;
                prop_assert_eq!(counter.advance((truth % modulus) as u64), Ok(counted));
            }
        }

        /// Whatever is read, the total never falls and nothing panics.
        #[test]
        fn never_decreases(modulus: u64, readings in proptest::collection::vec(any::<u64>(), 0..50)) {
            let mut counter = WrappingCounter::below(modulus);
            let mut last = 0;
            for raw in readings {
                if let Ok(total) = counter.advance(raw) {
                    prop_assert!(total >= last);
                    last = total;
                }
            }
        }
    }
}
