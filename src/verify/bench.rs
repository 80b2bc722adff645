//! Measures kernels alone, records them together, and compares.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::alone::{Alone, KernelPower, Visit};
use super::arrangement::{Arrangement, Layout, one_of_each_core};
use super::comparison::{Comparison, Part, Verdict};
use super::error::VerifyError;
use super::kernels::{Kernel, WorkingSizes};
use super::recorded::{self, Reported};
use super::schedule::Schedule;
use super::task::{Done, Lane, Task, Turn};
use super::verification::{KernelTruth, VERIFICATION_FORMAT, Verification};
use crate::calibrate::WorkingSets;
use crate::hardware::{DomainInfo, DomainKind, MachineInfo, Method};
use crate::machine::memory::FreeMemory;
use crate::machine::{Roots, caches, topology};
use crate::measure::RunMeter;
use crate::measure::tuning::TuningError;
use crate::measure::tuning::changes::Changes;
use crate::measure::tuning::cpu_frequency::CpuFrequency;
use crate::measure::tuning::guard::Guard;
use crate::meter::{Discovery, MeterOptions, discover};
use crate::power_model::stored::StoredModel;
use crate::process::affinity::allowed_cpus;
use crate::process::{end_with_parent, environment};

/// How to verify.
#[derive(Debug, Clone)]
pub struct VerifyOptions {
    /// Which meters to take for true, and to record.
    pub meters: MeterOptions,
    /// About how long it may take.
    pub time: Duration,
    /// File in which each worker names its kernel before it runs it.
    pub announce: Option<PathBuf>,
    /// Folder in which recordings are kept; they are removed if there is none.
    pub recordings: Option<PathBuf>,
    /// The model kept for this CPU, as reports take it.
    pub stored_model: Option<StoredModel>,
    /// What eprof runs of itself.
    pub commands: Commands,
}

/// What eprof runs of itself: its program with these arguments.
#[derive(Debug, Clone)]
pub struct Commands {
    /// eprof.
    pub program: PathBuf,
    /// To record the command that follows into the file that is named before.
    pub record: Vec<OsString>,
    /// To do the task that follows as JSON, see [`super::work`].
    pub work: Vec<OsString>,
    /// To restore what was changed if this process is gone, see [`crate::measure::tuning::guard::watch`].
    pub guard: &'static [&'static str],
}

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stage {
    /// The idle machine is measured.
    Idle,
    /// A kernel is measured by itself.
    Alone(Kernel),
    /// Kernels are recorded.
    Recorded(Arrangement),
}

/// Told of every stage.
pub trait Progress {
    /// A stage begins; `done` of `expected` are over.
    fn begins(&mut self, stage: Stage, done: usize, expected: usize);
}

/// What can be verified on this machine, before anything is.
pub struct Bench {
    /// The machine.
    pub machine: MachineInfo,
    /// What will be recorded, but for frequencies.
    pub layouts: Vec<Layout>,
    /// How long what takes.
    pub schedule: Schedule,
    /// The frequencies in GHz that will be set.
    pub frequencies: Vec<f64>,
    /// What is left out, and why.
    pub notes: Vec<String>,
    /// What keeps eprof from being verified here, each with what would help.
    pub obstacles: Vec<String>,
    meter: RunMeter,
    cpu_frequency: Option<CpuFrequency>,
    cpu: u32,
    sizes: WorkingSizes,
    kernels: Vec<Kernel>,
    /// Units of work in a second.
    speeds: Vec<(Kernel, f64)>,
    options: VerifyOptions,
}

/// Before every measurement, for caches and clocks.
const WARM_UP: f64 = 0.1;
/// Units of a turn of a kernel whose speed is not known yet.
const UNITS_AT_FIRST: u64 = 200;

