//! Why this machine cannot be calibrated, and what to do about it.

use std::io;
use std::path::PathBuf;

use crate::machine::topology::TopologyError;
use crate::power_model::error::ModelError;

/// Calibration failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrateError {
    /// The machine cannot be described.
    #[error(transparent)]
    Machine(#[from] TopologyError),

    /// There is no meter, no PMU, or no right to either.
    #[error("this machine cannot be calibrated{}", .0.iter().map(|reason| format!("\n  {reason}")).collect::<String>())]
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

    /// A thread could not be started, or ended before its time.
    #[error("a worker thread failed: {0}")]
    Worker(io::Error),

    /// A meter could not be read.
    #[error("cannot read an energy meter: {0}")]
    Meter(io::Error),

    /// The counters could not be read.
    #[error("cannot read the event counters: {0}")]
    Counters(io::Error),

    /// The fit found nothing that tells one program's power from another's.
    #[error(
        "calibration learned nothing of the {domain} domain, so that no model was kept: {why}; let it run longer on an \
         otherwise idle machine (--precision 0.01 --time-limit 300). Without it, recordings are divided by the preset \
         for this CPU"
    )]
    LearnedNothing {
        /// Kind of domain.
        domain: crate::hardware::DomainKind,
        /// What the fit says.
        why: String,
    },

    /// What was measured does not determine a model.
    #[error("no model of the {domain} domain can be fitted: {source}")]
    Model {
        /// Kind of domain.
        domain: crate::hardware::DomainKind,
        /// Why not.
        source: ModelError,
    },
}
