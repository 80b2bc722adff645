//! Recordings of deep call stacks: every frame any of some functions, so that hardly two stacks are alike, or as
//! ordinary programs have them.

use std::collections::BTreeSet;
use std::io::{self, Seek, Write};

use eprof::hardware::{CoreKind, CpuInfo, DomainInfo, DomainKind, MachineInfo, Method};
use eprof::recording::energy::EnergyReading;
use eprof::recording::metadata::{METADATA_FORMAT, Metadata, MetersRead, Target};
use eprof::recording::own_events;
use eprof::units::{Joules, Nanoseconds, Timestamp};
use perf_data::attr::{EventAttr, flag};
use perf_data::encode::{self, SampleFields, SampleId};
use perf_data::features::CpuCount;
use perf_data::format::{event_type, record_type, sample_type};
use perf_data::record::CpuMode;
use perf_data::{EventDesc, Features, PerfDataWriter};

/// What is recorded.
#[derive(Debug, Clone, Copy)]
pub struct Deep {
    pub samples: u64,
    pub functions: u64,
    pub depth: u64,
    /// Of so many calls one goes where chance has it; the others the usual way.
    pub one_by_chance_of: u64,
}

/// A program that recurses at random: 28 frames of 300 functions.
pub const RANDOM: Deep = Deep { samples: 1_000_000, functions: 300, depth: 28, one_by_chance_of: 1 };

/// What the recording should say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeepTruth {
    /// By function: samples in itself, and with all that it called.
    pub samples: Vec<(u64, u64)>,
}

/// The name of a function.
pub fn name(function: u64) -> String {
    format!("work_{function:03}")
}

const TEXT: u64 = 0xffff_ffff_c000_0000;
const FUNCTION_SIZE: u64 = 0x1000;
const CONTEXT_KERNEL: u64 = -128i64 as u64;
const CPUS: u64 = 2;
const PROGRAM: u32 = 1000;
const PERIOD: u64 = 100_000;
const READING_EVERY: u64 = 1_000_000;
const SAMPLE_TYPE: u64 =
    encode::TRAILER_FIELDS | sample_type::IP | sample_type::PERIOD | sample_type::CALLCHAIN;

/// A stream of pseudo-random numbers (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % end
    }
}

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(1_000_000_000_000 + nanos)
}

fn too_long(error: encode::RecordTooLong) -> io::Error {
    io::Error::other(error)
}

impl Deep {
    /// Writes the recording. Names of functions are in it, so that nothing else is needed to read it.
    pub fn write<W: Write + Seek>(&self, file: W) -> io::Result<(W, DeepTruth)> {
        let metadata = metadata();
        let mut events = vec![EventDesc {
            name: "cpu-clock".to_owned(),
            attr: EventAttr {
                kind: event_type::SOFTWARE,
                sample_period: PERIOD,
                sample_type: SAMPLE_TYPE,
                flags: flag::SAMPLE_ID_ALL | flag::KSYMBOL | flag::COMM | flag::TASK | flag::USE_CLOCKID,
                clockid: 1,
                ..EventAttr::default()
            },
            ids: (1..=CPUS).collect(),
        }];
        events.extend(own_events::descriptions(&metadata.domains));
        let mut writer = PerfDataWriter::create(file, events)?;
        let mut records = Vec::new();
        own_events::metadata(&metadata, at(0), &mut records).map_err(too_long)?;
        (0..self.functions).for_each(|function| kernel_symbol(function, &mut records));
        for thread in 0..CPUS as u32 {
            let id = SampleId { pid: PROGRAM, tid: PROGRAM + thread, time: at(0), cpu: thread, id: 1 };
            let name = format!("thread-{thread}");
            encode::comm(PROGRAM, PROGRAM + thread, name.as_bytes(), false, &id, &mut records)
                .map_err(too_long)?;
        }
        let mut truth = DeepTruth { samples: vec![(0, 0); self.functions as usize] };
        let mut numbers = Numbers(7);
        let (mut next_reading, mut joules) = (0, 0.0);
        for sample in 0..self.samples {
            let time = (1 + sample / CPUS) * PERIOD + sample % CPUS;
            while next_reading <= time {
                reading(next_reading, joules, &mut records)?;
                // Between 5 and 25 W, changing slowly.
                joules += (15.0 + 10.0 * (next_reading as f64 / 3e8).sin()) * READING_EVERY as f64 * 1e-9;
                next_reading += READING_EVERY;
            }
            self.sample(sample, time, &mut numbers, &mut truth, &mut records)?;
            if sample % 4096 == 4095 {
                encode::finished_round(&mut records);
                writer.write_raw(&records)?;
                records.clear();
            }
        }
        reading(next_reading, joules, &mut records)?;
        writer.write_raw(&records)?;
        let features = Features {
            arch: Some("x86_64".to_owned()),
            cpus: Some(CpuCount { available: CPUS as u32, online: CPUS as u32 }),
            ..Features::default()
        };
        Ok((writer.finish(&features)?, truth))
    }

