//! What can go wrong while a program is run under chosen settings.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use nix::sys::signal::Signal;

use crate::measure::RunMeterError;

/// Why tuning a program stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuningError {
    /// A placeholder that nothing replaces.
    #[error(
        "`{{{name}}}` in `{text}` stands for no variable; there are: {known} (write `{{{{{name}}}}}` for the text itself)"
    )]
    Placeholder {
        /// The name between the braces.
        name: String,
        /// The word of the command.
        text: String,
        /// The names there are.
        known: String,
    },
    /// A setting of the machine could not be read or written.
    #[error("cannot {action} {path}: {cause}")]
    Setting {
        /// Read or write.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        cause: io::Error,
    },
    /// The kernel took a value and kept another.
    #[error("{path}: {wanted} was written, but it reads {found}: the driver does not take this value")]
    NotTaken {
        /// The file.
        path: PathBuf,
        /// What was written.
        wanted: String,
        /// What it reads.
        found: String,
    },
    /// The process that would restore the settings after a crash could not be started.
    #[error("cannot start the process that would restore the machine's settings: {0}")]
    Guard(io::Error),
    /// The program could not be started.
    #[error("cannot run `{program}`: {cause}")]
    Launch {
        /// The program.
        program: String,
        /// Why.
        cause: io::Error,
    },
    /// The program failed.
    #[error("`{command}` failed at {setting}: {status}{tail}")]
    Failed {
        /// The command line.
        command: String,
        /// The setting.
        setting: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its output.
        tail: String,
    },
    /// The program took longer than allowed.
    #[error("`{command}` was ended after {seconds} s at {setting} (--timeout)")]
    TimedOut {
        /// The command line.
        command: String,
        /// The setting.
        setting: String,
        /// The limit.
        seconds: u64,
    },
    /// The figure is not in the program's output.
    #[error("nothing in the output of `{command}` at {setting} matches `{regex}`{tail}")]
    NoMetric {
        /// The command line.
        command: String,
        /// The setting.
        setting: String,
        /// The regular expression.
        regex: String,
        /// The last lines of its output.
        tail: String,
    },
    /// A regular expression that cannot be used.
    #[error("regular expression `{regex}`: {reason}")]
    Regex {
        /// The expression.
        regex: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The energy is not known.
    #[error(transparent)]
    Meter(#[from] RunMeterError),
    /// The meter did not move during a run.
    #[error("no energy was counted while `{command}` ran for {seconds:.3} s: make its runs longer")]
    NoEnergy {
        /// The command line.
        command: String,
        /// How long it ran.
        seconds: f64,
    },
    /// The journal cannot be read or written.
    #[error("journal {path}: {cause}")]
    Journal {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The journal belongs to another tuning.
    #[error(
        "journal {path} belongs to another tuning ({difference}): name another one with --journal, or begin anew \
         with --fresh"
    )]
    OtherJournal {
        /// The file.
        path: PathBuf,
        /// What differs.
        difference: String,
    },
    /// Another eprof writes the journal.
    #[error("journal {0} is in use by another eprof tune")]
    JournalInUse(PathBuf),
    /// A signal asked eprof to end.
    #[error("interrupted by {0}")]
    Interrupted(Signal),
    /// The machine could not be described.
    #[error(transparent)]
    Topology(#[from] crate::machine::topology::TopologyError),
    /// Signals could not be taken over.
    #[error(transparent)]
    Signals(#[from] crate::process::SystemError),
}

impl TuningError {
    /// For `map_err`: an error of reading or writing a setting.
    pub(crate) fn setting(action: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Setting { action, path, cause }
    }
}
