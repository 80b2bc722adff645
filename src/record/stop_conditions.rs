//! Whatever may end a recording: the program, the watched tasks, the time, or a signal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;

use crate::machine::Roots;
use crate::process::{self, Outcome, ReceivedSignal, Signals};
use crate::record::error::RecordError;
use crate::record::process_state::ProcessState;

/// Lets another thread end a recording as a signal would.
#[derive(Debug, Clone, Default)]
pub struct StopRequest(Arc<Asked>);

#[derive(Debug, Default)]
struct Asked {
    signal: AtomicI32,
    /// A hang-up is no end, but a message to the other thread.
    takes_hang_ups: bool,
    hung_up: AtomicBool,
}

impl StopRequest {
    /// Ends the recording within a tenth of a second, as if this signal had come: a program gets it, too. Only the first
    /// request counts.
    pub fn stop(&self, signal: Signal) {
        let _ = self.0.signal.compare_exchange(0, signal as i32, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// One with which SIGHUP does not end the recording: the other thread is told of it, as services take it.
    pub fn that_takes_hang_ups() -> Self {
        Self(Arc::new(Asked { takes_hang_ups: true, ..Asked::default() }))
    }

    /// Whether SIGHUP has come since the last call.
    pub fn take_hang_up(&self) -> bool {
        self.0.hung_up.swap(false, Ordering::SeqCst)
    }

    /// The signal that was asked for.
    pub fn signal(&self) -> Option<Signal> {
        Signal::try_from(self.0.signal.load(Ordering::SeqCst)).ok()
    }
}

/// Whatever may end a recording.
pub struct StopConditions {
    signals: Signals,
    /// The program, if the recorder started one and it still runs.
    program: Option<Pid>,
    /// Tasks whose end ends the recording, if it is not a program's own.
    watched: Vec<u32>,
    /// Where their state is read.
    process_state: ProcessState,
    /// When the time is up.
    deadline: Option<Instant>,
    /// What another thread wants.
    request: StopRequest,
}

impl StopConditions {
    /// The recording of a program, or else of tasks that run already, begins now.
    pub fn new(
        signals: Signals,
        program: Option<Pid>,
        watched: Vec<u32>,
        duration: Option<Duration>,
        roots: &Roots,
    ) -> Self {
        let deadline = duration.map(|duration| Instant::now() + duration);
        Self {
            signals,
            program,
            watched,
            process_state: ProcessState::new(roots),
            deadline,
            request: StopRequest::default(),
        }
    }

    /// Another thread may end the recording, too.
    pub fn or_asked(self, request: StopRequest) -> Self {
        Self { request, ..self }
    }

    /// What becomes readable when a signal comes.
    pub fn signals(&self) -> &SignalFd {
        self.signals.descriptor()
    }

    /// When the time is up, if it is limited.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Whether and how the recording ends now. The watched tasks are looked at if `with_tasks`.
    pub fn met(&mut self, with_tasks: bool) -> Option<Outcome> {
        while let Some(signal) = self.signals.next() {
            match signal {
                ReceivedSignal::ChildChanged => {
                    if let Some(outcome) = self.program.and_then(process::reap) {
                        self.program = None;
                        return Some(outcome);
                    }
                }
                // The program has got it too, and decides what it means.
                ReceivedSignal::FromTerminal(_) if self.program.is_some() => {}
                ReceivedSignal::Stop(Signal::SIGHUP) if self.request.0.takes_hang_ups => {
                    self.request.0.hung_up.store(true, Ordering::SeqCst);
                }
                ReceivedSignal::FromTerminal(signal) | ReceivedSignal::Stop(signal) => {
                    return Some(Outcome::Stopped(signal));
                }
            }
        }
        if let Some(signal) = self.request.signal() {
            return Some(Outcome::Stopped(signal));
        }
        if with_tasks
            && !self.watched.is_empty()
            && !self.watched.iter().any(|&tid| self.process_state.is_alive(tid))
        {
            return Some(Outcome::TargetsEnded);
        }
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline).then_some(Outcome::TimeUp)
    }

    /// What a recording that broke off for `cause` fails with. A program that runs by now is waited for, so that nobody
    /// takes it for one that was not started.
    pub fn broke_off(self, cause: RecordError) -> RecordError {
        if self.program.is_none() {
            return cause;
        }
        let outcome = self.wait_for_program(Outcome::TimeUp);
        RecordError::BrokeOff { cause: Box::new(cause), outcome }
    }

    /// How it all ended, when the program, should it still run, has ended too. One that was to end the recording of
    /// tasks that are gone has nothing left to wait for and is told to end, as perf does.
    pub fn wait_for_program(self, outcome: Outcome) -> Outcome {
        match self.program {
            Some(program) if outcome == Outcome::TargetsEnded => {
                let _ = kill(program, Signal::SIGTERM);
                process::wait(program, outcome, &self.signals);
                outcome
            }
            Some(program) => process::wait(program, outcome, &self.signals),
            None => outcome,
        }
    }
}
