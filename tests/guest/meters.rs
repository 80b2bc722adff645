//! The energy meters on a real kernel, against the simulated hardware's own account.

use std::fs;
use std::time::{Duration, Instant};

use eprof::machine::Roots;
use eprof::meter::{Discovery, EnergyMeter, MeterOptions, Source, StampedReading, discover};
use eprof::units::Nanoseconds;

use crate::bench;
use crate::this_program::{is_inside, run, run_program};

/// What one package has used, by the simulation's exact account.
#[derive(Debug, Clone, Copy)]
struct Truth {
    seconds: f64,
    package: f64,
    cores: f64,
    dram: f64,
}

impl Truth {
    fn middle(&self, other: &Self) -> Self {
        let middle = |of: fn(&Self) -> f64| (of(self) + of(other)) / 2.0;
        Self {
            seconds: middle(|truth| truth.seconds),
            package: middle(|truth| truth.package),
            cores: middle(|truth| truth.cores),
            dram: middle(|truth| truth.dram),
        }
    }
}

/// `package PACKAGE TIME_NS PKG_UJ CORES_UJ DRAM_UJ`
fn truth() -> Vec<Truth> {
    let text = fs::read_to_string("/proc/simhw").expect("the guest has simulated hardware");
    let packages = text.lines().filter_map(|line| line.strip_prefix("package "));
    packages
        .map(|line| {
            let fields: Vec<f64> =
                line.split_whitespace().map(|field| field.parse().expect("a number")).collect();
            Truth {
                seconds: fields[1] * 1e-9,
                package: fields[2] * 1e-6,
                cores: fields[3] * 1e-6,
                dram: fields[4] * 1e-6,
            }
        })
        .collect()
}

fn discovered(only: &[Source]) -> Discovery {
    let options = MeterOptions { only: Some(only.to_vec()), ..MeterOptions::default() };
    let discovery = discover(&Roots::default(), &options).expect("the machine can be described");
    for rejected in &discovery.rejected {
        println!("rejected {rejected}");
    }
    for warning in &discovery.warnings {
        println!("warning {warning}");
    }
    for domain in &discovery.domains {
        println!(
            "{} {} parent {:?} resolution {:?} refresh {:?}",
            domain.source, domain.name, domain.parent, domain.resolution, domain.refresh
        );
    }
    discovery
}

/// Domain names and their joules so far.
fn read(meters: &mut [Box<dyn EnergyMeter>]) -> Vec<(String, f64)> {
    let mut all = Vec::new();
    let mut readings = Vec::new();
    for meter in meters {
        meter.read(&mut readings).expect("the meter can be read");
        let named = meter.domains().iter().zip(&readings);
        all.extend(named.map(|(domain, reading)| {
            (domain.name.clone(), reading.expect("the domain can be read").energy.as_joules())
        }));
    }
    all
}

