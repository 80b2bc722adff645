//! Starts a program that waits, just before `exec`, until it is told to go.
//!
//! The wait gives the recorder a process id to open counters on, which then begin to count with the
//! program's first instruction (`enable_on_exec`). The program gets the recorder's terminal, standard
//! streams (unless it is given [`Streams`]), process group, signal mask, signal dispositions and environment, as if it had
//! been started without it.

use std::convert::Infallible;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{self, SigHandler, SigSet, Signal};
use nix::sys::wait::waitpid;
use nix::unistd::{self, ForkResult, Gid, Pid, Uid, User};

use crate::process::{environment, privileges};

/// Exit status for errors on the way to the program, as `env` and `timeout` have it.
const EXIT_UNSTARTED: i32 = 125;

/// The program could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// No such program.
    #[error("{program}: command not found{why}")]
    NotFound {
        /// As it was given.
        program: String,
        /// Where it was looked for and what to do, as the end of a sentence; may be empty.
        why: String,
    },
    /// It is there and cannot be executed.
    #[error("{program}: {cause}{why}")]
    NotExecutable {
        /// As it was given.
        program: String,
        /// What the system said.
        cause: io::Error,
        /// Why, and what to do, as the end of a sentence; may be empty.
        why: String,
    },
    /// An argument holds a zero byte.
    #[error("an argument of the program holds a zero byte")]
    ZeroInArgument,
    /// There is no such user.
    #[error("no user {0}")]
    NoSuchUser(String),
    /// The recorder may not become this user.
    #[error("cannot run the program as another user: {0}")]
    Credentials(io::Error),
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
            _ => EXIT_UNSTARTED as u8,
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

    /// Makes a folder this user's.
    pub fn give(&self, folder: &Path) -> nix::Result<()> {
        unistd::chown(folder, Some(self.uid), Some(self.gid))
    }

    /// Makes this process this user's for good, all threads of it, which keeps these capabilities in the calling thread and in
    /// those that are made from it.
    ///
    /// # Errors
    /// If it may not become this user.
    pub fn become_keeping(&self, kept: u64) -> io::Result<()> {
        privileges::keep_when_user_changes()?;
        self.change_user()?;
        privileges::use_capabilities(kept)
    }

    fn change_user(&self) -> nix::Result<()> {
        unistd::setgroups(&self.groups)?;
        unistd::setresgid(self.gid, self.gid, self.gid)?;
        unistd::setresuid(self.uid, self.uid, self.uid)
    }

    /// Becomes this user for good.
    fn assume(&self) -> nix::Result<()> {
        self.change_user()?;
        // The kernel takes root's capabilities from who is not root any more, but not the inheritable ones, and
        // none if it was told so (securebits) or if eprof was not root but had CAP_SETUID.
        if !self.uid.is_root() {
            privileges::keep_capabilities(0)
                .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EPERM)))?;
        }
        Ok(())
    }
}

/// Where a program reads from and writes to, where that is not where the recorder does.
#[derive(Debug, Clone, Default)]
pub struct Streams {
    /// Its standard input.
    pub stdin: Option<Arc<OwnedFd>>,
    /// Its standard output.
    pub stdout: Option<Arc<OwnedFd>>,
    /// Its standard error.
    pub stderr: Option<Arc<OwnedFd>>,
}

impl PartialEq for Streams {
    fn eq(&self, other: &Self) -> bool {
        let numbers = |streams: &Self| {
            [&streams.stdin, &streams.stdout, &streams.stderr]
                .map(|stream| stream.as_ref().map(|open| open.as_raw_fd()))
        };
        numbers(self) == numbers(other)
    }
}

impl Eq for Streams {}

impl Streams {
    /// Makes them those of this process.
    fn assume(&self) -> nix::Result<()> {
        if let Some(stdin) = &self.stdin {
            unistd::dup2_stdin(stdin)?;
        }
        if let Some(stdout) = &self.stdout {
            unistd::dup2_stdout(stdout)?;
        }
        if let Some(stderr) = &self.stderr {
            unistd::dup2_stderr(stderr)?;
        }
        Ok(())
    }
}

