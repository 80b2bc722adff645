//! Records that are held until their window is complete, and what is told of them without decoding.

use perf_data::format::{RECORD_HEADER_SIZE, misc, record_type};

use crate::units::Timestamp;

/// A record that is held.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub at: usize,
    pub size: usize,
    pub time: Timestamp,
    /// Of samples.
    pub pid: Option<u32>,
    pub what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Says something of tasks or code.
    State,
    Reading,
    CpuTimes,
    Other,
}

/// Whom a record of tasks or code is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Subject {
    pub pid: u32,
    /// The process that this one was forked off, where the record tells of that.
    pub parent: Option<u32>,
}

impl Subject {
    /// `None` of records that are about no process.
    pub fn of(record: &[u8]) -> Option<Self> {
        use record_type::{COMM, EXIT, FORK, MMAP, MMAP2};
        let number = |at: usize| Some(u32::from_le_bytes(record.get(at..at + 4)?.try_into().ok()?));
        let kind = number(0).filter(|kind| matches!(*kind, MMAP | MMAP2 | COMM | FORK | EXIT))?;
        // What the kernel maps is in all of them.
        let mode = u16::from(*record.get(4)?) & misc::CPUMODE_MASK;
        if matches!(kind, MMAP | MMAP2) && !matches!(mode, misc::USER | misc::GUEST_USER) {
            return None;
        }
        let (pid, parent) = (number(RECORD_HEADER_SIZE)?, number(RECORD_HEADER_SIZE + 4)?);
        Some(Self { pid, parent: (kind == FORK && parent != pid).then_some(parent) })
    }
}

/// Whether a record tells that a task began or ended.
pub(super) fn tells_of_life(record: &[u8]) -> bool {
    use record_type::{EXIT, FORK};
    record.first_chunk().is_some_and(|kind| matches!(u32::from_le_bytes(*kind), FORK | EXIT))
}

pub(super) fn is_state(kind: u32) -> bool {
    use record_type::{CGROUP, COMM, EXIT, FORK, KSYMBOL, MMAP, MMAP2};
    matches!(kind, MMAP | MMAP2 | COMM | FORK | EXIT | KSYMBOL | CGROUP)
}
