//! Boots a guest, runs a script in it and brings back what it wrote.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use eprof::recording::Recording;
use eprof::recording::energy::EnergyReading;
use eprof::recording::metadata::Metadata;
use eprof::recording::record::Record;
use tempfile::TempDir;

use crate::common;

/// What came back from a guest.
pub struct Run {
    folder: TempDir,
    /// All that was printed.
    pub said: String,
}

/// One guest at a time: they would only take CPU time from each other.
static BUSY: Mutex<()> = Mutex::new(());
/// The bench's exit status when the guest gave none.
const NO_GUEST: i32 = 125;

/// Runs `script` by the shell of a guest that was booted with `options`; it finds the programs `./eprof`
/// and `./phases`, and the files `bring` of its folder come back. `None`, with the reason said, where
/// there is no guest.
pub fn run(options: &[&str], script: &str, bring: &[&str]) -> Option<Run> {
    let bench = std::env::var_os("EPROF_GUEST").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/guest/guest.sh"),
        PathBuf::from,
    );
    if !bench.is_file() {
        common::skip("the test bench (guest.sh) is not here");
        return None;
    }
    if !common::has_program("qemu-system-x86_64", &["--version"]) {
        common::skip("qemu-system-x86_64 is not installed");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let eprof = stripped_eprof(folder.path());
    let script_file = folder.path().join("script");
    fs::write(&script_file, script).expect("file");

    let mut command = Command::new(bench);
    command.args(["-q", "--timeout", "400", "--phases", "--cpu", "SandyBridge"]).args(options);
    command.arg("-f").arg(eprof).arg("-f").arg(&script_file).current_dir(folder.path());
    for file in bring {
        command.arg("--bring").arg(format!("/guest/{file}"));
    }
    let _alone = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
    command.arg("sh script");
    let boot = || command.output().expect("the bench runs");
    // On a busy host a guest may panic, since its timer comes late; it is started anew, twice.
    let mut outputs = std::iter::repeat_with(boot).take(3);
    let output = outputs.find(|output| output.status.code() != Some(NO_GUEST));
    let output = output.expect("a guest that comes up");
    let said = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    Some(Run { folder, said })
}

/// The binary without its debug information, which would take most of the guest's memory.
fn stripped_eprof(folder: &Path) -> PathBuf {
    let eprof = folder.join("eprof");
    let built = env!("CARGO_BIN_EXE_eprof");
    let stripped = Command::new("strip").arg("-o").arg(&eprof).arg(built).status();
    if !stripped.is_ok_and(|status| status.success()) {
        fs::copy(built, &eprof).expect("copied");
    }
    fs::set_permissions(&eprof, fs::Permissions::from_mode(0o755)).expect("mode");
    eprof
}

impl Run {
    /// What was printed between the lines `== name` and the next such line.
    pub fn section(&self, name: &str) -> &str {
        let mark = format!("== {name}\n");
        let start = self.said.find(&mark).unwrap_or_else(|| panic!("no section {name} in {}", self.said));
        let rest = &self.said[start + mark.len()..];
        &rest[..rest.find("\n== ").map_or(rest.len(), |end| end + 1)]
    }

    /// A recording that was brought back.
    pub fn recording(&self, name: &str) -> Summary {
        Summary::of(&self.folder.path().join(name))
    }
}

/// What a recording adds up to.
#[derive(Debug, Default)]
pub struct Summary {
    pub metadata: Option<Metadata>,
    /// By event: sum of the samples' periods, and what the counters counted in the end.
    pub events: BTreeMap<String, EventSum>,
    /// By domain: time in nanoseconds and reading.
    pub readings: BTreeMap<String, Vec<(u64, EnergyReading)>>,
    pub throttled: u64,
    pub lost: u64,
    pub kernel_samples: u64,
}

