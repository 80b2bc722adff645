//! The process that works: the side of `verify` that is measured and recorded.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, Barrier, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use super::error::VerifyError;
use super::kernels::{Kernel, Work};
use super::task::{Amount, Done, Lane, Task, Turn};
use crate::numerics::random::Random;
use crate::process::affinity::pin_thread;
use crate::process::clocks::thread_cpu_time;

/// Does a task and writes what was done into its file.
///
/// # Errors
/// A CPU that cannot be used, a kernel that cannot be announced, a result that cannot be written.
pub fn work(task: &Task) -> Result<(), VerifyError> {
    let together = Arc::new(Together {
        ready: Barrier::new(task.lanes.len() + 1),
        begin: Barrier::new(task.lanes.len() + 1),
        failed: RwLock::new(false),
    });
    let threads = task.lanes.iter().enumerate().map(|(index, lane)| {
        let (task, lane, together) = (task.clone(), lane.clone(), Arc::clone(&together));
        thread::Builder::new()
            .name("eprof-verify".to_owned())
            .spawn(move || run_lane(&task, &lane, index as u64, &together))
            .map_err(VerifyError::Worker)
    });
    let threads = threads.collect::<Result<Vec<_>, _>>()?;
    together.ready.wait();
    let told = if task.waits { handshake() } else { Ok(()) };
    if told.is_err() {
        *together.failed.write().unwrap_or_else(PoisonError::into_inner) = true;
    }
    let start = Instant::now();
    together.begin.wait();
    let mut work = Vec::new();
    for thread in threads {
        let panicked = |_| VerifyError::Worker(io::Error::other("it panicked"));
        work.extend(thread.join().map_err(panicked)??);
    }
    told.map_err(VerifyError::Worker)?;
    let seconds = start.elapsed().as_secs_f64();
    if task.waits {
        // The meter is read now: what else this process does is none of the kernel's work.
        say("done").and_then(|()| answer()).map_err(VerifyError::Worker)?;
    }
    let done = Done { pid: std::process::id(), work, seconds };
    let text = serde_json::to_vec(&done).map_err(|error| VerifyError::Worker(error.into()))?;
    fs::write(&task.result, text).map_err(VerifyError::Worker)
}

/// What keeps threads in step.
struct Together {
    ready: Barrier,
    begin: Barrier,
    failed: RwLock<bool>,
}

/// Says that all is warm, and waits until the meter has been read.
fn handshake() -> io::Result<()> {
    say("ready")?;
    answer()
}

/// Waits for a line.
fn answer() -> io::Result<()> {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line)? {
        0 => Err(io::Error::other("whoever measures is gone")),
        _ => Ok(()),
    }
}

fn say(word: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{word}")?;
    out.flush()
}

fn run_lane(task: &Task, lane: &Lane, index: u64, together: &Together) -> Result<Vec<Amount>, VerifyError> {
    let prepared = Taking::prepare(task, lane, index);
    let prepared = prepared.and_then(|mut taking| {
        taking.turns(Duration::from_secs_f64(task.warm_up_seconds))?;
        Ok(taking)
    });
    // The others wait here, whatever went wrong.
    together.ready.wait();
    together.begin.wait();
    let mut taking = prepared?;
    if *together.failed.read().unwrap_or_else(PoisonError::into_inner) {
        return Ok(Vec::new());
    }
    let done = taking.turns(Duration::from_secs_f64(task.seconds));
    if let Some(announcer) = &mut taking.announcer {
        announcer.end()?;
    }
    // The process ends soon: to give back what is read would take time that is measured and recorded.
    mem::forget(taking.work);
    done
}

/// A thread whose kernels take turns.
struct Taking<'a> {
    lane: &'a Lane,
    work: Work,
    announcer: Option<Announcer>,
    random: Random,
}

impl<'a> Taking<'a> {
    fn prepare(task: &Task, lane: &'a Lane, index: u64) -> Result<Self, VerifyError> {
        let cpu = lane.cpu;
        pin_thread(cpu).map_err(|cause| VerifyError::Pin { cpu, cause })?;
        let kernels: Vec<Kernel> = lane.turns.iter().map(|turn| turn.kernel).collect();
        let announcer = task.announce.clone().map(Announcer::open).transpose()?;
        Ok(Self { lane, work: Work::new(&kernels, task.sizes), announcer, random: Random::seeded(index) })
    }