/// A program that stands just before its `exec`.
#[derive(Debug)]
pub struct Waiting {
    pid: Pid,
    program: String,
    /// Where it is told to go; taken when it was.
    go: Option<File>,
    failure: File,
}

impl Waiting {
    /// Makes the process. `signal_mask` is the mask that the program is to have, `variables` come into
    /// its environment besides the recorder's own, and `streams` take the place of the recorder's.
    ///
    /// # Errors
    /// When no process can be made or the arguments cannot be passed on. That the program does not
    /// exist turns out in [`Waiting::release`].
    pub fn spawn(
        argv: &[OsString],
        signal_mask: SigSet,
        run_as: Option<Credentials>,
        variables: &[(CString, CString)],
        streams: &Streams,
    ) -> Result<Self, LaunchError> {
        let arguments = argv
            .iter()
            .map(|argument| CString::new(argument.as_bytes()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| LaunchError::ZeroInArgument)?;
        let environment = environment::before_it_was_cleaned().map(|mut environment| {
            environment::set(&mut environment, variables);
            environment
        });
        let pipe = || unistd::pipe2(OFlag::O_CLOEXEC).map_err(|errno| LaunchError::Fork(errno.into()));
        let (wait_end, go_end) = pipe()?;
        let (error_end, report_end) = pipe()?;

        // SAFETY: the child does what a child of a process with one thread may do, and with several
        // threads too: system calls, and the little that glibc's exec allocates, whose allocator stays
        // usable after fork.
        match unsafe { unistd::fork() }.map_err(|errno| LaunchError::Fork(errno.into()))? {
            ForkResult::Parent { child } => Ok(Self {
                pid: child,
                program: argv
                    .first()
                    .map(|program| program.to_string_lossy().into_owned())
                    .unwrap_or_default(),
                go: Some(File::from(go_end)),
                failure: File::from(error_end),
            }),
            ForkResult::Child => {
                // The child's copy of the pipe's other end would hide the recorder's death from it.
                drop(go_end);
                drop(error_end);
                let Err((step, errno)) = become_program(
                    &arguments,
                    variables,
                    environment.as_deref(),
                    wait_end,
                    signal_mask,
                    run_as.as_ref(),
                    streams,
                );
                let _ = unistd::write(&report_end, &step_and_errno(step, errno));
                // SAFETY: _exit ends the process and flushes nothing of the recorder's.
                unsafe { libc::_exit(EXIT_UNSTARTED) }
            }
        }
    }

    /// The process id, which the program keeps.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets the program go and waits until its `exec` has succeeded or failed.
    ///
    /// # Errors
    /// Why the program could not be executed; the process has ended then.
    pub fn release(mut self) -> Result<Pid, LaunchError> {
        if let Some(mut go) = self.go.take() {
            // If the child is gone already it cannot hear this, and says nothing below either.
            let _ = go.write_all(&[1]);
        }
        let mut failure = [0; 8];
        if self.failure.read_exact(&mut failure).is_err() {
            // Closed by exec without a word: the program runs.
            return Ok(self.pid);
        }
        let _ = waitpid(self.pid, None);
        let [step, errno] = [0, 4]
            .map(|at| i32::from_le_bytes([failure[at], failure[at + 1], failure[at + 2], failure[at + 3]]));
        let cause = io::Error::from_raw_os_error(errno);
        let program = std::mem::take(&mut self.program);
        Err(match cause.kind() {
            _ if step == Step::Credentials as i32 => LaunchError::Credentials(cause),
            io::ErrorKind::NotFound => LaunchError::NotFound { why: why_not_found(&program), program },
            _ => LaunchError::NotExecutable { why: why_not_executable(&program), program, cause },
        })
    }
}

/// Where a program was looked for that was not found, and what to do.
fn why_not_found(program: &str) -> String {
    let path = Path::new(program);
    if program.is_empty() {
        return String::new();
    }
    if !program.contains('/') {
        return match path.is_file() {
            true => format!(": no folder of PATH has it; the one in this folder is ./{program}"),
            false => ": no folder of PATH has it; one that is elsewhere is named with its folder, as ./app"
                .to_owned(),
        };
    }
    match (path.symlink_metadata(), path.metadata()) {
        (Err(_), _) => {
            let folder = std::env::current_dir().ok().filter(|_| path.is_relative());
            let from = folder.map(|folder| format!(" from {}", folder.display())).unwrap_or_default();
            format!(": there is no such file{from}")
        }
        (Ok(_), Err(_)) => format!(": it is a symbolic link that leads nowhere (`readlink {program}`)"),
        (Ok(_), Ok(_)) => format!(
            ": the file is there, but not what is to run it: the first line of a script names that, and `file {program}` \
             that of another program"
        ),
    }
}

/// Why a program that is there cannot be executed, and what to do.
fn why_not_executable(program: &str) -> String {
    let Ok(found) = Path::new(program).metadata() else { return String::new() };
    if found.is_dir() {
        return ": it is a folder".to_owned();
    }
    let is_executable = found.permissions().mode() & 0o111 != 0;
    if is_executable || !program.contains('/') {
        return String::new();
    }
    format!(": it is not executable; if it is a program or script, `chmod +x {program}` makes it so")
}

impl Drop for Waiting {
    /// A process that was never told to go ends without having become the program.
    fn drop(&mut self) {
        if self.go.take().is_some() {
            let _ = waitpid(self.pid, None);
        }
    }
}

/// What the child was at when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Credentials = 1,
    Exec = 2,
}

