//! What rings lost behind the last record that says so.
//!
//! The kernel writes how many records found no room in front of the next one that does. Where none comes, as the recording
//! ends meanwhile, nothing in a ring tells; the counters do, since Linux 6.0.

use std::collections::BTreeMap;

use perf_data::Timestamp;
use perf_data::encode::{self, CounterValue, RecordTooLong, SampleId};

/// Losses that were not told before.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ToldNow {
    /// Rings by their numbers, and how many records were lost of each.
    pub by_ring: Vec<(usize, u64)>,
    /// The records that tell it. They name the counter that lost most.
    pub records: Vec<u8>,
}

/// What the counters of each CPU say that did not fit into its ring.
#[derive(Debug, Default)]
pub struct UntoldLosses {
    /// By CPU: all records, the most of one counter, and that counter. `None` where a counter does not tell.
    cpus: BTreeMap<u32, Option<OfCpu>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct OfCpu {
    records: u64,
    most: u64,
    most_of: u64,
}

impl UntoldLosses {
    /// Takes a counter's last value.
    pub fn add(&mut self, cpu: u32, id: u64, value: &CounterValue) {
        let sum = self.cpus.entry(cpu).or_insert_with(|| Some(OfCpu::default()));
        *sum = sum.zip(value.lost).map(|(sum, lost)| OfCpu {
            records: sum.records.saturating_add(lost),
            most: sum.most.max(lost),
            most_of: if lost > sum.most { id } else { sum.most_of },
        });
    }

    /// What was lost of rings of these CPUs and was not told, where `told` was, by ring.
    ///
    /// # Errors
    /// A record that is too long, which none is.
    pub fn tell(
        &self,
        cpus: impl Iterator<Item = u32>,
        told: &[u64],
        time: Timestamp,
    ) -> Result<ToldNow, RecordTooLong> {
        let mut now = ToldNow::default();
        for (ring, cpu) in cpus.enumerate() {
            let Some(Some(sum)) = self.cpus.get(&cpu) else { continue };
            let untold = sum.records.saturating_sub(told.get(ring).copied().unwrap_or(0));
            if untold > 0 {
                let id = SampleId { pid: u32::MAX, tid: u32::MAX, time, cpu, id: sum.most_of };
                encode::lost(untold, &id, &mut now.records)?;
                now.by_ring.push((ring, untold));
            }
        }
        Ok(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(lost: Option<u64>) -> CounterValue {
        CounterValue { value: 1, time_enabled: 1, time_running: 1, lost }
    }

    #[test]
    fn what_counters_lost_and_no_record_says_is_told() {
        let mut losses = UntoldLosses::default();
        for (cpu, id, lost) in [(0, 10, 30), (0, 11, 50), (1, 12, 7), (1, 13, 0), (4, 14, 9)] {
            losses.add(cpu, id, &value(Some(lost)));
        }
        let at = Timestamp::from_nanos(99);
        let ToldNow { by_ring, records } = losses.tell([0, 1, 4].into_iter(), &[72, 7], at).expect("short");
        assert_eq!(by_ring, [(0, 8), (2, 9)]);
        let mut expected = Vec::new();
        for (cpu, id, count) in [(0, 11, 8), (4, 14, 9)] {
            let id = SampleId { pid: u32::MAX, tid: u32::MAX, time: at, cpu, id };
            encode::lost(count, &id, &mut expected).expect("short");
        }
        assert_eq!(records, expected);
    }

    #[test]
    fn of_a_kernel_whose_counters_do_not_say_nothing_is_told() {
        let mut losses = UntoldLosses::default();
        losses.add(0, 10, &value(Some(30)));
        losses.add(0, 11, &value(None));
        let now = losses.tell([0, 3].into_iter(), &[], Timestamp::from_nanos(9)).expect("short");
        assert_eq!(now, ToldNow::default());
    }
}
