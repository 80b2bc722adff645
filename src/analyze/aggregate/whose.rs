//! Whose a sample is, in a recording of everything for one program.

use crate::attribute::Charge;
use crate::recording::metadata::{Metadata, Target};
use crate::timeline::Tasks;

/// Tells samples of the program from others'.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whose<'r> {
    pub metadata: Option<&'r Metadata>,
}

impl Whose<'_> {
    /// Where a sample of a process goes that is not the program's.
    pub fn charge_elsewhere(self, tasks: &Tasks, pid: u32) -> Option<Charge> {
        let metadata = self.metadata?;
        if pid == metadata.recorder_pid {
            return Some(Charge::Recorder);
        }
        if !metadata.system_wide_samples {
            return None;
        }
        let ours = match &metadata.target {
            Target::System => true,
            Target::Command { pid: root, .. } => tasks.descends_from(pid, *root),
            Target::Processes(pids) => pids.iter().any(|root| tasks.descends_from(pid, *root)),
            Target::Threads(_) => true,
        };
        (!ours).then_some(Charge::OtherProcess)
    }
}
