//! How many quanta the attribution step divides in a second, and how much memory it takes for that: a machine
//! of 16 CPUs, four events sampled about every millisecond, three domains read every 10 ms.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use eprof::attribute::{Attribution, Attributor, Charge, EventWeights, Options, Quantum, Sharing};
use eprof::hardware::{DomainInfo, DomainKind, Method};
use eprof::units::{Joules, Nanoseconds, Timestamp, Watts};

const CPUS: u32 = 16;
const EVENTS: u32 = 4;
const CELLS: u32 = 2000;
const WATTS: [f64; 3] = [100.0, 80.0, 20.0];
/// Time between two samples of an event on a CPU.
const PERIOD: u64 = 1_000_000;
const QUANTA_PER_PERIOD: u64 = (CPUS * EVENTS) as u64;
const PERIODS_PER_READING: u64 = 10;
/// As [`eprof::analyze`] has it.
const HORIZON: Nanoseconds = Nanoseconds::from_millis(200);

fn domain(name: &str, kind: DomainKind, parent: Option<&str>) -> DomainInfo {
    DomainInfo {
        parent: parent.map(str::to_owned),
        package: Some(0),
        cpus: (0..CPUS).collect(),
        ..DomainInfo::new(name, kind, "bench", Method::Measured)
    }
}

fn attributor(bucket: f64) -> Attributor {
    let domains = [
        domain("package-0", DomainKind::Package, None),
        domain("package-0-cores", DomainKind::Cores, Some("package-0")),
        domain("dram-0", DomainKind::Dram, None),
    ];
    let weights = EventWeights::new(EVENTS as usize, domains.len(), |event, domain| {
        if domain == 2 && event < 3 { 0.0 } else { 1e-9 * (event + 1) as f64 }
    });
    let options = Options {
        bucket: Joules::from_joules(bucket),
        sensitivities: true,
        static_power: vec![Watts::from_watts(15.0), Watts::from_watts(12.0), Watts::from_watts(1.5)],
        rises: Vec::new(),
        divided_later: Vec::new(),
        horizon: HORIZON,
        keep_buckets: false,
        sharing: Sharing::ByBucket,
    };
    Attributor::new(&domains, |info| info.cpus.clone(), weights, options, true)
}

/// Feeds so many quanta, in order of time, and ends.
fn attribute(mut attributor: Attributor, quanta: u64) -> Attribution {
    let step = PERIOD / QUANTA_PER_PERIOD;
    for number in 0..quanta {
        let end = PERIOD + number * step;
        if number % (QUANTA_PER_PERIOD * PERIODS_PER_READING) == 0 {
            for (domain, watts) in WATTS.iter().enumerate() {
                let joules = Joules::from_joules(watts * end as f64 * 1e-9);
                attributor.reading(domain, Timestamp::from_nanos(end), joules);
            }
        }
        let stream = (number % QUANTA_PER_PERIOD) as u32;
        attributor.quantum(Quantum {
            start: Timestamp::from_nanos(end - PERIOD),
            end: Timestamp::from_nanos(end),
            cpu: Some(stream % CPUS),
            event: stream / CPUS,
            count: 3_000_000,
            running: Nanoseconds::from_nanos(PERIOD),
            charge: Charge::Cell((number / 7) as u32 % CELLS),
        });
    }
    attributor.finish()
}

fn quanta_per_second(criterion: &mut Criterion) {
    const QUANTA: u64 = 1_000_000;
    let mut group = criterion.benchmark_group("attribution");
    group.throughput(Throughput::Elements(QUANTA)).sample_size(10);
    for bucket in [1.0, 5.0] {
        group.bench_function(BenchmarkId::new("quanta", format!("{bucket} J")), |bencher| {
            bencher.iter_batched(
                || attributor(bucket),
                |attributor| attribute(attributor, black_box(QUANTA)),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

/// Prints the process's greatest memory after ten times as many quanta each.
fn memory(_: &mut Criterion) {
    for quanta in [1_000_000, 10_000_000] {
        let attribution = attribute(attributor(1.0), quanta);
        let attributed = attribution.balances[0].attributed;
        println!(
            "{quanta} quanta, {:.0} J: at most {} of memory so far",
            attributed.as_joules(),
            peak_memory()
        );
    }
}

/// The greatest resident memory of this process so far, as the kernel prints it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "an unknown amount".to_owned(), |line| line.trim().to_owned())
}

criterion_group!(benches, memory, quanta_per_second);
criterion_main!(benches);