impl Bench {
    /// Looks at the machine. That eprof cannot be verified there is no error here: see [`Bench::obstacles`].
    ///
    /// # Errors
    /// If the machine's CPUs cannot be listed, or none of the meters that were asked for can be read.
    pub fn new(options: VerifyOptions) -> Result<Self, VerifyError> {
        let roots = Roots::default();
        let machine = topology::detect(&roots)?;
        let allowed = allowed_cpus(&machine);
        let cpu = one_of_each_core(&machine, &allowed).first().copied().unwrap_or(0);
        let sets = WorkingSets::of(&caches::of_cpu(&roots, cpu), &[cpu], memory(&roots));
        let sizes =
            WorkingSizes { table: sets.second.or(sets.first).unwrap_or(1 << 17), memory: sets.memory };
        let discovery = discover(&roots, &options.meters)?;
        let obstacles = obstacles(&discovery);
        let names = true_domains(&discovery.domains);
        let meter = RunMeter::new(discovery, &names)?;
        let mut notes = Vec::new();
        let (cpu_frequency, frequencies) = match CpuFrequency::find(&roots).and_then(two_frequencies) {
            Ok((found, frequencies)) => (Some(found), frequencies),
            Err(why) => {
                notes.push(format!("no frequencies are set: {why}"));
                (None, Vec::new())
            }
        };
        let kernels = Kernel::ALL.to_vec();
        let count = |recorded| Layout::all(&machine, &allowed, &kernels, recorded).len() + frequencies.len();
        let schedule = Schedule::new(options.time, kernels.len(), count(f64::INFINITY), frequencies.len());
        let layouts = Layout::all(&machine, &allowed, &kernels, schedule.recorded);
        Ok(Self {
            machine,
            layouts,
            schedule,
            frequencies,
            notes,
            obstacles,
            meter,
            cpu_frequency,
            cpu,
            sizes,
            kernels,
            speeds: Vec::new(),
            options,
        })
    }

    /// The domains that are taken for true.
    pub fn domains(&self) -> impl Iterator<Item = &DomainInfo> {
        self.meter.domains().filter(|domain| domain.method == Method::Measured)
    }

    /// The kernels.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// Measures, records, compares.
    ///
    /// # Errors
    /// [`VerifyError::NotMeasurable`] if there are obstacles, and whatever goes wrong meanwhile.
    pub fn run(&mut self, progress: &mut dyn Progress) -> Result<Verification, VerifyError> {
        if !self.obstacles.is_empty() {
            return Err(VerifyError::NotMeasurable(self.obstacles.clone()));
        }
        let folder = Folder::make(self.options.recordings.as_deref())?;
        let Schedule { rounds, rounds_at_frequency, .. } = self.schedule;
        let of_alone = |rounds: usize| rounds * (self.kernels.len() + 1);
        let expected = of_alone(rounds)
            + self.layouts.len()
            + self.frequencies.len() * (of_alone(rounds_at_frequency) + 1);
        let mut stages = Stages { progress, done: 0, expected };

        self.learn_speeds(&folder)?;
        let alone = self.alone(rounds, &folder, &mut stages)?;
        let mut comparisons = Vec::new();
        for layout in self.layouts.clone() {
            comparisons.push(self.compare(&layout, &alone, &folder, &mut stages)?);
        }
        let mut changes = match &self.cpu_frequency {
            Some(_) => {
                let guard = Guard::start(&self.options.commands.program, self.options.commands.guard);
                Some(Changes::guarded_by(guard.map_err(TuningError::Guard)?))
            }
            None => None,
        };
        for ghz in self.frequencies.clone() {
            let (Some(frequency), Some(changes)) = (&self.cpu_frequency, &mut changes) else { break };
            frequency.set(changes, ghz)?;
            let alone = self.alone(rounds_at_frequency, &folder, &mut stages)?;
            let layout = Layout::at_frequency(self.cpu, &self.kernels, ghz);
            comparisons.push(self.compare(&layout, &alone, &folder, &mut stages)?);
        }
        let not_restored = changes.map(|mut changes| changes.restore()).unwrap_or_default();
        self.notes.extend(not_restored.into_iter().map(|what| what.0));
        Ok(self.verification(&alone, comparisons))
    }

    fn verification(&self, alone: &Alone, comparisons: Vec<Comparison>) -> Verification {
        let of = |of: &KernelPower| KernelTruth {
            kernel: of.kernel,
            watts: of.watts,
            relative_error: of.relative_error,
        };
        Verification {
            format: VERIFICATION_FORMAT,
            eprof_version: env!("CARGO_PKG_VERSION").to_owned(),
            cpu_identity: self.machine.cpu_identity.clone(),
            cpu_model: self.machine.cpu_model.clone(),
            created_unix: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            meters: self.domains().map(|domain| format!("{} ({})", domain.name, domain.source)).collect(),
            idle_watts: alone.idle_watts,
            kernels: alone.kernels.iter().map(of).collect(),
            verdict: Verdict::of(&comparisons).unwrap_or_default(),
            comparisons,
            notes: self.notes.clone(),
        }
    }

