//! The tests one by one: how long each takes, and which faults it passes by.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::build::Program;
use crate::edits::Id;

/// A fault may make a test ask for all memory there is: so many bytes of addresses it gets.
const MOST_MEMORY: u64 = 16 << 30;

/// The tests that failed, by what a program of tests printed.
pub fn failed(printed: &str) -> impl Iterator<Item = &str> {
    printed.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
}

/// One test.
#[derive(Debug)]
pub struct Case {
    /// Which of the programs has it.
    pub program: usize,
    /// Its name there.
    pub name: String,
    /// How long it takes without a fault.
    pub takes: Duration,
}

/// The tests that pass without a fault, and for each fault those that pass by it.
#[derive(Debug, Default)]
pub struct Cases {
    /// The tests.
    pub cases: Vec<Case>,
    /// By fault, the indices of its tests, the quickest first.
    pub by_fault: BTreeMap<Id, Vec<usize>>,
    /// Tests that fail without any fault: they judge none.
    pub failing: Vec<String>,
}

/// How a run of tests ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All tests passed.
    Passed,
    /// One failed, or the program was ended by a signal.
    Failed,
    /// It took longer than it may.
    TooLong,
}

/// Runs tests of one program, with these variables in its environment; what it prints goes to `printed`.
///
/// # Errors
///
/// The program cannot be started.
pub fn run(
    program: &Path,
    folder: &Path,
    names: &[&str],
    environment: &[(&str, &str)],
    limit: Duration,
    printed: Stdio,
) -> Result<End> {
    let mut command = Command::new(program);
    command.args(["--exact", "--test-threads", "1"]).args(names).current_dir(folder);
    command.envs(environment.iter().copied()).stdin(Stdio::null()).stdout(printed).stderr(Stdio::null());
    // Crashes of faulty programs leave nothing behind.
    command.env("RUST_BACKTRACE", "0");
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    // SAFETY: between fork and exec, these are system calls alone.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut command, || {
            setrlimit(Resource::RLIMIT_AS, MOST_MEMORY, MOST_MEMORY)?;
            setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
            Ok(())
        });
    }
    let mut child = command.spawn().with_context(|| format!("cannot run {}", program.display()))?;
    let group = Pid::from_raw(child.id().cast_signed());
    let started = Instant::now();
    let mut wait = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            // What the test started and did not end.
            let _ = killpg(group, Signal::SIGKILL);
            return Ok(if status.success() { End::Passed } else { End::Failed });
        }
        if started.elapsed() > limit {
            let _ = killpg(group, Signal::SIGKILL);
            child.wait()?;
            return Ok(End::TooLong);
        }
        std::thread::sleep(wait);
        wait = (wait * 2).min(Duration::from_millis(20));
    }
}

/// Runs every test alone, but those with a part of `skip` in their names, to see which faults it passes by.
///
/// # Errors
///
/// A program cannot be started, or its marks cannot be read.
pub fn find(programs: &[Program], copy: &Path, folder: &Path, skip: &[String], jobs: usize) -> Result<Cases> {
    let mut names = Vec::new();
    for (index, program) in programs.iter().enumerate() {
        let mut list = Command::new(&program.path);
        let listed = crate::tree::output(list.args(["--list", "--format", "terse"]).current_dir(copy))?;
        let listed = listed.lines().filter_map(|line| line.strip_suffix(": test"));
        let wanted = listed.filter(|name| !skip.iter().any(|part| name.contains(part.as_str())));
        names.extend(wanted.map(|name| (index, name.to_owned())));
    }
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let Some((program, name)) = names.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    return Ok(());
                };
                let marks: PathBuf = folder.join("marks").join(format!("{:?}", std::thread::current().id()));
                let _ = fs::remove_dir_all(&marks);
                fs::create_dir_all(&marks)?;
                let started = Instant::now();
                let at = marks.to_string_lossy().into_owned();
                let environment = [("EPROF_FAULTS_PASSED", at.as_str())];
                let limit = Duration::from_secs(600);
                let end = run(&programs[*program].path, copy, &[name], &environment, limit, Stdio::null())?;
                let takes = started.elapsed();
                let mut passed = vec![0_u8; 0];
                for entry in fs::read_dir(&marks)? {
                    let bytes = fs::read(entry?.path())?;
                    passed.resize(passed.len().max(bytes.len()), 0);
                    passed.iter_mut().zip(bytes).for_each(|(all, one)| *all |= one);
                }
                let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                found.push((Case { program: *program, name: name.clone(), takes }, end, passed));
                if found.len().is_multiple_of(200) {
                    eprintln!("{} of {} tests were run alone", found.len(), names.len());
                }
            }
        };
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or(Ok(())))
    })?;
    let mut found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    found.sort_by_key(|(case, _, _)| case.takes);
    let mut cases = Cases::default();
    for (case, end, passed) in found {
        if end != End::Passed {
            cases.failing.push(case.name);
            continue;
        }
        let index = cases.cases.len();
        for (byte, marks) in passed.iter().enumerate().filter(|(_, marks)| **marks != 0) {
            let ids = (0..8).filter(|bit| marks & (1 << bit) != 0).map(|bit| (byte * 8 + bit) as Id);
            ids.for_each(|id| cases.by_fault.entry(id).or_default().push(index));
        }
        cases.cases.push(case);
    }
    Ok(cases)
}
