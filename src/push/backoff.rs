//! How long to wait before something is tried again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Before the second try.
const FIRST: Duration = Duration::from_secs(1);

/// Pauses that grow from try to try.
#[derive(Debug)]
pub struct Backoff {
    failures: u32,
    longest: Duration,
    random: RandomState,
}

impl Backoff {
    /// Pauses of this length at most, but for what a receiver asks for.
    pub fn new(longest: Duration) -> Self {
        Self { failures: 0, longest, random: RandomState::new() }
    }

    /// It went well.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// How often it failed since it last went well.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// It failed once more: how long to wait, never less than the receiver asked for. Ten thousand agents that were refused at
    /// one moment do not come back at one moment: pauses differ by chance, between half and all of twice the last one.
    pub fn failed(&mut self, asked: Option<Duration>) -> Duration {
        let doubled = FIRST.saturating_mul(1 << self.failures.min(20)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        let mut hasher = self.random.build_hasher();
        hasher.write_u32(self.failures);
        let share = (hasher.finish() >> 11) as f64 / (1u64 << 53) as f64;
        let chosen = doubled.mul_f64(0.5 + 0.5 * share);
        asked.map_or(chosen, |asked| asked.max(FIRST / 2) + chosen.mul_f64(0.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_and_begin_anew() {
        let mut backoff = Backoff::new(Duration::from_secs(60));
        for limit in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0] {
            let pause = backoff.failed(None).as_secs_f64();
            assert!((0.5 * limit..=limit).contains(&pause), "{pause} of {limit}");
        }
        backoff.succeeded();
        assert!(backoff.failed(None).as_secs_f64() <= 1.0);
    }

    #[test]
    fn what_a_receiver_asks_for_is_the_least() {
        let mut backoff = Backoff::new(Duration::from_secs(10));
        let pause = backoff.failed(Some(Duration::from_secs(90))).as_secs_f64();
        assert!((90.0..91.0).contains(&pause), "{pause}");
        assert!(backoff.failed(Some(Duration::ZERO)) >= FIRST / 2, "never at once");
    }

    #[test]
    fn two_senders_differ() {
        let pause = || Backoff::new(Duration::from_secs(60)).failed(None);
        assert_ne!([pause(), pause(), pause()], [pause(), pause(), pause()]);
    }
}
