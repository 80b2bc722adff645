//! How often the kernel and eprof take samples at most.

use crate::machine::Roots;
use crate::machine::roots::read_number;
use crate::record::error::RecordError;
use crate::record::sampled_event::{SampleInterval, SampledEvent};

/// Samples a second of an event on each CPU beyond which taking them is most of what the machine does: what kernels
/// begin with as their limit.
const MOST: u64 = 100_000;

/// The most samples a second that this kernel takes of an event on each CPU.
pub fn highest(roots: &Roots) -> u64 {
    of_kernel(roots).map_or(MOST, |limit| limit.min(MOST))
}

/// The kernel lowers its limit by itself when samples take it too long.
fn of_kernel(roots: &Roots) -> Option<u64> {
    read_number(&roots.procfs.join("sys/kernel/perf_event_max_sample_rate")).ok()
}

/// Refuses events that are to be sampled more often than is possible, and says how often it is.
///
/// # Errors
/// The first such event.
pub fn check(roots: &Roots, events: &[SampledEvent]) -> Result<(), RecordError> {
    let frequencies = events.iter().filter_map(|event| match event.interval {
        SampleInterval::Frequency(frequency) => Some(frequency),
        SampleInterval::Period(_) => None,
    });
    let highest = highest(roots);
    let Some(frequency) = frequencies.into_iter().find(|&frequency| frequency > highest) else {
        return Ok(());
    };
    let limit = match of_kernel(roots).filter(|&kernel| kernel < MOST) {
        Some(kernel) => format!(
            "the kernel takes {kernel} at most (/proc/sys/kernel/perf_event_max_sample_rate); -F max takes as many, \
             and more are to be had, up to eprof's own limit of {MOST}, after: sudo sysctl \
             kernel.perf_event_max_sample_rate={}",
            frequency.min(MOST)
        ),
        None => {
            let kernel = of_kernel(roots).map_or("unknown".to_owned(), |kernel| kernel.to_string());
            format!(
                "eprof takes {MOST} at most, for more would measure nothing but the sampling; -F max takes as many \
                 (the kernel's limit, /proc/sys/kernel/perf_event_max_sample_rate, is {kernel})"
            )
        }
    };
    Err(RecordError::TooFrequent { frequency, limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::FixtureMachine;
    use crate::machine::resolve_events;
    use crate::record::options::SamplingRate;

    fn refusal(kernel: &str, frequency: u64) -> Option<String> {
        let machine = FixtureMachine::new(&format!("proc/sys/kernel/perf_event_max_sample_rate: {kernel}"));
        let roots = Roots::under(machine.path());
        let spec = resolve_events(&roots, "cpu-clock").expect("known").remove(0);
        let event = SampledEvent::new(spec, None, SamplingRate::Frequency(frequency));
        check(&roots, &[event]).err().map(|error| error.to_string())
    }

    #[test]
    fn whose_limit_it_is_is_said() {
        assert_eq!(refusal("25000", 25_000), None);
        let of_kernel = refusal("25000", 30_000).expect("refused");
        assert!(of_kernel.contains("sudo sysctl kernel.perf_event_max_sample_rate=30000"), "{of_kernel}");
        let of_eprof = refusal("2000000", 1_000_000).expect("refused");
        assert!(
            of_eprof.contains("eprof takes 100000 at most") && of_eprof.contains("is 2000000"),
            "{of_eprof}"
        );
        assert_eq!(refusal("2000000", 100_000), None);
    }
}
