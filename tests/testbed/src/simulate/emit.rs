//! Writes what a recorder would have written: perf.data with energy readings inside.

use std::io::{self, Seek, Write};

use eprof::hardware::{CoreKind, CpuInfo, DomainInfo, DomainKind, MachineInfo, Method, Role};
use eprof::recording::energy::CpuTimes;
use eprof::recording::metadata::{EventInfo, METADATA_FORMAT, Metadata, MetersRead, Target};
use eprof::recording::own_events;
use eprof::units::{Nanoseconds, Timestamp};
use perf_data::EventDesc;
use perf_data::attr::{EventAttr, flag};
use perf_data::encode::{self, MappingFields, SampleFields, SampleId};
use perf_data::features::{CpuCount, Features};
use perf_data::format::{event_type, sample_type};
use perf_data::record::CpuMode;
use perf_data::writer::PerfDataWriter;

use super::meter::Reading;
use super::pmu::{Entry, EntryKind};
use super::scenario::Scenario;

/// The clock's reading when a simulation starts.
const START: u64 = 1_000_000_000_000;
/// Process of the recorded program, and thread of its first task.
const PROGRAM: u32 = 1000;
/// The same for everything else.
const OTHERS: u32 = 5000;
const RECORDER: u32 = 900;

/// Path of the program that all simulated functions are in.
pub const PROGRAM_PATH: &str = "/simulated/program";
const OTHERS_PATH: &str = "/simulated/others";
const TEXT: u64 = 0x40_0000;
/// Each function is so long; the first one lies one such length behind the start of the text.
const FUNCTION_SIZE: u64 = 0x1000;
/// What calls every function: an address in the first page.
const MAIN: u64 = TEXT + 0x100;
const CONTEXT_USER: u64 = -512i64 as u64;

/// The function that an offset in [`PROGRAM_PATH`] lies in; `None` for the code that calls them.
pub fn function_at(offset: u64) -> Option<usize> {
    (offset / FUNCTION_SIZE).checked_sub(1).and_then(|index| usize::try_from(index).ok())
}

/// A recording being written into memory.
pub struct Emitter<'s, W> {
    scenario: &'s Scenario,
    recorded: &'s [bool],
    writer: PerfDataWriter<W>,
    records: Vec<u8>,
    busy: Vec<u64>,
    own: Vec<u64>,
}

impl<'s, W: Write + Seek> Emitter<'s, W> {
    /// Starts the recording in `file`: what it is of, and what ran when it began.
    pub fn new(scenario: &'s Scenario, recorded: &'s [bool], file: W) -> io::Result<Self> {
        let metadata = metadata(scenario);
        let mut events: Vec<EventDesc> =
            (0..scenario.events.len()).map(|event| describe(scenario, event)).collect();
        events.extend(own_events::descriptions(&metadata.domains));
        let writer = PerfDataWriter::create(file, events)?;
        let busy = vec![0; scenario.cpus() as usize];
        let own = busy.clone();
        let mut emitter = Self { scenario, recorded, writer, records: Vec::new(), busy, own };
        own_events::metadata(&metadata, at(0), &mut emitter.records).map_err(too_long)?;
        emitter.processes()?;
        emitter.flush()?;
        Ok(emitter)
    }

    fn processes(&mut self) -> io::Result<()> {
        let groups = [(PROGRAM, PROGRAM_PATH, "program", true), (OTHERS, OTHERS_PATH, "others", false)];
        let end = TEXT + FUNCTION_SIZE * (self.scenario.functions.len() as u64 + 1);
        for (pid, path, name, recorded) in groups {
            if !self.recorded.contains(&recorded) {
                continue;
            }
            let id = SampleId { pid, tid: pid, time: at(0), cpu: 0, id: 1 };
            encode::comm(pid, pid, name.as_bytes(), true, &id, &mut self.records).map_err(too_long)?;
            let mapping = MappingFields {
                pid,
                tid: pid,
                addresses: TEXT..end,
                file_offset: 0,
                inode: (8, 1, u64::from(pid)),
                protection: 5,
                flags: 2,
                path: path.as_bytes(),
            };
            encode::mmap2(&mapping, &id, &mut self.records).map_err(too_long)?;
            for task in (0..self.recorded.len()).filter(|&task| self.recorded[task] == recorded) {
                let (pid, tid) = self.ids(task);
                if tid != pid {
                    encode::fork((pid, tid), (pid, pid), &id, &mut self.records).map_err(too_long)?;
                }
            }
        }
        Ok(())
    }

