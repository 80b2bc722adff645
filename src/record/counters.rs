//! Every event on every CPU (and task), opened, with one ring per CPU for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;
use perf_data::attr::EventAttr;
use perf_data::encode::CounterValue;
use perf_data::format::event_type;
use perf_event::events::Software;
use perf_event::{Builder, Counter};

use crate::record::attr::{self, AttrSettings};
use crate::record::ring::Ring;
use crate::record::sampled_event::{SampledEvent, is_dummy};
use crate::units::Nanoseconds;

mod ioctl {
    nix::ioctl_write_int_bad!(set_output, nix::request_code_none!(b'$', 5));
}

/// Which tasks the counters watch.
#[derive(Debug)]
pub enum Scope {
    /// These threads, and all that they start from now on.
    Tasks(Vec<u32>),
    /// All tasks of a control group, by its folder.
    ControlGroup(File),
    /// All tasks.
    System,
}

/// A counter of one event, on one CPU, for one task or all.
#[derive(Debug)]
pub struct OpenCounter {
    /// Index of the event.
    pub event: usize,
    /// CPU it counts on.
    pub cpu: u32,
    /// Task it counts, with what that starts; `None` for all.
    pub task: Option<u32>,
    counter: Counter,
}

/// A CPU's ring.
#[derive(Debug)]
pub struct CpuRing {
    /// The CPU.
    pub cpu: u32,
    /// The ring.
    pub ring: Ring,
    /// Index of the counter that owns the ring, whose descriptor can be waited for.
    pub owner: usize,
}

/// All counters and rings of a recording.
#[derive(Debug, Default)]
pub struct Counters {
    /// The counters, those of a CPU together.
    pub counters: Vec<OpenCounter>,
    /// One ring per CPU.
    pub rings: Vec<CpuRing>,
    /// The attribute of each event, as the kernel took it.
    pub attrs: Vec<EventAttr>,
    /// What keeps the kernel from handing a task's events on to its child, see [`unlike_children`].
    _apart: Vec<Counter>,
}

/// Which event could not be opened, and what the kernel said.
#[derive(Debug)]
pub struct Refusal {
    /// Index of the event.
    pub event: usize,
    /// What the kernel said.
    pub cause: io::Error,
}

impl Counters {
    /// Opens `events` for `scope` on `cpus`, stopped.
    ///
    /// Tasks that end and CPUs that go offline meanwhile are passed over; `is_online` is asked about
    /// the latter.
    ///
    /// # Errors
    /// The event that was refused and what the kernel said.
    pub fn open(
        events: &[SampledEvent],
        scope: &Scope,
        cpus: &[u32],
        settings: &AttrSettings,
        is_online: impl Fn(u32) -> bool,
    ) -> Result<Self, Refusal> {
        let builders: Vec<Builder<'_>> = events
            .iter()
            .enumerate()
            .map(|(index, event)| attr::builder(event, settings, is_tracking(events, index, cpus)))
            .collect();
        let mut counters = Vec::new();
        for &cpu in cpus {
            for (event, builder) in
                builders.iter().enumerate().filter(|(event, _)| events[*event].spec.counts_on(cpu))
            {
                let probe = events[event].probe.is_some();
                // Probes cannot follow tasks to their threads, and watch whoever comes past.
                let tasks = scope.tasks().filter(|_| !probe).chain(probe.then_some(None));
                for task in tasks {
                    match open_one(builder, scope, task, cpu) {
                        Ok(counter) => counters.push(OpenCounter { event, cpu, task, counter }),
                        Err(cause) if is_gone(&cause, || is_online(cpu)) => {}
                        Err(cause) => return Err(Refusal { event, cause }),
                    }
                }
            }
        }
        let attrs = builders.iter().zip(events).map(|(builder, event)| attr::of(builder, event)).collect();
        let _apart = scope.tasks().flatten().filter_map(unlike_children).collect();
        Ok(Self { counters, rings: Vec::new(), attrs, _apart })
    }

