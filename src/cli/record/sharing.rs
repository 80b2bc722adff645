//! Which of several recorders of a machine reads its meters: the option, and what is said of it.

use clap::ValueEnum;
use eprof::identity::Job;
use eprof::record::MeterSharing;
use eprof::recording::metadata::MetersRead;

use super::environment::variable;

/// Who reads the meters.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Meters {
    Auto,
    Own,
    Node,
    None,
}

impl Meters {
    /// For the recorder; a companion records the whole machine beside a job.
    pub fn sharing(self, is_companion: bool) -> MeterSharing {
        let in_job = || Job::of_environment(variable).id.is_some() || Job::has_ranks(variable);
        match self {
            Self::None => MeterSharing::Nobody,
            Self::Auto | Self::Node if is_companion => MeterSharing::Companion,
            Self::Own => MeterSharing::Own,
            Self::Node => MeterSharing::Node,
            Self::Auto if in_job() => MeterSharing::Node,
            Self::Auto => MeterSharing::Own,
        }
    }
}

/// Who read the meters, in a sentence.
pub(super) fn who_read(meters: MetersRead) -> &'static str {
    match meters {
        MetersRead::ByItself => "this recorder read the machine's meters for itself",
        MetersRead::ForAll => "this recorder read the machine's meters, for all that share them with it",
        MetersRead::ByAnother => {
            "another recorder of this machine had the turn to read its meters when this one began: it sampled its own \
             program. Report their recordings together"
        }
        MetersRead::Not => "this recorder read no meters",
    }
}
