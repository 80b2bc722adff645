//! Recordings of GPUs, made by hand: readings of power sensors and energy counters, nothing else.

use std::fs;
use std::path::Path;

use eprof::gpu::trace::PowerTrace;
use eprof::hardware::{DomainInfo, DomainKind, MachineInfo, Method};
use eprof::recording::energy::EnergyReading;
use eprof::recording::metadata::{METADATA_FORMAT, Metadata, MetersRead, Target};
use eprof::recording::own_events;
use eprof::units::{Joules, Nanoseconds, Timestamp};
use perf_data::Features;
use perf_data::writer::PerfDataWriter;

/// What one GPU's meter said.
pub struct Gpu {
    /// As `eprof record` names the meter: `NVML instant power (Fake GPU)`.
    pub source: &'static str,
    /// Times, and what was read then.
    pub readings: Vec<(Timestamp, EnergyReading)>,
}

impl Gpu {
    /// A power sensor, whose readings are kept in milliwatts.
    pub fn with_sensor(polled: &PowerTrace) -> Self {
        let reading = |reading: &eprof::gpu::trace::PowerReading| {
            let raw = (reading.power.as_watts() * 1e3).round() as u64;
            (reading.time, EnergyReading { energy: Joules::ZERO, raw, uncertainty: Nanoseconds::ZERO })
        };
        Self {
            source: "NVML instant power (Fake GPU)",
            readings: polled.readings().iter().map(reading).collect(),
        }
    }

    /// An energy counter in millijoules, which moves every 20 ms and is polled every 10 ms.
    pub fn with_counter(joules_at: impl Fn(f64) -> f64, seconds: f64) -> Self {
        let polls = (seconds * 100.0) as u64;
        let reading = |poll: u64| {
            let raw = (joules_at((poll / 2 * 2) as f64 * 0.01) * 1e3) as u64;
            let energy = Joules::from_millijoules(raw);
            let time = Timestamp::from_nanos(1_000_000_000 + poll * 10_000_000);
            (time, EnergyReading { energy, raw, uncertainty: Nanoseconds::ZERO })
        };
        Self { source: "NVML energy counter (Fake GPU)", readings: (0..=polls).map(reading).collect() }
    }
}

/// Writes a recording of these GPUs, `gpu-0` first.
pub fn write(path: &Path, gpus: &[Gpu]) {
    let domains: Vec<DomainInfo> = gpus
        .iter()
        .enumerate()
        .map(|(index, gpu)| {
            DomainInfo::new(format!("gpu-{index}"), DomainKind::Gpu, gpu.source, Method::Measured)
        })
        .collect();
    let metadata = Metadata {
        format: METADATA_FORMAT,
        eprof_version: "0.0.0".to_owned(),
        command_line: Vec::new(),
        target: Target::System,
        clock: "CLOCK_MONOTONIC".to_owned(),
        started_unix_ns: 0,
        recorder_pid: 1,
        system_wide_samples: true,
        machine: MachineInfo::default(),
        domains: domains.clone(),
        events: Vec::new(),
        warnings: Vec::new(),
        identity: None,
        meters: MetersRead::default(),
    };
    let file = fs::File::create(path).expect("a file");
    let mut writer = PerfDataWriter::create(file, own_events::descriptions(&domains)).expect("a recording");
    let mut records = Vec::new();
    own_events::metadata(&metadata, Timestamp::from_nanos(1), &mut records).expect("it fits");
    for (index, gpu) in gpus.iter().enumerate() {
        for (time, reading) in &gpu.readings {
            own_events::energy(index, reading, *time, 0, &mut records).expect("it fits");
        }
    }
    writer.write_raw(&records).expect("written");
    writer.finish(&Features::default()).expect("written");
}
