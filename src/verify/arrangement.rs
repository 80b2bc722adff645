//! In what company kernels run: in turns on one core, side by side, on the threads of one core.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::kernels::Kernel;
use crate::hardware::{CpuInfo, MachineInfo};

/// How kernels are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Arrangement {
    /// Turns of this length within one thread on one core.
    Turns {
        /// Seconds of a turn, on average.
        seconds: f64,
    },
    /// On several cores at once.
    SideBySide {
        /// How many.
        cores: usize,
    },
    /// On the two threads of one core at once.
    Siblings,
    /// Turns within one thread, at a set frequency.
    AtFrequency {
        /// The frequency.
        ghz: f64,
        /// Seconds of a turn, on average.
        seconds: f64,
    },
}

/// Which kernels run on which CPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// How they are arranged.
    pub arrangement: Arrangement,
    /// For each thread its CPU and its kernels, which take turns.
    pub lanes: Vec<(u32, Vec<Kernel>)>,
    /// Seconds of a turn.
    pub turn_seconds: f64,
}

/// Turns within one thread. The shortest is well below the time between two samples; the longest well above the time
/// in which meters move.
const TURNS: [Duration; 4] =
    [Duration::from_micros(200), Duration::from_millis(5), Duration::from_millis(50), Duration::from_secs(1)];
/// Of threads with several kernels, where turns are not what is tried.
const USUAL_TURN: f64 = 0.05;
/// Where frequencies are what is tried.
const TURN_AT_FREQUENCY: f64 = 0.005;

impl Arrangement {
    /// Kernels run at the same time: what each takes alone does not add up.
    pub fn is_shared(self) -> bool {
        matches!(self, Self::SideBySide { .. } | Self::Siblings)
    }
}

impl fmt::Display for Arrangement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Self::Turns { seconds } => format!("turns of {}", time(seconds)),
            Self::SideBySide { cores } => format!("{cores} cores at once"),
            Self::Siblings => "threads of a core".to_owned(),
            Self::AtFrequency { ghz, seconds } => format!("{ghz:.1} GHz, {}", time(seconds)),
        };
        f.pad(&text)
    }
}

/// `200 us`, `5 ms`, `1 s`
fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 0.001 => format!("{:.1} ms", seconds * 1e3),
        _ if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.0} s"),
    }
}

impl Layout {
    /// All that this machine allows but for frequencies, of whose CPUs `allowed` may be used; a recording lasts for
    /// `recorded` seconds.
    pub fn all(machine: &MachineInfo, allowed: &[u32], kernels: &[Kernel], recorded: f64) -> Vec<Self> {
        let Some(&first) = one_of_each_core(machine, allowed).first() else { return Vec::new() };
        let one = |arrangement, turn_seconds| Self {
            arrangement,
            lanes: vec![(first, kernels.to_vec())],
            turn_seconds,
        };
        // Each kernel has two turns at least.
        let longest = recorded / (2.0 * kernels.len() as f64);
        let mut turns: Vec<f64> = TURNS.iter().map(|turn| turn.as_secs_f64().min(longest)).collect();
        turns.dedup();
        let mut layouts: Vec<Self> =
            turns.into_iter().map(|seconds| one(Arrangement::Turns { seconds }, seconds)).collect();
        let cores = one_of_each_core(machine, allowed);
        if cores.len() > 1 {
            let used = &cores[..cores.len().min(kernels.len())];
            let arrangement = Arrangement::SideBySide { cores: used.len() };
            layouts.push(Self {
                arrangement,
                lanes: dealt(kernels, used),
                turn_seconds: USUAL_TURN.min(longest),
            });
        }
        if let Some(siblings) = siblings(machine, allowed, first) {
            layouts.push(Self {
                arrangement: Arrangement::Siblings,
                lanes: dealt(kernels, &siblings),
                turn_seconds: USUAL_TURN.min(longest),
            });
        }
        layouts
    }

    /// The same kernels in turns at a set frequency.
    pub fn at_frequency(cpu: u32, kernels: &[Kernel], ghz: f64) -> Self {
        let seconds = TURN_AT_FREQUENCY;
        let arrangement = Arrangement::AtFrequency { ghz, seconds };
        Self { arrangement, lanes: vec![(cpu, kernels.to_vec())], turn_seconds: seconds }
    }
}

