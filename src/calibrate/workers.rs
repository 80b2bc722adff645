//! Threads that run a kernel, each on a CPU of its own, until they are told to stop.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use super::error::CalibrateError;
use super::kernels::{Kernel, WorkingSets};
use super::plan::Step;
use crate::process::affinity::pin_thread;

/// Running workers. They end when this is dropped.
#[derive(Debug)]
pub struct Workers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts the workers of a step and returns when all of them are at work.
    ///
    /// # Errors
    /// A CPU that cannot be used, or a file in which a kernel cannot be announced.
    pub fn start(step: &Step, announce: Option<&Path>) -> Result<Self, CalibrateError> {
        let mut workers = Self { stop: Arc::new(AtomicBool::new(false)), threads: Vec::new() };
        let (ready, is_ready) = channel();
        for &cpu in &step.cpus {
            let (stop, ready) = (Arc::clone(&workers.stop), ready.clone());
            let worker =
                Worker { kernel: step.kernel, sets: step.sets, cpu, announce: announce.map(Path::to_owned) };
            let thread = thread::Builder::new()
                .name(format!("eprof-{}", step.kernel))
                .spawn(move || worker.run(&stop, &ready))
                .map_err(CalibrateError::Worker)?;
            workers.threads.push(thread);
        }
        drop(ready);
        for _ in &step.cpus {
            let died = || CalibrateError::Worker(io::Error::other("it ended without a word"));
            is_ready.recv().map_err(|_| died())??;
        }
        Ok(workers)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

struct Worker {
    kernel: Kernel,
    sets: WorkingSets,
    cpu: u32,
    announce: Option<std::path::PathBuf>,
}

impl Worker {
    fn run(&self, stop: &AtomicBool, ready: &Sender<Result<(), CalibrateError>>) {
        let work = match self.prepare() {
            Ok(()) => self.kernel.work(&self.sets),
            Err(error) => {
                let _ = ready.send(Err(error));
                return;
            }
        };
        let Some(mut work) = work else {
            let _ = ready.send(Ok(()));
            return;
        };
        work.go_on();
        let _ = ready.send(Ok(()));
        while !stop.load(Ordering::Relaxed) {
            work.go_on();
        }
    }

    fn prepare(&self) -> Result<(), CalibrateError> {
        let cpu = self.cpu;
        pin_thread(cpu).map_err(|cause| CalibrateError::Pin { cpu, cause })?;
        let Some(path) = &self.announce else { return Ok(()) };
        let announced = || {
            // One write: what reads it may take each write for a line.
            let line = format!("{}\n", self.kernel);
            OpenOptions::new().append(true).create(true).open(path)?.write_all(line.as_bytes())
        };
        announced().map_err(|cause| CalibrateError::Announce { path: path.clone(), cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETS: WorkingSets =
        WorkingSets { first: Some(4096), second: Some(8192), third: Some(16384), memory: 65536 };

    #[test]
    fn workers_announce_themselves_and_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("announced");
        let cpu = crate::process::affinity::allowed_cpus(
            &crate::machine::topology::detect(&Default::default()).expect("this machine"),
        )[0];
        let step = Step { kernel: Kernel::Pipeline, cpus: vec![cpu, cpu], sets: SETS };
        drop(Workers::start(&step, Some(&file)).expect("started"));
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), "asm\nasm\n");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_said() {
        let step = Step { kernel: Kernel::SquareRoots, cpus: vec![1023], sets: SETS };
        let error = Workers::start(&step, None).expect_err("no such CPU");
        assert!(error.to_string().starts_with("cannot run a kernel on CPU 1023"), "{error}");
    }
}
