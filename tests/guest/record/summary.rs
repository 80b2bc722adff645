//! What recordings that were brought back from a guest add up to, and what they should.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use eprof::recording::Recording;
use eprof::recording::energy::EnergyReading;
use eprof::recording::metadata::Metadata;
use perf_data::record::{ReadValue, Record};

use crate::bench::Run;

impl Run {
    /// A recording that was brought back.
    pub fn recording(&self, name: &str) -> Summary {
        Summary::of(&self.file(name))
    }
}

/// What a recording adds up to.
#[derive(Debug, Default)]
pub struct Summary {
    pub metadata: Option<Metadata>,
    /// By event: sum of the samples' periods, and what the counters counted in the end.
    pub events: BTreeMap<String, EventSum>,
    /// By domain: time in nanoseconds and reading.
    pub readings: BTreeMap<String, Vec<(u64, EnergyReading)>>,
    pub throttled: u64,
    pub lost: u64,
    pub kernel_samples: u64,
    /// Tasks that were started, the program's first not among them.
    pub started: u64,
    /// Tasks by the CPUs that they were sampled on.
    pub sampled: BTreeSet<(u32, u32)>,
}

/// One event of a recording.
#[derive(Debug, Default, Clone, Copy)]
pub struct EventSum {
    pub samples: u64,
    pub period: u64,
    pub counted: u64,
    pub running: u64,
    /// The longest that a counter of one CPU was enabled: the time of the only task.
    pub enabled: u64,
}

impl EventSum {
    /// The count that is to be expected had the event never shared a counter.
    pub fn scaled(self) -> f64 {
        self.counted as f64 * self.enabled as f64 / self.running as f64
    }
}

impl Summary {
    fn of(path: &Path) -> Self {
        let recording = Recording::open(path).expect("a readable recording");
        assert!(recording.is_complete());
        let mut summary = Self { metadata: recording.metadata().cloned(), ..Self::default() };
        // Counters are read again and again: by their numbers, what they said last.
        let mut counters: BTreeMap<Option<u64>, (String, ReadValue)> = BTreeMap::new();
        let mut records = recording.records();
        while let Some((_, context, record)) = records.next().expect("an undamaged recording") {
            let desc = context.event.map(|index| &recording.events()[index.0 as usize]);
            let name = desc.map(|desc| desc.name.clone()).unwrap_or_default();
            match record {
                Record::Sample(sample) if name.starts_with("energy/") => {
                    let reading = EnergyReading::from_bytes(sample.raw).expect("a reading");
                    let time = context.time.expect("a time").as_nanos();
                    summary.readings.entry(name).or_default().push((time, reading));
                }
                Record::Sample(sample) if !name.starts_with("eprof/") => {
                    let event = summary.events.entry(name).or_default();
                    event.samples += 1;
                    event.period +=
                        sample.period.or(desc.and_then(|desc| desc.attr.fixed_period())).expect("a period");
                    summary.sampled.extend(context.tid.zip(context.cpu));
                    summary.kernel_samples += u64::from(sample.mode == perf_data::record::CpuMode::Kernel);
                }
                Record::Read { value, .. } => drop(counters.insert(value.id, (name, value))),
                Record::Fork(_) => summary.started += 1,
                Record::Throttle(true) => summary.throttled += 1,
                Record::Lost { count } => summary.lost += count,
                _ => {}
            }
        }
        for (name, value) in counters.into_values() {
            let event = summary.events.entry(name).or_default();
            event.counted += value.value;
            event.running += value.time_running.expect("times");
            event.enabled = event.enabled.max(value.time_enabled.expect("times"));
        }
        summary
    }

    /// The event of this name.
    pub fn event(&self, name: &str) -> EventSum {
        *self.events.get(name).unwrap_or_else(|| panic!("no event {name} among {:?}", self.events.keys()))
    }
}

/// Sums over the threads that chose rates, from the lines of `/proc/simhw`.
#[derive(Debug, Default, Clone, Copy)]
pub struct Truth {
    pub clk: f64,
    pub inst: f64,
    pub rs: f64,
    pub l2: f64,
    pub llc: f64,
}

impl Truth {
    /// `task TID TGID COMM PRESET CPU_NS CLK INST RS L2 LLC ...`
    pub fn of(simhw: &str) -> Self {
        let mut truth = Self::default();
        for line in simhw.lines().filter(|line| line.starts_with("task ") && !line.starts_with("task 0 ")) {
            let numbers: Vec<f64> =
                line.split_whitespace().skip(5).map_while(|word| word.parse().ok()).collect();
            truth.clk += numbers[1];
            truth.inst += numbers[2];
            truth.rs += numbers[3];
            truth.l2 += numbers[4];
            truth.llc += numbers[5];
        }
        assert!(truth.clk > 0.0, "no threads in {simhw}");
        truth
    }
}