    /// Process and thread of a task.
    fn ids(&self, task: usize) -> (u32, u32) {
        let recorded = self.recorded[task];
        let before = self.recorded[..task].iter().filter(|other| **other == recorded).count() as u32;
        let pid = if recorded { PROGRAM } else { OTHERS };
        (pid, pid + before)
    }

    /// Writes what the ring of a CPU got.
    pub fn ring(&mut self, cpu: usize, entries: &[Entry]) -> io::Result<()> {
        for entry in entries {
            let (pid, tid) = self.ids(entry.task);
            let id = event_id(self.scenario, entry.event, cpu);
            let sample_id = SampleId { pid, tid, time: at(entry.time), cpu: cpu as u32, id };
            match entry.kind {
                EntryKind::Sample { function } => {
                    let code = self.scenario.functions[function].code.unwrap_or(function);
                    let ip = TEXT + FUNCTION_SIZE * (code as u64 + 1) + 0x20;
                    let fields = SampleFields {
                        id,
                        ip,
                        mode: CpuMode::User,
                        pid,
                        tid,
                        time: at(entry.time),
                        cpu: cpu as u32,
                        period: self.scenario.events[entry.event].period,
                        callchain: &[CONTEXT_USER, ip, MAIN],
                        raw: &[],
                    };
                    encode::sample(SAMPLE_TYPE, &fields, &mut self.records).map_err(too_long)?;
                }
                EntryKind::Throttle => {
                    encode::throttle(true, &sample_id, &mut self.records).map_err(too_long)?
                }
                EntryKind::Unthrottle => {
                    encode::throttle(false, &sample_id, &mut self.records).map_err(too_long)?
                }
                EntryKind::Lost(count) => {
                    encode::lost(count, &sample_id, &mut self.records).map_err(too_long)?
                }
            }
        }
        Ok(())
    }

    /// Writes readings, and how busy the CPUs were by then.
    pub fn readings(&mut self, readings: &[Reading]) -> io::Result<()> {
        for Reading { time, domain, reading } in readings {
            let package = *domain / self.scenario.domains.len();
            let cpu = package as u32 * self.scenario.cores_per_package;
            own_events::energy(*domain, reading, at(*time), cpu, &mut self.records).map_err(too_long)?;
        }
        Ok(())
    }

    /// Counts busy time, and that of the recorded program; the kernel tells the former in steps of 10 ms. Where others are
    /// not sampled, the recorder's counters tell the latter exactly.
    pub fn busy(&mut self, time: u64, busy: &[u64], own: &[u64]) -> io::Result<()> {
        const STEP: u64 = 10_000_000;
        for (sum, more) in self.busy.iter_mut().zip(busy) {
            *sum += more;
        }
        for (sum, more) in self.own.iter_mut().zip(own) {
            *sum += more;
        }
        let steps = |nanos: u64| Nanoseconds::from_nanos(nanos / STEP * STEP);
        let busy = self.busy.iter().enumerate().map(|(cpu, nanos)| (cpu as u32, steps(*nanos))).collect();
        let times = CpuTimes { recorder: Nanoseconds::ZERO, busy };
        if self.scenario.sampling.system_wide {
            return own_events::cpu_times(&times, at(time), &mut self.records).map_err(too_long);
        }
        let own =
            self.own.iter().enumerate().map(|(cpu, nanos)| (cpu as u32, Nanoseconds::from_nanos(*nanos)));
        let own: Vec<(u32, Nanoseconds)> = own.collect();
        own_events::cpu_times_with_target(&times, &own, at(time), &mut self.records).map_err(too_long)
    }

    /// Ends a round: all rings have been read.
    pub fn end_round(&mut self) -> io::Result<()> {
        encode::finished_round(&mut self.records);
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.write_raw(&self.records)?;
        self.records.clear();
        Ok(())
    }

    /// Ends the recording; the file it is in.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        let cpus = self.scenario.cpus();
        let features = Features {
            hostname: Some("simulated".to_owned()),
            arch: Some("x86_64".to_owned()),
            cpus: Some(CpuCount { available: cpus, online: cpus }),
            sample_times: Some((at(0), at(self.scenario.duration.as_nanos()))),
            ..Features::default()
        };
        self.writer.finish(&features)
    }
}

const SAMPLE_TYPE: u64 =
    encode::TRAILER_FIELDS | sample_type::IP | sample_type::PERIOD | sample_type::CALLCHAIN;

