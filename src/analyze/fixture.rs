//! A machine for tests, and recordings of it.

use std::collections::BTreeMap;
use std::io::Cursor;

use perf_data::attr::{EventAttr, flag};
use perf_data::encode::{self, SampleFields};
use perf_data::format::{event_type, read_format, record_type, sample_type};
use perf_data::record::CpuMode;
use perf_data::{EventDesc, Features, PerfDataWriter};

use crate::hardware::{CoreKind, DomainInfo, DomainKind, MachineInfo, Method, Role};
use crate::recording::energy::{CpuTimes, EnergyReading};
use crate::recording::metadata::{EventInfo, METADATA_FORMAT, Metadata, MetersRead, Target};
use crate::recording::{Recording, own_events};
use crate::units::{Joules, Nanoseconds, Timestamp};

/// One package with its cores and memory, sampled by cycles and instructions.
pub fn metadata() -> Metadata {
    Metadata {
        format: METADATA_FORMAT,
        eprof_version: "0.1.0".to_owned(),
        command_line: Vec::new(),
        target: Target::System,
        clock: "CLOCK_MONOTONIC".to_owned(),
        started_unix_ns: 0,
        recorder_pid: 1,
        system_wide_samples: true,
        machine: MachineInfo { cpu_identity: "GenuineIntel-6-2D-7".to_owned(), ..MachineInfo::default() },
        domains: vec![
            domain("package-0", DomainKind::Package, None),
            domain("package-0-cores", DomainKind::Cores, Some("package-0")),
            domain("dram-0", DomainKind::Dram, None),
        ],
        events: vec![
            event("cycles", Role::Clk, "hardware/config=0x0/"),
            event("instructions", Role::Inst, "hardware/config=0x1/"),
        ],
        warnings: Vec::new(),
        identity: None,
        meters: MetersRead::default(),
    }
}

/// A measured domain that feeds all CPUs.
pub fn domain(name: &str, kind: DomainKind, parent: Option<&str>) -> DomainInfo {
    DomainInfo { parent: parent.map(str::to_owned), ..DomainInfo::new(name, kind, "test", Method::Measured) }
}

/// An event without coefficients of its own.
pub fn event(name: &str, role: Role, encoding: &str) -> EventInfo {
    EventInfo {
        name: name.to_owned(),
        role: Some(role),
        encoding: encoding.to_owned(),
        joules_per_event: BTreeMap::new(),
        core_kind: CoreKind::Performance,
    }
}

const TEXT: u64 = 0xffff_ffff_c000_0000;
const FUNCTION_SIZE: u64 = 0x100;
const CONTEXT_KERNEL: u64 = -128i64 as u64;
/// Nanoseconds between two samples of a CPU.
pub const PERIOD: u64 = 1_000_000;
const USUAL_FLAGS: u64 = flag::SAMPLE_ID_ALL | flag::KSYMBOL | flag::USE_CLOCKID;
/// What samples tell.
pub const SAMPLE_TYPE: u64 =
    encode::TRAILER_FIELDS | sample_type::IP | sample_type::PERIOD | sample_type::CALLCHAIN;

/// A recording of samples on two CPUs in turn, each with its stack, the outermost function first. Functions below 100
/// have names: `f7`. The ring of one CPU is written after that of the other, twenty samples at a time.
pub fn recording_of_stacks(stacks: &[Vec<u64>]) -> Recording {
    recording_with_readings(stacks, metadata(), |_| true)
}

/// The same of a recorder that says this of itself, and that reads the meters before the samples and after each forty of them
/// where `is_read` says so.
pub fn recording_with_readings(
    stacks: &[Vec<u64>],
    metadata: Metadata,
    is_read: impl Fn(usize) -> bool,
) -> Recording {
    Recording::from_bytes(file_with_readings(stacks, metadata, is_read)).expect("a recording")
}

/// The file of such a recording.
pub fn file_with_readings(
    stacks: &[Vec<u64>],
    metadata: Metadata,
    is_read: impl Fn(usize) -> bool,
) -> Vec<u8> {
    file_with(stacks, metadata, is_read, |_, _| {})
}

/// A recording of this target by a clock, with these flags of its event besides.
pub fn recording_of_clock(target: Target, system_wide_samples: bool, flags: u64) -> Recording {
    let metadata = Metadata { target, system_wide_samples, ..metadata() };
    with_flags(file_with_readings(&[vec![1]], metadata, |_| true), flags)
}

/// A recording of this target by the cycles of CPUs: of hardware's events as of software's, the first by number.
pub fn recording_of_cycles(target: Target) -> Recording {
    let metadata = Metadata { target, system_wide_samples: false, ..metadata() };
    let mut file = file_with_readings(&[vec![1]], metadata, |_| true);
    // In `perf_event_attr` the type is forty bytes before the flags.
    let at = place_of_flags(&file) - 40;
    file[at..at + 4].copy_from_slice(&event_type::HARDWARE.to_le_bytes());
    Recording::from_bytes(file).expect("a recording")
}

/// A recording of a program, of these stacks, whose counters have three times the CPU time that its samples have.
pub fn recording_of_left_out_ticks(stacks: &[Vec<u64>]) -> Recording {
    let target = Target::Command { argv: vec!["app".to_owned()], pid: 50 };
    let metadata = Metadata { target, system_wide_samples: false, ..metadata() };
    let times = |time: Timestamp, records: &mut Vec<u8>| {
        let own = Nanoseconds::from_nanos(3 * (time.as_nanos() - 1_000_000_000));
        let own = [(0, own), (1, own)];
        let all = CpuTimes { recorder: Nanoseconds::ZERO, busy: own.to_vec() };
        own_events::cpu_times_with_target(&all, &own, time, records).expect("short");
    };
    with_flags(file_with(stacks, metadata, |_| true, times), flag::TASK)
}

