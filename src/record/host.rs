//! What the file says of the machine and of the moment.

use std::fs;

use nix::time::{ClockId, clock_getres, clock_gettime};
use perf_data::trailer::{ClockReference, Trailer};

use crate::hardware::MachineInfo;
use crate::machine::pmu::Pmu;
use crate::machine::{Roots, cpu_list};
use crate::process::clocks::monotonic_now;
use crate::units::Nanoseconds;

/// What the trailer says of the machine.
pub fn trailer(
    roots: &Roots,
    machine: &MachineInfo,
    command_line: &[String],
    clock: Option<ClockReference>,
) -> Trailer {
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    Trailer {
        hostname: some(&machine.hostname),
        os_release: some(&machine.kernel),
        version: Some(concat!("eprof ", env!("CARGO_PKG_VERSION")).to_owned()),
        arch: some(&machine.arch),
        cpus: count_cpus(roots, "present").zip(count_cpus(roots, "online")),
        cpu_description: some(&machine.cpu_model),
        cpu_id: some(&machine.cpu_identity),
        total_memory_kib: total_memory_kib(roots),
        command_line: command_line.to_vec(),
        pmus: pmus(roots),
        clock,
        ..Trailer::default()
    }
}

/// This instant on the recording's clock and on the wall.
pub fn clock_reference() -> Option<ClockReference> {
    let nanos = |clock| {
        let time = clock_gettime(clock).ok()?;
        Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
    };
    let resolution = clock_getres(ClockId::CLOCK_MONOTONIC).ok()?;
    Some(ClockReference {
        clock_id: libc::CLOCK_MONOTONIC as u32,
        resolution: Nanoseconds::from_nanos(resolution.tv_nsec() as u64),
        time: monotonic_now(),
        unix_ns: nanos(ClockId::CLOCK_REALTIME)?,
    })
}

fn total_memory_kib(roots: &Roots) -> Option<u64> {
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
