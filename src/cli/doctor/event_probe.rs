//! Whether the kernel opens the chosen events, and whether it counts all of them at once.

use std::io;
use std::time::{Duration, Instant};

use eprof::machine::permissions::Permissions;
use eprof::machine::{EventSpec, ModelEvent};
use perf_event::events::Raw;
use perf_event::{Builder, Counter};
use serde::Serialize;

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum EventState {
    /// It opens and counts, so much of the time that all events were open.
    Counts {
        /// 1 if it never had to share a counter.
        share: f64,
        /// The kernel was left out, for want of rights.
        outside_kernel_only: bool,
    },
    /// The kernel refused it.
    Refused {
        /// What it said.
        why: String,
    },
    /// There is no kernel to ask: rights alone say that it may be opened.
    Allowed,
}

/// Something that can tell what becomes of events.
pub trait EventProbe {
    /// The state of each event, all of them open at once.
    fn try_events(&self, events: &[ModelEvent]) -> Vec<EventState>;
}

/// Asks the running kernel, by counting this process.
pub struct Kernel;

/// How long events count side by side.
const TRIAL: Duration = Duration::from_millis(20);

impl EventProbe for Kernel {
    fn try_events(&self, events: &[ModelEvent]) -> Vec<EventState> {
        let opened: Vec<io::Result<(Counter, bool)>> = events.iter().map(|event| open(&event.spec)).collect();
        let start = Instant::now();
        let mut sum = 0u64;
        while start.elapsed() < TRIAL {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        opened.into_iter().map(|opened| state(opened).unwrap_or_else(refused)).collect()
    }
}

/// Opens an event for this process: with the kernel, or without it where only that is allowed.
fn open(spec: &EventSpec) -> io::Result<(Counter, bool)> {
    let mut builder = Builder::new(Raw::new(spec.config).config1(spec.config1).config2(spec.config2));
    builder.attrs_mut().type_ = spec.perf_type;
    builder.observe_self().include_kernel().include_hv().enabled(true);
    match builder.build() {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM)) => {
            builder.exclude_kernel(true).exclude_hv(true);
            Ok((builder.build()?, true))
        }
        opened => Ok((opened?, false)),
    }
}

fn state(opened: io::Result<(Counter, bool)>) -> io::Result<EventState> {
    let (mut counter, outside_kernel_only) = opened?;
    let count = counter.read_count_and_time()?;
    let share =
        if count.time_enabled == 0 { 0.0 } else { count.time_running as f64 / count.time_enabled as f64 };
    Ok(EventState::Counts { share, outside_kernel_only })
}

fn refused(error: io::Error) -> EventState {
    let why = match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP) => format!("the PMU does not have it ({error})"),
        Some(libc::EACCES | libc::EPERM) => format!("no right ({error})"),
        _ => error.to_string(),
    };
    EventState::Refused { why }
}

/// Judges by rights alone.
pub struct Rights<'a>(pub &'a Permissions);

impl EventProbe for Rights<'_> {
    fn try_events(&self, events: &[ModelEvent]) -> Vec<EventState> {
        let state = if self.0.own_events() {
            EventState::Allowed
        } else {
            EventState::Refused { why: "no right".to_owned() }
        };
        vec![state; events.len()]
    }
}
