//! Signals, read from a descriptor like everything else the recorder waits for.

use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{self, SigHandler, SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::system_error::SystemError;

/// The recorder's signals, blocked and readable.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
    original_mask: SigSet,
}

/// A signal that means something to the recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceivedSignal {
    /// A child may have ended.
    ChildChanged,
    /// The terminal sends this to the program as well (ctrl-C, ctrl-\).
    FromTerminal(Signal),
    /// Somebody asks the recorder to end.
    Stop(Signal),
}

impl Signals {
    /// Takes over the signals that end a process, and SIGCHLD. To be called before any thread is made.
    pub fn take_over() -> Result<Self, SystemError> {
        // A file-size limit shall be an error to report, not the recorder's death.
        // SAFETY: to ignore a signal installs no handler.
        unsafe { signal::signal(Signal::SIGXFSZ, SigHandler::SigIgn) }
            .map_err(SystemError::of("ignoring SIGXFSZ"))?;
        let mut taken = SigSet::empty();
        for wanted in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGCHLD] {
            taken.add(wanted);
        }
        let original_mask = SigSet::thread_get_mask().map_err(SystemError::of("reading the signal mask"))?;
        taken.thread_block().map_err(SystemError::of("blocking signals"))?;
        let descriptor = SignalFd::with_flags(&taken, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .map_err(SystemError::of("signalfd"))?;
        Ok(Self { descriptor, original_mask })
    }

    /// The mask that was there before, for the program to start with.
    pub fn original_mask(&self) -> SigSet {
        self.original_mask
    }

    /// What can be waited for.
    pub fn descriptor(&self) -> &SignalFd {
        &self.descriptor
    }

    /// Waits for the next signal; `None` if waiting is not possible.
    pub fn wait(&self) -> Option<ReceivedSignal> {
        let mut descriptors = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN)];
        loop {
            match poll(&mut descriptors, PollTimeout::NONE) {
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(_) => return None,
            }
            if let Some(signal) = self.next() {
                return Some(signal);
            }
        }
    }

    /// The next signal that has come; `None` when there is none.
    pub fn next(&self) -> Option<ReceivedSignal> {
        let info = self.descriptor.read_signal().ok().flatten()?;
        let signal = Signal::try_from(info.ssi_signo as i32).ok()?;
        let from_terminal = info.ssi_code == libc::SI_KERNEL;
        Some(match signal {
            Signal::SIGCHLD => ReceivedSignal::ChildChanged,
            Signal::SIGINT | Signal::SIGQUIT if from_terminal => ReceivedSignal::FromTerminal(signal),
            other => ReceivedSignal::Stop(other),
        })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let _ = self.original_mask.thread_set_mask();
    }
}
