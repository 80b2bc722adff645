//! What the file says of the machine and of the moment.

use std::fs;

use nix::time::{ClockId, clock_getres, clock_gettime};
use perf_data::Features;
use perf_data::features::{ClockPair, CpuCount};

use crate::identity::WallClock;
use crate::machine::pmu::Pmu;
use crate::machine::{Roots, cpu_list};
use crate::process::clocks::{monotonic_now, utc_error};
use crate::recording::metadata::Metadata;
use crate::units::Nanoseconds;

/// What the file says of the machine and of eprof.
pub fn features(roots: &Roots, metadata: &Metadata, clock: Option<ClockPair>) -> Features {
    let Metadata { machine, command_line, .. } = metadata;
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    let resolution = clock.and_then(|_| clock_getres(ClockId::CLOCK_MONOTONIC).ok());
    Features {
        hostname: some(&machine.hostname),
        os_release: some(&machine.kernel),
        version: Some(concat!("eprof ", env!("CARGO_PKG_VERSION")).to_owned()),
        arch: some(&machine.arch),
        cpus: count_cpus(roots, "present")
            .zip(count_cpus(roots, "online"))
            .map(|(available, online)| CpuCount { available, online }),
        cpu_description: some(&machine.cpu_model),
        cpu_id: some(&machine.cpu_identity),
        total_memory_kb: total_memory_kb(roots),
        command_line: command_line.clone(),
        pmu_names: pmus(roots),
        clock,
        clock_resolution: resolution.map(|time| Nanoseconds::from_nanos(time.tv_nsec() as u64)),
        ..Features::default()
    }
}

/// This instant on the recording's clock and on the wall, the latter read between two readings of the former.
pub fn clock_reference() -> Option<WallClock> {
    let read = |_| {
        let before = monotonic_now();
        let wall = clock_gettime(ClockId::CLOCK_REALTIME).ok()?;
        let between = monotonic_now().since(before);
        Some(WallClock {
            clock_ns: before.as_nanos() + between.as_nanos() / 2,
            unix_ns: wall.tv_sec() as u64 * 1_000_000_000 + wall.tv_nsec() as u64,
            reading_error_ns: between.as_nanos().div_ceil(2),
            utc_error_ns: None,
        })
    };
    // Who is interrupted between the readings tries again.
    let best = (0..5).filter_map(read).min_by_key(|clock| clock.reading_error_ns)?;
    Some(WallClock { utc_error_ns: utc_error().map(Nanoseconds::as_nanos), ..best })
}

fn total_memory_kb(roots: &Roots) -> Option<u64> {
    let info = fs::read_to_string(roots.procfs.join("meminfo")).ok()?;
    let value = |line: &str| line.strip_prefix("MemTotal:")?.split_ascii_whitespace().next()?.parse().ok();
    info.lines().find_map(value)
}

fn count_cpus(roots: &Roots, which: &str) -> Option<u32> {
    let text = fs::read_to_string(roots.sysfs.join("devices/system/cpu").join(which)).ok()?;
    Some(cpu_list::parse(text.trim())?.len() as u32)
}

fn pmus(roots: &Roots) -> Vec<(u32, String)> {
    let mut pmus: Vec<_> = Pmu::all(roots).into_iter().map(|pmu| (pmu.perf_type, pmu.name)).collect();
    pmus.sort();
    pmus
}
