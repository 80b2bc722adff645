//! Whose the ticks of a clock were that the kernel left out.
//!
//! Where a CPU's interrupts come late, as in a virtual machine that waits for its host, the kernel leaves out the ticks of the
//! meantime, and the next one finds the code that was running all the while. What is known to be missing on a CPU is that
//! of the samples there since CPU times were read last: of those at the ends of gaps as far as these can hold it, and of all
//! alike else. Where the program slept, gaps could hold more than is missing: the more they could, the less they tell.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::analyze::sample_key::{MOST_CPUS, SampleKey};
use crate::profile::{AddressId, CallersId, StackTable};
use crate::units::{Nanoseconds, Timestamp};

/// Samples of one CPU that are kept between two readings of CPU times.
const MOST_SAMPLES: usize = 1 << 14;

/// A gap of so many periods may hide a tick.
const LONG: f64 = 1.5;

/// The samples of a clock since CPU times were read last.
#[derive(Debug, Default)]
pub(super) struct LatestSamples {
    /// By number; few are between those that there are.
    cpus: Vec<OfCpu>,
}

#[derive(Debug, Default)]
struct OfCpu {
    latest: Option<(Timestamp, KeptKey)>,
    samples: Vec<OfSample>,
}

/// What decides the cell of a sample, also when its part has ended.
#[derive(Debug, Clone)]
pub(crate) enum KeptKey {
    /// Of the part at hand.
    Present(SampleKey),
    /// Of one that has ended, in which paths had other numbers: its callers, the outermost first, and the rest of the key.
    Ended(Arc<[AddressId]>, SampleKey),
}

#[derive(Debug)]
struct OfSample {
    key: KeptKey,
    count: f64,
    /// Nanoseconds beyond a period since the sample before it.
    gap: f64,
}

impl LatestSamples {
    /// A sample that stands for so many nanoseconds.
    #[inline]
    pub fn sampled(&mut self, cpu: u32, time: Timestamp, count: u64, key: SampleKey) {
        // Of others nothing is ever counted.
        if cpu >= MOST_CPUS {
            return;
        }
        let cpu = cpu as usize;
        if self.cpus.len() <= cpu {
            self.cpus.resize_with(cpu + 1, OfCpu::default);
        }
        let of_cpu = &mut self.cpus[cpu];
        let before = of_cpu.latest.replace((time, KeptKey::Present(key)));
        if of_cpu.samples.len() < MOST_SAMPLES {
            let count = count as f64;
            let gap = before.map_or(0.0, |(before, _)| time.since(before).as_nanos() as f64);
            let gap = if gap > LONG * count { gap - count } else { 0.0 };
            of_cpu.samples.push(OfSample { key: KeptKey::Present(key), count, gap });
        }
    }

    /// Whose so many nanoseconds were on a CPU; of nobody where the program never had a sample there.
    pub fn share_out(&self, cpu: u32, nanos: f64) -> Vec<(KeptKey, Nanoseconds)> {
        let Some(OfCpu { latest: Some((_, latest)), samples }) = self.cpus.get(cpu as usize) else {
            return Vec::new();
        };
        let (room, counted) = samples
            .iter()
            .fold((0.0, 0.0), |(room, counted), sample| (room + sample.gap, counted + sample.count));
        if counted <= 0.0 {
            return vec![(latest.clone(), Nanoseconds::from_nanos(nanos as u64))];
        }
        let by_gap = if room > 0.0 { (nanos / room).min(1.0).powi(2) } else { 0.0 };
        let by_count = (nanos - by_gap * room).max(0.0) / counted;
        // As the differences of one growing sum, so that rounding loses nothing.
        let (mut sum, mut given) = (0.0, 0);
        let part = |sample: &OfSample| {
            sum += sample.gap * by_gap + sample.count * by_count;
            let part = (sum.round() as u64).saturating_sub(given);
            given += part;
            (part > 0).then(|| (sample.key.clone(), Nanoseconds::from_nanos(part)))
        };
        samples.iter().filter_map(part).collect()
    }

    /// CPU times were read: what comes now is of the next stretch of time.
    pub fn begin(&mut self) {
        self.cpus.iter_mut().for_each(|of_cpu| of_cpu.samples.clear());
    }

