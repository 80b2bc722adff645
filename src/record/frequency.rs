//! How often the kernel and eprof take samples at most.

use crate::machine::Roots;
use crate::machine::roots::read_number;
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

/// Lowers the rates of events that are to be sampled more often than is possible, as perf does. Gives what is to be said of it.
pub fn lower(roots: &Roots, events: &mut [SampledEvent]) -> Option<String> {
    let highest = highest(roots);
    let mut asked = None;
    for event in events {
        if let SampleInterval::Frequency(frequency) = &mut event.interval
            && *frequency > highest
        {
            asked = asked.max(Some(*frequency));
            *frequency = highest;
        }
    }
    asked.map(|asked| {
        let lowered = format!("{asked} samples a second were asked for, and {highest} are taken");
        match of_kernel(roots).filter(|&kernel| kernel < MOST) {
            Some(_) => format!(
                "{lowered}, as many as the kernel allows (it lowers its limit by itself where samples take it too long); up to \
                 eprof's own limit of {MOST} there are more after: sudo sysctl kernel.perf_event_max_sample_rate={}",
                asked.min(MOST)
            ),
            None => {
                format!("{lowered}, eprof's own limit: more would measure nothing but the sampling")
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::FixtureMachine;
    use crate::machine::resolve_events;
    use crate::record::options::SamplingRate;

    /// The rate that comes of one, and what is said.
    fn lowered(kernel: &str, frequency: u64) -> (SampleInterval, Option<String>) {
        let machine = FixtureMachine::new(&format!("proc/sys/kernel/perf_event_max_sample_rate: {kernel}"));
        let roots = Roots::under(machine.path());
        let spec = resolve_events(&roots, "cpu-clock").expect("known").remove(0);
        let mut events = [SampledEvent::new(spec, None, SamplingRate::Frequency(frequency))];
        let said = lower(&roots, &mut events);
        (events[0].interval, said)
    }

    #[test]
    fn rates_are_lowered_to_the_limit_and_whose_it_is_is_said() {
        let at = SampleInterval::Frequency;
        assert_eq!(lowered("25000", 25_000), (at(25_000), None));
        let (rate, said) = lowered("25000", 30_000);
        let said = said.expect("lowered");
        assert_eq!(rate, at(25_000));
        assert!(said.contains("sudo sysctl kernel.perf_event_max_sample_rate=30000"), "{said}");
        let (rate, said) = lowered("2000000", 1_000_000);
        let said = said.expect("lowered");
        assert_eq!(rate, at(MOST));
        assert!(said.contains("1000000 samples") && said.contains("eprof's own limit"), "{said}");
        assert_eq!(lowered("2000000", 100_000), (at(100_000), None));
    }
}
