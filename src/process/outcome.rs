//! How watching a program ended.

use nix::sys::signal::Signal;

/// How the recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The program ended with this status.
    Exited(i32),
    /// The program was killed by this signal.
    Killed(Signal),
    /// Somebody stopped the recorder with this signal.
    Stopped(Signal),
    /// The watched processes or threads have ended.
    TargetsEnded,
    /// The time was up.
    TimeUp,
}

impl Outcome {
    /// The exit status that says the same, as shells have it.
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Exited(status) => status as u8,
            Self::Killed(signal) => 128 + signal as i32 as u8,
            // To be interrupted is how a recording of running processes ends.
            Self::Stopped(Signal::SIGINT) | Self::TargetsEnded | Self::TimeUp => 0,
            Self::Stopped(signal) => 128 + signal as i32 as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_statuses_are_those_of_a_shell() {
        assert_eq!(Outcome::Exited(3).exit_status(), 3);
        assert_eq!(Outcome::Killed(Signal::SIGSEGV).exit_status(), 139);
        assert_eq!(Outcome::Stopped(Signal::SIGTERM).exit_status(), 143);
        assert_eq!(Outcome::TimeUp.exit_status(), 0);
    }
}
