//! A recording made by hand: one second on one CPU, 10 W, a clock that ticks every millisecond.
//!
//! The recorded program is this test binary: samples lie in [`heavy`] and [`light`], so that names and
//! lines come from its own symbols.

use std::fs;
use std::path::Path;

use eprof::hardware::{CoreKind, CpuInfo, DomainInfo, DomainKind, MachineInfo, Method, Role};
use eprof::identity::Identity;
use eprof::recording::energy::EnergyReading;
use eprof::recording::metadata::{EventInfo, METADATA_FORMAT, Metadata, MetersRead, Target};
use eprof::recording::own_events;
use eprof::units::{Joules, Nanoseconds, Timestamp};
use perf_data::EventDesc;
use perf_data::Features;
use perf_data::attr::{EventAttr, flag};
use perf_data::encode::{self, MappingFields, SampleFields, SampleId, TRAILER_FIELDS};
use perf_data::features::BuildId;
use perf_data::format::{event_type, sample_type};
use perf_data::record::CpuMode;
use perf_data::writer::PerfDataWriter;

const PID: u32 = 4242;
const SAMPLES: u64 = 1000;
const WATTS: f64 = 10.0;
/// Of a CPU that nobody has.
pub const CPU_IDENTITY: &str = "made-by-hand";

/// Three of four samples are here.
#[inline(never)]
pub extern "C" fn heavy() -> u32 {
    3
}

/// One of four samples is here.
#[inline(never)]
pub extern "C" fn light() -> u32 {
    1
}

/// What the recording says besides its samples.
pub struct Recorded<'a> {
    pub comm: &'a str,
    pub argv: &'a [&'a str],
    pub warning: &'a str,
    pub domain: &'a str,
    /// Path of a mapping that one sample lies in and that is no file here.
    pub strange_file: &'a str,
    /// How many of four samples are in `heavy`.
    pub heavy_of_four: u64,
    /// How many of three samples in `heavy` are at its second instruction, which returns.
    pub at_return_of_three: u64,
    /// Addresses that lie nowhere, behind the last frame of each sample in `light`.
    pub astray: &'a [u64],
    /// No meter counted: what assumed watts may be off by.
    pub watts_error: Option<f64>,
    /// Where it says that it comes from.
    pub identity: Option<Identity>,
    /// Who read the meters.
    pub meters: MetersRead,
    /// The recorder's process id.
    pub recorder: u32,
    /// When it began on the wall clock, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Its recorder was killed, and had read the meter so often before.
    pub killed_after_readings: Option<u64>,
    /// The recorded programs and libraries are other builds than those that are here.
    pub other_build: bool,
    /// One of ten samples lies in the kernel.
    pub kernel: Option<RecordedKernel<'a>>,
}

/// The kernel that was recorded.
pub struct RecordedKernel<'a> {
    pub build_id: &'a [u8],
    /// Where its symbol `_text` lay.
    pub text: u64,
    /// Where the samples lie.
    pub sampled: u64,
}

impl Default for Recorded<'_> {
    fn default() -> Self {
        Self {
            comm: "app",
            argv: &["app", "--work"],
            warning: "",
            domain: "package-0",
            strange_file: "/nonexistent/libstrange.so",
            heavy_of_four: 3,
            at_return_of_three: 0,
            astray: &[],
            watts_error: None,
            identity: None,
            meters: MetersRead::default(),
            recorder: 1,
            started_unix_ns: 4_000_000_000_000_000_000,
            killed_after_readings: None,
            other_build: false,
            kernel: None,
        }
    }
}

/// A recording of another recorder's, of a clock that never ticked.
pub fn write_empty(path: &Path) {
    let file = fs::File::create(path).expect("a file");
    let writer = PerfDataWriter::create(file, vec![clock()]).expect("a recording");
    writer.finish(&Features::default()).expect("written");
}

