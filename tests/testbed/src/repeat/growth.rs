//! By how much everything that only grows has grown from a recording's beginning to its end.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use anyhow::{Context, ensure};
use eprof::recording::Recording;
use eprof::recording::energy::{CpuTimes, EnergyReading, domain_of_event};
use eprof::recording::metadata::CPU_TIMES_EVENT;
use eprof::units::{Joules, Nanoseconds};
use perf_data::format::record_type;
use perf_data::record::{EventIndex, Record};

/// How much that is.
#[derive(Default)]
pub struct Growth {
    /// Nanoseconds from one repetition to the next.
    pub time: u64,
    energy: HashMap<EventIndex, (Joules, u64)>,
    cpu_times: HashMap<EventIndex, Times>,
}

/// CPU time of the recorder, of each CPU and of the program on each CPU.
struct Times {
    recorder: Nanoseconds,
    busy: Vec<(u32, Nanoseconds)>,
    target: Vec<(u32, Nanoseconds)>,
}

impl Growth {
    /// Reads the whole recording.
    pub fn of(recording: &Recording) -> anyhow::Result<Self> {
        let mut growth = Self::default();
        let mut energy: HashMap<EventIndex, [EnergyReading; 2]> = HashMap::new();
        let mut cpu_times: HashMap<EventIndex, [Times; 2]> = HashMap::new();
        let (mut first, mut last) = (u64::MAX, 0);
        let names: Vec<&str> = recording.events().iter().map(|event| event.name.as_str()).collect();
        let mut records = recording.records();
        while let Some(raw) = records.next_raw()? {
            let context = recording.decoder().context(&raw);
            if let Some(time) = context.time.map(|time| time.as_nanos()) {
                (first, last) = (first.min(time), last.max(time));
            }
            let Some((event, name)) = context.event.and_then(|at| Some((at, *names.get(at.0 as usize)?)))
            else {
                continue;
            };
            let (is_energy, is_times) = (domain_of_event(name).is_some(), name == CPU_TIMES_EVENT);
            if raw.kind != record_type::SAMPLE || !(is_energy || is_times) {
                continue;
            }
            let Record::Sample(sample) = recording.decoder().decode(&raw, &context)? else { continue };
            if is_energy {
                let reading = EnergyReading::from_bytes(sample.raw).context("an energy reading")?;
                energy.entry(event).or_insert([reading; 2])[1] = reading;
            } else {
                let read = || Times::read(sample.raw).context("CPU times");
                match cpu_times.entry(event) {
                    Entry::Occupied(mut known) => known.get_mut()[1] = read()?,
                    Entry::Vacant(new) => {
                        new.insert([read()?, read()?]);
                    }
                }
            }
        }
        ensure!(first <= last, "a recording without times cannot be repeated");
        growth.time = last - first + 1;
        let grown = |[first, last]: [EnergyReading; 2]| {
            (last.energy - first.energy, last.raw.wrapping_sub(first.raw))
        };
        growth.energy = energy.into_iter().map(|(event, readings)| (event, grown(readings))).collect();
        growth.cpu_times =
            cpu_times.into_iter().map(|(event, [first, last])| (event, last.since(&first))).collect();
        Ok(growth)
    }

    /// The reading of an own event as it is in a later repetition; `None` for other events' samples.
    pub fn reading(&self, event: EventIndex, raw: &[u8], repetition: u64) -> Option<Vec<u8>> {
        if let Some((joules, counts)) = self.energy.get(&event) {
            let reading = EnergyReading::from_bytes(raw)?;
            let energy = reading.energy + *joules * repetition as f64;
            let raw = reading.raw.wrapping_add(counts.wrapping_mul(repetition));
            return Some(EnergyReading { energy, raw, ..reading }.to_bytes().to_vec());
        }
        Some(Times::read(raw)?.after(self.cpu_times.get(&event)?, repetition).to_bytes())
    }
}

impl Times {
    fn read(raw: &[u8]) -> Option<Self> {
        let (CpuTimes { recorder, busy }, target) = CpuTimes::with_target_from_bytes(raw)?;
        Some(Self { recorder, busy, target })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let times = CpuTimes { recorder: self.recorder, busy: self.busy.clone() };
        if self.target.is_empty() { times.to_bytes() } else { times.to_bytes_with_target(&self.target) }
    }

    fn since(&self, first: &Self) -> Self {
        let difference = |last: &[(u32, Nanoseconds)], first: &[(u32, Nanoseconds)]| {
            last.iter().map(|&(cpu, time)| (cpu, minus(time, of_cpu(first, cpu)))).collect()
        };
        Self {
            recorder: minus(self.recorder, first.recorder),
            busy: difference(&self.busy, &first.busy),
            target: difference(&self.target, &first.target),
        }
    }

    /// A CPU that the program has not been on yet has no time, but in a later repetition it has.
    fn after(&self, growth: &Self, repetitions: u64) -> Self {
        let scaled = |time: Nanoseconds| Nanoseconds::from_nanos(time.as_nanos() * repetitions);
        let sum = |times: &[(u32, Nanoseconds)], growth: &[(u32, Nanoseconds)]| {
            growth.iter().map(|&(cpu, grown)| (cpu, of_cpu(times, cpu) + scaled(grown))).collect()
        };
        Self {
            recorder: self.recorder + scaled(growth.recorder),
            busy: sum(&self.busy, &growth.busy),
            target: sum(&self.target, &growth.target),
        }
    }
}

fn of_cpu(times: &[(u32, Nanoseconds)], cpu: u32) -> Nanoseconds {
    times.iter().find(|(of, _)| *of == cpu).map_or(Nanoseconds::ZERO, |(_, time)| *time)
}

fn minus(later: Nanoseconds, earlier: Nanoseconds) -> Nanoseconds {
    Nanoseconds::from_nanos(later.as_nanos().saturating_sub(earlier.as_nanos()))
}
