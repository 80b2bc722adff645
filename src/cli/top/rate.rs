//! How often the whole machine is sampled.

use std::num::NonZeroU32;

use eprof::machine::{Roots, topology};
use eprof::record::SamplingRate;

/// What a window takes follows its samples: of so many CPUs all that are busy have, at the usual rate, more than a view should cost. So many
/// samples a second of each event are taken where all CPUs together are busy,
const SAMPLES_PER_SECOND: u32 = 400;
/// and of the usual thousand of each CPU one of so many at least, fifty: fewer tell nothing of a second.
const RAREST: u32 = 20;
/// Samples a second of a busy CPU, about.
const USUAL: u32 = 1000;

/// The rate for everything on this machine.
pub fn of_machine(roots: &Roots) -> SamplingRate {
    let cpus = topology::online(roots).map_or(1, |cpus| cpus.len());
    SamplingRate::Thinned(times_as_rarely(u32::try_from(cpus).unwrap_or(u32::MAX)))
}

fn times_as_rarely(cpus: u32) -> NonZeroU32 {
    let times = cpus.saturating_mul(USUAL).div_ceil(SAMPLES_PER_SECOND).min(RAREST);
    NonZeroU32::new(times).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_share_the_samples_until_each_has_fifty_a_second() {
        // By hand: 2 CPUs have 2000 samples a second, and 400 are wanted.
        let times = [1, 2, 3, 8, 10, 11, 512, u32::MAX].map(|cpus| times_as_rarely(cpus).get());
        assert_eq!(times, [3, 5, 8, 20, 20, 20, 20, 20]);
        assert_eq!(times_as_rarely(0).get(), 1, "where it is not known");
    }
}
