//! The program of a recording, before it runs.

use nix::sys::signal::SigSet;
use nix::unistd::Pid;

use crate::process::{Credentials, Waiting};
use crate::record::error::RecordError;
use crate::record::gpu::activity::ActivityFiles;
use crate::record::options::{CuptiOptions, TargetOptions};

/// A program that waits just before its `exec`, if the target is one, and where it will tell what its GPU did.
/// Dropped, it ends without having started.
#[derive(Debug)]
pub struct PreparedProgram {
    waiting: Option<Waiting>,
    activity: Option<ActivityFiles>,
}

impl PreparedProgram {
    /// Forks the program, to run with this signal mask. A target that runs already has none, unless one is to end its
    /// recording.
    ///
    /// # Errors
    /// A user who does not exist, CUPTI without a program or its library, and no room for a process.
    pub fn fork(
        target: &TargetOptions,
        cupti: Option<&CuptiOptions>,
        signal_mask: SigSet,
    ) -> Result<Self, RecordError> {
        let credentials = target.run_as.as_deref().map(Credentials::of_user).transpose()?;
        let activity =
            cupti.map(|cupti| ActivityFiles::create(cupti, target.tasks.command(), credentials.as_ref()));
        let activity = activity.transpose().map_err(RecordError::GpuLaunches)?;
        let variables = activity.as_ref().map(ActivityFiles::environment).unwrap_or_default();
        let spawn = |argv| Waiting::spawn(argv, signal_mask, credentials, &variables, &target.streams);
        Ok(Self { waiting: target.program().map(spawn).transpose()?, activity })
    }

    /// The process id that the program will have.
    pub fn pid(&self) -> Option<Pid> {
        self.waiting.as_ref().map(Waiting::pid)
    }

    /// Whether the program will tell when its GPU kernels ran.
    pub fn tells_activity(&self) -> bool {
        self.activity.is_some()
    }

    /// Lets the program go, and gives its process id and the files in which it tells of its GPU.
    ///
    /// # Errors
    /// Why it could not be executed.
    pub fn release(self) -> Result<(Option<Pid>, Option<ActivityFiles>), RecordError> {
        Ok((self.waiting.map(Waiting::release).transpose()?, self.activity))
    }
}
