//! Why a recording has no joules, and what gives it some.

use std::fmt;

use crate::profile::{Profile, ProfileMethod};

/// Why a recording has no joules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingJoules {
    /// Nobody measured or estimated any.
    Unknown,
    /// Nothing was sampled, so there is nobody to have them.
    Empty,
    /// They were to be estimated, of CPU time that the recording does not tell.
    NoCpuTime,
    /// The meters were read and stood still.
    MetersAtRest,
}

impl MissingJoules {
    /// What it is for a profile without joules.
    pub fn of(method: ProfileMethod, samples: u64) -> Self {
        match method {
            _ if samples == 0 => Self::Empty,
            ProfileMethod::None => Self::Unknown,
            ProfileMethod::Estimated => Self::NoCpuTime,
            _ => Self::MetersAtRest,
        }
    }

    /// Of a profile without joules.
    pub fn in_profile(profile: &Profile) -> Self {
        Self::of(profile.method(), profile.events.iter().map(|event| event.samples).sum())
    }

    /// What to do about it.
    pub fn repair(self) -> &'static str {
        match self {
            Self::Unknown => {
                "record with `eprof record`, or let them be estimated: `eprof report --watts IDLE:BUSY`"
            }
            Self::Empty => {
                "record again with `eprof record`, for longer, and look with `eprof doctor` at what can be sampled here"
            }
            Self::NoCpuTime => {
                "record for longer with `eprof record`, and look with `eprof doctor` at whether /proc/stat can be read here"
            }
            Self::MetersAtRest => "record for longer; `eprof doctor --watch 5` shows whether the meters move",
        }
    }
}

impl fmt::Display for MissingJoules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "no meter was read",
            Self::Empty => "the recording is empty, without a sample",
            Self::NoCpuTime => "the recording tells no CPU time that they could be estimated of",
            Self::MetersAtRest => "the energy meters did not move",
        })
    }
}
