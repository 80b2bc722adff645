//! One run of a program or a pipeline of programs: time, CPU time, memory.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

/// What a run took.
#[derive(Debug, Clone)]
pub struct Taken {
    pub wall: Duration,
    /// CPU time of the programs and of all that they started: perf has lines looked up by addr2line.
    pub cpu: Duration,
    /// Most anonymous memory that was seen, of all programs of the pipeline together, in bytes. Pages of
    /// mapped files do not count.
    pub memory: u64,
    /// Standard output, if it was wanted.
    pub output: String,
    /// It took too long and was ended.
    pub is_ended: bool,
}

/// How often memory is looked at.
const TICK: Duration = Duration::from_millis(5);

/// What is done with the standard output of a pipeline's last program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Output {
    Drop,
    Keep,
}

/// Runs programs, each with the output of the one before as its input, for at most `longest`.
pub fn run(pipeline: Vec<Command>, output: Output, longest: Duration) -> anyhow::Result<Taken> {
    let last = pipeline.len() - 1;
    let begin = Instant::now();
    let mut children: Vec<Running> = Vec::new();
    let mut text = None;
    let words = pipeline.last().map(|command| format!("{command:?}")).unwrap_or_default();
    // A command holds its end of a pipe until it is dropped, and whoever writes to it would wait.
    for (index, mut command) in pipeline.into_iter().enumerate() {
        if let Some(before) = children.last_mut() {
            command.stdin(before.child.stdout.take().context("a pipe")?);
        } else {
            command.stdin(Stdio::null());
        }
        let is_wanted = index < last || output == Output::Keep;
        command.stdout(if is_wanted { Stdio::piped() } else { Stdio::null() }).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
        if index == last
            && let Some(mut stdout) = child.stdout.take()
        {
            text = Some(thread::spawn(move || {
                // perf prints bytes of names as they are.
                let mut bytes = Vec::new();
                stdout.read_to_end(&mut bytes).map(|_| String::from_utf8_lossy(&bytes).into_owned())
            }));
        }
        children.push(Running { child, cpu: Duration::ZERO, helpers: Duration::ZERO, status: None });
    }
    let pids: Vec<Pid> = children.iter().map(Running::pid).collect();
    let children = Mutex::new(children);
    let is_done = AtomicBool::new(false);
    let (wall, watched) = thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&children, begin, longest, &is_done));
        let ended: anyhow::Result<()> = pids.iter().enumerate().try_for_each(|(index, &pid)| {
            // Left unreaped until nobody can mistake another process of the same number for it.
            waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)?;
            lock(&children)[index].reap()
        });
        let wall = begin.elapsed();
        is_done.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        let watched = watcher.join().expect("the watcher does not panic");
        ended.and(watched).map(|watched| (wall, watched))
    })?;
    let (memory, is_ended) = watched;
    let children = children.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Those before the last one may end by a pipe that nobody reads any more.
    let status = children[last].status;
    let is_fine = status.is_some_and(|status| status.success());
    ensure!(is_fine || is_ended, "{words}: {status:?}");
    let output = match text {
        Some(reader) => reader.join().expect("the reader does not panic")?,
        None => String::new(),
    };
    let cpu = children.iter().map(|running| running.cpu + running.helpers).sum();
    Ok(Taken { wall, cpu, memory, output, is_ended })
}

/// Looks at the memory of programs until they are done, and ends them when their time is over: the most memory,
/// and whether they were ended.
fn watch(
    children: &Mutex<Vec<Running>>,
    begin: Instant,
    longest: Duration,
    is_done: &AtomicBool,
) -> anyhow::Result<(u64, bool)> {
    let (mut memory, mut is_ended) = (0, false);
    while !is_done.load(Ordering::Relaxed) {
        let mut children = lock(children);
        memory = memory.max(children.iter().map(Running::memory).sum());
        if begin.elapsed() > longest && !is_ended {
            is_ended = true;
            for running in children.iter_mut().filter(|running| running.status.is_none()) {
                running.helpers = running.cpu_of_helpers();
                running.child.kill()?;
            }
        }
        drop(children);
        thread::park_timeout(TICK);
    }
    Ok((memory, is_ended))
}

fn lock(children: &Mutex<Vec<Running>>) -> MutexGuard<'_, Vec<Running>> {
    children.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Running {
    child: Child,
    /// CPU time of the program and of those that it waited for.
    cpu: Duration,
    /// CPU time of those that it had not waited for when it was ended.
    helpers: Duration,
    status: Option<ExitStatus>,
}

impl Running {
    fn memory(&self) -> u64 {
        if self.status.is_some() {
            return 0;
        }
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.unwrap_or(0) * 1024
    }

    /// CPU time of the programs that it started and has not waited for.
    fn cpu_of_helpers(&self) -> Duration {
        let cpu_if_helper = |folder: fs::DirEntry| {
            // Behind the name, which is in brackets and may hold anything: state, parent, ...
            let stat = fs::read_to_string(folder.path().join("stat")).ok()?;
            let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()?;
            let times = fs::read_to_string(folder.path().join("schedstat")).ok()?;
            let on_cpu = times.split_whitespace().next()?.parse().ok()?;
            (parent == self.child.id()).then_some(Duration::from_nanos(on_cpu))
        };
        fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(cpu_if_helper).sum()
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Takes the CPU time of a program that has ended.
    fn reap(&mut self) -> anyhow::Result<()> {
        use std::os::unix::process::ExitStatusExt;
        let mut status = 0;
        // SAFETY: all zeros is a valid value of this structure of numbers.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to values of the right type that outlive the call.
        let waited = unsafe { libc::wait4(self.pid().as_raw(), &mut status, 0, &mut usage) };
        ensure!(waited == self.pid().as_raw(), "wait4: {}", std::io::Error::last_os_error());
        let time = |time: libc::timeval| {
            Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
        };
        self.cpu = time(usage.ru_utime) + time(usage.ru_stime);
        self.status = Some(ExitStatus::from_raw(status));
        Ok(())
    }
}

/// Is a program installed?
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A command of words.
pub fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}
