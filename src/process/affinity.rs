//! On which CPUs this process may run, and where a thread does.

use std::io;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::hardware::MachineInfo;

/// The CPUs that this process may use, by its own affinity; all of the machine's if that is unknown.
pub fn allowed_cpus(machine: &MachineInfo) -> Vec<u32> {
    let all = || machine.cpus.iter().map(|cpu| cpu.cpu);
    match sched_getaffinity(Pid::from_raw(0)) {
        Ok(set) => all().filter(|&cpu| set.is_set(cpu as usize).unwrap_or(false)).collect(),
        Err(_) => all().collect(),
    }
}

/// Puts the calling thread on one CPU.
///
/// # Errors
/// If the process may not run there, or the CPU is offline.
pub fn pin_thread(cpu: u32) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu as usize)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}
