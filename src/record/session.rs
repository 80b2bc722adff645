//! One recording from start to end.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::record::attr::AttrSettings;
use crate::record::census::Census;
use crate::record::counters::{self, Counters, Scope};
use crate::record::cpu_times::CpuTimesReader;
use crate::record::drain::Drain;
use crate::record::error::RecordError;
use crate::record::events::{SampledEvent, choose_events};
use crate::record::host;
use crate::record::launch::{Credentials, Waiting};
use crate::record::meter::EnergyMeter;
use crate::record::options::{CallGraph, RecordOptions, TargetOptions};
use crate::record::output::PendingOutput;
use crate::record::own_events;
use crate::record::readings::{DomainReading, MeterThread, all_domains, monotonic_now};
use crate::record::signals::{RecorderSignal, Signals};
use crate::record::summary::{Outcome, Summary};
use crate::record::support::KernelSupport;
use crate::recording::metadata::{METADATA_FORMAT, Metadata, Target};
use crate::recording::writer::{EventDescription, RecordingWriter};

/// How often CPU times are read and rings emptied that have not asked for it.
const TICK: Duration = Duration::from_millis(100);
/// Bytes of a ring, if the kernel gives them: half a second at 4 kHz and 250 bytes.
const RING_SIZE: usize = 512 * 1024;
/// The same where each sample brings a copy of its stack.
const RING_SIZE_WITH_STACKS: usize = 4 * 1024 * 1024;

/// Records as `options` say, with these meters.
pub fn record(options: &RecordOptions, meters: Vec<Box<dyn EnergyMeter>>) -> Result<Summary, RecordError> {
    let signals = Signals::take_over()?;
    let mut output = PendingOutput::create(&options.output)?;
    let credentials = options.run_as.as_deref().map(Credentials::of_user).transpose()?;
    let mut program = match options.target.command() {
        Some(argv) => Some(Waiting::spawn(argv, signals.original_mask(), credentials.as_ref())?),
        None => None,
    };
    let mut warnings = Vec::new();
    let prepared = Prepared::open(options, program.as_ref(), &mut warnings);
    let (mut counters, events) = match prepared {
        Ok(Prepared { counters, events }) => (counters, events),
        Err(error) => {
            if let Some(program) = program.take() {
                program.cancel();
            }
            return Err(error);
        }
    };

    let domains = all_domains(&meters);
    let mut first_domain = 0;
    let mut meter_threads = Vec::new();
    for meter in meters {
        let count = meter.domains().len();
        meter_threads.push(
            MeterThread::start(meter, first_domain, options.meter_interval)
                .map_err(RecordError::system("reading an energy meter"))?,
        );
        first_domain += count;
    }

    let clock = host::clock_reference();
    let machine = host::machine();
    let metadata = Metadata {
        format: METADATA_FORMAT,
        eprof_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: options.command_line.clone(),
        target: describe_target(&options.target, program.as_ref().map(Waiting::pid)),
        clock: "CLOCK_MONOTONIC".to_owned(),
        started_unix_ns: clock.map_or(0, |clock| clock.unix_ns),
        recorder_pid: std::process::id(),
        system_wide_samples: matches!(options.target, TargetOptions::System(_)),
        machine,
        domains,
        events: events.iter().map(SampledEvent::info).collect(),
        warnings,
    };
    let failed = |cause| RecordError::Output { path: options.output.clone(), cause };
    let writer = RecordingWriter::create(
        output.take_file().map_err(failed)?,
        descriptions(&events, &counters, &metadata),
    )
    .map_err(failed)?;
    let mut own = Vec::new();
    own_events::metadata(&metadata, monotonic_now(), &mut own)
        .map_err(|error| failed(std::io::Error::other(error)))?;
    let mut drain = Drain::new(writer);
    let mut census = Census::default();
    drain.round(&mut [], &own, &mut census).map_err(failed)?;

    if !matches!(options.target, TargetOptions::Command(_)) {
        counters.enable().map_err(RecordError::system("starting the counters"))?;
    }
    let pid = program.take().map(Waiting::release).transpose()?;
    output.put_in_place()?;

    let mut session = Session {
        signals,
        counters,
        drain,
        census,
        meter_threads,
        cpu_times: CpuTimesReader::open(Path::new("/proc")).ok(),
        domain_cpus: vec![0; metadata.domains.len()],
        pid,
        deadline: options.duration.map(|duration| Instant::now() + duration),
        readings: Vec::new(),
        first_and_last: Vec::new(),
    };
    let outcome = session.run()?;
    let features = host::features(&metadata.machine, &options.command_line, clock);
    session.finish(outcome, &features, metadata.warnings, options)
}

struct Prepared {
    counters: Counters,
    events: Vec<SampledEvent>,
}

