//! What a search runs its settings on: the program, the machine's settings, the meter, the journal.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::changes::Changes;
use super::command::Template;
use super::cpu_frequency::CpuFrequency;
use super::error::TuningError;
use super::guard::Guard;
use super::journal::{Entry, Header, Journal, JournalState};
use super::metric::Metric;
use super::placement::{Placement, openmp_environment, spread};
use super::power_cap::PowerCap;
use super::supervise::{Ending, supervise};
use super::trial::{Instruments, Taken, Trial, tail_of};
use super::undo::NotRestored;
use crate::hardware::MachineInfo;
use crate::machine::{Roots, topology};
use crate::measure::RunMeter;
use crate::measure::run_observations::Observations;
use crate::meter::{AssumedWatts, MeterOptions, discover};
use crate::process::affinity::allowed_cpus;
use crate::process::{Signals, environment};
use crate::tune::search::{Bench, Purpose};
use crate::tune::space::{Role, Setting, Space};

/// How to run the program.
pub struct BenchOptions {
    /// Program and arguments, with placeholders.
    pub command: Vec<OsString>,
    /// Shell command before a run whenever its text changes, with placeholders.
    pub setup: Option<String>,
    /// Shell command at the end.
    pub teardown: Option<String>,
    /// The measure of speed.
    pub metric: Metric,
    /// Where threads run.
    pub placement: Placement,
    /// Sets the variable of role frequency; `None` if the command does or there is none.
    pub frequency: Option<CpuFrequency>,
    /// Sets the variable of role power cap; `None` if the command does or there is none.
    pub power_cap: Option<PowerCap>,
    /// How long a run may take.
    pub timeout: Option<Duration>,
    /// File that keeps the runs.
    pub journal: PathBuf,
    /// Whether to forget what the journal has.
    pub fresh: bool,
    /// Energy domains to add up; empty for the usual ones.
    pub domains: Vec<String>,
    /// The user's watts for an estimate.
    pub watts: Option<AssumedWatts>,
    /// Where the machine's topology and meters are.
    pub roots: Roots,
    /// Program and arguments that restore the settings if this process is killed: they must call
    /// [`super::guard::watch`] on standard input.
    pub guard: (PathBuf, &'static [&'static str]),
}

/// Told of every run.
pub trait Watcher {
    /// So many runs are still to come.
    fn expect(&mut self, runs: usize);
    /// A run begins.
    fn begins(&mut self, setting: &str);
    /// A run ended after so long, or was taken from the journal (`None`).
    fn ended(&mut self, took: Option<Duration>);
}

/// The program as a search sees it.
pub struct ProgramBench<'a, W: Watcher> {
    space: &'a Space,
    options: BenchOptions,
    command: Vec<Template>,
    setup: Option<Template>,
    /// The setup that was run last.
    set_up: Option<String>,
    machine: MachineInfo,
    allowed: Vec<u32>,
    meter: RunMeter,
    journal: Journal,
    state: JournalState,
    output: PathBuf,
    observations: Observations,
    watcher: W,
    // Settings are restored before signals are let through again: fields are dropped in this order.
    changes: Option<Changes>,
    signals: Signals,
}

/// What is to be said when all runs are done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Finished {
    /// What makes the figures doubtful.
    pub warnings: Vec<String>,
    /// Settings of the machine that were changed and are as before, read back.
    pub restored: usize,
    /// Settings that are not as before.
    pub not_restored: Vec<NotRestored>,
}