    /// A part has ended, in which paths had these numbers.
    pub fn part_ended(&mut self, paths: &StackTable) {
        let mut known: FxHashMap<CallersId, Arc<[AddressId]>> = FxHashMap::default();
        let keys = self.cpus.iter_mut().flat_map(|of_cpu| {
            let latest = of_cpu.latest.iter_mut().map(|(_, key)| key);
            latest.chain(of_cpu.samples.iter_mut().map(|sample| &mut sample.key))
        });
        for kept in keys {
            let KeptKey::Present(key) = *kept else { continue };
            let path = known.entry(key.callers).or_insert_with(|| {
                let mut path: Vec<AddressId> = paths.frames_of_callers(key.callers).collect();
                path.reverse();
                path.into()
            });
            *kept = KeptKey::Ended(Arc::clone(path), key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ThreadIndex;

    const MS: f64 = 1e6;

    fn key(own: u32) -> SampleKey {
        SampleKey { callers: CallersId(0), own: Some(AddressId(own)).into(), thread: ThreadIndex(0) }
    }

    /// Samples of 1 ms on CPU 2 at these times, each of code of its own.
    fn samples(millis: &[u64]) -> LatestSamples {
        let mut samples = LatestSamples::default();
        for (code, &millis) in (0..).zip(millis) {
            samples.sampled(2, Timestamp::from_nanos(millis * 1_000_000), 1_000_000, key(code));
        }
        samples
    }

    /// Microseconds by code.
    fn shared(samples: &LatestSamples, cpu: u32, millis: f64) -> Vec<(u32, u64)> {
        let code = |key: KeptKey| {
            let (KeptKey::Present(key) | KeptKey::Ended(_, key)) = key;
            key.own.get().expect("an address").0
        };
        let shared = samples.share_out(cpu, millis * MS).into_iter();
        shared.map(|(key, nanos)| (code(key), nanos.as_nanos() / 1000)).collect()
    }

    #[test]
    fn what_is_missing_is_of_the_samples_that_came_late() {
        // Three ticks are missing before one, and one before another.
        let samples = samples(&[1, 2, 6, 7, 9]);
        assert_eq!(shared(&samples, 2, 4.0), [(2, 3000), (4, 1000)]);
        // More than gaps can hold is of all alike; of less they tell the less.
        assert_eq!(shared(&samples, 2, 9.0), [(0, 1000), (1, 1000), (2, 4000), (3, 1000), (4, 2000)]);
        assert_eq!(shared(&samples, 2, 2.0), [(0, 200), (1, 200), (2, 950), (3, 200), (4, 450)]);
        assert_eq!(shared(&samples, 3, 2.0), [], "of a CPU without samples nothing is known");
    }

    #[test]
    fn without_a_sample_since_it_is_of_the_latest_one() {
        let mut samples = samples(&[1, 2]);
        assert_eq!(shared(&samples, 2, 0.5), [(0, 250), (1, 250)]);
        samples.begin();
        assert_eq!(shared(&samples, 2, 0.5), [(1, 500)]);
        samples.sampled(2, Timestamp::from_nanos(4_000_000), 1_000_000, key(7));
        assert_eq!(shared(&samples, 2, 1.0), [(7, 1000)], "it came late");
    }

    /// What is missing is told when CPU times are read, and a part may end before.
    #[test]
    fn samples_of_a_part_that_ended_keep_their_callers() {
        let mut samples = samples(&[1, 2, 6]);
        let mut paths = StackTable::default();
        let outer = paths.push_caller(CallersId::NONE, AddressId(30));
        let callers = paths.push_caller(outer, AddressId(31));
        samples.sampled(2, Timestamp::from_nanos(7_000_000), 1_000_000, SampleKey { callers, ..key(3) });
        samples.part_ended(&paths);
        samples.sampled(2, Timestamp::from_nanos(11_000_000), 1_000_000, key(4));
        // Another part of other paths does not touch them.
        samples.part_ended(&StackTable::default());
        let paths: Vec<(u32, Vec<u32>)> = samples
            .share_out(2, 20.0 * MS)
            .into_iter()
            .map(|(kept, _)| match kept {
                KeptKey::Ended(path, key) => {
                    (key.own.get().expect("an address").0, path.iter().map(|address| address.0).collect())
                }
                KeptKey::Present(key) => panic!("{key:?} is of no part"),
            })
            .collect();
        let none = Vec::new;
        assert_eq!(paths, [(0, none()), (1, none()), (2, none()), (3, vec![30, 31]), (4, none())]);
    }

    #[test]
    fn rounding_loses_nothing() {
        let samples = samples(&[1, 2, 3]);
        let shared = samples.share_out(2, 1000.0);
        assert_eq!(shared.iter().map(|(_, nanos)| nanos.as_nanos()).collect::<Vec<_>>(), [333, 334, 333]);
    }
}