impl Prepared {
    fn open(
        options: &RecordOptions,
        program: Option<&Waiting>,
        warnings: &mut Vec<String>,
    ) -> Result<Self, RecordError> {
        let events = choose_events(&options.events, options.rate)?;
        let scope = scope(&options.target, program);
        let cpus = counters::online_cpus();
        let needed = (events.len() * cpus.len() * scope.len()) as u64;
        counters::allow_files(needed).map_err(|limit| RecordError::TooManyFiles {
            needed,
            events: events.len(),
            cpus: cpus.len(),
            tasks: scope.len(),
            limit,
        })?;
        let ring_size = match options.call_graph {
            CallGraph::Dwarf { .. } => RING_SIZE_WITH_STACKS,
            _ => RING_SIZE,
        };
        let mut settings = AttrSettings {
            call_graph: options.call_graph,
            exclude_kernel: options.user_only,
            enable_on_exec: matches!(options.target, TargetOptions::Command(_)),
            support: KernelSupport::probe(),
            watermark: ring_size as u32 / 4,
        };
        let mut counters = match Counters::open(&events, &scope, &cpus, &settings) {
            Err(refusal) if counters::is_permission(&refusal.cause) && !settings.exclude_kernel => {
                settings.exclude_kernel = true;
                warnings.push(
                    "samples of the kernel are not permitted, so only the programs' own code was sampled; \
                     sudo sysctl kernel.perf_event_paranoid=1 permits them"
                        .to_owned(),
                );
                Counters::open(&events, &scope, &cpus, &settings)
            }
            other => other,
        }
        .map_err(|refusal| counters::refused(&events[refusal.event], refusal.cause))?;
        map_rings(&mut counters, ring_size)?;
        Ok(Self { counters, events })
    }
}

fn map_rings(counters: &mut Counters, wanted: usize) -> Result<(), RecordError> {
    let mut last = None;
    for size in counters::ring_sizes(wanted) {
        match counters.map_rings(size) {
            Ok(()) => return Ok(()),
            Err(cause) => last = Some(cause),
        }
    }
    Err(RecordError::RingMemory(last.unwrap_or_else(|| std::io::Error::other("no ring size to try"))))
}

fn scope(target: &TargetOptions, program: Option<&Waiting>) -> Scope {
    match (target, program) {
        (TargetOptions::Command(_), Some(program)) => Scope::Tasks(vec![program.pid().as_raw() as u32]),
        (TargetOptions::Threads(threads), _) => Scope::Tasks(threads.clone()),
        (TargetOptions::Processes(processes), _) => Scope::Tasks(processes.clone()),
        _ => Scope::System,
    }
}

fn describe_target(target: &TargetOptions, pid: Option<Pid>) -> Target {
    match target {
        TargetOptions::Command(argv) => Target::Command {
            argv: argv.iter().map(|argument| argument.to_string_lossy().into_owned()).collect(),
            pid: pid.map_or(0, |pid| pid.as_raw() as u32),
        },
        TargetOptions::Processes(processes) => Target::Processes(processes.clone()),
        TargetOptions::Threads(threads) => Target::Threads(threads.clone()),
        TargetOptions::System(_) => Target::System,
    }
}

fn descriptions(events: &[SampledEvent], counters: &Counters, metadata: &Metadata) -> Vec<EventDescription> {
    let sampled = events.iter().enumerate().map(|(index, event)| EventDescription {
        attr: counters.attrs[index].clone(),
        ids: counters.ids(index),
        name: event.spec.name.clone(),
    });
    sampled.chain(own_events::descriptions(&metadata.domains)).collect()
}

/// A recording under way.
struct Session {
    signals: Signals,
    counters: Counters,
    drain: Drain,
    census: Census,
    meter_threads: Vec<MeterThread>,
    cpu_times: Option<CpuTimesReader>,
    /// The CPU that a domain's readings are said to be of.
    domain_cpus: Vec<u32>,
    pid: Option<Pid>,
    deadline: Option<Instant>,
    readings: Vec<DomainReading>,
    /// First and last reading of each domain.
    first_and_last: Vec<Option<(DomainReading, DomainReading)>>,
}

const SIGNAL_TOKEN: u64 = u64::MAX;

