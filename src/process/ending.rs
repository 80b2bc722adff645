//! How the program ended.

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::process::{Outcome, ReceivedSignal, Signals};

/// How a program ended, if it has.
pub fn reap(program: Pid) -> Option<Outcome> {
    match waitpid(program, Some(WaitPidFlag::WNOHANG)) {
        Ok(WaitStatus::Exited(_, status)) => Some(Outcome::Exited(status)),
        Ok(WaitStatus::Signaled(_, signal, _)) => Some(Outcome::Killed(signal)),
        Ok(_) => None,
        // Nobody knows any more how it ended.
        Err(_) => Some(Outcome::Stopped(Signal::SIGCHLD)),
    }
}

/// Waits for a program that goes on after its recording has ended as `outcome` says. The signal that
/// ended the recording is handed on to it, and so are later ones.
pub fn wait(program: Pid, outcome: Outcome, signals: &Signals) -> Outcome {
    if let Outcome::Stopped(signal) = outcome {
        let _ = kill(program, signal);
    }
    loop {
        if let Some(outcome) = reap(program) {
            return outcome;
        }
        match signals.wait() {
            Some(ReceivedSignal::Stop(signal)) => {
                let _ = kill(program, signal);
            }
            Some(ReceivedSignal::ChildChanged | ReceivedSignal::FromTerminal(_)) => {}
            None => return outcome,
        }
    }
}