    /// The idle machine and each kernel by itself, in rounds there and back: what drifts evenly adds the same to all.
    fn alone(
        &mut self,
        rounds: usize,
        folder: &Folder,
        stages: &mut Stages<'_>,
    ) -> Result<Alone, VerifyError> {
        let mut idle = Vec::new();
        let mut visits: Vec<(Kernel, Vec<Visit>)> =
            self.kernels.iter().map(|&kernel| (kernel, Vec::new())).collect();
        for round in 0..rounds {
            let mut order: Vec<Option<usize>> = (0..visits.len()).map(Some).collect();
            order.insert(0, None);
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                match at {
                    None => {
                        stages.begin(Stage::Idle);
                        idle.push(self.visit_idle()?);
                    }
                    Some(at) => {
                        stages.begin(Stage::Alone(visits[at].0));
                        let visit = self.visit(visits[at].0, folder)?;
                        visits[at].1.push(visit);
                    }
                }
            }
        }
        Alone::of(&idle, &visits)
    }

    fn visit_idle(&mut self) -> Result<Visit, VerifyError> {
        thread::sleep(Duration::from_secs_f64(WARM_UP));
        let (start, before) = (Instant::now(), self.meter.read()?);
        thread::sleep(Duration::from_secs_f64(self.schedule.visit));
        let joules = (self.meter.read()? - before).as_joules();
        Ok(Visit { joules, seconds: start.elapsed().as_secs_f64(), cpu_seconds: 0.0, units: 0 })
    }

    /// The energy from before the work to after it. The edges need no care: the machine is idle there, and what an idle
    /// machine takes is taken off for the whole of the time.
    fn visit(&mut self, kernel: Kernel, folder: &Folder) -> Result<Visit, VerifyError> {
        let turn = Turn { kernel, units: self.units_of_turn(kernel) };
        let lanes = vec![Lane { cpu: self.cpu, turns: vec![turn] }];
        let task = self.task(lanes, self.schedule.visit, true, folder);
        let mut worker = Worker::start(&self.options.commands, &task)?;
        worker.hear("ready")?;
        let (start, before) = (Instant::now(), self.meter.read()?);
        worker.tell("go")?;
        worker.hear("done")?;
        let joules = (self.meter.read()? - before).as_joules();
        let seconds = start.elapsed().as_secs_f64();
        worker.finish()?;
        let done = read_result(&task.result)?.of(kernel);
        Ok(Visit { joules, seconds, cpu_seconds: done.cpu_seconds, units: done.units })
    }

    /// Units of a turn of some milliseconds, by the latest visit: clocks are read at its begin and end.
    fn units_of_turn(&self, kernel: Kernel) -> u64 {
        const TURN: f64 = 0.005;
        let known = self.speeds.iter().find(|(of, _)| *of == kernel);
        known.map_or(UNITS_AT_FIRST, |(_, speed)| ((speed * TURN) as u64).max(1))
    }

    /// Finds out how fast kernels are.
    fn learn_speeds(&mut self, folder: &Folder) -> Result<(), VerifyError> {
        const MOMENT: f64 = 0.05;
        for kernel in self.kernels.clone() {
            let turns = vec![Turn { kernel, units: UNITS_AT_FIRST }];
            let task = self.task(vec![Lane { cpu: self.cpu, turns }], MOMENT, true, folder);
            let mut worker = Worker::start(&self.options.commands, &task)?;
            worker.hear("ready")?;
            worker.tell("go")?;
            worker.hear("done")?;
            worker.finish()?;
            let done = read_result(&task.result)?.of(kernel);
            self.speeds.push((kernel, done.units as f64 / done.cpu_seconds));
        }
        Ok(())
    }

    fn task(&self, lanes: Vec<Lane>, seconds: f64, waits: bool, folder: &Folder) -> Task {
        Task {
            lanes,
            seconds,
            warm_up_seconds: if waits { WARM_UP } else { 0.0 },
            sizes: self.sizes,
            announce: self.options.announce.clone(),
            waits,
            result: folder.path.join("done.json"),
        }
    }

    /// Records an arrangement and holds the report against what is true.
    fn compare(
        &mut self,
        layout: &Layout,
        alone: &Alone,
        folder: &Folder,
        stages: &mut Stages<'_>,
    ) -> Result<Comparison, VerifyError> {
        stages.begin(Stage::Recorded(layout.arrangement));
        let turn = |&kernel: &Kernel| {
            let of = alone.kernels.iter().find(|unit| unit.kernel == kernel);
            let units = of.map_or(0.0, |unit| unit.units_per_second * layout.turn_seconds);
            Turn { kernel, units: (units.round() as u64).max(1) }
        };
        let lane = |(cpu, kernels): &(u32, Vec<Kernel>)| Lane {
            cpu: *cpu,
            turns: kernels.iter().map(turn).collect(),
        };
        let lanes = layout.lanes.iter().map(lane).collect();
        let task = self.task(lanes, self.schedule.recorded, false, folder);
        let recording = folder.recording(layout.arrangement);
        record(&self.options.commands, &recording, &task)?;
        let done = read_result(&task.result)?;
        let reported = recorded::read(&recording, self.options.stored_model.clone(), &self.kernels)?;
        if self.options.recordings.is_none() {
            let _ = fs::remove_file(&recording);
        }
        for warning in &reported.warnings {
            let note = format!("{}: {warning}", layout.arrangement);
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        Ok(comparison(layout.arrangement, alone, &done, &reported))
    }
}