fn step_and_errno(step: Step, errno: Errno) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&(step as i32).to_le_bytes());
    bytes[4..].copy_from_slice(&(errno as i32).to_le_bytes());
    bytes
}

/// The child's way from `fork` to `exec`.
fn become_program(
    arguments: &[CString],
    variables: &[(CString, CString)],
    environment: Option<&[CString]>,
    wait_end: OwnedFd,
    signal_mask: SigSet,
    run_as: Option<&Credentials>,
    streams: &Streams,
) -> Result<Infallible, (Step, Errno)> {
    let at_exec = |errno| (Step::Exec, errno);
    let mut byte = [0];
    if unistd::read(&wait_end, &mut byte).map_err(at_exec)? == 0 {
        // The recorder gave up, and has said why itself.
        // SAFETY: _exit ends the process and nothing else.
        unsafe { libc::_exit(EXIT_UNSTARTED) }
    }
    streams.assume().map_err(at_exec)?;
    // Rust's runtime ignores SIGPIPE, and the recorder SIGXFSZ; a program expects to die by them.
    for ignored in [Signal::SIGPIPE, Signal::SIGXFSZ] {
        // SAFETY: the default disposition installs no handler.
        unsafe { signal::signal(ignored, SigHandler::SigDfl) }.map_err(at_exec)?;
    }
    if let Some(credentials) = run_as {
        credentials.assume().map_err(|errno| (Step::Credentials, errno))?;
    }
    signal_mask.thread_set_mask().map_err(at_exec)?;
    let program = arguments.first().ok_or((Step::Exec, Errno::ENOENT))?;
    if let Some(environment) = environment {
        return unistd::execvpe(program, arguments, environment).map_err(at_exec);
    }
    for (name, value) in variables {
        // SAFETY: two texts with their zero bytes, in a process of one thread.
        unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) };
    }
    unistd::execvp(program, arguments).map_err(at_exec)
}

#[cfg(test)]
mod tests {
    use nix::sys::wait::WaitStatus;

    use super::*;