/// A recording whose clock has these flags beside its usual ones.
fn with_flags(mut file: Vec<u8>, flags: u64) -> Recording {
    let at = place_of_flags(&file);
    file[at..at + 8].copy_from_slice(&(USUAL_FLAGS | flags).to_le_bytes());
    Recording::from_bytes(file).expect("a recording")
}

/// Where the flags of a file's sampled event lie.
fn place_of_flags(file: &[u8]) -> usize {
    file.windows(8).position(|bytes| bytes == USUAL_FLAGS.to_le_bytes()).expect("the clock's flags")
}

/// The same with other records beside each reading of the meters.
pub fn file_with(
    stacks: &[Vec<u64>],
    metadata: Metadata,
    is_read: impl Fn(usize) -> bool,
    beside: impl Fn(Timestamp, &mut Vec<u8>),
) -> Vec<u8> {
    let at = |nanos: u64| Timestamp::from_nanos(1_000_000_000 + nanos);
    let metadata = Metadata { events: Vec::new(), ..metadata };
    let attr = EventAttr {
        kind: event_type::SOFTWARE,
        sample_period: PERIOD,
        sample_type: SAMPLE_TYPE,
        read_format: read_format::ID | read_format::TOTAL_TIME_ENABLED | read_format::TOTAL_TIME_RUNNING,
        flags: USUAL_FLAGS,
        clockid: 1,
        ..EventAttr::default()
    };
    let mut events = vec![EventDesc { name: "cpu-clock".to_owned(), attr, ids: vec![1, 2] }];
    events.extend(own_events::descriptions(&metadata.domains));
    let mut writer = PerfDataWriter::create(Cursor::new(Vec::new()), events).expect("a vector takes all");
    let mut records = Vec::new();
    own_events::metadata(&metadata, at(0), &mut records).expect("short");
    (0..100).for_each(|function| kernel_symbol(function, at(0), &mut records));
    let reading = |time: u64, records: &mut Vec<u8>| {
        let domains = metadata.domains.len();
        for (domain, watts) in [10.0, 7.0, 2.0].into_iter().enumerate().take(domains) {
            // Not the same power all the time.
            let seconds = time as f64 * 1e-9;
            let energy = Joules::from_joules(watts * (seconds + 0.01 * (seconds * 300.0).sin()));
            let reading = EnergyReading { energy, raw: 0, uncertainty: Nanoseconds::ZERO };
            own_events::energy(domain, &reading, at(time), 0, records).expect("short");
        }
        beside(at(time), records);
    };
    let sample = |number: u64, stack: &[u64], records: &mut Vec<u8>| {
        let cpu = (number % 2) as u32;
        let mut chain: Vec<u64> =
            stack.iter().map(|function| TEXT + FUNCTION_SIZE * function + 0x10).collect();
        chain.push(CONTEXT_KERNEL);
        chain.reverse();
        let fields = SampleFields {
            id: 1 + u64::from(cpu),
            ip: chain.get(1).copied().unwrap_or(0),
            mode: CpuMode::Kernel,
            pid: 50,
            tid: 50 + cpu,
            time: at((1 + number / 2) * PERIOD + number % 2),
            cpu,
            period: PERIOD,
            callchain: &chain,
            raw: &[],
        };
        encode::sample(SAMPLE_TYPE, &fields, records).expect("short");
    };
    if is_read(0) {
        reading(0, &mut records);
    }
    let numbered: Vec<(u64, &Vec<u64>)> = (0..).zip(stacks).collect();
    for (index, round) in numbered.chunks(40).enumerate() {
        for cpu in 0..2 {
            let of_cpu = round.iter().filter(|(number, _)| number % 2 == cpu);
            of_cpu.for_each(|(number, stack)| sample(*number, stack, &mut records));
        }
        let end = round.last().map_or(0, |(number, _)| (1 + number / 2) * PERIOD);
        if is_read(index + 1) {
            reading(end + 1000, &mut records);
        }
        encode::finished_round(&mut records);
    }
    writer.write_raw(&records).expect("a vector takes all");
    writer.finish(&Features::default()).expect("a vector takes all").into_inner()
}

/// The name of a function, as the kernel tells of one that was made at run time.
fn kernel_symbol(function: u64, time: Timestamp, records: &mut Vec<u8>) {
    let mut name = format!("f{function}").into_bytes();
    name.resize((name.len() + 1).next_multiple_of(8), 0);
    let trailer = 32;
    records.extend(record_type::KSYMBOL.to_le_bytes());
    records.extend(0u16.to_le_bytes());
    records.extend(((8 + 16 + name.len() + trailer) as u16).to_le_bytes());
    records.extend((TEXT + FUNCTION_SIZE * function).to_le_bytes());
    records.extend((FUNCTION_SIZE as u32).to_le_bytes());
    records.extend([1, 0, 0, 0]);
    records.extend(name);
    records.extend([u32::MAX.to_le_bytes(), 0u32.to_le_bytes()].concat());
    records.extend(time.as_nanos().to_le_bytes());
    records.extend([0; 8]);
    records.extend(1u64.to_le_bytes());
}