fn comparison(arrangement: Arrangement, alone: &Alone, done: &Done, reported: &Reported) -> Comparison {
    let parts = alone.kernels.iter().zip(&reported.kernels).map(|(power, said)| {
        let amount = done.of(power.kernel);
        Part {
            kernel: power.kernel,
            alone_joules: power.watts * amount.cpu_seconds,
            work_joules: power.watts * amount.units as f64 / power.units_per_second,
            alone_error: power.relative_error.hypot(chance(power, amount.cpu_seconds)),
            eprof_joules: said.joules,
            eprof_std_error: said.std_error,
            time_share: said.time_share,
            attributed: reported.attributed,
        }
    });
    let parts: Vec<Part> = parts.collect();
    let measured = reported.measured - alone.idle_watts * reported.seconds - reported.of_others;
    Comparison::new(arrangement, done.seconds, done.pid, measured, &parts)
}

/// What a kernel's own changes of power leave of a stretch, as a share of what it takes on average. Of no time it is nothing, as are
/// its joules.
fn chance(power: &KernelPower, cpu_seconds: f64) -> f64 {
    if cpu_seconds > 0.0 { power.scatter / cpu_seconds.sqrt() } else { 0.0 }
}

/// Runs `eprof record` as a user would, on the worker.
fn record(commands: &Commands, recording: &Path, task: &Task) -> Result<(), VerifyError> {
    let mut command = command(commands);
    command.args(&commands.record).arg("-o").arg(recording).arg("--").arg(&commands.program);
    command.args(&commands.work).arg(as_json(task)?);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    end_with_parent(&mut command);
    let output = command.output().map_err(VerifyError::Worker)?;
    if output.status.success() {
        return Ok(());
    }
    let words: Vec<String> = commands.record.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    Err(VerifyError::Record {
        command: format!("eprof {}", words.join(" ")),
        status: output.status.to_string(),
        said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

/// eprof, with the environment that its user gave it.
fn command(commands: &Commands) -> Command {
    let mut command = Command::new(&commands.program);
    environment::restore(&mut command);
    command
}

fn as_json(task: &Task) -> Result<String, VerifyError> {
    serde_json::to_string(task).map_err(|error| VerifyError::Worker(error.into()))
}

fn read_result(path: &Path) -> Result<Done, VerifyError> {
    let cannot = |cause| VerifyError::File { verb: "read", path: path.to_owned(), cause };
    serde_json::from_slice(&fs::read(path).map_err(cannot)?).map_err(|error| cannot(error.into()))
}

/// A worker that waits for words, and ends when this is dropped.
struct Worker {
    process: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Worker {
    fn start(commands: &Commands, task: &Task) -> Result<Self, VerifyError> {
        let mut command = command(commands);
        command.args(&commands.work).arg(as_json(task)?).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(VerifyError::Worker)?;
        let said = process.stdout.take().ok_or_else(|| ended("it has no output"))?;
        Ok(Self { process, said: BufReader::new(said) })
    }

    fn hear(&mut self, expected: &str) -> Result<(), VerifyError> {
        let mut line = String::new();
        self.said.read_line(&mut line).map_err(VerifyError::Worker)?;
        if line.trim_end() == expected { Ok(()) } else { Err(ended("it ended before its time; see above")) }
    }

    fn tell(&mut self, word: &str) -> Result<(), VerifyError> {
        let pipe = self.process.stdin.as_mut().ok_or_else(|| ended("it has no input"))?;
        writeln!(pipe, "{word}").map_err(VerifyError::Worker)
    }
}

impl Worker {
    /// Lets it write its result and end.
    fn finish(mut self) -> Result<(), VerifyError> {
        self.tell("end")?;
        let status = self.process.wait().map_err(VerifyError::Worker)?;
        if status.success() { Ok(()) } else { Err(ended(&format!("it ended with {status}; see above"))) }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn ended(how: &str) -> VerifyError {
    VerifyError::Worker(io::Error::other(how.to_owned()))
}

/// Where recordings and results lie meanwhile.
struct Folder {
    path: PathBuf,
    is_kept: bool,
}

impl Folder {
    fn make(kept: Option<&Path>) -> Result<Self, VerifyError> {
        let own = || std::env::temp_dir().join(format!("eprof-verify-{}", std::process::id()));
        let path = kept.map_or_else(own, Path::to_owned);
        // A folder that is there already under a name that others can guess may be theirs.
        let made = fs::DirBuilder::new().mode(0o700).recursive(kept.is_some()).create(&path);
        made.map_err(|cause| VerifyError::File { verb: "make", path: path.clone(), cause })?;
        Ok(Self { path, is_kept: kept.is_some() })
    }

    /// `turns-of-5-ms.data`
    fn recording(&self, arrangement: Arrangement) -> PathBuf {
        let name: String = arrangement
            .to_string()
            .chars()
            .filter(|c| *c != ',')
            .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
            .collect();
        self.path.join(format!("{name}.data"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = if self.is_kept {
            fs::remove_file(self.path.join("done.json"))
        } else {
            fs::remove_dir_all(&self.path)
        };
    }
}

/// Counts stages.
struct Stages<'a> {
    progress: &'a mut dyn Progress,
    done: usize,
    expected: usize,
}

impl Stages<'_> {
    fn begin(&mut self, stage: Stage) {
        self.progress.begins(stage, self.done, self.expected);
        self.done += 1;
    }
}

/// What stands in the way, each with what would help.
fn obstacles(discovery: &Discovery) -> Vec<String> {
    if discovery.measures_cpus() {
        return Vec::new();
    }
    let tried: String = discovery.rejected.iter().map(|rejected| format!("\n    {rejected}")).collect();
    vec![format!(
        "no meter measures the CPUs, and an estimate is nothing that eprof could be held against; virtual machines have \
         none: verify on the machine itself{tried}"
    )]
}

/// The measured domains that lie in no other and feed CPUs or memory; a GPU's joules are nobody's here. None at all where
/// nothing is measured: then the sum is the usual one, and is not used.
fn true_domains(domains: &[DomainInfo]) -> Vec<String> {
    let is_inner = |domain: &DomainInfo| {
        domain.parent.as_ref().is_some_and(|parent| domains.iter().any(|other| other.name == *parent))
    };
    let is_true = |domain: &&DomainInfo| {
        domain.method == Method::Measured && domain.kind != DomainKind::Gpu && !is_inner(domain)
    };
    domains.iter().filter(is_true).map(|domain| domain.name.clone()).collect()
}

/// Bytes that a kernel may read: a quarter of what is free.
fn memory(roots: &Roots) -> u64 {
    const LITTLE: u64 = 256 << 20;
    let free = FreeMemory::of_process(roots);
    [free.in_machine, free.within_limits].into_iter().flatten().min().unwrap_or(LITTLE) / 4
}

/// A quarter and three quarters up the range of what the CPUs can do: without turbo, which heat and company decide.
fn two_frequencies(found: CpuFrequency) -> Result<(CpuFrequency, Vec<f64>), String> {
    let (lowest, highest) = found.range();
    let at = |share: f64| found.nearest(lowest + share * (highest - lowest));
    let mut frequencies = vec![at(0.25)?, at(0.75)?];
    frequencies.dedup();
    Ok((found, frequencies))
}