impl Recorded<'_> {
    pub fn write(&self, path: &Path) {
        let mut events = vec![clock()];
        let domains = [self.domain()];
        events.extend(own_events::descriptions(&domains));
        let file = fs::File::create(path).expect("a file");
        let mut writer = PerfDataWriter::create(file, events).expect("a recording");
        let mut records = Vec::new();
        let time = |millis: u64| Timestamp::from_nanos(1_000_000_000 + millis * 1_000_000);
        let id = |millis| SampleId { pid: PID, tid: PID, time: time(millis), cpu: 0, id: 1 };

        own_events::metadata(&self.metadata(&domains), time(0), &mut records).expect("it fits");
        encode::comm(PID, PID, self.comm.as_bytes(), true, &id(0), &mut records).expect("it fits");
        for (addresses, file_offset, path) in self.mappings() {
            let mapping = MappingFields {
                pid: PID,
                tid: PID,
                addresses,
                file_offset,
                inode: (0, 0, 0),
                protection: 5,
                flags: 2,
                path: path.as_bytes(),
            };
            encode::mmap2(&mapping, &id(0), &mut records).expect("it fits");
        }
        if let Some(RecordedKernel { text, .. }) = self.kernel {
            let path = b"[kernel.kallsyms]_text";
            encode::kernel_mmap(text..text + 0x100_0000, text, path, &id(0), &mut records).expect("it fits");
        }
        for millis in 0..=SAMPLES {
            let is_read = self.killed_after_readings.is_none_or(|readings| millis / 10 < readings);
            if millis % 10 == 0 && is_read {
                let reading = EnergyReading {
                    energy: Joules::from_joules(millis as f64 * 1e-3 * WATTS),
                    raw: millis,
                    uncertainty: Nanoseconds::ZERO,
                };
                own_events::energy(0, &reading, time(millis), 0, &mut records).expect("it fits");
            }
            if millis > 0 {
                self.sample(millis, time(millis), &mut records);
            }
        }
        writer.write_raw(&records).expect("written");
        // A killed recorder writes no end.
        if self.killed_after_readings.is_none() {
            let kernel = self.kernel.iter();
            let kernel = kernel
                .map(|kernel| BuildId::of_kernel(kernel.build_id.to_vec(), b"[kernel.kallsyms]".to_vec()));
            let mut build_ids: Vec<BuildId> = kernel.collect();
            if self.other_build {
                let paths = self.mappings().into_iter().map(|(_, _, path)| path.into_bytes());
                build_ids.extend(paths.map(|path| BuildId::of_file(vec![0xcd; 20], path)));
            }
            let features = Features { build_ids, ..Features::default() };
            writer.finish(&features).expect("written");
        }
    }

    fn sample(&self, millis: u64, time: Timestamp, records: &mut Vec<u8>) {
        const CONTEXT_USER: u64 = -512i64 as u64;
        const CONTEXT_KERNEL: u64 = -128i64 as u64;
        let caller = Recorded::write as fn(&Self, &Path) as usize as u64 + 8;
        let ip = match millis {
            SAMPLES => STRANGE_ADDRESS,
            _ if millis % 4 < self.heavy_of_four => {
                // Behind `mov $3,%eax`, or one instruction of Arm's.
                let first = if cfg!(target_arch = "x86_64") { 5 } else { 4 };
                let at = if millis % 3 < self.at_return_of_three { first } else { 0 };
                heavy as extern "C" fn() -> u32 as usize as u64 + at
            }
            _ => light as extern "C" fn() -> u32 as usize as u64,
        };
        let mut callchain = vec![CONTEXT_USER, ip, caller];
        if ip == light as extern "C" fn() -> u32 as usize as u64 {
            callchain.extend(self.astray);
        }
        let in_kernel = self.kernel.as_ref().filter(|_| millis % 10 == 5);
        if let Some(kernel) = in_kernel {
            callchain = vec![CONTEXT_KERNEL, kernel.sampled];
        }
        let (ip, mode) = in_kernel.map_or((ip, CpuMode::User), |kernel| (kernel.sampled, CpuMode::Kernel));
        let fields = SampleFields {
            id: 1,
            ip,
            mode,
            pid: PID,
            tid: PID,
            time,
            cpu: 0,
            period: 1_000_000,
            callchain: &callchain,
            raw: &[],
        };
        encode::sample(clock().attr.sample_type, &fields, records).expect("it fits");
    }

    /// The code of this test binary, and a file that does not exist.
    fn mappings(&self) -> Vec<(std::ops::Range<u64>, u64, String)> {
        let maps = fs::read_to_string("/proc/self/maps").expect("our own mappings");
        let mut mappings: Vec<_> = maps
            .lines()
            .filter_map(|line| {
                let mut fields = line.split_whitespace();
                let (range, rights, offset) = (fields.next()?, fields.next()?, fields.next()?);
                let path = fields.nth(2).filter(|path| path.starts_with('/') && rights.contains('x'))?;
                let (start, end) = range.split_once('-')?;
                let number = |text| u64::from_str_radix(text, 16).ok();
                Some((number(start)?..number(end)?, number(offset)?, path.to_owned()))
            })
            .collect();
        mappings.push((STRANGE_ADDRESS..STRANGE_ADDRESS + 4096, 0, self.strange_file.to_owned()));
        mappings
    }

    fn domain(&self) -> DomainInfo {
        let (source, method) = match self.watts_error {
            None => ("power PMU", Method::Measured),
            Some(_) => ("estimate", Method::Estimated),
        };
        DomainInfo {
            package: Some(0),
            refresh: Some(Nanoseconds::from_millis(1)),
            watts_error: self.watts_error,
            ..DomainInfo::new(self.domain, DomainKind::Package, source, method)
        }
    }

    fn metadata(&self, domains: &[DomainInfo]) -> Metadata {
        let cpu = CpuInfo { cpu: 0, core: 0, die: 0, package: 0, kind: CoreKind::Performance };
        Metadata {
            format: METADATA_FORMAT,
            eprof_version: "0.0.0".to_owned(),
            command_line: vec!["eprof".to_owned(), "record".to_owned()],
            target: Target::Command {
                argv: self.argv.iter().map(|&text| text.to_owned()).collect(),
                pid: PID,
            },
            clock: "CLOCK_MONOTONIC".to_owned(),
            started_unix_ns: self.started_unix_ns,
            recorder_pid: self.recorder,
            system_wide_samples: false,
            machine: MachineInfo {
                cpu_identity: CPU_IDENTITY.to_owned(),
                cpus: vec![cpu],
                ..MachineInfo::default()
            },
            domains: domains.to_vec(),
            events: vec![EventInfo {
                name: "cpu-clock".to_owned(),
                role: Some(Role::Clk),
                encoding: String::new(),
                joules_per_event: Default::default(),
                core_kind: CoreKind::Performance,
            }],
            warnings: if self.warning.is_empty() { Vec::new() } else { vec![self.warning.to_owned()] },
            identity: self.identity.clone(),
            meters: self.meters,
        }
    }
}

const STRANGE_ADDRESS: u64 = 0x1000_0000;

fn clock() -> EventDesc {
    EventDesc {
        name: "cpu-clock".to_owned(),
        attr: EventAttr {
            kind: event_type::SOFTWARE,
            config: 0,
            sample_period: 1_000_000,
            sample_type: TRAILER_FIELDS | sample_type::IP | sample_type::PERIOD | sample_type::CALLCHAIN,
            flags: flag::SAMPLE_ID_ALL,
            ..EventAttr::default()
        },
        ids: vec![1],
    }
}
