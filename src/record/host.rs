//! What the file says of the machine and of the moment.

use std::fs;

use nix::sys::utsname::uname;
use nix::time::{ClockId, clock_getres, clock_gettime};

use crate::record::readings::monotonic_now;
use crate::recording::metadata::MachineInfo;
use crate::recording::trailer::{ClockReference, Features};
use crate::units::Nanoseconds;

/// The machine, as far as the kernel's own calls and files tell.
pub fn machine() -> MachineInfo {
    let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    let mut machine = MachineInfo { cpu_model: cpu_model(), ..MachineInfo::default() };
    if let Ok(names) = uname() {
        machine.hostname = text(names.nodename());
        machine.kernel = text(names.release());
        machine.arch = text(names.machine());
    }
    machine
}

/// The features that are known when the recording starts.
pub fn features(machine: &MachineInfo, command_line: &[String], clock: Option<ClockReference>) -> Features {
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    let present = count_cpus("present");
    let online = count_cpus("online");
    Features {
        hostname: some(&machine.hostname),
        os_release: some(&machine.kernel),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        arch: some(&machine.arch),
        cpus: present.zip(online),
        cpu_description: some(&machine.cpu_model),
        cpu_id: some(&machine.cpu_identity),
        total_memory_kib: total_memory_kib(),
        command_line: command_line.to_vec(),
        pmus: pmus(),
        clock,
        ..Features::default()
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

fn cpu_model() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |line: &str| Some(line.strip_prefix("model name")?.split_once(':')?.1.trim().to_owned());
    info.lines().find_map(value).unwrap_or_default()
}

fn total_memory_kib() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let value = |line: &str| line.strip_prefix("MemTotal:")?.split_ascii_whitespace().next()?.parse().ok();
    info.lines().find_map(value)
}

fn count_cpus(which: &str) -> Option<u32> {
    let text = fs::read_to_string(format!("/sys/devices/system/cpu/{which}")).ok()?;
    let ranges = text.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(last.parse::<u32>().ok()?.saturating_sub(first.parse().ok()?) + 1)
    });
    Some(ranges.sum())
}

fn pmus() -> Vec<(u32, String)> {
    let Ok(entries) = fs::read_dir("/sys/bus/event_source/devices") else { return Vec::new() };
    let pmu = |entry: fs::DirEntry| {
        let number = fs::read_to_string(entry.path().join("type")).ok()?.trim().parse().ok()?;
        Some((number, entry.file_name().into_string().ok()?))
    };
    let mut pmus: Vec<_> = entries.flatten().filter_map(pmu).collect();
    pmus.sort();
    pmus
}