/// The recording's clock so many nanoseconds after the start.
pub fn at(time: u64) -> Timestamp {
    Timestamp::from_nanos(START + time)
}

fn too_long(error: encode::RecordTooLong) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

/// The kernel counts ids from 1, one per event and CPU.
fn event_id(scenario: &Scenario, event: usize, cpu: usize) -> u64 {
    1 + event as u64 * u64::from(scenario.cpus()) + cpu as u64
}

/// Generic events as the recorder opens them; the encodings of the others are Sandy Bridge's.
const ENCODINGS: [(Role, u32, u64); 5] = [
    (Role::Clk, event_type::HARDWARE, 0),
    (Role::Inst, event_type::HARDWARE, 1),
    (Role::LlcMiss, event_type::HARDWARE, 3),
    (Role::Resource, event_type::RAW, 0x04a2),
    (Role::L2, event_type::RAW, 0x08f0),
];

fn describe(scenario: &Scenario, event: usize) -> EventDesc {
    let about = &scenario.events[event];
    let known = ENCODINGS.iter().find(|(role, ..)| *role == about.role);
    // What no CPU counts yet has a number of its own.
    let (kind, config) =
        known.map_or((event_type::RAW, 0x1_0000 + about.role as u64), |known| (known.1, known.2));
    let flags = flag::SAMPLE_ID_ALL | flag::MMAP | flag::MMAP2 | flag::COMM | flag::TASK | flag::USE_CLOCKID;
    EventDesc {
        name: about.name.clone(),
        attr: EventAttr {
            kind,
            config,
            sample_period: about.period,
            sample_type: SAMPLE_TYPE,
            flags: if scenario.sampling.system_wide { flags } else { flags | flag::INHERIT },
            clockid: 1,
            ..EventAttr::default()
        },
        ids: (0..scenario.cpus() as usize).map(|cpu| event_id(scenario, event, cpu)).collect(),
    }
}

fn metadata(scenario: &Scenario) -> Metadata {
    let threads_per_core = if scenario.effects.siblings.is_some() { 2 } else { 1 };
    let cpus = (0..scenario.cpus())
        .map(|cpu| CpuInfo {
            cpu,
            core: cpu % scenario.cores_per_package / threads_per_core,
            die: 0,
            package: cpu / scenario.cores_per_package,
            kind: CoreKind::Performance,
        })
        .collect();
    let events = scenario.events.iter().map(|event| EventInfo {
        name: event.name.clone(),
        role: Some(event.role),
        encoding: event.name.clone(),
        joules_per_event: event.joules_per_event.clone(),
        core_kind: CoreKind::Performance,
    });
    Metadata {
        format: METADATA_FORMAT,
        eprof_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: vec!["eprof".to_owned(), "simulate".to_owned()],
        target: Target::Command { argv: vec![PROGRAM_PATH.to_owned()], pid: PROGRAM },
        clock: "CLOCK_MONOTONIC".to_owned(),
        started_unix_ns: 0,
        recorder_pid: RECORDER,
        system_wide_samples: scenario.sampling.system_wide,
        machine: MachineInfo {
            hostname: "simulated".to_owned(),
            arch: "x86_64".to_owned(),
            cpu_model: "simulated CPU".to_owned(),
            cpu_identity: "simulated".to_owned(),
            cpus,
            ..MachineInfo::default()
        },
        domains: (0..scenario.packages).flat_map(|package| domains(scenario, package)).collect(),
        events: events.collect(),
        warnings: Vec::new(),
        identity: None,
        meters: MetersRead::default(),
    }
}

fn domains(scenario: &Scenario, package: u32) -> impl Iterator<Item = DomainInfo> + '_ {
    let has_package = scenario.domains.iter().any(|domain| domain.kind == DomainKind::Package);
    scenario.domains.iter().map(move |domain| {
        let (name, parent) = match domain.kind {
            DomainKind::Package => (format!("package-{package}"), None),
            DomainKind::Dram => (format!("dram-{package}"), None),
            kind => {
                let kind = format!("{kind:?}").to_lowercase();
                (format!("package-{package}-{kind}"), has_package.then(|| format!("package-{package}")))
            }
        };
        DomainInfo {
            parent,
            package: Some(package),
            resolution: Some(scenario.meter.resolution),
            refresh: Some(scenario.meter.refresh),
            static_power: domain.static_power_known.then_some(domain.static_power),
            rest: domain.rest,
            ..DomainInfo::new(name, domain.kind, "simulation", Method::Measured)
        }
    })
}
