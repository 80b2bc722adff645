//! CPU time of the program of which no sample tells.
//!
//! A clock that follows a task begins anew with each process: one that ends before its first tick leaves no sample, and a
//! shell that starts thousands of them seems to have done next to nothing. The recorder counts the program's CPU time
//! exactly as well. What that is more than the samples' is the program's, and must not be left to other processes. It is
//! short processes' as far as they can have run for it ([`ShortTasks`]); the rest is of ticks that the kernel left out. Where only
//! one mode was sampled, as of users who may not sample the kernel, it is the time in the other mode above all.

use std::collections::BTreeMap;

use perf_data::attr::flag;

use crate::analyze::aggregate::short_tasks::ShortTasks;
use crate::analyze::events::{EventRoles, EventUnit};
use crate::analyze::sample_key::MOST_CPUS;
use crate::profile::SHORT_PROCESSES;
use crate::recording::Recording;
use crate::recording::metadata::Target;
use crate::units::{Nanoseconds, Timestamp};

/// Clocks of samples and of counters differ by no more than this share of the time.
const TOLERATED_SHARE: f64 = 0.02;
/// Every thread's last tick is missing; of a few threads that is no more than this.
const TOLERATED: f64 = 20e6;

/// Compares what was counted of the program with its samples. All times are nanoseconds.
#[derive(Debug)]
pub(crate) struct NotSampled {
    /// The event that tells time.
    pub event: u32,
    /// The process that all of it is booked to.
    pub pid: u32,
    missing: Missing,
    /// What samples stand for by CPU, and how many there are.
    sampled: Vec<u64>,
    samples: u64,
    /// Where the recording tells when tasks began and ended.
    short: Option<ShortTasks>,
    /// What was counted and sampled by CPU when it was counted first.
    first: Option<BTreeMap<u32, (u64, u64)>>,
    last: Timestamp,
    told: BTreeMap<u32, Told>,
}

/// What was told of a CPU.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    /// Of short processes, or of the other mode.
    unseen: f64,
    /// Of ticks that were left out.
    left_out: f64,
}

/// What samples of a clock may miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    ShortProcesses,
    /// The whole mode, since the other one alone is sampled.
    Kernel,
    User,
}

/// CPU time without samples on one CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Unseen {
    pub cpu: u32,
    /// It was spent between these times.
    pub since: Timestamp,
    pub time: Nanoseconds,
    /// It was that of tasks that have samples: ticks of these were left out.
    pub is_of_sampled: bool,
}

impl NotSampled {
    /// Only for one program that was sampled alone, wherever it ran, by a clock: what other events count tells no time, and
    /// of several processes nobody knows whose time it was. Of two clocks of one mode each, one has what the other lacks.
    pub fn new(recording: &Recording, roles: &EventRoles) -> Option<Self> {
        let metadata = recording.metadata()?;
        let pid = match &metadata.target {
            Target::Command { pid, .. } => *pid,
            Target::Processes(pids) => *pids.first().filter(|_| pids.len() == 1)?,
            Target::Threads(_) | Target::System => return None,
        };
        if metadata.system_wide_samples {
            return None;
        }
        let clock = |(index, event): (usize, &crate::analyze::events::SampledEvent)| {
            (event.unit == EventUnit::Nanoseconds && roles.tells_time(index as u32)).then_some(index as u32)
        };
        let mut clocks = roles.sampled().iter().enumerate().filter_map(clock);
        let event = clocks.next()?;
        let name = &roles.sampled()[event as usize].name;
        let attr = &recording.events().iter().find(|event| event.name == *name)?.attr;
        let missing = match (attr.has(flag::EXCLUDE_USER), attr.has(flag::EXCLUDE_KERNEL)) {
            (false, false) => Missing::ShortProcesses,
            _ if clocks.next().is_some() => return None,
            (false, true) => Missing::Kernel,
            (true, false) => Missing::User,
            (true, true) => return None,
        };
        Some(Self {
            event,
            pid,
            missing,
            sampled: Vec::new(),
            samples: 0,
            short: attr.has(flag::TASK).then(ShortTasks::default),
            first: None,
            last: Timestamp::default(),
            told: BTreeMap::new(),
        })
    }

