//! How much of the recorder's CPU time each domain fed.

use std::collections::BTreeMap;

use crate::recording::energy::CpuTimes;
use crate::units::Nanoseconds;

/// Finds out on which CPUs the recorder ran.
///
/// It knows its own CPU time as one number, wherever it ran. Charged to each package in full it would be paid for as
/// often as there are packages. It ran where CPUs were busy with something else than the program: each has as much of
/// the recorder's time as of all such time.
#[derive(Debug, Default)]
pub(super) struct RecorderTime {
    last: Option<Last>,
    by_cpu: BTreeMap<u32, Beside>,
}

#[derive(Debug)]
struct Last {
    recorder: Nanoseconds,
    busy: BTreeMap<u32, Nanoseconds>,
    own: BTreeMap<u32, Nanoseconds>,
}

/// CPU time that was not the program's, in nanoseconds.
#[derive(Debug, Default, Clone, Copy)]
struct Beside {
    sum: f64,
    /// The highest the sum has been. The kernel counts busy time in ticks, so that the sum goes up and down.
    highest: f64,
    /// What the last times added to that.
    new: f64,
}

/// The recorder's time between two readings of CPU times, by CPU.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct RecorderShares {
    nanoseconds: f64,
    by_cpu: Vec<(u32, f64)>,
}

/// Kernels end at 8192 CPUs; a number beyond is damage in the file.
const MOST: u32 = 1 << 13;

impl RecorderTime {
    /// CPU times of the machine and the recorder, and the program's own where they were counted, all since some
    /// beginning: what is new of the recorder's.
    pub fn advance(&mut self, times: &CpuTimes, own: &[(u32, Nanoseconds)]) -> RecorderShares {
        let table =
            |pairs: &[(u32, Nanoseconds)]| pairs.iter().copied().filter(|(cpu, _)| *cpu < MOST).collect();
        let now = Last { recorder: times.recorder, busy: table(&times.busy), own: table(own) };
        let Some(last) = &self.last else {
            self.last = Some(now);
            return RecorderShares::default();
        };
        let more = |now: &BTreeMap<u32, Nanoseconds>, last: &BTreeMap<u32, Nanoseconds>, cpu: u32| {
            let [now, last] = [now, last].map(|times| times.get(&cpu).map(|time| time.as_nanos() as f64));
            now.zip(last).map_or(0.0, |(now, last)| now - last)
        };
        for &cpu in now.busy.keys() {
            let beside = self.by_cpu.entry(cpu).or_default();
            beside.sum += more(&now.busy, &last.busy, cpu) - more(&now.own, &last.own, cpu);
            beside.new = (beside.sum - beside.highest).max(0.0);
            beside.highest += beside.new;
        }
        let all: f64 = self.by_cpu.values().map(|beside| beside.new).sum();
        let share =
            |beside: &Beside| if all > 0.0 { beside.new / all } else { 1.0 / self.by_cpu.len() as f64 };
        let shares = RecorderShares {
            nanoseconds: now.recorder.as_nanos().saturating_sub(last.recorder.as_nanos()) as f64,
            by_cpu: self.by_cpu.iter().map(|(cpu, beside)| (*cpu, share(beside))).collect(),
        };
        self.last = Some(now);
        shares
    }
}

impl RecorderShares {
    /// Nanoseconds of the recorder on those CPUs.
    pub fn on(&self, is_fed: impl Fn(u32) -> bool) -> f64 {
        let fed = self.by_cpu.iter().filter(|(cpu, _)| is_fed(*cpu));
        self.nanoseconds * fed.map(|(_, share)| share).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(recorder: u64, busy: [u64; 2]) -> CpuTimes {
        let [first, second] = busy.map(Nanoseconds::from_millis);
        CpuTimes { recorder: Nanoseconds::from_millis(recorder), busy: vec![(0, first), (1, second)] }
    }

    fn on_each(shares: &RecorderShares) -> [f64; 2] {
        [0, 1].map(|of| shares.on(|cpu| cpu == of) / 1e6)
    }

    #[test]
    fn it_ran_where_the_program_did_not() {
        let own = |millis| [(0, Nanoseconds::from_millis(millis))];
        let mut time = RecorderTime::default();
        assert_eq!(time.advance(&times(5, [100, 100]), &own(20)), RecorderShares::default());
        // CPU 0 was the program's alone, and 40 ms of CPU 1 were the recorder's and others'.
        assert_eq!(on_each(&time.advance(&times(15, [200, 140]), &own(120))), [0.0, 10.0]);
        let shares = time.advance(&times(25, [300, 170]), &own(130));
        assert_eq!(on_each(&shares), [7.5, 2.5]);
        assert!((shares.on(|_| true) / 1e6 - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_tick_that_comes_late_moves_nothing_twice() {
        let mut time = RecorderTime::default();
        time.advance(&times(0, [0, 0]), &[(0, Nanoseconds::ZERO)]);
        let own = |millis| [(0, Nanoseconds::from_millis(millis))];
        assert_eq!(on_each(&time.advance(&times(1, [10, 10]), &own(17))), [0.0, 1.0]);
        // The 10 ms are mostly the program's that the last times had and its CPU had not.
        let [first, second] = on_each(&time.advance(&times(2, [20, 17]), &own(17)));
        assert!((first - 0.3).abs() < 1e-9 && (second - 0.7).abs() < 1e-9, "{first} {second}");
    }

    #[test]
    fn where_nobody_was_busy_it_was_anywhere() {
        let mut time = RecorderTime::default();
        time.advance(&times(0, [0, 0]), &[]);
        assert_eq!(on_each(&time.advance(&times(2, [0, 0]), &[])), [1.0, 1.0]);
    }
}
