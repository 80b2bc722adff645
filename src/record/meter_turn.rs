//! Whose turn it is to read a machine's meters, where several recorders run on it.

use std::time::Duration;

use crate::identity::Job;
use crate::meter::MeterOptions;
use crate::record::meter_lock::{LockNames, MeterLock};
use crate::record::options::{MeterSharing, OtherProcesses, TargetOptions};
use crate::recording::metadata::MetersRead;

/// A recorder of the whole machine is not kept from its lock by recorders that only look whether there is one.
const PATIENCE: Duration = Duration::from_millis(5);
const MOST_ATTEMPTS: u32 = 20;

/// A recorder's turn.
#[derive(Debug, Default)]
pub struct MeterTurn {
    /// What the recording says of it.
    pub read: MetersRead,
    /// The lock that is held or waited for.
    lock: Option<MeterLock>,
    /// Where a recorder of the whole machine would be seen.
    names: Option<LockNames>,
    /// Why there is no agreement.
    pub note: Option<String>,
}

impl MeterTurn {
    /// Asks for the turn.
    pub fn ask(sharing: MeterSharing, job: &Job) -> Self {
        match sharing {
            MeterSharing::Own => Self::default(),
            MeterSharing::Nobody => Self { read: MetersRead::Not, ..Self::default() },
            MeterSharing::Node | MeterSharing::Companion => {
                Self::shared(sharing == MeterSharing::Companion, job).unwrap_or_else(|error| Self {
                    note: Some(format!(
                        "the recorders of this machine cannot agree on one that reads its meters: {error}. This one reads \
                         them by itself"
                    )),
                    ..Self::default()
                })
            }
        }
    }

    fn shared(is_companion: bool, job: &Job) -> std::io::Result<Self> {
        let names = LockNames::of(job)?;
        if is_companion {
            let mut lock = MeterLock::open(names.node)?;
            for _ in 0..MOST_ATTEMPTS {
                if lock.try_take()? {
                    break;
                }
                std::thread::sleep(PATIENCE);
            }
            // A second one of the whole machine reads the meters all the same.
            return Ok(Self { read: MetersRead::ForAll, lock: Some(lock), ..Self::default() });
        }
        let lock = MeterLock::open(names.ranks.clone())?;
        let mut turn = Self { read: MetersRead::ByAnother, lock: Some(lock), names: Some(names), note: None };
        if turn.has_come() {
            turn.read = MetersRead::ForAll;
        }
        Ok(turn)
    }

    /// Whether it is this recorder's turn by now. Without a lock that can be waited for it never comes.
    pub fn has_come(&mut self) -> bool {
        let (Some(lock), Some(names)) = (&mut self.lock, &self.names) else { return false };
        lock.try_take().unwrap_or(false) && !MeterLock::is_taken(&names.node)
    }

    /// The meters to read.
    pub fn meters(&self, wanted: &MeterOptions) -> MeterOptions {
        match self.read {
            MetersRead::Not => MeterOptions { only: Some(Vec::new()), ..wanted.clone() },
            _ => wanted.clone(),
        }
    }

    /// The tasks to sample: others than the target only by the one that reads the meters, if nobody asked for them.
    pub fn target(&self, wanted: &TargetOptions) -> TargetOptions {
        let is_readers = matches!(self.read, MetersRead::ByItself | MetersRead::ForAll);
        let others = match wanted.others {
            OtherProcesses::Automatic if !is_readers => OtherProcesses::Never,
            others => others,
        };
        TargetOptions { others, ..wanted.clone() }
    }
}