/// The first usable CPU of each core, large cores first.
pub fn one_of_each_core(machine: &MachineInfo, allowed: &[u32]) -> Vec<u32> {
    let mut cpus: Vec<&CpuInfo> = machine.cpus.iter().filter(|cpu| allowed.contains(&cpu.cpu)).collect();
    cpus.sort_by_key(|cpu| (cpu.kind, cpu.package, cpu.cpu));
    let mut seen = Vec::new();
    cpus.retain(|cpu| {
        let core = (cpu.package, cpu.die, cpu.core);
        let is_new = !seen.contains(&core);
        seen.push(core);
        is_new
    });
    cpus.iter().map(|cpu| cpu.cpu).collect()
}

/// The two threads of the core that `first` is of, if it has two that may be used.
fn siblings(machine: &MachineInfo, allowed: &[u32], first: u32) -> Option<[u32; 2]> {
    let core = machine.cpus.iter().find(|cpu| cpu.cpu == first)?;
    let same = |cpu: &&CpuInfo| (cpu.package, cpu.die, cpu.core) == (core.package, core.die, core.core);
    let mut of_core = machine.cpus.iter().filter(same).map(|cpu| cpu.cpu).filter(|cpu| allowed.contains(cpu));
    Some([of_core.next()?, of_core.next()?])
}

/// Kernels dealt to CPUs like cards.
fn dealt(kernels: &[Kernel], cpus: &[u32]) -> Vec<(u32, Vec<Kernel>)> {
    let of = |at: usize| kernels.iter().skip(at).step_by(cpus.len()).copied().collect();
    cpus.iter().enumerate().map(|(at, &cpu)| (cpu, of(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::FixtureMachine;
    use crate::machine::{Roots, topology};

    fn names(manifest: &str, allowed: &[u32], recorded: f64) -> Vec<String> {
        let files = FixtureMachine::new(manifest);
        let machine = topology::detect(&Roots::under(files.path())).expect("a machine");
        let layouts = Layout::all(&machine, allowed, &Kernel::ALL, recorded);
        for layout in &layouts {
            let mut dealt: Vec<Kernel> =
                layout.lanes.iter().flat_map(|(_, kernels)| kernels.clone()).collect();
            dealt.sort_unstable();
            assert_eq!(dealt, Kernel::ALL, "every kernel once: {layout:?}");
        }
        layouts.iter().map(|layout| layout.arrangement.to_string()).collect()
    }

    const SMT: &str = "sys/devices/system/cpu/online: 0-7\n\
        sys/devices/system/cpu/cpu{0-7}/topology/core_id: {0,1,2,3,0,1,2,3}\n\
        sys/devices/system/cpu/cpu{0-7}/topology/core_cpus_list: {0,1,2,3,0,1,2,3}";

    #[test]
    fn what_a_machine_has_is_tried() {
        let turns = ["turns of 0.2 ms", "turns of 5 ms", "turns of 50 ms", "turns of 1 s"];
        let all = names(SMT, &[0, 1, 2, 3, 4, 5, 6, 7], 12.0);
        assert_eq!(all, [&turns[..], &["4 cores at once", "threads of a core"]].concat());
        assert_eq!(names(SMT, &[1, 2], 12.0), [&turns[..], &["2 cores at once"]].concat());
        assert_eq!(names("sys/devices/system/cpu/online: 0", &[0], 12.0), turns);
    }

    #[test]
    fn each_kernel_has_two_turns_however_short_the_recording() {
        let all = names("sys/devices/system/cpu/online: 0", &[0], 4.0);
        assert_eq!(all, ["turns of 0.2 ms", "turns of 5 ms", "turns of 50 ms", "turns of 400 ms"]);
        // What would be tried twice is tried once.
        let all = names("sys/devices/system/cpu/online: 0", &[0], 0.2);
        assert_eq!(all, ["turns of 0.2 ms", "turns of 5 ms", "turns of 20 ms"]);
    }
}
