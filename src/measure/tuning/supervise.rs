//! Waiting for a child while signals and a time limit are minded.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::error::TuningError;
use crate::process::{ReceivedSignal, Signals};

/// How long a program may take to end when asked to.
const GRACE: Duration = Duration::from_secs(5);

/// How a supervised child came to its end.
#[derive(Debug)]
pub enum Ending {
    /// By itself, after so long.
    Ended(ExitStatus, Duration),
    /// It was ended at the time limit.
    TimedOut,
    /// It could not be started.
    NotStarted(io::Error),
}

/// Runs a command to its end. `each_tick` is called every tenth of a second.
///
/// The command starts with the signal mask that eprof itself had, on the given CPUs.
///
/// # Errors
/// A signal that asks eprof to end, or an error of `each_tick`; the child has been ended then.
pub fn supervise(
    mut command: Command,
    cpus: Option<&[u32]>,
    signals: &Signals,
    timeout: Option<Duration>,
    mut each_tick: impl FnMut() -> Result<(), TuningError>,
) -> Result<Ending, TuningError> {
    prepare(&mut command, cpus, signals);
    let start = Instant::now();
    let mut child = match command.spawn() {
        Ok(child) => Running(child),
        Err(error) => return Ok(Ending::NotStarted(error)),
    };
    loop {
        wait_a_tick(signals)?;
        match child.0.try_wait() {
            Ok(Some(status)) => return Ok(Ending::Ended(status, start.elapsed())),
            Ok(None) => {}
            Err(error) => return Ok(Ending::NotStarted(error)),
        }
        each_tick()?;
        if timeout.is_some_and(|limit| start.elapsed() > limit) {
            child.end();
            return Ok(Ending::TimedOut);
        }
    }
}

fn prepare(command: &mut Command, cpus: Option<&[u32]>, signals: &Signals) {
    let mask = signals.original_mask();
    let set = cpus.map(|cpus| {
        let mut set = CpuSet::new();
        for &cpu in cpus {
            // CPUs beyond what the set can hold cannot be asked for.
            let _ = set.set(cpu as usize);
        }
        set
    });
    let before_exec = move || {
        // A killed eprof takes its program with it: nobody would use what it measures.
        nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
        mask.thread_set_mask()?;
        if let Some(set) = &set {
            sched_setaffinity(Pid::from_raw(0), set)?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only three system calls are made; nothing is allocated or locked.
    unsafe { command.pre_exec(before_exec) };
}

/// Waits until something happens, at most a tenth of a second.
fn wait_a_tick(signals: &Signals) -> Result<(), TuningError> {
    let mut news = [PollFd::new(signals.descriptor().as_fd(), PollFlags::POLLIN)];
    // An interrupted wait is as good as one that ended.
    let _ = poll(&mut news, PollTimeout::from(100u8));
    while let Some(signal) = signals.next() {
        match signal {
            ReceivedSignal::ChildChanged => {}
            ReceivedSignal::FromTerminal(signal) | ReceivedSignal::Stop(signal) => {
                return Err(TuningError::Interrupted(signal));
            }
        }
    }
    Ok(())
}

/// A program that is ended when it is dropped before its time.
struct Running(Child);

impl Running {
    /// Asks the program to end, waits, and ends it.
    fn end(&mut self) {
        let deadline = Instant::now() + GRACE;
        let _ = kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM);
        while Instant::now() < deadline {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            self.end();
        }
    }
}