impl<'a, W: Watcher> ProgramBench<'a, W> {
    /// Opens the meters and the journal. Nothing is run or changed yet.
    ///
    /// # Errors
    /// A placeholder that stands for nothing, no readable CPU list, an unknown domain, a journal of
    /// another tuning.
    pub fn new(space: &'a Space, options: BenchOptions, watcher: W) -> Result<Self, TuningError> {
        let signals = Signals::take_over()?;
        let command = options.command.iter().map(|word| Template::parse(&word.to_string_lossy(), space));
        let command = command.collect::<Result<Vec<_>, _>>()?;
        let setup = options.setup.as_deref().map(|text| Template::parse(text, space)).transpose()?;
        let machine = topology::detect(&options.roots)?;
        let discovery =
            discover(&options.roots, &MeterOptions { watts: options.watts, ..MeterOptions::default() })?;
        let meter = RunMeter::new(discovery, &options.domains)?;
        let header = header(space, &options, &meter, &machine);
        let (journal, state) = Journal::open(&options.journal, &header, options.fresh)?;
        let mut output = options.journal.clone().into_os_string();
        output.push(".output");
        Ok(Self {
            allowed: allowed_cpus(&machine),
            observations: Observations::new(&options.roots, meter.warnings()),
            output: output.into(),
            space,
            command,
            setup,
            set_up: None,
            machine,
            meter,
            journal,
            state,
            watcher,
            changes: None,
            signals,
            options,
        })
    }

    /// Runs that the journal answers.
    pub fn journal_state(&self) -> JournalState {
        self.state
    }

    /// Where the joules come from.
    pub fn energy_source(&self) -> String {
        self.meter.describe()
    }

    /// Restores the machine's settings and tells what is to be said.
    pub fn finish(mut self) -> Finished {
        let _ = fs::remove_file(&self.output);
        let (mut restored, mut not_restored) = (0, Vec::new());
        if let Some(changes) = &mut self.changes {
            restored = changes.len();
            not_restored = changes.restore();
            restored = restored.saturating_sub(not_restored.len());
        }
        let tunes_power = self.options.frequency.is_some() || self.options.power_cap.is_some();
        let warnings = self.observations.warnings(&self.meter, tunes_power);
        Finished { warnings, restored, not_restored }
    }

    fn level(&self, setting: &Setting, role: Role) -> Option<f64> {
        let index = self.space.variables().iter().position(|variable| variable.role == role)?;
        setting.0.get(index)?.number()
    }

    /// Sets the machine as the setting says.
    fn apply(&mut self, setting: &Setting) -> Result<(), TuningError> {
        let ghz = self.level(setting, Role::Frequency);
        let watts = self.level(setting, Role::PowerCap);
        let changes_machine = self.options.frequency.is_some()
            || self.options.power_cap.is_some()
            || self.options.teardown.is_some();
        if changes_machine && self.changes.is_none() {
            let (program, arguments) = &self.options.guard;
            let guard = Guard::start(program, arguments).map_err(TuningError::Guard)?;
            self.changes = Some(Changes::guarded_by(guard));
        }
        if let Some(changes) = &mut self.changes {
            if let Some(teardown) = &self.options.teardown {
                changes.add_command(teardown)?;
            }
            if let (Some(frequency), Some(ghz)) = (&self.options.frequency, ghz) {
                frequency.set(changes, ghz)?;
            }
            if let (Some(cap), Some(watts)) = (&self.options.power_cap, watts) {
                cap.set(changes, watts)?;
            }
        }
        self.set_up(setting)
    }

    /// Runs the setup command if its text is not that of the last one.
    fn set_up(&mut self, setting: &Setting) -> Result<(), TuningError> {
        let Some(wanted) = self.setup.as_ref().map(|setup| setup.fill(setting)) else { return Ok(()) };
        if self.set_up.as_ref() == Some(&wanted) {
            return Ok(());
        }
        self.set_up = None;
        let launch = |cause| TuningError::Launch { program: "sh".into(), cause };
        let output = File::create(&self.output).map_err(launch)?;
        let errors = output.try_clone().map_err(launch)?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(&wanted).stdin(Stdio::null()).stdout(output).stderr(errors);
        environment::restore(&mut command);
        match supervise(command, None, &self.signals, None, || Ok(()))? {
            Ending::Ended(status, _) if status.success() => {}
            Ending::Ended(status, _) => {
                let tail = tail_of(&fs::read(&self.output).unwrap_or_default());
                let setting = self.space.show(setting);
                return Err(TuningError::Failed { command: wanted, setting, status, tail });
            }
            Ending::NotStarted(source) => return Err(launch(source)),
            Ending::TimedOut => {}
        }
        self.set_up = Some(wanted);
        Ok(())
    }