    /// Maps one ring per CPU with `data_size` bytes, and leads all counters of the CPU into it.
    ///
    /// # Errors
    /// What the kernel says, `EPERM` above all, when the user's locked memory is used up. Rings mapped
    /// so far are unmapped, so that a smaller size can be tried.
    pub fn map_rings(&mut self, data_size: usize) -> io::Result<()> {
        self.rings.clear();
        let mut rings: Vec<CpuRing> = Vec::new();
        for (index, open) in self.counters.iter().enumerate() {
            match rings.last().filter(|last| last.cpu == open.cpu) {
                None => rings.push(CpuRing {
                    cpu: open.cpu,
                    ring: Ring::map(open.descriptor(), data_size)?,
                    owner: index,
                }),
                Some(ring) => {
                    let owner = self.counters[ring.owner].descriptor().as_raw_fd();
                    // SAFETY: both descriptors are open counters, and only the kernel's state changes.
                    unsafe { ioctl::set_output(open.descriptor().as_raw_fd(), owner) }?;
                }
            }
        }
        self.rings = rings;
        Ok(())
    }

    /// Ids of the counters of an event, in the order of CPUs.
    pub fn ids(&self, event: usize) -> Vec<u64> {
        self.counters.iter().filter(|open| open.event == event).map(OpenCounter::id).collect()
    }

    /// Indices of the counters whose running time is the target's CPU time, one per CPU and task: those of
    /// software events, which never take turns, or of events that were chosen to fit at once. None of them
    /// if that cannot be said of every CPU.
    pub fn that_tell_time(&self, events: &[SampledEvent], all_fit: bool) -> Vec<usize> {
        let runs_always = |event: usize| {
            let SampledEvent { spec, probe, .. } = &events[event];
            // A probe watches all tasks, whatever the recording does.
            probe.is_none() && (all_fit || spec.perf_type == event_type::SOFTWARE)
        };
        let cpus: BTreeSet<u32> = self.counters.iter().map(|open| open.cpu).collect();
        let mut telling = Vec::new();
        for cpu in cpus {
            let of_cpu = || self.counters.iter().enumerate().filter(move |(_, open)| open.cpu == cpu);
            let Some(event) = of_cpu().map(|(_, open)| open.event).find(|&event| runs_always(event)) else {
                return Vec::new();
            };
            telling.extend(of_cpu().filter(|(_, open)| open.event == event).map(|(index, _)| index));
        }
        telling
    }

    /// The time that these counters have run, summed over tasks, by CPU. Empty if one cannot be read.
    pub fn running_times(&mut self, indices: &[usize]) -> Vec<(u32, Nanoseconds)> {
        let mut times: BTreeMap<u32, Nanoseconds> = BTreeMap::new();
        for &index in indices {
            let Some(Ok((cpu, value))) =
                self.counters.get_mut(index).map(|open| open.value().map(|value| (open.cpu, value)))
            else {
                return Vec::new();
            };
            *times.entry(cpu).or_default() += Nanoseconds::from_nanos(value.time_running);
        }
        times.into_iter().collect()
    }

    /// Starts all counters.
    pub fn enable(&mut self) -> io::Result<()> {
        self.counters.iter_mut().try_for_each(|open| open.counter.enable())
    }

    /// Starts those that watch all tasks, beside others that start with a program.
    pub fn enable_untied(&mut self) -> io::Result<()> {
        let untied = self.counters.iter_mut().filter(|open| open.task.is_none());
        untied.into_iter().try_for_each(|open| open.counter.enable())
    }

    /// Starts those that sample, beside others that follow tasks all the time. One whose CPU went away stays as it is.
    pub fn resume_sampling(&mut self) {
        self.sampling().for_each(|open| drop(open.counter.enable()));
    }

    /// Stops those that sample; tasks and mappings are followed by [an event that never happens](SampledEvent::never_happens).
    pub fn pause_sampling(&mut self) {
        self.sampling().for_each(|open| drop(open.counter.disable()));
    }

    /// CPU and id of each of those.
    pub fn sampled_ids(&self) -> impl Iterator<Item = (u32, u64)> {
        let sampling = self.counters.iter().filter(|open| samples(&self.attrs, open));
        sampling.map(|open| (open.cpu, open.id()))
    }

