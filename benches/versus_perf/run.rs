//! One run of a program or a pipeline of programs: time, CPU time, memory.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

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
            text = Some(std::thread::spawn(move || {
                let mut text = String::new();
                stdout.read_to_string(&mut text).map(|_| text)
            }));
        }
        children.push(Running { child, cpu: Duration::ZERO, helpers: Duration::ZERO, status: None });
    }
    let (mut memory, mut is_ended) = (0, false);
    while children.iter().any(|running| running.status.is_none()) {
        memory = memory.max(children.iter().map(Running::memory).sum());
        if begin.elapsed() > longest && !is_ended {
            is_ended = true;
            for running in children.iter_mut().filter(|running| running.status.is_none()) {
                running.helpers = running.cpu_of_helpers();
                running.child.kill()?;
            }
        }
        std::thread::sleep(TICK);
        for running in &mut children {
            running.poll()?;
        }
    }
    let wall = begin.elapsed();
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

    /// Has it ended? Then its CPU time is taken.
    fn poll(&mut self) -> anyhow::Result<()> {
        use std::os::unix::process::ExitStatusExt;
        if self.status.is_some() {
            return Ok(());
        }
        let mut status = 0;
        // SAFETY: all zeros is a valid value of this structure of numbers.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let pid = self.child.id() as i32;
        // SAFETY: both pointers are to values of the right type that outlive the call.
        let waited = unsafe { libc::wait4(pid, &mut status, libc::WNOHANG, &mut usage) };
        ensure!(waited >= 0, "wait4: {}", std::io::Error::last_os_error());
        if waited == pid {
            let time = |time: libc::timeval| {
                Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
            };
            self.cpu = time(usage.ru_utime) + time(usage.ru_stime);
            self.status = Some(ExitStatus::from_raw(status));
        }
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
