//! Whose energy is measured: that of a program that is started, of processes that run already, or all of the machine's.
//!
//! Meters count the machine. Of an estimate, which is made of CPU time, a subject has its own part.

use std::fs;
use std::path::PathBuf;

use crate::machine::Roots;
use crate::measure::run_observations::busy_seconds;
use crate::process::clocks::{cpu_time_of, ticks_per_second};
use crate::units::Nanoseconds;

/// Whose energy is measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Subject {
    /// The programs that are run.
    #[default]
    Programs,
    /// Processes that run already, with what they start.
    Processes(Vec<u32>),
    /// Everything that runs.
    Machine,
}

impl Subject {
    /// What it is called, where it is not called by a command line.
    pub fn name(&self) -> Option<String> {
        match self {
            Self::Programs => None,
            Self::Processes(pids) => {
                let numbers: Vec<String> = pids.iter().map(u32::to_string).collect();
                Some(format!(
                    "{} {}",
                    if pids.len() == 1 { "process" } else { "processes" },
                    numbers.join(", ")
                ))
            }
            Self::Machine => Some("the whole machine".to_owned()),
        }
    }
}

/// The CPU time of running processes and of the machine. That of the machine and of what has ended is told in ticks, as the
/// kernel has it: in hundredths of a second.
#[derive(Debug)]
pub struct CpuSeconds {
    procfs: PathBuf,
    /// Processes have clocks, too: procfs is the kernel's.
    have_clocks: bool,
}

impl CpuSeconds {
    /// As the files of procfs tell it.
    pub fn new(roots: &Roots) -> Self {
        Self { procfs: roots.procfs.clone(), have_clocks: roots.procfs == Roots::default().procfs }
    }

    /// All CPU time that anything took since the machine was started.
    pub fn of_machine(&self) -> Option<f64> {
        let stat = fs::read_to_string(self.procfs.join("stat")).ok()?;
        busy_seconds(&stat)
    }

    /// CPU time of a process, of its children that have ended, and of those that run; `None` if it has ended.
    pub fn of_process(&self, pid: u32) -> Option<f64> {
        let folder = self.procfs.join(pid.to_string());
        let stat = fs::read_to_string(folder.join("stat")).ok()?;
        // The name in parentheses may hold anything. Then: state, and as the 12th to 15th word utime, stime, cutime,
        // cstime.
        let words: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
        let seconds = |words: &[&str]| {
            words.iter().filter_map(|word| word.parse::<f64>().ok()).sum::<f64>() / ticks_per_second()
        };
        let by_clock = self.have_clocks.then(|| cpu_time_of(pid)).flatten().map(Nanoseconds::as_secs_f64);
        let own = by_clock.unwrap_or(seconds(words.get(11..13)?));
        let of_ended = seconds(words.get(13..15)?);
        let threads = fs::read_dir(folder.join("task")).ok().into_iter().flatten().flatten();
        let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        let children: Vec<u32> = children
            .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
            .collect();
        let of_children: f64 = children.into_iter().filter_map(|child| self.of_process(child)).sum();
        Some(own + of_ended + of_children)
    }

    /// Whether a process still runs: one that nobody has waited for yet has ended, too.
    pub fn is_alive(&self, pid: u32) -> bool {
        let stat = fs::read_to_string(self.procfs.join(pid.to_string()).join("stat"));
        let state = stat.ok().and_then(|stat| {
            stat.get(stat.rfind(')')? + 1..)?.split_whitespace().next().map(|state| state.to_owned())
        });
        state.is_some_and(|state| !matches!(&*state, "Z" | "X"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::FixtureMachine;
    use crate::process::clocks::own_cpu_time;

    #[test]
    fn a_process_has_the_time_of_its_children() {
        let stat = |name: &str, state: &str, ticks: &str| {
            format!("1 ({name}) {state} 1 1 1 0 -1 0 0 0 0 0 {ticks} 20 0 1 0 100")
        };
        let machine = FixtureMachine::new(&format!(
            "proc/stat: cpu 100 20 30 4000 50 6 7 800 0 0\nproc/7/stat: {}\nproc/7/task/7/children: 8 9\n\
             proc/8/stat: {}\nproc/9/stat: {}",
            stat("a) R 9", "S", "100 50 25 25"),
            stat("b", "R", "200 0 0 0"),
            stat("c", "Z", "0 100 0 0"),
        ));
        let times = CpuSeconds::new(&Roots::under(machine.path()));
        let seconds = |ticks: f64| Some(ticks / ticks_per_second());
        assert_eq!(times.of_process(7), seconds(500.0));
        assert_eq!(times.of_process(10), None);
        assert_eq!(times.of_machine(), Some(1.63));
        assert!(times.is_alive(7) && !times.is_alive(9) && !times.is_alive(10));
    }

    /// Not in hundredths of a second, two sums of them rounded down.
    #[test]
    fn a_process_has_its_time_up_to_now() {
        let times = CpuSeconds::new(&Roots::default());
        for _ in 0..20 {
            let before = own_cpu_time().as_secs_f64();
            let found = times.of_process(std::process::id()).expect("this process");
            assert!(found >= before, "{found} s, and {before} s before");
        }
        assert_eq!(cpu_time_of(0), None, "which would be this process");
    }
}
