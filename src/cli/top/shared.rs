//! What the threads of the recorder and of the picture know of each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use eprof::record::StopRequest;
use nix::sys::signal::Signal;

/// What the picture's thread and the recorder's tell each other.
#[derive(Clone, Default)]
pub struct Shared {
    /// The recorder has written all there is.
    recorded: Arc<AtomicBool>,
    /// The user has seen enough.
    request: StopRequest,
}

impl Shared {
    /// The recorder has ended.
    pub fn end(&self) {
        self.recorded.store(true, Ordering::SeqCst);
    }

    /// For the recorder.
    pub fn request(&self) -> &StopRequest {
        &self.request
    }

    /// Ends the recording, as a signal would. The program, should there be one, gets the signal too.
    pub fn leave(&self, signal: Signal) {
        self.request.stop(signal);
    }

    pub fn is_recorded(&self) -> bool {
        self.recorded.load(Ordering::SeqCst)
    }

    pub fn has_left(&self) -> bool {
        self.request.signal().is_some()
    }
}
