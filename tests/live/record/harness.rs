//! Runs `eprof record` in a folder of its own and reads what it wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use eprof::recording::Recording;
use eprof::recording::energy::{CpuTimes, EnergyReading};
use eprof::recording::metadata::{CPU_TIMES_EVENT, METADATA_EVENT};
use eprof::units::Nanoseconds;
use eprof_testbed::{eprof, skip};
use perf_data::EventDesc;
use perf_data::record::{Record, RecordContext};
use tempfile::TempDir;

/// A folder for one recording.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn data(&self) -> PathBuf {
        self.path().join("eprof.data")
    }

    /// `eprof record` with these arguments, to be run here.
    pub fn record<I>(&self, arguments: I) -> Command
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        let mut command = eprof();
        command.arg("record").args(arguments).current_dir(self.path()).stdin(Stdio::null());
        command
    }

    /// Records a workload with more options and expects it to succeed.
    pub fn record_workload(&self, options: &[&str], workload: &str) -> Contents {
        let output = self
            .record(options)
            .arg("--")
            .args(super::workload::command(workload))
            .output()
            .expect("eprof runs");
        assert!(output.status.success(), "{}", stderr(&output));
        Contents::read(&self.data())
    }
}

/// What eprof said, for messages of failed tests.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether this machine lets this user sample its own programs. If not, the test is skipped.
pub fn can_record() -> bool {
    static WHY_NOT: OnceLock<Option<String>> = OnceLock::new();
    is_possible(&WHY_NOT, || {
        default_signals();
        let output = Folder::new().record(["--", "true"]).output().expect("eprof runs");
        let said = || format!("programs cannot be sampled here: {}", stderr(&output));
        (!output.status.success()).then(said)
    })
}

/// Whether this user may sample the whole machine.
pub fn can_sample_all() -> bool {
    static WHY_NOT: OnceLock<Option<String>> = OnceLock::new();
    is_possible(&WHY_NOT, || {
        let folder = Folder::new();
        let output = folder.record(["-a", "-o", "all.data", "--", "true"]).output().expect("eprof runs");
        let said = || format!("this user may not sample all CPUs: {}", stderr(&output));
        (!output.status.success()).then(said)
    })
}

/// Whether there is no reason against something, which is looked for once and told by each test that skips for it.
fn is_possible(known: &OnceLock<Option<String>>, why_not: impl FnOnce() -> Option<String>) -> bool {
    let why_not = known.get_or_init(why_not);
    why_not.iter().for_each(|reason| skip(reason));
    why_not.is_none()
}

/// What is started behind `&` or `nohup` ignores some signals, and hands that on to all that it starts: shells cannot
/// even trap what they began with ignoring. These tests are of programs that a terminal started.
fn default_signals() {
    use nix::sys::signal::{SigHandler, Signal, signal};
    for of_terminals in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP] {
        // SAFETY: no handler runs in this process, the default is the kernel's own.
        unsafe { signal(of_terminals, SigHandler::SigDfl) }.expect("a signal that may be handled");
    }
}

/// Waits until `condition` holds; a minute at most.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A recording, summed up.
#[derive(Default)]
pub struct Contents {
    pub is_complete: bool,
    pub samples: u64,
    /// Sum of the samples' periods.
    pub period: u64,
    pub metadata: u64,
    pub readings: Vec<(String, EnergyReading)>,
    pub cpu_times: Vec<CpuTimes>,
    /// The program's own time on each CPU, beside the CPU times.
    pub own_times: Vec<Vec<(u32, Nanoseconds)>>,
    pub comms: BTreeSet<String>,
    pub sampled_threads: BTreeSet<u32>,
    /// The samples of the thread that has most of them.
    pub most_of_a_thread: u64,
    samples_by_thread: BTreeMap<u32, u64>,
    pub forks: u64,
    pub exits: u64,
    pub rounds: u64,
    pub kernel_mappings: u64,
    /// Processes whose code was there before.
    pub described: BTreeSet<u32>,
    pub lost: u64,
    /// What each counter says in the end that it lost, by its number, where the kernel counts that.
    pub lost_by_counters: BTreeMap<u64, u64>,
    /// Counters' final values: event and CPU.
    pub final_values: Vec<(String, Option<u32>)>,
    /// Why reading ended before the end of the data.
    pub error: Option<String>,
}

/// Short: a failed test shows it.
impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_complete, samples, rounds, lost, forks, exits, error, .. } = self;
        write!(
            f,
            "complete {is_complete}, {samples} samples, {rounds} rounds, {lost} lost, {forks} forks, {exits} exits, "
        )?;
        write!(
            f,
            "{} readings, threads {:?}, names {:?}, error {error:?}",
            self.readings.len(),
            self.sampled_threads,
            self.comms
        )
    }
}

impl Contents {
    pub fn read(path: &Path) -> Self {
        let recording = Recording::open(path).expect("a readable recording");
        assert!(recording.metadata().is_some(), "metadata");
        let mut contents = Self { is_complete: recording.is_complete(), ..Self::default() };
        let mut records = recording.records();
        loop {
            match records.next() {
                Ok(Some((_, context, record))) => {
                    let event = context.event.map(|index| &recording.events()[index.0 as usize]);
                    contents.add(event, &context, &record);
                }
                Ok(None) => return contents,
                Err(error) => {
                    contents.error = Some(error.to_string());
                    return contents;
                }
            }
        }
    }

    fn add(&mut self, desc: Option<&EventDesc>, context: &RecordContext, record: &Record<'_>) {
        let event = desc.map(|desc| desc.name.clone()).unwrap_or_default();
        match record {
            Record::Sample(sample) if event == METADATA_EVENT => {
                assert!(!sample.raw.is_empty());
                // Behind it the list of the recorder's own records, which ends with its mark.
                self.metadata += u64::from(!sample.raw.ends_with(b"eprofown"));
            }
            Record::Sample(sample) if event == CPU_TIMES_EVENT => {
                let (times, own) = CpuTimes::with_target_from_bytes(sample.raw).expect("CPU times");
                self.cpu_times.push(times);
                self.own_times.push(own);
            }
            Record::Sample(sample) if event.starts_with("energy/") => {
                self.readings.push((event, EnergyReading::from_bytes(sample.raw).expect("a reading")));
            }
            Record::Sample(sample) => {
                self.samples += 1;
                let fixed = desc.and_then(|desc| desc.attr.fixed_period());
                self.period += sample.period.or(fixed).expect("a period");
                self.sampled_threads.extend(context.tid);
                if let Some(tid) = context.tid {
                    let of_thread = self.samples_by_thread.entry(tid).or_default();
                    *of_thread += 1;
                    self.most_of_a_thread = self.most_of_a_thread.max(*of_thread);
                }
            }
            Record::Comm { name, .. } => {
                self.comms.insert(String::from_utf8_lossy(name).into_owned());
            }
            Record::Fork(_) => self.forks += 1,
            Record::Exit(_) => self.exits += 1,
            Record::FinishedRound => self.rounds += 1,
            Record::Mmap(mmap) if mmap.pid == u32::MAX => self.kernel_mappings += 1,
            Record::Mmap(mmap) if context.time.is_none() => drop(self.described.insert(mmap.pid)),
            Record::Lost { count } => self.lost += count,
            Record::Read { value, .. } => {
                self.final_values.push((event, context.cpu));
                self.lost_by_counters.extend(value.id.zip(value.lost));
            }
            _ => {}
        }
    }
}
