//! Starts a program that waits, just before `exec`, until it is told to go.
//!
//! The wait gives the recorder a process id to open counters on, which then begin to count with the
//! program's first instruction (`enable_on_exec`). The program gets the recorder's terminal, standard
//! streams, process group, signal mask and signal dispositions, as if it had been started without it.

use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{self, SigHandler, SigSet, Signal};
use nix::unistd::{self, ForkResult, Gid, Pid, Uid, User};

/// The program could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// No such program.
    #[error("{program}: command not found")]
    NotFound {
        /// As it was given.
        program: String,
    },
    /// It is there and cannot be executed.
    #[error("{program}: {cause}")]
    NotExecutable {
        /// As it was given.
        program: String,
        /// Why.
        cause: io::Error,
    },
    /// An argument holds a zero byte.
    #[error("an argument of the program holds a zero byte")]
    ZeroInArgument,
    /// There is no such user.
    #[error("no user {0}")]
    NoSuchUser(String),
    /// No process could be made.
    #[error("cannot start a process: {0}")]
    Fork(io::Error),
}

impl LaunchError {
    /// The exit status that shells give for this error.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } => 126,
            _ => 125,
        }
    }
}

/// The user a program runs as.
#[derive(Debug, Clone)]
pub struct Credentials {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

impl Credentials {
    /// Looks a user up by name or number.
    pub fn of_user(name: &str) -> Result<Self, LaunchError> {
        let unknown = || LaunchError::NoSuchUser(name.to_owned());
        let by_number =
            || name.parse().ok().and_then(|uid| User::from_uid(Uid::from_raw(uid)).ok().flatten());
        let user = User::from_name(name).ok().flatten().or_else(by_number).ok_or_else(unknown)?;
        let login = CString::new(user.name).map_err(|_| unknown())?;
        let groups = unistd::getgrouplist(&login, user.gid).unwrap_or_else(|_| vec![user.gid]);
        Ok(Self { uid: user.uid, gid: user.gid, groups })
    }

    /// Becomes this user for good.
    fn assume(&self) -> nix::Result<()> {
        unistd::setgroups(&self.groups)?;
        unistd::setresgid(self.gid, self.gid, self.gid)?;
        unistd::setresuid(self.uid, self.uid, self.uid)
    }
}

/// A program that stands just before its `exec`.
#[derive(Debug)]
pub struct Waiting {
    pid: Pid,
    program: String,
    go: File,
    exec_error: File,
}

impl Waiting {
    /// Makes the process. `signal_mask` is the mask that the program is to have.
    ///
    /// # Errors
    /// When no process can be made or the arguments cannot be passed on. That the program does not
    /// exist turns out in [`Waiting::release`].
    pub fn spawn(
        argv: &[OsString],
        signal_mask: SigSet,
        run_as: Option<&Credentials>,
    ) -> Result<Self, LaunchError> {
        let arguments = argv
            .iter()
            .map(|argument| CString::new(argument.as_bytes()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| LaunchError::ZeroInArgument)?;
        let pipe = || unistd::pipe2(OFlag::O_CLOEXEC).map_err(|errno| LaunchError::Fork(errno.into()));
        let (wait_end, go_end) = pipe()?;
        let (error_end, report_end) = pipe()?;

        // SAFETY: the child calls only functions that are safe between fork and exec (read, close,
        // sigaction, sigprocmask, set*id, exec, write, _exit); everything that allocates was done above.
        match unsafe { unistd::fork() }.map_err(|errno| LaunchError::Fork(errno.into()))? {
            ForkResult::Parent { child } => Ok(Self {
                pid: child,
                program: argv
                    .first()
                    .map(|program| program.to_string_lossy().into_owned())
                    .unwrap_or_default(),
                go: File::from(go_end),
                exec_error: File::from(error_end),
            }),
            ForkResult::Child => {
                // The child's copy of the pipe's other end would hide the recorder's death from it.
                drop(go_end);
                drop(error_end);
                let errno = match become_program(&arguments, wait_end, signal_mask, run_as) {
                    Err(errno) => errno,
                    Ok(never) => match never {},
                };
                let _ = unistd::write(&report_end, &(errno as i32).to_le_bytes());
                // SAFETY: _exit is always safe; nothing of the recorder's is flushed or dropped twice.
                unsafe { libc::_exit(127) }
            }
        }
    }

    /// The process id, which the program keeps.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets the program go and waits until its `exec` has succeeded or failed.
    pub fn release(mut self) -> Result<Pid, LaunchError> {
        // If the child is gone already, its exec error is not there either: both ends are closed.
        let _ = self.go.write_all(&[1]);
        let mut errno = [0; 4];
        match self.exec_error.read_exact(&mut errno) {
            Err(_) => Ok(self.pid),
            Ok(()) => {
                let _ = nix::sys::wait::waitpid(self.pid, None);
                let cause = io::Error::from_raw_os_error(i32::from_le_bytes(errno));
                let program = self.program;
                Err(match cause.kind() {
                    io::ErrorKind::NotFound => LaunchError::NotFound { program },
                    _ => LaunchError::NotExecutable { program, cause },
                })
            }
        }
    }

    /// Gives up: the process ends without having become the program.
    pub fn cancel(self) {
        drop(self.go);
        let _ = nix::sys::wait::waitpid(self.pid, None);
    }
}

/// The child's way from `fork` to `exec`.
fn become_program(
    arguments: &[CString],
    wait_end: OwnedFd,
    signal_mask: SigSet,
    run_as: Option<&Credentials>,
) -> nix::Result<Infallible> {
    let mut byte = [0];
    if unistd::read(&wait_end, &mut byte)? == 0 {
        // The recorder gave up, and has said why itself.
        // SAFETY: as above.
        unsafe { libc::_exit(125) }
    }
    // Rust's runtime ignores SIGPIPE, and the recorder SIGXFSZ; a program expects to die by them.
    for ignored in [Signal::SIGPIPE, Signal::SIGXFSZ] {
        // SAFETY: the default disposition installs no handler.
        unsafe { signal::signal(ignored, SigHandler::SigDfl) }?;
    }
    if let Some(credentials) = run_as {
        credentials.assume()?;
    }
    signal_mask.thread_set_mask()?;
    let program = arguments.first().ok_or(Errno::ENOENT)?;
    unistd::execvp(program, arguments)
}

/// The program's name without its folder, for messages.
pub fn base_name(program: &OsStr) -> String {
    let path = std::path::Path::new(program);
    path.file_name().unwrap_or(program).to_string_lossy().into_owned()
}
