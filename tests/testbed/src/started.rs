//! Programs that a test starts and that end with it, however the test ends.

use std::io;
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long a program is given to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(5);

/// A program that runs until it is waited for or its owner is gone. A test that fails leaves nothing behind.
#[derive(Debug)]
pub struct Started(Option<Child>);

impl Started {
    /// Starts a program.
    pub fn new(command: &mut Command) -> Self {
        match command.spawn() {
            Ok(child) => Self(Some(child)),
            Err(error) => panic!("{command:?} does not start: {error}"),
        }
    }

    /// Waits for its end and what it has said.
    pub fn wait_with_output(mut self) -> io::Result<Output> {
        self.0.take().expect("there until now").wait_with_output()
    }
}

impl Deref for Started {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.0.as_ref().expect("there until it is waited for")
    }
}

impl DerefMut for Started {
    fn deref_mut(&mut self) -> &mut Child {
        self.0.as_mut().expect("there until it is waited for")
    }
}

impl Drop for Started {
    /// Asks first: `eprof` then ends the program that it records.
    fn drop(&mut self) {
        let Some(child) = &mut self.0 else { return };
        let deadline = Instant::now() + PATIENCE;
        // Nobody else has this number as long as the child was not waited for.
        if let Ok(None) = child.try_wait() {
            let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
        }
        while matches!(child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = child.kill();
                let _ = child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