impl Session {
    /// Empties the rings until the program, the time or somebody's patience ends.
    fn run(&mut self) -> Result<Outcome, RecordError> {
        let epoll =
            Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(RecordError::system("epoll_create1"))?;
        let watch = |descriptor: std::os::fd::BorrowedFd<'_>, token| {
            epoll
                .add(descriptor, EpollEvent::new(EpollFlags::EPOLLIN, token))
                .map_err(RecordError::system("epoll_ctl"))
        };
        watch(self.signals.descriptor().as_fd(), SIGNAL_TOKEN)?;
        for (index, ring) in self.counters.rings.iter().enumerate() {
            watch(self.counters.counters[ring.owner].borrow(), index as u64)?;
        }
        let mut events = [EpollEvent::empty(); 64];
        let mut next_tick = Instant::now();
        loop {
            let until = self.deadline.map_or(next_tick, |deadline| deadline.min(next_tick));
            let timeout = until.saturating_duration_since(Instant::now());
            let timeout =
                EpollTimeout::try_from(timeout + Duration::from_micros(999)).unwrap_or(EpollTimeout::ZERO);
            let count = epoll.wait(&mut events, timeout).unwrap_or(0);
            for event in &events[..count] {
                // The tasks of a ring's owner have ended: it would say so for ever.
                if event.events().contains(EpollFlags::EPOLLHUP) && event.data() != SIGNAL_TOKEN {
                    let ring = &self.counters.rings[event.data() as usize];
                    let _ = epoll.delete(self.counters.counters[ring.owner].borrow());
                }
            }
            let ending = self.ending();
            let tick = Instant::now() >= next_tick;
            if tick {
                next_tick = Instant::now() + TICK;
            }
            self.round(tick || ending.is_some()).map_err(RecordError::system("writing the recording"))?;
            if let Some(outcome) = ending {
                return Ok(outcome);
            }
        }
    }

    fn round(&mut self, with_cpu_times: bool) -> std::io::Result<()> {
        self.readings.clear();
        for meter in &self.meter_threads {
            meter.collect(&mut self.readings);
        }
        let mut own = self.encode_readings()?;
        if let (true, Some(reader)) = (with_cpu_times, &mut self.cpu_times) {
            let time = monotonic_now();
            let times = reader.read()?;
            own_events::cpu_times(&times, time, &mut own).map_err(std::io::Error::other)?;
        }
        self.drain.round(&mut self.counters.rings, &own, &mut self.census)
    }

    fn encode_readings(&mut self) -> std::io::Result<Vec<u8>> {
        let mut own = Vec::new();
        for reading in &self.readings {
            let cpu = self.domain_cpus.get(reading.domain).copied().unwrap_or(0);
            own_events::energy(reading, cpu, &mut own).map_err(std::io::Error::other)?;
            if self.first_and_last.len() <= reading.domain {
                self.first_and_last.resize(reading.domain + 1, None);
            }
            let slot = &mut self.first_and_last[reading.domain];
            *slot = Some((slot.map_or(*reading, |(first, _)| first), *reading));
        }
        Ok(own)
    }

    /// Whether and how the recording ends now.
    fn ending(&mut self) -> Option<Outcome> {
        while let Some(signal) = self.signals.next() {
            match signal {
                RecorderSignal::ChildChanged => {
                    let status = self.pid.and_then(|pid| waitpid(pid, Some(WaitPidFlag::WNOHANG)).ok());
                    match status {
                        Some(WaitStatus::Exited(_, status)) => return Some(Outcome::Exited(status)),
                        Some(WaitStatus::Signaled(_, signal, _)) => return Some(Outcome::Killed(signal)),
                        _ => {}
                    }
                }
                // The program has got it too, and decides what it means.
                RecorderSignal::FromTerminal if self.pid.is_some() => {}
                RecorderSignal::FromTerminal => return Some(Outcome::Stopped(Signal::SIGINT)),
                RecorderSignal::Stop(signal) => return Some(Outcome::Stopped(signal)),
            }
        }
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline).then_some(Outcome::TimeUp)
    }

    fn finish(
        mut self,
        outcome: Outcome,
        features: &crate::recording::trailer::Features,
        warnings: Vec<String>,
        options: &RecordOptions,
    ) -> Result<Summary, RecordError> {
        let failed = |cause| RecordError::Output { path: options.output.clone(), cause };
        self.readings.clear();
        for meter in std::mem::take(&mut self.meter_threads) {
            meter.stop(&mut self.readings);
        }
        self.counters.disable();
        let own = self.encode_readings().map_err(failed)?;
        self.drain.round(&mut self.counters.rings, &own, &mut self.census).map_err(failed)?;
        let file = self.drain.into_writer().finish(features).map_err(failed)?;
        let outcome = match (outcome, self.pid) {
            (Outcome::Stopped(signal), Some(pid)) => wait_for(pid, signal),
            (outcome, _) => outcome,
        };
        Ok(Summary {
            outcome,
            samples: self.census.samples,
            lost: self.census.lost,
            throttled: self.census.throttled,
            file_size: file.metadata().map_or(0, |metadata| metadata.len()),
            output: options.output.clone(),
            warnings,
        })
    }
}

/// Hands a signal on to the program and waits for its end.
fn wait_for(pid: Pid, signal: Signal) -> Outcome {
    let _ = kill(pid, signal);
    match waitpid(pid, None) {
        Ok(WaitStatus::Exited(_, status)) => Outcome::Exited(status),
        Ok(WaitStatus::Signaled(_, signal, _)) => Outcome::Killed(signal),
        _ => Outcome::Stopped(signal),
    }
}