    fn launch(argv: &[&str]) -> Result<Pid, LaunchError> {
        let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
        Waiting::spawn(&argv, SigSet::empty(), None, &[], &Streams::default())?.release()
    }

    #[test]
    fn the_program_runs_once_it_is_released() {
        let pid = launch(&["sh", "-c", "exit 7"]).expect("started");
        assert_eq!(waitpid(pid, None), Ok(WaitStatus::Exited(pid, 7)));
    }

    #[test]
    fn the_program_reads_and_writes_where_it_is_told_to() {
        let (mut read_end, write_end) = io::pipe().expect("a pipe");
        let write_end = Arc::new(OwnedFd::from(write_end));
        let (input, mut typed) = io::pipe().expect("a pipe");
        typed.write_all(b"in\n").expect("it fits");
        drop(typed);
        let stdin = Some(Arc::new(OwnedFd::from(input)));
        let streams = Streams { stdin, stdout: Some(write_end.clone()), stderr: Some(write_end) };
        let argv = ["sh", "-c", "cat; echo out; echo err >&2; echo again"].map(OsString::from);
        let waiting = Waiting::spawn(&argv, SigSet::empty(), None, &[], &streams).expect("process");
        let pid = waiting.release().expect("started");
        drop(streams);
        let mut written = String::new();
        read_end.read_to_string(&mut written).expect("text");
        assert_eq!(written, "in\nout\nerr\nagain\n");
        assert_eq!(waitpid(pid, None), Ok(WaitStatus::Exited(pid, 0)));
    }

    #[test]
    fn what_cannot_be_started_says_so_as_a_shell_would() {
        let missing = launch(&["/nonexistent/program"]).expect_err("not there");
        assert_eq!(missing.exit_status(), 127);
        assert_eq!(missing.to_string(), "/nonexistent/program: command not found: there is no such file");
        let said =
            |program: &Path| launch(&[&program.display().to_string()]).expect_err("no program").to_string();
        let relative = launch(&["./nosuch"]).expect_err("not there").to_string();
        let here = std::env::current_dir().expect("a folder");
        assert_eq!(
            relative,
            format!("./nosuch: command not found: there is no such file from {}", here.display())
        );
        let anywhere = launch(&["no-such-program"]).expect_err("not there").to_string();
        assert!(anywhere.contains(": no folder of PATH has it"), "{anywhere}");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("app");
        // Written by another process: what other tests start meanwhile inherits no open file, which would be busy.
        let script = format!("echo '#!/nonexistent/interpreter' > '{}'", file.display());
        assert!(std::process::Command::new("sh").args(["-c", &script]).status().expect("sh").success());
        let plain = said(&file);
        assert!(plain.ends_with(&format!("`chmod +x {}` makes it so", file.display())), "{plain}");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("executable");
        assert!(said(&file).contains("the file is there, but not what is to run it"));
        assert!(said(folder.path()).ends_with(": it is a folder"));
        assert_eq!(launch(&["/"]).expect_err("a folder").exit_status(), 126);
        assert_eq!(launch(&["a\0b"]).expect_err("a zero").exit_status(), 125);
        assert_eq!(launch(&[]).expect_err("nothing").exit_status(), 127);
    }

    #[test]
    fn a_program_that_is_not_released_never_runs() {
        let folder = tempfile::tempdir().expect("folder");
        let trace = folder.path().join("trace");
        let argv = ["touch".into(), trace.clone().into_os_string()];
        drop(Waiting::spawn(&argv, SigSet::empty(), None, &[], &Streams::default()).expect("process"));
        assert!(!trace.exists());
    }

    #[test]
    fn users_are_found_by_name_and_number() {
        assert_eq!(Credentials::of_user("root").expect("there").uid, Uid::from_raw(0));
        assert_eq!(Credentials::of_user("0").expect("there").gid, Gid::from_raw(0));
        assert!(matches!(Credentials::of_user("no such user"), Err(LaunchError::NoSuchUser(_))));
    }
}