    fn trial(&mut self, setting: &Setting) -> Result<Taken, TuningError> {
        let threads = self.level(setting, Role::Threads).map(|threads| threads as usize);
        // A launcher of many nodes places threads itself, on machines whose CPUs are not known here.
        let local = self.level(setting, Role::Nodes).is_none();
        let placed = threads.filter(|_| local && self.options.placement == Placement::Spread);
        let trial = Trial {
            command: self.command.iter().map(|word| word.fill(setting).into()).collect(),
            setting: self.space.show(setting),
            environment: threads
                .map(|threads| {
                    openmp_environment(self.options.placement, threads, |name| env::var_os(name).is_some())
                })
                .unwrap_or_default(),
            cpus: placed.map(|threads| spread(&self.machine, &self.allowed, threads)),
            timeout: self.options.timeout,
            output: &self.output,
        };
        let instruments = Instruments {
            meter: &mut self.meter,
            signals: &self.signals,
            frequency: self.options.frequency.as_ref(),
        };
        self.observations.begin();
        let mut taken = trial.run(instruments)?;
        let own_share = self.observations.end(taken.seconds, taken.cpu_seconds);
        taken.joules = self.meter.share_of_estimate(taken.joules, taken.seconds, own_share);
        if self.options.metric.values(taken.seconds, taken.joules, &taken.output).is_none() {
            return Err(TuningError::NoMetric {
                command: trial.line(),
                setting: trial.setting,
                regex: self.options.metric.expression().unwrap_or_default().to_owned(),
                tail: tail_of(&taken.output),
            });
        }
        Ok(taken)
    }
}

impl<W: Watcher> Bench for ProgramBench<'_, W> {
    type Error = TuningError;

    fn run(&mut self, setting: &Setting, purpose: Purpose) -> Result<[f64; 2], TuningError> {
        let shown = self.space.show(setting);
        if let Some(entry) = self.journal.take(setting, purpose) {
            self.observations.note_frequency(&shown, self.level(setting, Role::Frequency), entry.ghz);
            self.watcher.ended(None);
            return Ok(entry.values);
        }
        self.watcher.begins(&shown);
        let start = Instant::now();
        self.apply(setting)?;
        let taken = self.trial(setting)?;
        let values = self.options.metric.values(taken.seconds, taken.joules, &taken.output);
        let entry = Entry {
            setting: setting.clone(),
            verify: purpose == Purpose::Verify,
            values: values.unwrap_or([taken.seconds, taken.joules]),
            seconds: taken.seconds,
            joules: taken.joules,
            ghz: taken.ghz,
        };
        self.journal.add(&entry)?;
        self.observations.note_frequency(&shown, self.level(setting, Role::Frequency), entry.ghz);
        self.watcher.ended(Some(start.elapsed()));
        Ok(entry.values)
    }

    fn expect(&mut self, runs: usize) {
        self.watcher.expect(runs);
    }
}

fn header(space: &Space, options: &BenchOptions, meter: &RunMeter, machine: &MachineInfo) -> Header {
    let mut domains: Vec<String> =
        meter.domains().map(|domain| format!("{} ({})", domain.name, domain.source)).collect();
    if meter.is_estimated() {
        domains.extend(
            options.watts.map(|watts| {
                format!("at {} W idle, {} W busy", watts.idle.as_watts(), watts.busy.as_watts())
            }),
        );
    }
    Header {
        eprof_tune: Header::version(),
        command: options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        setup: options.setup.clone(),
        variables: space.variables().iter().map(|variable| variable.name.clone()).collect(),
        metric: match &options.metric {
            Metric::WallTime => "wall time".into(),
            Metric::Seconds(regex) => format!("seconds {regex}"),
            Metric::Rate(regex) => format!("rate {regex}"),
        },
        meter: domains,
        placement: format!("{:?}", options.placement).to_lowercase(),
        host: format!("{} {}", machine.hostname, machine.cpu_model),
    }
}