/// One event of a recording.
#[derive(Debug, Default, Clone, Copy)]
pub struct EventSum {
    pub samples: u64,
    pub period: u64,
    pub counted: u64,
    pub running: u64,
    /// The longest that a counter of one CPU was enabled: the time of the only task.
    pub enabled: u64,
}

impl EventSum {
    /// The count that is to be expected had the event never shared a counter.
    pub fn scaled(self) -> f64 {
        self.counted as f64 * self.enabled as f64 / self.running as f64
    }
}

impl Summary {
    fn of(path: &Path) -> Self {
        let recording = Recording::open(path).expect("a readable recording");
        assert!(recording.is_complete());
        let mut summary = Self { metadata: recording.metadata().cloned(), ..Self::default() };
        let mut records = recording.records();
        while let Some((_, context, record)) = records.next().expect("an undamaged recording") {
            let desc = context.event.map(|index| &recording.events()[index.0 as usize]);
            let name = desc.map(|desc| desc.name.clone()).unwrap_or_default();
            match record {
                Record::Sample(sample) if name.starts_with("energy/") => {
                    let reading = EnergyReading::from_bytes(sample.raw).expect("a reading");
                    let time = context.time.expect("a time").as_nanos();
                    summary.readings.entry(name).or_default().push((time, reading));
                }
                Record::Sample(sample) if !name.starts_with("eprof/") => {
                    let event = summary.events.entry(name).or_default();
                    event.samples += 1;
                    event.period +=
                        sample.period.or(desc.and_then(|desc| desc.attr.fixed_period())).expect("a period");
                    summary.kernel_samples +=
                        u64::from(sample.mode == eprof::recording::record::CpuMode::Kernel);
                }
                Record::Read { value, .. } => {
                    let event = summary.events.entry(name).or_default();
                    event.counted += value.value;
                    event.running += value.time_running.expect("times");
                    event.enabled = event.enabled.max(value.time_enabled.expect("times"));
                }
                Record::Throttle(true) => summary.throttled += 1,
                Record::Lost { count } => summary.lost += count,
                _ => {}
            }
        }
        summary
    }

    /// The event of this name.
    pub fn event(&self, name: &str) -> EventSum {
        *self.events.get(name).unwrap_or_else(|| panic!("no event {name} among {:?}", self.events.keys()))
    }

    /// Joules of a domain from its first to its last reading.
    pub fn joules(&self, domain: &str) -> f64 {
        let name = format!("energy/{domain}/");
        let readings =
            self.readings.get(&name).unwrap_or_else(|| panic!("no {name} in {:?}", self.readings.keys()));
        readings[readings.len() - 1].1.energy.as_joules() - readings[0].1.energy.as_joules()
    }
}

/// Sums over the threads that chose rates, from the lines of `/proc/simhw`.
#[derive(Debug, Default, Clone, Copy)]
pub struct Truth {
    pub clk: f64,
    pub inst: f64,
    pub rs: f64,
    pub l2: f64,
}

impl Truth {
    /// `task TID TGID COMM PRESET CPU_NS CLK INST RS L2 LLC ...`
    pub fn of(simhw: &str) -> Self {
        let mut truth = Self::default();
        for line in simhw.lines().filter(|line| line.starts_with("task ") && !line.starts_with("task 0 ")) {
            let numbers: Vec<f64> =
                line.split_whitespace().skip(5).map_while(|word| word.parse().ok()).collect();
            truth.clk += numbers[1];
            truth.inst += numbers[2];
            truth.rs += numbers[3];
            truth.l2 += numbers[4];
        }
        assert!(truth.clk > 0.0, "no threads in {simhw}");
        truth
    }
}

/// Fails unless `value` is within `share` of `truth`.
#[track_caller]
pub fn assert_near(what: &str, value: f64, truth: f64, share: f64) {
    let error = value / truth - 1.0;
    assert!(error.abs() <= share, "{what}: {value:e} instead of {truth:e}, {:+.2} %", error * 100.0);
}
