//! What a counter counted between two readings and no sample tells of.

use crate::attribute::{Charge, Quantum};
use crate::units::{Nanoseconds, Timestamp};

/// Between two readings of a CPU's counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Missing {
    pub event: u32,
    pub cpu: u32,
    pub start: Timestamp,
    pub end: Timestamp,
    /// Events of which no sample tells.
    pub count: u64,
    /// Those of which samples tell.
    pub sampled: u64,
}

impl Missing {
    /// Where there are no samples to weigh more: what nothing is known of.
    pub fn as_lost(&self) -> Option<Quantum> {
        let &Self { event, cpu, start, end, count, sampled } = self;
        let running = Nanoseconds::ZERO;
        (sampled == 0).then_some(Quantum {
            start,
            end,
            cpu: Some(cpu),
            event,
            count,
            running,
            charge: Charge::Lost,
        })
    }
}
