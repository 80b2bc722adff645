//! Writes what counters have counted while they count, as READ records.
//!
//! All samples of a counter together stand for what it counted. Where interrupts come late or not at all they do not, and
//! where the counter is shared with others by turns, they stand for its turns alone: a reader finds out, and when, by
//! comparing the two from one record to the next.

use perf_data::encode::{self, CounterValue, RecordTooLong, SampleId};

use crate::process::clocks::monotonic_now;
use crate::record::counters::{Counters, OpenCounter};
use crate::record::sampled_event::{SampleInterval, SampledEvent};

/// A record comes with so many samples, of which it then is not 1 % of the bytes.
const SAMPLES: u64 = 64;

/// The values that were written last.
#[derive(Debug, Default)]
pub struct CounterLog {
    /// By counter.
    written: Vec<Option<CounterValue>>,
}

impl CounterLog {
    /// Appends the values of counters that have gone on by [`SAMPLES`] since they were last written, and of all at first. A clock's
    /// are left out: its ticks are compared with CPU times.
    ///
    /// A program's counters, which follow all that it starts, are written as soon as they have gone on at all: what tasks did
    /// that ended before their first sample nothing else tells. Where several tasks were named, each has counters of its own:
    /// these are too many to be read all the time.
    ///
    /// # Errors
    /// A record that is too long, which none is.
    pub fn append(
        &mut self,
        counters: &mut Counters,
        events: &[SampledEvent],
        out: &mut Vec<u8>,
    ) -> Result<(), RecordTooLong> {
        self.written.resize(counters.counters.len(), None);
        let is_of_one = counters.counters.windows(2).all(|pair| pair[0].task == pair[1].task);
        for (open, written) in counters.counters.iter_mut().zip(&mut self.written) {
            let Some(event) = events.get(open.event).filter(|event| is_counter(event)) else { continue };
            if open.task.is_some() && !is_of_one {
                continue;
            }
            let time = monotonic_now();
            let Ok(value) = open.value() else { continue };
            let is_due = |written: CounterValue| match open.task {
                Some(_) => value.value != written.value,
                None => is_due(event.interval, &written, &value),
            };
            if written.is_none_or(is_due) {
                encode::read(&value, &id_of(open, time), out)?;
                *written = Some(value);
            }
        }
        Ok(())
    }
}

/// What a READ record of a counter says of it: its task, if it is one's alone.
pub fn id_of(open: &OpenCounter, time: perf_data::Timestamp) -> SampleId {
    let task = open.task.unwrap_or(u32::MAX);
    SampleId { pid: task, tid: task, time, cpu: open.cpu, id: open.id() }
}

fn is_counter(event: &SampledEvent) -> bool {
    !event.is_clock() && !event.never_happens() && event.probe.is_none()
}

fn is_due(interval: SampleInterval, written: &CounterValue, now: &CounterValue) -> bool {
    match interval {
        SampleInterval::Period(period) => {
            now.value.saturating_sub(written.value) >= period.saturating_mul(SAMPLES)
        }
        SampleInterval::Frequency(frequency) => {
            let running = now.time_running.saturating_sub(written.time_running);
            running >= SAMPLES * 1_000_000_000 / frequency.max(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(value: u64, time_running: u64) -> CounterValue {
        CounterValue { value, time_enabled: 7 * time_running, time_running, lost: None }
    }

    #[test]
    fn a_record_comes_with_many_samples() {
        let period = SampleInterval::Period(1_000_000);
        assert!(!is_due(period, &value(5, 0), &value(64_000_004, 1)));
        assert!(is_due(period, &value(5, 0), &value(64_000_005, 1)));
        let frequency = SampleInterval::Frequency(1000);
        assert!(!is_due(frequency, &value(5, 9), &value(u64::MAX, 64_000_008)));
        assert!(is_due(frequency, &value(5, 9), &value(6, 64_000_009)));
    }
}