    fn sample(
        &self,
        sample: u64,
        time: u64,
        numbers: &mut Numbers,
        truth: &mut DeepTruth,
        records: &mut Vec<u8>,
    ) -> io::Result<()> {
        let (cpu, depth) = ((sample % CPUS) as u32, self.depth);
        // From the outermost on.
        let functions: Vec<u64> = (0..depth)
            .map(|level| match numbers.below(self.one_by_chance_of) {
                0 => numbers.below(self.functions),
                _ => level % self.functions,
            })
            .collect();
        let addresses = functions.iter().zip(0..).map(|(function, level): (&u64, u64)| {
            // Three places in each function call another; the innermost is somewhere else.
            let call = if level + 1 == depth { 0x10 } else { 0x100 + 0x10 * (level % 3) };
            TEXT + FUNCTION_SIZE * function + call
        });
        let mut chain: Vec<u64> = addresses.collect();
        chain.push(CONTEXT_KERNEL);
        chain.reverse();
        let fields = SampleFields {
            id: 1 + u64::from(cpu),
            ip: chain[1],
            mode: CpuMode::Kernel,
            pid: PROGRAM,
            tid: PROGRAM + cpu,
            time: at(time),
            cpu,
            period: PERIOD,
            callchain: &chain,
            raw: &[],
        };
        truth.samples[functions[depth as usize - 1] as usize].0 += 1;
        let distinct: BTreeSet<u64> = functions.into_iter().collect();
        distinct.into_iter().for_each(|function| truth.samples[function as usize].1 += 1);
        encode::sample(SAMPLE_TYPE, &fields, records).map_err(too_long)
    }
}

fn reading(time: u64, joules: f64, records: &mut Vec<u8>) -> io::Result<()> {
    let energy = Joules::from_joules(joules);
    let reading = EnergyReading { energy, raw: 0, uncertainty: Nanoseconds::ZERO };
    own_events::energy(0, &reading, at(time), 0, records).map_err(too_long)
}

/// A function of the kernel's that was made at run time: such records tell its name.
fn kernel_symbol(function: u64, records: &mut Vec<u8>) {
    let mut name = name(function).into_bytes();
    name.resize((name.len() + 1).next_multiple_of(8), 0);
    let trailer = 32;
    let size = 8 + 16 + name.len() + trailer;
    records.extend(record_type::KSYMBOL.to_le_bytes());
    records.extend(0u16.to_le_bytes());
    records.extend((size as u16).to_le_bytes());
    records.extend((TEXT + FUNCTION_SIZE * function).to_le_bytes());
    records.extend((FUNCTION_SIZE as u32).to_le_bytes());
    // The only kind there is, and no flags: it was registered.
    records.extend([1, 0, 0, 0]);
    records.extend(name);
    // Who, when, where, and of which event.
    records.extend([u32::MAX.to_le_bytes(), 0u32.to_le_bytes()].concat());
    records.extend(at(0).as_nanos().to_le_bytes());
    records.extend([0; 8]);
    records.extend(1u64.to_le_bytes());
}

fn metadata() -> Metadata {
    let cpu = |cpu| CpuInfo { cpu, core: cpu, die: 0, package: 0, kind: CoreKind::Performance };
    Metadata {
        format: METADATA_FORMAT,
        eprof_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: Vec::new(),
        target: Target::System,
        clock: "CLOCK_MONOTONIC".to_owned(),
        started_unix_ns: 0,
        recorder_pid: 1,
        system_wide_samples: true,
        machine: MachineInfo {
            hostname: "simulated".to_owned(),
            arch: "x86_64".to_owned(),
            cpu_identity: "simulated".to_owned(),
            cpus: (0..CPUS as u32).map(cpu).collect(),
            ..MachineInfo::default()
        },
        domains: vec![DomainInfo {
            package: Some(0),
            ..DomainInfo::new("package-0", DomainKind::Package, "simulation", Method::Measured)
        }],
        events: Vec::new(),
        warnings: Vec::new(),
        identity: None,
        meters: MetersRead::default(),
    }
}