    /// What such time is called where a function would be.
    pub fn name(&self) -> &'static str {
        match self.missing {
            Missing::ShortProcesses => SHORT_PROCESSES,
            Missing::Kernel => "kernel mode, not sampled",
            Missing::User => "user mode, not sampled",
        }
    }

    /// A sample of the program's clock.
    #[inline]
    pub fn sampled(&mut self, task: u32, cpu: u32, nanos: u64) {
        // Counters are of CPUs that there are: wild numbers, which damaged files have, are compared with nothing.
        if cpu < MOST_CPUS {
            let cpu = cpu as usize;
            if self.sampled.len() <= cpu {
                self.sampled.resize(cpu + 1, 0);
            }
            self.sampled[cpu] = self.sampled[cpu].saturating_add(nanos);
        }
        self.samples += 1;
        if let Some(short) = &mut self.short {
            short.sampled(task);
        }
    }

    /// A task was started on a CPU.
    pub fn started(&mut self, task: u32, time: Timestamp, cpu: u32) {
        if let Some(short) = &mut self.short {
            short.started(task, time, cpu);
        }
    }

    /// A task ended on a CPU.
    pub fn ended(&mut self, task: u32, time: Timestamp, cpu: u32) {
        let period = self.period();
        if let Some(short) = &mut self.short {
            short.ended(task, time, cpu, period);
        }
    }

    /// Nanoseconds from one sample to the next; without bound before there is one.
    fn period(&self) -> f64 {
        let all = self.sampled.iter().fold(0, |sum: u64, nanos| sum.saturating_add(*nanos));
        all.checked_div(self.samples).map_or(f64::INFINITY, |period| period as f64)
    }

    /// Whether what short processes cannot have is that of samples.
    pub fn tells_of_ticks(&self) -> bool {
        self.missing == Missing::ShortProcesses
    }

    /// What the counters say at a time: what is new of it that no sample tells of.
    pub fn counted(&mut self, time: Timestamp, own: &[(u32, Nanoseconds)]) -> Vec<Unseen> {
        let sampled = |cpu: &u32| self.sampled.get(*cpu as usize).copied().unwrap_or(0);
        let since = std::mem::replace(&mut self.last, time);
        let Some(first) = &self.first else {
            self.first = Some(own.iter().map(|(cpu, own)| (*cpu, (own.as_nanos(), sampled(cpu)))).collect());
            return Vec::new();
        };
        let mut all = (0.0, 0.0);
        let mut missing = Vec::with_capacity(own.len());
        for (cpu, counted) in own {
            let (counted_first, sampled_first) = first.get(cpu).copied().unwrap_or_default();
            let counted = counted.as_nanos().saturating_sub(counted_first) as f64;
            let sampled = sampled(cpu).saturating_sub(sampled_first) as f64;
            all = (all.0 + counted, all.1 + sampled);
            missing.push((*cpu, (counted - sampled).max(0.0)));
        }
        // What was once told is never taken back.
        let tolerated = match self.missing {
            Missing::ShortProcesses => all.1 * TOLERATED_SHARE + TOLERATED,
            // That something is missing is no surprise.
            Missing::Kernel | Missing::User => 0.0,
        };
        let new = all.0 - all.1 - tolerated;
        let whole: f64 = missing.iter().map(|(_, missing)| missing).sum();
        if new < 1.0 || whole <= 0.0 {
            return Vec::new();
        }
        let missing: BTreeMap<u32, f64> =
            missing.into_iter().map(|(cpu, missing)| (cpu, new * missing / whole)).collect();
        let not_of_sampled = match (self.missing, &self.short) {
            (Missing::ShortProcesses, Some(short)) => short.at_most(time, self.period(), &missing),
            _ => missing.clone(),
        };
        let mut unseen = Vec::new();
        for (cpu, here) in missing {
            let told = self.told.entry(cpu).or_default();
            let of_short = not_of_sampled.get(&cpu).copied().unwrap_or(0.0);
            let more = (here - told.unseen - told.left_out).max(0.0);
            let of_short = (of_short - told.unseen).clamp(0.0, more);
            for (nanos, told, is_of_sampled) in
                [(of_short, &mut told.unseen, false), (more - of_short, &mut told.left_out, true)]
            {
                let time = Nanoseconds::from_nanos(nanos as u64);
                if time > Nanoseconds::ZERO {
                    *told += time.as_nanos() as f64;
                    unseen.push(Unseen { cpu, since, time, is_of_sampled });
                }
            }
        }
        unseen
    }

    /// Nobody knows whose this was: it may be told again.
    pub fn take_back(&mut self, unseen: &Unseen) {
        if let Some(told) = self.told.get_mut(&unseen.cpu).filter(|_| unseen.is_of_sampled) {
            told.left_out -= unseen.time.as_nanos() as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::unsampled::Unsampled;
    use super::*;
    use crate::analyze::fixture::recording_of_clock as recording;

    const MS: u64 = 1_000_000;

    fn compared() -> NotSampled {
        NotSampled {
            event: 0,
            pid: 1,
            missing: Missing::ShortProcesses,
            sampled: Vec::new(),
            samples: 0,
            short: None,
            first: None,
            last: Timestamp::default(),
            told: BTreeMap::new(),
        }
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * MS)
    }

    #[test]
    fn what_the_counters_have_more_than_the_samples_is_told_once() {
        let mut compared = compared();
        let own = |a: u64, b: u64| [(0, Nanoseconds::from_millis(a)), (1, Nanoseconds::from_millis(b))];
        assert!(compared.counted(at(0), &own(5, 0)).is_empty(), "it begins here");
        compared.sampled(1, 0, 10 * MS);
        let told = compared.counted(at(250), &own(105, 120));
        // 220 ms were counted and 10.2 ms sampled; 90 ms are missing on one CPU and 120 ms on the other.
        let sum: u64 = told.iter().map(|unseen| unseen.time.as_nanos()).sum();
        assert!(sum.abs_diff(189_800_000) < 10, "{told:?}");
        assert_eq!((told[0].since, told[1].since), (at(0), at(0)));
        let ratio = told[1].time.as_secs_f64() / told[0].time.as_secs_f64();
        assert!((ratio - 120.0 / 90.0).abs() < 1e-6, "{told:?}");
        assert!(compared.counted(at(500), &own(105, 120)).is_empty(), "nothing new");
    }

    /// Two CPUs of which 100 ms each are missing, where tasks of a millisecond ended on the second one.
    #[test]
    fn what_short_processes_cannot_have_run_is_that_of_samples() {
        let mut compared = NotSampled { short: Some(ShortTasks::default()), ..compared() };
        let own = |millis: u64| [0, 1].map(|cpu| (cpu, Nanoseconds::from_millis(millis)));
        assert!(compared.counted(at(0), &own(0)).is_empty(), "it begins here");
        for millis in 0..1000 {
            (0..2).for_each(|cpu| compared.sampled(1, cpu, MS));
            if millis % 20 == 0 {
                compared.started(100, at(millis), 1);
                compared.ended(100, at(millis + 1), 1);
            }
        }
        // 2200 ms were counted and 2000 ms sampled, of which 40 ms and 20 ms may be a difference of clocks: 70 ms on each CPU.
        let mut told = compared.counted(at(1000), &own(1100));
        let unseen = |cpu, millis: u64, is_of_sampled| Unseen {
            cpu,
            since: at(0),
            time: Nanoseconds::from_millis(millis),
            is_of_sampled,
        };
        assert_eq!(told, [unseen(0, 70, true), unseen(1, 50, false), unseen(1, 20, true)]);
        // What nobody had a sample for is told again, what was told is not.
        compared.take_back(&told.remove(0));
        let told = compared.counted(at(1000), &own(1100));
        assert_eq!(told, [Unseen { since: at(1000), ..unseen(0, 70, true) }]);
    }

    #[test]
    fn a_program_whose_samples_tell_its_time_has_nothing_unseen() {
        let mut compared = compared();
        let mut counted = 0;
        for step in 0..100 {
            let own = [(3, Nanoseconds::from_nanos(counted))];
            assert!(compared.counted(at(step * 250), &own).is_empty(), "{step}");
            // The clock of samples is 1 % slow, and a few ticks wait for the next reading.
            (0..247).for_each(|_| compared.sampled(1, 3, MS));
            counted += 250 * MS;
        }
    }

    #[test]
    fn the_other_mode_is_all_that_one_mode_lacks() {
        let mut compared = NotSampled { missing: Missing::Kernel, ..compared() };
        assert!(compared.counted(at(0), &[(0, Nanoseconds::ZERO)]).is_empty());
        compared.sampled(1, 0, 97 * MS);
        let told = compared.counted(at(100), &[(0, Nanoseconds::from_millis(100))]);
        let time = Nanoseconds::from_millis(3);
        assert_eq!(told, [Unseen { cpu: 0, since: at(0), time, is_of_sampled: false }]);
        // A tick late.
        compared.sampled(1, 0, 99 * MS);
        assert!(compared.counted(at(200), &[(0, Nanoseconds::from_millis(198))]).is_empty());
    }

    #[test]
    fn only_a_program_that_was_sampled_alone_is_compared() {
        let command = || Target::Command { argv: vec!["app".to_owned()], pid: 50 };
        let compared = |recording: &Recording| {
            let roles = EventRoles::new(recording);
            NotSampled::new(recording, &roles).map(|found| (found.event, found.pid, found.name()))
        };
        assert_eq!(compared(&recording(command(), false, 0)), Some((0, 50, "short processes, not sampled")));
        assert_eq!(compared(&recording(command(), true, 0)), None);
        assert_eq!(compared(&recording(Target::System, false, 0)), None);
        let running = |pids: &[u32]| compared(&recording(Target::Processes(pids.to_vec()), false, 0));
        assert_eq!(running(&[7]), Some((0, 7, "short processes, not sampled")));
        assert_eq!((running(&[7, 8]), running(&[])), (None, None), "whose it was is not known");
        let in_one_mode = |flags| compared(&recording(command(), false, flags));
        assert_eq!(in_one_mode(flag::EXCLUDE_KERNEL), Some((0, 50, "kernel mode, not sampled")));
        assert_eq!(in_one_mode(flag::EXCLUDE_USER), Some((0, 50, "user mode, not sampled")));
        assert_eq!(in_one_mode(flag::EXCLUDE_KERNEL | flag::EXCLUDE_USER), None);
        // Processes without samples are counted in no other recording than a command's.
        let counted = |recording: &Recording| Unsampled::new(recording).is_some();
        assert!(counted(&recording(command(), false, flag::EXCLUDE_KERNEL)));
        assert!(
            !counted(&recording(command(), true, 0))
                && !counted(&recording(Target::Processes(vec![50]), false, 0))
        );
    }
}
