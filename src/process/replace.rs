//! eprof becomes the program that it was to watch.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::{SigHandler, Signal, signal};

/// Runs a program in this process's place, as if eprof had not been there. Comes back only if it cannot be started.
pub fn replace_by(argv: &[OsString]) -> io::Error {
    let Some((program, arguments)) = argv.split_first() else {
        return io::ErrorKind::InvalidInput.into();
    };
    // What is ignored stays so over exec.
    // SAFETY: the default action installs no handler.
    let _ = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigDfl) };
    Command::new(program).args(arguments).exec()
}
