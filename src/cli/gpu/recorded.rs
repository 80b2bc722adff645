//! The power of GPUs in eprof's own recordings.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};
use eprof::gpu::trace::{PowerReading, PowerTrace};
use eprof::hardware::{DomainInfo, DomainKind, Method};
use eprof::recording::Recording;
use eprof::recording::energy::{EnergyReading, domain_of_event};
use eprof::units::{Joules, Timestamp, Watts};
use perf_data::record::Record;

/// One GPU of a recording.
pub struct RecordedGpu {
    /// Name of its domain: `gpu-0`.
    pub name: String,
    /// The meter.
    pub source: String,
    /// Power as the sensor told it, or between two changes of an energy counter.
    pub trace: PowerTrace,
    /// The power is that of a counter: there is nothing to correct.
    pub is_counter: bool,
}

/// Does the file begin like a recording?
pub fn is_recording(path: &Path) -> bool {
    let mut magic = [0; 8];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"PERFILE2"
}

/// The GPUs whose power was measured.
pub fn gpus(path: &Path) -> anyhow::Result<Vec<RecordedGpu>> {
    let recording = Recording::open(path)?;
    let domains = recording.metadata().map_or(&[][..], |metadata| &metadata.domains);
    let is_gpu = |domain: &&DomainInfo| domain.kind == DomainKind::Gpu && domain.method == Method::Measured;
    let gpus: Vec<&DomainInfo> = domains.iter().filter(is_gpu).collect();
    if gpus.is_empty() {
        bail!("{} has no GPU whose power was measured; `eprof doctor` tells why", path.display());
    }
    let mut readings: Vec<Vec<(Timestamp, EnergyReading)>> = vec![Vec::new(); gpus.len()];
    let of_event: Vec<Option<usize>> = recording
        .events()
        .iter()
        .map(|event| gpus.iter().position(|gpu| domain_of_event(&event.name) == Some(&gpu.name)))
        .collect();
    let mut records = recording.records();
    loop {
        match records.next() {
            Ok(Some((_, context, Record::Sample(sample)))) => {
                let gpu = context.event.and_then(|event| *of_event.get(event.0 as usize)?);
                if let (Some(gpu), Some(time), Some(reading)) =
                    (gpu, context.time, EnergyReading::from_bytes(sample.raw))
                {
                    readings[gpu].push((time, reading));
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) if error.is_recoverable() => {}
            Err(error) => return Err(error).context("the recording is damaged"),
        }
    }
    Ok(gpus.into_iter().zip(readings).map(|(gpu, readings)| recorded_gpu(gpu, readings)).collect())
}

fn recorded_gpu(gpu: &DomainInfo, mut readings: Vec<(Timestamp, EnergyReading)>) -> RecordedGpu {
    readings.sort_by_key(|(time, _)| *time);
    // NVML's power meters keep each answer, in milliwatts, beside the energy that they add up.
    let is_counter = !gpu.source.starts_with("NVML") || gpu.source.starts_with("NVML energy counter");
    let trace = if is_counter {
        between_changes(&readings)
    } else {
        let as_told = |(time, reading): &(Timestamp, EnergyReading)| PowerReading {
            time: *time,
            power: Watts::from_milliwatts(reading.raw),
        };
        PowerTrace::new(readings.iter().map(as_told).collect())
    };
    RecordedGpu { name: gpu.name.clone(), source: gpu.source.clone(), trace, is_counter }
}

/// Mean power from each change of a counter to the next.
fn between_changes(readings: &[(Timestamp, EnergyReading)]) -> PowerTrace {
    let mut changes: Vec<(Timestamp, Joules)> = Vec::new();
    for (time, EnergyReading { energy, .. }) in readings {
        if changes.last().is_none_or(|(last, before)| energy > before && time > last) {
            changes.push((*time, *energy));
        }
    }
    let power = |pair: &[(Timestamp, Joules)]| PowerReading {
        time: pair[1].0,
        power: (pair[1].1 - pair[0].1) / pair[1].0.since(pair[0].0),
    };
    PowerTrace::new(changes.windows(2).map(power).collect())
}
