//! Events counted on whole CPUs, whatever runs there, without samples.

use std::io;

use perf_event::events::Raw;
use perf_event::{Builder, Counter};

use crate::machine::EventSpec;
use crate::process::file_limit;

/// Counters of several events on several CPUs.
#[derive(Debug)]
pub struct CpuCounters(Vec<Open>);

#[derive(Debug)]
struct Open {
    event: usize,
    cpu: u32,
    counter: Counter,
}

/// One counter's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuCount {
    /// Index of the event.
    pub event: usize,
    /// CPU.
    pub cpu: u32,
    /// Events so far, while the counter ran.
    pub value: u64,
    /// Nanoseconds that it ran; less than it was open where events take turns.
    pub running: u64,
}

/// An event that the kernel does not count.
#[derive(Debug, thiserror::Error)]
#[error("event {event} cannot be counted on CPU {cpu}: {cause}")]
pub struct Refused {
    /// The event.
    pub event: String,
    /// The CPU.
    pub cpu: u32,
    /// What the kernel said.
    pub cause: io::Error,
}

impl Refused {
    /// Whether it is a right that is missing.
    pub fn is_permission(&self) -> bool {
        self.cause.kind() == io::ErrorKind::PermissionDenied
    }
}

impl CpuCounters {
    /// Opens each event on each of `cpus` that it counts on, and starts it.
    ///
    /// # Errors
    /// The first event that is refused.
    pub fn open(events: &[EventSpec], cpus: &[u32]) -> Result<Self, Refused> {
        const OTHER_FILES: u64 = 64;
        // If that fails, some counter cannot be opened, and says so.
        let _ = file_limit::raise_to((events.len() * cpus.len()) as u64 + OTHER_FILES);
        let mut counters = Vec::new();
        for (event, spec) in events.iter().enumerate() {
            for &cpu in cpus.iter().filter(|&&cpu| spec.counts_on(cpu)) {
                let refused = |cause| Refused { event: spec.name.clone(), cpu, cause };
                let mut builder =
                    Builder::new(Raw::new(spec.config).config1(spec.config1).config2(spec.config2));
                builder.attrs_mut().type_ = spec.perf_type;
                builder.any_pid().one_cpu(cpu as usize).include_kernel().include_hv().enabled(true);
                counters.push(Open { event, cpu, counter: builder.build().map_err(refused)? });
            }
        }
        Ok(Self(counters))
    }

    /// Reads all counters.
    ///
    /// # Errors
    /// What the kernel says of the first that cannot be read.
    pub fn read(&mut self) -> io::Result<Vec<CpuCount>> {
        let read = |open: &mut Open| {
            let count = open.counter.read_count_and_time()?;
            Ok(CpuCount { event: open.event, cpu: open.cpu, value: count.count, running: count.time_running })
        };
        self.0.iter_mut().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::machine::{Roots, resolve_event};

    /// CPU time is counted by every kernel, so that this needs rights alone.
    #[test]
    fn a_clock_counts_on_every_cpu() {
        let spec = resolve_event(&Roots::default(), "cpu-clock").expect("known").remove(0);
        let mut counters = match CpuCounters::open(&[spec], &[0]) {
            Ok(counters) => counters,
            Err(refused) => {
                let required = std::env::var_os("EPROF_REQUIRE_LIVE").is_some_and(|value| value == "1");
                assert!(refused.is_permission() && !required, "{refused}");
                println!("skipped: {refused}");
                return;
            }
        };
        let before = counters.read().expect("readable")[0];
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let after = counters.read().expect("readable")[0];
        assert_eq!((after.event, after.cpu), (0, 0));
        assert!(after.running - before.running >= 20_000_000);
    }
}
