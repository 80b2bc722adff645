//! Why eprof cannot be verified here, and what to do about it.

use std::io;
use std::path::PathBuf;

use super::kernels::Kernel;
use crate::machine::topology::TopologyError;
use crate::measure::RunMeterError;
use crate::measure::tuning::TuningError;
use crate::recording::RecordingError;
use crate::report::ReportError;

/// Verification failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The machine cannot be described.
    #[error(transparent)]
    Machine(#[from] TopologyError),

    /// There is no meter, or no right to it.
    #[error("eprof cannot be verified on this machine{}", .0.iter().map(|reason| format!("\n  {reason}")).collect::<String>())]
    NotMeasurable(Vec<String>),

    /// A kernel could not be put on its CPU.
    #[error("cannot run a kernel on CPU {cpu}: {cause}; let eprof use all CPUs (taskset -p, cpuset)")]
    Pin {
        /// The CPU.
        cpu: u32,
        /// What the kernel said.
        cause: io::Error,
    },

    /// A kernel's name could not be announced.
    #[error("cannot announce a kernel in {path}: {cause}")]
    Announce {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },

    /// The process that works could not be started, or ended before its time.
    #[error("the process that runs the kernels failed: {0}")]
    Worker(io::Error),

    /// A meter could not be read.
    #[error(transparent)]
    Meter(#[from] RunMeterError),

    /// Nothing that a profiler could be held against.
    #[error(
        "the meter does not tell {kernel} from an idle machine ({watts:.3} W more, ± {std_error:.3}): something else \
         runs, or the meter counts other parts of the machine; `eprof doctor` lists the meters"
    )]
    NotTold {
        /// The kernel.
        kernel: Kernel,
        /// Watts over idle.
        watts: f64,
        /// Their standard error.
        std_error: f64,
    },

    /// `eprof record` failed.
    #[error("`{command}` failed ({status}): {said}")]
    Record {
        /// What was run.
        command: String,
        /// How it ended.
        status: String,
        /// What it said.
        said: String,
    },

    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),

    /// The recording cannot be reported.
    #[error(transparent)]
    Report(#[from] ReportError),

    /// A frequency could not be set.
    #[error(transparent)]
    Setting(#[from] TuningError),

    /// A file or folder of recordings.
    #[error("cannot {verb} {path}: {cause}")]
    File {
        /// What was tried.
        verb: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },

    /// A folder of kept verifications.
    #[error(transparent)]
    Folder(#[from] crate::power_model::folder::FolderError),
}
