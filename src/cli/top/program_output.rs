//! What a program writes to the terminal that the view has taken.
//!
//! Written into the view it would be painted over a moment later. It is kept in a file without a name until the view has
//! ended, and comes out then, in its order and in all its bytes; from then on, what the program still writes passes through.
//! The program writes to a terminal of its own, so that it colors its text and empties its buffers as it would otherwise:
//! into a file, standard error would overtake standard output. That terminal is as large as the view's. Keys are the view's
//! alone: the program would take every second of them.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use eprof::label::Label;
use eprof::process::{Streams, create_scratch};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};
use nix::unistd::Pid;

use super::super::output::say;
use super::last_line::LastLine;
use super::terminal_size::TerminalSize;

/// How often it is asked whether the view has ended, where the program writes nothing.
const TICK: Duration = Duration::from_millis(50);

/// More than a terminal holds of what was written before the program ended.
const MOST_AT_THE_END: usize = 1 << 20;

/// The view has the terminal.
const KEPT: u8 = 0;
/// It has not any more.
const SHOWN: u8 = 1;
/// The program has ended, too.
const ENDED: u8 = 2;

/// What a program writes. Dropped, it lets out what is kept, waits for nothing more, and ends.
pub struct ProgramOutput {
    state: Arc<State>,
    /// Until it is started.
    keeper: Option<Keeper>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    phase: AtomicU8,
    last_line: Mutex<LastLine>,
}

impl ProgramOutput {
    /// A terminal to write to, in place of those of standard output and error that are one, and nothing to read in place of
    /// the keys.
    ///
    /// # Errors
    /// If the system has no more terminals, or there is no room for what is written.
    pub fn keep() -> io::Result<(Self, Streams)> {
        let pair = openpty(None, None)?;
        let mut size = TerminalSize::of(io::stdout().as_fd().try_clone_to_owned()?);
        size.hand_on(&pair.master);
        // What comes out is what went in.
        let mut settings = tcgetattr(&pair.slave)?;
        cfmakeraw(&mut settings);
        tcsetattr(&pair.slave, SetArg::TCSANOW, &settings)?;
        let scratch = create_scratch(&std::env::temp_dir())?;
        let state = Arc::new(State::default());
        let terminal = File::from(pair.master);
        let keeper = Keeper { terminal, size: Some(size), scratch, state: state.clone(), lost: None };
        let slave = Arc::new(pair.slave);
        let in_place_of = |is_terminal: bool| is_terminal.then(|| Arc::<OwnedFd>::clone(&slave));
        let nothing = || File::open("/dev/null").map(|nothing| Arc::new(OwnedFd::from(nothing)));
        let streams = Streams {
            stdin: io::stdin().is_terminal().then(nothing).transpose()?,
            stdout: in_place_of(io::stdout().is_terminal()),
            stderr: in_place_of(io::stderr().is_terminal()),
        };
        Ok((Self { state, keeper: Some(keeper), thread: None }, streams))
    }

    /// Begins to take what the program writes. Called from the recorder's thread, which has kept signals for itself: any other
    /// would take from it that the program has ended.
    ///
    /// # Errors
    /// If no thread can be made.
    pub fn start(&mut self) -> io::Result<()> {
        let Some(keeper) = self.keeper.take() else { return Ok(()) };
        let keep = move || {
            if let Err(error) = keeper.run(&mut io::stdout()) {
                say(format_args!("error: the program's output cannot be shown: {error}"));
            }
        };
        self.thread = Some(thread::Builder::new().name("eprof-output".into()).spawn(keep)?);
        Ok(())
    }

    /// The last line that was written, if there is one.
    pub fn last_line(&self) -> Option<Label> {
        self.state.last_line.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    /// The view has ended: what was kept comes out, and what is still written passes through.
    pub fn show(&self) {
        self.state.phase.store(SHOWN, Ordering::SeqCst);
    }
}

impl Drop for ProgramOutput {
    fn drop(&mut self) {
        self.state.phase.store(ENDED, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // Should it have panicked, the panic has been told.
            let _ = thread.join();
        }
    }
}

struct Keeper {
    terminal: File,
    /// What the terminal's size follows.
    size: Option<TerminalSize>,
    scratch: File,
    state: Arc<State>,
    /// What there was no room for, and why.
    lost: Option<(u64, io::Error)>,
}

impl Keeper {
    fn run(mut self, out: &mut impl Write) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        let (mut is_open, mut is_shown, mut at_the_end) = (true, false, 0);
        loop {
            self.resize();
            let phase = self.state.phase.load(Ordering::SeqCst);
            if phase != KEPT && !is_shown {
                is_shown = true;
                self.show(out)?;
            }
            let written = if is_open { self.read(&mut buffer)? } else { Written::Nothing };
            match written {
                // What the program has started writes on, and has nobody to read it.
                Written::Some(_) if at_the_end > MOST_AT_THE_END => return Ok(()),
                Written::Some(bytes) if is_shown => {
                    at_the_end += if phase == ENDED { bytes } else { 0 };
                    out.write_all(&buffer[..bytes])?;
                    out.flush()?;
                }
                Written::Some(bytes) => self.keep(&buffer[..bytes]),
                Written::Nothing | Written::End if phase == ENDED => return Ok(()),
                Written::End => is_open = false,
                Written::Nothing if !is_open => thread::sleep(TICK),
                Written::Nothing => {}
            }
        }
    }