/// Burns and sleeps in turn for a while, reading often enough for narrow counters.
fn work(meters: &mut [Box<dyn EnergyMeter>], duration: Duration) {
    let start = Instant::now();
    let mut sum = 0u64;
    while start.elapsed() < duration {
        let burst = Instant::now();
        while burst.elapsed() < Duration::from_millis(20) {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        std::thread::sleep(Duration::from_millis(10));
        read(meters);
    }
}

/// The truth and the meters' readings at nearly one instant. The host may keep the guest waiting
/// anywhere, so the pair is taken anew until the truth before and after the readings lie close.
fn read_with_truth(meters: &mut [Box<dyn EnergyMeter>]) -> (Vec<Truth>, Vec<(String, f64)>) {
    const CLOSE: f64 = 0.002;
    let mut best = None;
    let mut least = f64::INFINITY;
    for _ in 0..200 {
        let (before, readings, after) = (truth(), read(meters), truth());
        let apart = after[0].seconds - before[0].seconds;
        if apart < least {
            least = apart;
            best = Some((before.iter().zip(&after).map(|(a, b)| a.middle(b)).collect::<Vec<_>>(), readings));
        }
        if apart < CLOSE {
            break;
        }
    }
    println!("truth and readings within {:.2} ms", least * 1e3);
    best.expect("some try was the best")
}

/// Compares two seconds of all domains with the truth.
fn compare(mut discovery: Discovery) {
    let (truth_before, before) = read_with_truth(&mut discovery.meters);
    work(&mut discovery.meters, Duration::from_secs(2));
    let (truth_after, after) = read_with_truth(&mut discovery.meters);
    let mut compared = 0;
    for ((name, before), (_, after)) in before.iter().zip(&after) {
        let measured = after - before;
        let used =
            |of: fn(&Truth) -> f64, package: usize| of(&truth_after[package]) - of(&truth_before[package]);
        let package: usize = name.chars().find_map(|c| c.to_digit(10)).map_or(0, |digit| digit as usize);
        let expected = if name.ends_with("-cores") {
            used(|truth| truth.cores, package)
        } else if name.starts_with("dram") {
            used(|truth| truth.dram, package)
        } else if name.ends_with(char::is_numeric) && !name.contains("-core-") {
            used(|truth| truth.package, package)
        } else {
            continue;
        };
        let apart = (measured - expected) / expected;
        println!("{name}: measured {measured:.4} J, true {expected:.4} J, {:+.2} %", apart * 100.0);
        assert!(apart.abs() < 0.01, "{name} is {:.2} % off", apart * 100.0);
        compared += 1;
    }
    assert!(compared >= 2, "only {compared} domains were compared");
}

fn names(discovery: &Discovery) -> Vec<(&str, &str)> {
    discovery.domains.iter().map(|domain| (domain.source.as_str(), domain.name.as_str())).collect()
}

/// The guest's CPU by its own account is AMD's; powercap's zones are read as Intel's only on Intel.
const INTEL: [&str; 2] = ["--cpu", "SandyBridge"];
/// The same with one CPU and a clock that counts instructions: a busy host then makes no counter stand still
/// while time goes on.
const STEADY: [&str; 4] = [INTEL[0], INTEL[1], bench::STEADY[0], bench::STEADY[1]];

#[test]
fn power_pmu() {
    run(&STEADY, "meters::inside_power_pmu");
}

#[test]
#[ignore = "runs within the guest"]
fn inside_power_pmu() {
    if !is_inside() {
        return;
    }
    let discovery = discovered(&Source::ALL);
    let told = names(&discovery);
    let expected = ["package-0", "package-0-cores", "dram-0"].map(|name| ("power PMU", name));
    assert_eq!(told, expected);
    assert_eq!(discovery.warnings, Vec::<String>::new(), "the two views of the counters agree");
    assert_eq!(discovery.domains[1].parent.as_deref(), Some("package-0"));
    for domain in &discovery.domains {
        let resolution = domain.resolution.expect("it moved").as_joules();
        assert!((resolution * 65536.0).fract().abs() < 1e-9, "a multiple of 2^-16 J, but {resolution}");
        let refresh = domain.refresh.expect("it moved twice").as_secs_f64();
        assert!((0.0009..0.0011).contains(&refresh), "about a millisecond, but {refresh}");
    }
    compare(discovery);
}

#[test]
fn two_packages() {
    run(&[&INTEL[..], &["--smp", "4,sockets=2"]].concat(), "meters::inside_two_packages");
}

#[test]
#[ignore = "runs within the guest"]
fn inside_two_packages() {
    if !is_inside() {
        return;
    }
    let discovery = discovered(&[Source::PowerPmu]);
    let told: Vec<&str> = discovery.domains.iter().map(|domain| domain.name.as_str()).collect();
    assert_eq!(told, ["package-0", "package-1", "package-0-cores", "package-1-cores", "dram-0", "dram-1"]);
    compare(discovery);
    compare(discovered(&[Source::Powercap]));
}

#[test]
fn powercap_that_wraps() {
    run(&[&STEADY[..], &["--sim", "wrap_bits=20"]].concat(), "meters::inside_powercap_that_wraps");
}

#[test]
#[ignore = "runs within the guest"]
fn inside_powercap_that_wraps() {
    if !is_inside() {
        return;
    }
    let discovery = discovered(&[Source::Powercap]);
    let expected = ["package-0", "package-0-cores", "dram-0"].map(|name| ("powercap", name));
    assert_eq!(names(&discovery), expected);
    // 16 J a wrap at more than 16 W: twice in two seconds or more.
    compare(discovery);
}

#[test]
fn power_core() {
    run(&["--smp", "2", "--sim", "power_core=1"], "meters::inside_power_core");
}

#[test]
#[ignore = "runs within the guest"]
fn inside_power_core() {
    if !is_inside() {
        return;
    }
    let mut discovery = discovered(&Source::ALL);
    let cores: Vec<&str> = names(&discovery)
        .into_iter()
        .filter(|(source, _)| *source == "power_core PMU")
        .map(|(_, name)| name)
        .collect();
    assert_eq!(cores, ["package-0-core-0", "package-0-core-1"]);
    let parents: Vec<_> = discovery.domains.iter().filter(|domain| domain.name.contains("-core-")).collect();
    assert!(parents.iter().all(|domain| domain.parent.as_deref() == Some("package-0-cores")));
    // The cores' dynamic energies are what the package's cores use beyond their constant 12.41 W.
    let sum = |readings: Vec<(String, f64)>| -> f64 {
        readings.iter().filter(|(name, _)| name.contains("-core-")).map(|(_, joules)| joules).sum()
    };
    let (truth_before, before) = read_with_truth(&mut discovery.meters);
    work(&mut discovery.meters, Duration::from_secs(2));
    let (truth_after, after) = read_with_truth(&mut discovery.meters);
    let (before, after, truth_before, truth_after) =
        (sum(before), sum(after), truth_before[0], truth_after[0]);
    let constant = 12.41 * (truth_after.seconds - truth_before.seconds);
    let dynamic = truth_after.cores - truth_before.cores - constant;
    let apart = (after - before - dynamic) / dynamic;
    println!("cores: measured {:.4} J, true {dynamic:.4} J, {:+.2} %", after - before, apart * 100.0);
    assert!(apart.abs() < 0.01, "{:.2} % off", apart * 100.0);
}

#[test]
fn an_ordinary_user() {
    run(&["--user", "tester", "--paranoid", "2"], "meters::inside_refused");
    run(&["--user", "tester", "--paranoid", "0"], "meters::inside_power_pmu_alone");
}

#[test]
#[ignore = "runs within the guest"]
fn inside_refused() {
    if !is_inside() {
        return;
    }
    let discovery = discovered(&Source::ALL);
    assert_eq!(names(&discovery), [("estimate", "package-0")]);
    let repair = |source: &str| {
        let of_source = discovery.rejected.iter().filter(|rejected| rejected.source == source);
        of_source.filter_map(|rejected| rejected.repair.clone()).collect::<String>()
    };
    assert!(repair("power PMU").contains("setcap cap_perfmon=ep /guest/program"), "{}", repair("power PMU"));
    assert!(repair("powercap").contains("chgrp"), "{}", repair("powercap"));
    assert!(!discovery.measures_cpus());
}

#[test]
#[ignore = "runs within the guest"]
fn inside_power_pmu_alone() {
    if !is_inside() {
        return;
    }
    let discovery = discovered(&Source::ALL);
    assert!(names(&discovery).iter().all(|(source, _)| *source == "power PMU"));
    assert!(discovery.rejected.iter().any(|rejected| rejected.source == "powercap"));
    compare(discovery);
}

/// eprof's own word on the guest, and its exit status.
fn doctor(options: &[&str], arguments: &str) -> Option<(String, Option<i32>)> {
    run_program(options, env!("CARGO_BIN_EXE_eprof").as_ref(), &format!("./program doctor {arguments}"))
}

#[test]
fn doctor_tries_events_and_reads_meters() {
    let Some((text, status)) = doctor(&["--cpu", "SandyBridge"], "--watch 1 --json") else { return };
    assert_eq!(status, Some(0));
    let start = text.find('{').expect("JSON");
    let end = text.rfind('}').expect("JSON");
    let told: serde_json::Value = serde_json::from_str(&text[start..=end]).expect("JSON");
    let events = told["events"].as_array().expect("events");
    let roles: Vec<&str> = events.iter().filter_map(|event| event["role"].as_str()).collect();
    assert_eq!(roles, ["clk", "inst", "resource", "l2", "llc-miss"]);
    for event in events {
        assert_eq!(event["state"], "counts", "{event}");
        assert!(event["share"].as_f64().is_some_and(|share| share > 0.99), "all fit at once: {event}");
    }
    let watched = told["watched"]["domains"].as_array().expect("watched domains");
    let watts =
        watched.iter().find(|domain| domain["name"] == "package-0").map(|domain| domain["watts"].as_f64());
    // 12.41 W of the cores and 3 W beside them at rest; up to 6.8 W more for each of two busy CPUs.
    assert!(watts.flatten().is_some_and(|watts| (15.4..30.0).contains(&watts)), "{watched:?}");
}

#[test]
fn doctors_exit_status_says_what_is_possible() {
    for (paranoid, expected) in [("0", 0), ("1", 1), ("2", 1), ("3", 2)] {
        let Some((text, status)) = doctor(&["--user", "tester", "--paranoid", paranoid], "") else { return };
        assert_eq!(status, Some(expected), "at paranoid {paranoid}");
        assert_eq!(text.contains("sudo setcap cap_perfmon=ep /guest/program"), expected > 0);
    }
}

#[test]
fn the_kernel_stamps_readings() {
    run(&STEADY, "meters::inside_the_kernel_stamps_readings");
}

/// Seconds of CLOCK_MONOTONIC.
fn monotonic() -> f64 {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("a clock");
    time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9
}

/// Between two readings the energy grows evenly.
fn at(readings: &[(f64, f64)], time: f64) -> f64 {
    let after = readings.partition_point(|(then, _)| *then < time);
    let ((t0, e0), (t1, e1)) = (readings[after - 1], readings[after]);
    e0 + (e1 - e0) * (time - t0) / (t1 - t0)
}

#[test]
#[ignore = "runs within the guest"]
fn inside_the_kernel_stamps_readings() {
    if !is_inside() {
        return;
    }
    let mut discovery = discovered(&[Source::PowerPmu]);
    let names: Vec<String> = discovery.domains.iter().map(|domain| domain.name.clone()).collect();
    let meter = &mut discovery.meters[0];
    assert!(meter.start_stamping(Nanoseconds::from_millis(1)), "this kernel takes a clock as a leader");
    let mut stamped = Vec::new();
    let mut truths = Vec::new();
    let wait = |meter: &mut Box<dyn EnergyMeter>, milliseconds: u64, stamped: &mut Vec<StampedReading>| {
        let start = Instant::now();
        let mut sum = 0u64;
        while start.elapsed() < Duration::from_millis(milliseconds) {
            let burst = Instant::now();
            while burst.elapsed() < Duration::from_millis(20) {
                sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
            }
            std::thread::sleep(Duration::from_millis(30));
            meter.take_stamped(stamped);
        }
    };
    // The truth's clock against ours: the closest pair of many.
    let mut best = (f64::INFINITY, 0.0);
    for _ in 0..200 {
        let (before, there, after) = (monotonic(), truth()[0].seconds, monotonic());
        if after - before < best.0 {
            best = (after - before, (before + after) / 2.0 - there);
        }
    }
    println!("the clocks are known to {:.3} ms", best.0 * 1e3);
    wait(meter, 100, &mut stamped);
    truths.push(truth());
    wait(meter, 2000, &mut stamped);
    truths.push(truth());
    wait(meter, 100, &mut stamped);
    assert_eq!(names.len(), 3);
    for (index, name) in names.iter().enumerate() {
        let of_domain = stamped.iter().filter(|reading| reading.domain == index);
        let readings: Vec<(f64, f64)> =
            of_domain.map(|r| (r.time.as_nanos() as f64 * 1e-9, r.reading.energy.as_joules())).collect();
        assert!(readings.len() > 100, "only {} readings of {name}", readings.len());
        assert!(readings.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{name} goes back");
        let package: usize = name.chars().find_map(|c| c.to_digit(10)).map_or(0, |digit| digit as usize);
        let joules = |truth: &[Truth]| {
            let used = &truth[package];
            if name.ends_with("-cores") {
                used.cores
            } else if name.starts_with("dram") {
                used.dram
            } else {
                used.package
            }
        };
        let time = |truth: &[Truth]| truth[package].seconds + best.1;
        let measured = at(&readings, time(&truths[1])) - at(&readings, time(&truths[0]));
        let expected = joules(&truths[1]) - joules(&truths[0]);
        let apart = (measured - expected) / expected;
        println!(
            "{name}: {} readings, measured {measured:.4} J, true {expected:.4} J, {:+.3} %",
            readings.len(),
            apart * 100.0
        );
        assert!(apart.abs() < 0.01, "{name} is {:.2} % off", apart * 100.0);
    }
}
