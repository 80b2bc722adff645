//! What the agent's threads know of each other: its counters.

use std::time::SystemTime;

use super::metrics::{Bounds, Metrics};
use super::waiting::Counts;

/// What the agent's threads know of each other.
#[derive(Debug)]
pub struct Shared {
    /// The counters.
    pub metrics: Metrics,
    /// Of this recording.
    lost_so_far: u64,
    /// Windows are taken.
    pub is_recording: bool,
    /// When the agent began.
    pub started: SystemTime,
    /// How to count what waits for receivers.
    pub waiting: Counts,
}

impl Shared {
    /// Nothing counted yet.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            metrics: Metrics::new(bounds),
            lost_so_far: 0,
            is_recording: true,
            started: SystemTime::now(),
            waiting: Counts::default(),
        }
    }

    /// So many records were lost in this recording.
    pub fn lost(&mut self, records: u64) {
        self.metrics.lost_records += records.saturating_sub(self.lost_so_far);
        self.lost_so_far = self.lost_so_far.max(records);
    }

    /// The next one counts anew.
    pub fn recording_ended(&mut self) {
        self.lost_so_far = 0;
    }
}
