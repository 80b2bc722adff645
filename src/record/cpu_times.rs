//! How busy the CPUs were, from `/proc/stat`.

use std::io;

use crate::machine::Roots;
use crate::machine::cpu_lines::CpuLines;
use crate::process::clocks::own_cpu_time;
use crate::recording::energy::CpuTimes;
use crate::units::Nanoseconds;

/// Reads CPU times again and again.
#[derive(Debug)]
pub struct CpuTimesReader {
    stat: CpuLines,
    nanos_per_tick: u64,
}

impl CpuTimesReader {
    /// Opens the statistics of the running kernel.
    pub fn open(roots: &Roots) -> io::Result<Self> {
        // SAFETY: sysconf only reads a constant of the system.
        let ticks_per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        let ticks_per_second = u64::try_from(ticks_per_second).unwrap_or(100).max(1);
        Ok(Self {
            stat: CpuLines::open(&roots.procfs.join("stat"))?,
            nanos_per_tick: 1_000_000_000 / ticks_per_second,
        })
    }

    /// The times so far.
    pub fn read(&mut self) -> io::Result<CpuTimes> {
        let busy = busy_times(self.stat.read()?, self.nanos_per_tick);
        Ok(CpuTimes { recorder: own_cpu_time(), busy })
    }
}

/// CPU number and busy time from the lines `cpuN user nice system idle iowait irq softirq steal ...`.
/// Stolen time is another machine's, and guest time is part of user time.
fn busy_times(stat: &str, nanos_per_tick: u64) -> Vec<(u32, Nanoseconds)> {
    let cpu_line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let busy: u64 = [0, 1, 2, 5, 6].iter().filter_map(|&column| ticks.get(column)).sum();
        Some((cpu, Nanoseconds::from_nanos(busy.saturating_mul(nanos_per_tick))))
    };
    stat.lines().filter_map(cpu_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_iowait_steal_and_guest_are_not_counted() {
        let stat =
            "cpu  1 1 1 1 1 1 1 1 1 1\ncpu0 10 20 30 1000 2000 1 2 4000 5000 6000\ncpu3 1 0 0 5\nintr 7\n";
        let busy = busy_times(stat, 10_000_000);
        assert_eq!(busy, [(0, Nanoseconds::from_millis(630)), (3, Nanoseconds::from_millis(10))]);
    }
}
