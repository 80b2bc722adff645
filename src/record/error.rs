//! What can go wrong while recording, in words that say what to do about it.

use std::io;
use std::path::PathBuf;

use crate::machine::EventError;
use crate::machine::topology::TopologyError;
use crate::meter::Unmet;
use crate::process::{LaunchError, Outcome, SystemError};

/// Recording failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The program could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),

    /// Launches of GPU kernels were asked for and cannot be seen.
    #[error("launches of GPU kernels cannot be recorded: {0}")]
    GpuLaunches(String),

    /// The kernel does not let this user sample at all.
    #[error("the kernel does not permit to sample {event}: {cause}\n  {remedy}")]
    NotPermitted {
        /// The event that was refused.
        event: String,
        /// What the kernel said.
        cause: io::Error,
        /// What can be done, least privilege first.
        remedy: String,
    },

    /// An event cannot be counted on this machine.
    #[error("event {event} cannot be sampled here: {cause} ({hint})")]
    EventNotSupported {
        /// The event.
        event: String,
        /// What the kernel said.
        cause: io::Error,
        /// What that means most of the time.
        hint: &'static str,
    },

    /// No meter that was asked for can be read.
    #[error(transparent)]
    Meters(#[from] Unmet),

    /// An event's name means nothing here.
    #[error(transparent)]
    UnknownEvent(#[from] EventError),

    /// The machine cannot be described.
    #[error(transparent)]
    Machine(#[from] TopologyError),

    /// More descriptors are needed than the process may have.
    #[error(
        "{needed} counters are needed ({events} events on {cpus} CPUs for {tasks} tasks) and only {limit} \
         files may be open; raise the limit (ulimit -n {needed}) or record fewer events"
    )]
    TooManyFiles {
        /// Descriptors needed.
        needed: u64,
        /// Events.
        events: usize,
        /// CPUs.
        cpus: usize,
        /// Threads that each need counters.
        tasks: usize,
        /// RLIMIT_NOFILE.
        limit: u64,
    },

    /// There is no memory for the rings, even for the smallest.
    #[error(
        "the kernel gives no memory for the sample rings: {0}\n  \
         raise the limit: sudo sysctl kernel.perf_event_mlock_kb=2048"
    )]
    RingMemory(io::Error),

    /// All tasks to watch have ended before they could be watched.
    #[error("nothing to record: the processes or threads have ended")]
    NothingToWatch,

    /// There is nobody to attach to.
    #[error("no process or thread {0} to attach to")]
    NoSuchTask(u32),

    /// There is no such control group.
    #[error("control group {path}: {cause}{}", where_groups_are(cause, roots))]
    ControlGroup {
        /// Its folder, or its path as it was given.
        path: PathBuf,
        /// Why it cannot be opened.
        cause: io::Error,
        /// Where groups are that events can follow.
        roots: Vec<PathBuf>,
    },

    /// A control group of a hierarchy that the kernel follows by no event.
    #[error(
        "control group {path}: events follow groups below {} alone, and this one is of another hierarchy; put the tasks into a group there, or record \
         them by -p",
        listed(roots)
    )]
    OtherHierarchy {
        /// Its folder.
        path: PathBuf,
        /// Where groups are that events can follow.
        roots: Vec<PathBuf>,
    },

    /// The recording cannot be created.
    #[error("cannot write {path}: {cause}")]
    Output {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },

    /// The recording would be written to something that is no ordinary file.
    #[error("cannot write {path}: it is {what}; give another file with -o")]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },

    /// The recording broke off after its program had started. The program has ended since, and must not be started
    /// again.
    #[error("{cause}; the program ran to its end without being recorded")]
    BrokeOff {
        /// Why.
        cause: Box<RecordError>,
        /// How the program ended.
        outcome: Outcome,
    },

    /// A system call that should always work did not.
    #[error(transparent)]
    System(#[from] SystemError),
}

/// Where a group's path is found out, if there is none of that name.
fn where_groups_are(cause: &io::Error, roots: &[PathBuf]) -> String {
    match cause.kind() {
        io::ErrorKind::NotFound => format!(
            "; it was looked for below {}: `systemd-cgls` shows the groups, and `cat /proc/PID/cgroup` a process's",
            listed(roots)
        ),
        _ => String::new(),
    }
}

fn listed(roots: &[PathBuf]) -> String {
    let roots: Vec<_> = roots.iter().map(|root| root.display().to_string()).collect();
    if roots.is_empty() { "/sys/fs/cgroup, where none are mounted".to_owned() } else { roots.join(" and ") }
}

impl RecordError {
    /// For `map_err`: a failed system call with what it was for.
    pub(super) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |cause| SystemError::of(what)(cause).into()
    }
}