    /// Turns for so long; what was done in them.
    fn turns(&mut self, time: Duration) -> Result<Vec<Amount>, VerifyError> {
        /// Turns differ by as much: strictly equal ones beat with the periods of samples.
        const VARIED: f64 = 0.25;
        let nothing = |turn: &Turn| Amount { kernel: turn.kernel, units: 0, cpu_seconds: 0.0 };
        let mut done: Vec<Amount> = self.lane.turns.iter().map(nothing).collect();
        let end = Instant::now() + time;
        for (turn, at) in self.lane.turns.iter().zip(0..done.len()).cycle() {
            if Instant::now() >= end {
                break;
            }
            if let Some(announcer) = &mut self.announcer {
                announcer.announce(turn.kernel)?;
            }
            let units = turn.units as f64 * (1.0 + VARIED * self.random.symmetric());
            let units = (units.round() as u64).max(1);
            let start = thread_cpu_time().as_secs_f64();
            self.work.run(turn.kernel, units);
            done[at].cpu_seconds += thread_cpu_time().as_secs_f64() - start;
            done[at].units += units;
        }
        Ok(done)
    }
}

/// Names kernels in a file.
struct Announcer {
    path: PathBuf,
    file: File,
    latest: Option<Kernel>,
}

impl Announcer {
    fn open(path: PathBuf) -> Result<Self, VerifyError> {
        match OpenOptions::new().append(true).create(true).open(&path) {
            Ok(file) => Ok(Self { path, file, latest: None }),
            Err(cause) => Err(VerifyError::Announce { path, cause }),
        }
    }

    fn announce(&mut self, kernel: Kernel) -> Result<(), VerifyError> {
        if self.latest != Some(kernel) {
            self.write(kernel.announced_as())?;
            self.latest = Some(kernel);
        }
        Ok(())
    }

    /// No kernel runs any more: what a thread that ends still does is nobody's work.
    fn end(&mut self) -> Result<(), VerifyError> {
        self.write("default")
    }

    fn write(&mut self, word: &str) -> Result<(), VerifyError> {
        // One write: what reads it may take each write for a line.
        let written = self.file.write_all(format!("{word}\n").as_bytes());
        written.map_err(|cause| VerifyError::Announce { path: self.path.clone(), cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::kernels::WorkingSizes;

    fn task(folder: &std::path::Path, cpu: u32) -> Task {
        let turn = |kernel| Turn { kernel, units: 10 };
        Task {
            lanes: vec![
                Lane { cpu, turns: vec![turn(Kernel::Products), turn(Kernel::Table)] },
                Lane { cpu, turns: vec![turn(Kernel::Products)] },
            ],
            seconds: 0.02,
            warm_up_seconds: 0.0,
            sizes: WorkingSizes { table: 4096, memory: 65536 },
            announce: Some(folder.join("announced")),
            waits: false,
            result: folder.join("result"),
        }
    }

    #[test]
    fn lanes_work_announce_and_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let machine = crate::machine::topology::detect(&Default::default()).expect("this machine");
        let task = task(folder.path(), crate::process::affinity::allowed_cpus(&machine)[0]);
        work(&task).expect("worked");
        let done: Done =
            serde_json::from_slice(&fs::read(&task.result).expect("a file")).expect("what was done");
        assert!(done.seconds >= 0.02 && done.pid == std::process::id());
        // Two threads did products; memory had no turn.
        assert!(done.of(Kernel::Products).units >= 14 && done.of(Kernel::Table).units >= 7, "{done:?}");
        assert_eq!(done.of(Kernel::Memory).units, 0);
        let cpu_seconds: f64 = done.work.iter().map(|amount| amount.cpu_seconds).sum();
        assert!(cpu_seconds > 0.0 && cpu_seconds <= 2.0 * done.seconds, "{done:?}");
        let announced = fs::read_to_string(folder.path().join("announced")).expect("a file");
        assert!(announced.contains("asm\n") && announced.contains("l2\n"), "{announced}");
        assert_eq!(announced.matches("default\n").count(), 2, "each thread says that it is done");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_said_and_nothing_hangs() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = work(&task(folder.path(), 1023)).expect_err("no such CPU");
        assert!(error.to_string().starts_with("cannot run a kernel on CPU 1023"), "{error}");
    }
}