    fn sampling(&mut self) -> impl Iterator<Item = &mut OpenCounter> {
        let attrs = &self.attrs;
        self.counters.iter_mut().filter(|open| samples(attrs, open))
    }

    /// Stops all counters. One whose CPU went away is stopped already.
    pub fn disable(&mut self) {
        for open in &mut self.counters {
            let _ = open.counter.disable();
        }
    }
}

impl OpenCounter {
    /// The id in this counter's samples.
    pub fn id(&self) -> u64 {
        self.counter.id()
    }

    /// The descriptor, to wait for.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the counter that owns it, which `self` borrows.
        unsafe { BorrowedFd::borrow_raw(self.counter.as_raw_fd()) }
    }

    /// The count so far, of this task and all that it started.
    pub fn value(&mut self) -> io::Result<CounterValue> {
        let data = self.counter.read_full()?;
        let nanos = |time: Option<std::time::Duration>| time.map_or(0, |time| time.as_nanos() as u64);
        Ok(CounterValue {
            value: data.count(),
            time_enabled: nanos(data.time_enabled()),
            time_running: nanos(data.time_running()),
            lost: data.lost(),
        })
    }
}

impl Scope {
    /// Counters that one event needs on one CPU.
    pub fn counters_per_cpu(&self) -> usize {
        self.tasks().count()
    }

    /// The tasks to open counters for one by one; one `None` for all at once.
    fn tasks(&self) -> impl Iterator<Item = Option<u32>> {
        let (tasks, all): (&[u32], _) = match self {
            Self::Tasks(tasks) => (tasks, None),
            Self::ControlGroup(_) | Self::System => (&[], Some(None)),
        };
        tasks.iter().copied().map(Some).chain(all)
    }
}

/// Whether a counter takes samples, and is not there to tell of tasks and mappings alone.
fn samples(attrs: &[EventAttr], open: &OpenCounter) -> bool {
    attrs.get(open.event).is_none_or(|attr| !is_dummy(attr.kind, attr.config))
}

/// On each CPU the event that never happens tells of tasks and mappings, or else the first of its events.
fn is_tracking(events: &[SampledEvent], index: usize, cpus: &[u32]) -> bool {
    cpus.iter().any(|&cpu| {
        let of_cpu = |event: &&SampledEvent| event.spec.counts_on(cpu);
        let never = events.iter().position(|event| event.never_happens() && of_cpu(&event));
        never.or_else(|| events.iter().position(|event| of_cpu(&event))) == Some(index)
    })
}

fn open_one(builder: &Builder<'_>, scope: &Scope, task: Option<u32>, cpu: u32) -> io::Result<Counter> {
    let mut builder = builder.clone();
    match (scope, task) {
        (_, Some(tid)) => builder.observe_pid(tid as i32),
        (Scope::ControlGroup(folder), None) => builder.observe_cgroup(folder),
        (_, None) => builder.any_pid(),
    };
    builder.one_cpu(cpu as usize).build()
}

/// Makes the events of a task differ from those that its children inherit, by one that never happens and that they do not.
///
/// Where a CPU goes from a task to its child and both have the same events, the kernel hands these on instead of stopping
/// those of the one and starting those of the other. Counts are put right, but the time to the next sample goes with the event: where a
/// program and its short children take turns that are shorter than a period, what the program leaves of a period is the
/// child's, which ends with the event, and the program begins anew. It never had a sample, and the children had twice what
/// they took. Without such an event, as of a task that has ended, samples are taken as before.
fn unlike_children(task: u32) -> Option<Counter> {
    let mut builder = Builder::new(Software::DUMMY);
    builder.inherit(false).enabled(false).exclude_kernel(true).exclude_hv(true);
    builder.observe_pid(task as i32).any_cpu().build().ok()
}

/// The task has ended, or the CPU has gone offline, since somebody looked.
fn is_gone(error: &io::Error, is_online: impl Fn() -> bool) -> bool {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ESRCH) => true,
        Some(Errno::ENODEV) => !is_online(),
        _ => false,
    }
}
