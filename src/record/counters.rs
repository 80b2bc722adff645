//! Opens every event on every CPU (and task), with one ring per CPU for all of them.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::resource::{self, Resource};
use perf_event::{Builder, Counter};

use crate::record::attr::{self, AttrSettings};
use crate::record::error::RecordError;
use crate::record::events::SampledEvent;
use crate::record::ring::{Ring, page_size};

mod ioctl {
    nix::ioctl_write_int_bad!(set_output, nix::request_code_none!(b'$', 5));
}

/// Which tasks the counters watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// These threads, and all that they start from now on.
    Tasks(Vec<u32>),
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
    /// The kernel's handle.
    pub counter: Counter,
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
#[derive(Debug)]
pub struct Counters {
    /// The counters.
    pub counters: Vec<OpenCounter>,
    /// One ring per CPU.
    pub rings: Vec<CpuRing>,
    /// The attribute of each event, as the kernel took it.
    pub attrs: Vec<Vec<u8>>,
}

/// Why counters could not be opened.
#[derive(Debug)]
pub struct OpenError {
    /// Index of the event.
    pub event: usize,
    /// What the kernel said.
    pub cause: io::Error,
}

impl Counters {
    /// Opens `events` for `scope` on `cpus`.
    ///
    /// Tasks that end and CPUs that go offline meanwhile are passed over.
    ///
    /// # Errors
    /// The event that was refused and what the kernel said.
    pub fn open(
        events: &[SampledEvent],
        scope: &Scope,
        cpus: &[u32],
        settings: &AttrSettings,
    ) -> Result<Self, OpenError> {
        let tracking = 0;
        let builders: Vec<Builder<'_>> = events
            .iter()
            .enumerate()
            .map(|(index, event)| attr::builder(event, settings, index == tracking))
            .collect();
        let mut counters = Vec::new();
        for &cpu in cpus {
            for (event, builder) in builders.iter().enumerate() {
                let can_count = |cpus: &Vec<u32>| cpus.contains(&cpu);
                if !events[event].spec.cpus.as_ref().is_none_or(can_count) {
                    continue;
                }
                for task in scope.tasks() {
                    match open_one(builder, task, cpu) {
                        Ok(counter) => counters.push(OpenCounter { event, cpu, counter }),
                        Err(cause) if is_gone(&cause, cpu) => {}
                        Err(cause) => return Err(OpenError { event, cause }),
                    }
                }
            }
        }
        let attrs = builders.iter().map(attr::bytes).collect();
        Ok(Self { counters, rings: Vec::new(), attrs })
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
            if rings.last().is_some_and(|last| last.cpu == open.cpu) {
                continue;
            }
            rings.push(CpuRing { cpu: open.cpu, ring: Ring::map(open.borrow(), data_size)?, owner: index });
        }
        for open in &self.counters {
            let Some(ring) = rings.iter().find(|ring| ring.cpu == open.cpu) else { continue };
            let owner = &self.counters[ring.owner].counter;
            if owner.as_raw_fd() != open.counter.as_raw_fd() {
                // SAFETY: both descriptors are open counters; the call changes only the kernel's state.
                unsafe { ioctl::set_output(open.counter.as_raw_fd(), owner.as_raw_fd()) }?;
            }
        }
        self.rings = rings;
        Ok(())
    }

    /// Ids of the counters of an event, in the order of CPUs.
    pub fn ids(&self, event: usize) -> Vec<u64> {
        self.counters.iter().filter(|open| open.event == event).map(|open| open.counter.id()).collect()
    }

    /// Starts all counters.
    pub fn enable(&mut self) -> io::Result<()> {
        self.counters.iter_mut().try_for_each(|open| open.counter.enable())
    }

    /// Stops all counters. One whose CPU went away is stopped already.
    pub fn disable(&mut self) {
        for open in &mut self.counters {
            let _ = open.counter.disable();
        }
    }
}

impl OpenCounter {
    /// The descriptor.
    pub fn borrow(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the counter that owns it, which `self` borrows.
        unsafe { BorrowedFd::borrow_raw(self.counter.as_raw_fd()) }
    }
}

impl Scope {
    fn tasks(&self) -> impl Iterator<Item = Option<u32>> {
        let (tasks, all): (&[u32], _) = match self {
            Self::Tasks(tasks) => (tasks, None),
            Self::System => (&[], Some(None)),
        };
        tasks.iter().copied().map(Some).chain(all)
    }

    /// Number of counters that one event needs on one CPU.
    pub fn len(&self) -> usize {
        self.tasks().count()
    }

    /// Nothing is watched.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn open_one(builder: &Builder<'_>, task: Option<u32>, cpu: u32) -> io::Result<Counter> {
    let mut builder = builder.clone();
    match task {
        Some(tid) => builder.observe_pid(tid as i32),
        None => builder.any_pid(),
    };
    builder.one_cpu(cpu as usize).build()
}

/// The task has ended, or the CPU has gone offline, since somebody looked.
fn is_gone(error: &io::Error, cpu: u32) -> bool {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ESRCH) => true,
        Some(Errno::ENODEV) => !online_cpus().contains(&cpu),
        _ => false,
    }
}

/// The CPUs that are online.
pub fn online_cpus() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_else(|_| "0".into());
    let ranges = text.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    });
    ranges.flatten().collect()
}

/// Raises the limit of open files so far that `needed` more fit.
pub fn allow_files(needed: u64) -> Result<(), u64> {
    let Ok((soft, hard)) = resource::getrlimit(Resource::RLIMIT_NOFILE) else { return Ok(()) };
    let wanted = needed + 64;
    if soft >= wanted {
        return Ok(());
    }
    let within = resource::setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard).is_ok();
    if within && hard >= wanted {
        return Ok(());
    }
    // Beyond the hard limit only with CAP_SYS_RESOURCE.
    resource::setrlimit(Resource::RLIMIT_NOFILE, wanted, wanted).map_err(|_| hard)
}

/// Sizes of a ring to try, largest first: powers of two of pages.
pub fn ring_sizes(wanted: usize) -> impl Iterator<Item = usize> {
    let smallest = 2 * page_size();
    std::iter::successors(Some(wanted.next_power_of_two().max(smallest)), move |size| {
        (*size > smallest).then_some(size / 2)
    })
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        error.cause
    }
}

/// The errors that mean a lack of rights.
pub fn is_permission(error: &io::Error) -> bool {
    matches!(error.raw_os_error().map(Errno::from_raw), Some(Errno::EACCES | Errno::EPERM))
}

/// What the errors of `perf_event_open` mean for the one who named the event.
pub fn refused(event: &SampledEvent, cause: io::Error) -> RecordError {
    let name = event.spec.name.clone();
    if is_permission(&cause) {
        let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
        return RecordError::NotPermitted {
            event: name,
            cause,
            paranoid: paranoid.map_or_else(|_| "unknown".into(), |text| text.trim().to_owned()),
            executable: std::env::current_exe()
                .map_or_else(|_| "eprof".into(), |path| path.display().to_string()),
        };
    }
    let hint = match cause.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT) => {
            "this machine has no such event; virtual machines often have no hardware events"
        }
        Some(Errno::EOPNOTSUPP) => "it cannot be sampled in this way; try --call-graph fp, or no :p",
        Some(Errno::ENOSYS) => "this kernel was built without perf events",
        Some(Errno::EBUSY) => "another program keeps the counters for itself",
        Some(Errno::EINVAL) => "the kernel takes this combination of event and options for wrong",
        _ => "see perf_event_open(2)",
    };
    RecordError::EventNotSupported { event: name, cause, hint }
}