    /// Tells the program of a new size, as its terminal's kernel would if the program had it as its controlling terminal.
    fn resize(&mut self) {
        if self.size.as_mut().is_some_and(|size| size.hand_on(&self.terminal)) {
            // It is in this process group, with what it has started; who knows nothing of the signal ignores it. The
            // real terminal has sent it already, maybe too early: the size was the old one still.
            let _ = kill(Pid::from_raw(0), Signal::SIGWINCH);
        }
    }

    /// Reads what was written, should there be anything before long.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<Written> {
        let mut descriptors = [PollFd::new(self.terminal.as_fd(), PollFlags::POLLIN)];
        match poll(&mut descriptors, PollTimeout::from(TICK.as_millis() as u16)) {
            Ok(0) | Err(Errno::EINTR) => return Ok(Written::Nothing),
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        match self.terminal.read(buffer) {
            Ok(0) => Ok(Written::End),
            Ok(bytes) => Ok(Written::Some(bytes)),
            // Nobody has the other end any more.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => Ok(Written::End),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Written::Nothing),
            Err(error) => Err(error),
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.state.last_line.lock().unwrap_or_else(PoisonError::into_inner).add(bytes);
        // Without a gap: what comes behind what is lost is lost, too.
        match &mut self.lost {
            Some((lost, _)) => *lost += bytes.len() as u64,
            None => {
                if let Err(error) = self.scratch.write_all(bytes) {
                    self.lost = Some((bytes.len() as u64, error));
                }
            }
        }
    }

    /// Lets out what was kept.
    fn show(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.scratch.rewind()?;
        io::copy(&mut self.scratch, out)?;
        out.flush()?;
        if let Some((bytes, error)) = self.lost.take() {
            let folder = std::env::temp_dir();
            say(format_args!(
                "warning: {bytes} bytes of the program's output are lost, for which {} has no room: {error}",
                folder.display()
            ));
        }
        Ok(())
    }
}

enum Written {
    Some(usize),
    Nothing,
    End,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_out_whole_and_in_its_order() {
        let pair = openpty(None, None).expect("a terminal");
        let mut settings = tcgetattr(&pair.slave).expect("settings");
        cfmakeraw(&mut settings);
        tcsetattr(&pair.slave, SetArg::TCSANOW, &settings).expect("set");
        let folder = tempfile::tempdir().expect("a folder");
        let scratch = create_scratch(folder.path()).expect("a file");
        let state = Arc::new(State::default());
        let terminal = File::from(pair.master);
        let keeper = Keeper { terminal, size: None, scratch, state: state.clone(), lost: None };
        let keeper = thread::spawn(move || {
            let mut out = Vec::new();
            keeper.run(&mut out).map(|()| out)
        });
        // More than a terminal holds, in pieces of two writers.
        let mut writers = [File::from(pair.slave.try_clone().expect("a copy")), File::from(pair.slave)];
        let mut expected = Vec::new();
        for number in 0..20_000 {
            let line = format!("{number}\x1b[1m\tline\n");
            writers[number % 2].write_all(line.as_bytes()).expect("it is read");
            expected.extend(line.into_bytes());
        }
        let last = || state.last_line.lock().expect("no panic").text();
        while last().is_none_or(|line| line.as_str() != "19999 line") {
            thread::sleep(Duration::from_millis(1));
        }
        state.phase.store(SHOWN, Ordering::SeqCst);
        writers[0].write_all(b"and more\n").expect("it is read");
        expected.extend(b"and more\n");
        drop(writers);
        state.phase.store(ENDED, Ordering::SeqCst);
        let out = keeper.join().expect("no panic").expect("written");
        assert_eq!(out.len(), expected.len());
        assert!(out == expected);
    }
}
