//! Which kernel runs on which CPUs, and for how long.

use std::collections::BTreeSet;
use std::time::Duration;

use super::kernels::{Kernel, WorkingSets};
use crate::hardware::{CoreKind, CpuInfo, MachineInfo};
use crate::machine::topology::CpuGroups;
use crate::machine::{Roots, caches, roots};

/// One thing to measure: a kernel on some CPUs at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The kernel.
    pub kernel: Kernel,
    /// CPUs, one worker each.
    pub cpus: Vec<u32>,
    /// What the streams of each worker read.
    pub sets: WorkingSets,
}

/// All steps. They are made in rounds, so that what drifts in minutes (heat, fans) touches all alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The steps of a round.
    pub steps: Vec<Step>,
    /// How long a kernel runs before it is measured.
    pub warm_up: Duration,
    /// How long it is measured.
    pub visit: Duration,
}

/// Rounds that are always made: fewer tell nothing of the scatter.
pub const FEWEST_ROUNDS: usize = 3;
const WARM_UP: Duration = Duration::from_millis(200);

impl Plan {
    /// For this machine, of whose CPUs `allowed` may be used.
    pub fn new(roots: &Roots, machine: &MachineInfo, allowed: &[u32], visit: Duration) -> Self {
        let memory = available_memory(roots) / 4;
        let mut steps = vec![Step {
            kernel: Kernel::Idle,
            cpus: Vec::new(),
            sets: WorkingSets { first: None, second: None, third: None, memory: 0 },
        }];
        for cpus in groups(machine, allowed) {
            let Some(&first) = cpus.first() else { continue };
            let sets = WorkingSets::of(&caches::of_cpu(roots, first), &cpus, memory);
            let possible = Kernel::BUSY.into_iter().filter(|kernel| kernel.is_possible(&sets));
            steps.extend(possible.map(|kernel| Step { kernel, cpus: cpus.clone(), sets }));
        }
        Self { steps, warm_up: WARM_UP, visit }
    }

    /// How long a round takes.
    pub fn round(&self) -> Duration {
        (self.warm_up + self.visit) * self.steps.len() as u32
    }
}

/// The sets of CPUs that work at once: one, two, four ... of all, cores before their second threads,
/// and on hybrid machines the same among the small cores alone.
fn groups(machine: &MachineInfo, allowed: &[u32]) -> Vec<Vec<u32>> {
    let cores: BTreeSet<u32> = machine.first_of_each_core().iter().map(|cpu| cpu.cpu).collect();
    let order = |only: Option<CoreKind>| -> Vec<u32> {
        let wanted = |cpu: &&CpuInfo| allowed.contains(&cpu.cpu) && only.is_none_or(|kind| cpu.kind == kind);
        let mut cpus: Vec<&CpuInfo> = machine.cpus.iter().filter(wanted).collect();
        // Large cores before small ones: one worker alone is then on a large core.
        cpus.sort_by_key(|cpu| (!cores.contains(&cpu.cpu), cpu.kind, cpu.cpu));
        cpus.iter().map(|cpu| cpu.cpu).collect()
    };
    let mut groups = first_ones(&order(None));
    if machine.is_hybrid() {
        groups.extend(first_ones(&order(Some(CoreKind::Efficiency))));
    }
    groups
}

/// The first one, two, four ... and all.
fn first_ones(cpus: &[u32]) -> Vec<Vec<u32>> {
    let powers = (0..u32::BITS).map(|power| 1usize << power).take_while(|&count| count < cpus.len());
    powers.chain((!cpus.is_empty()).then_some(cpus.len())).map(|count| cpus[..count].to_vec()).collect()
}

/// Bytes of memory that can be had without pushing others out; a small amount if that is not known.
fn available_memory(roots: &Roots) -> u64 {
    const LITTLE: u64 = 256 << 20;
    let text = roots::read_trimmed(&roots.procfs.join("meminfo")).unwrap_or_default();
    let value =
        |line: &str| line.strip_prefix("MemAvailable:")?.split_ascii_whitespace().next()?.parse::<u64>().ok();
    text.lines().find_map(value).and_then(|kilobytes| kilobytes.checked_mul(1024)).unwrap_or(LITTLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::FixtureMachine;
    use crate::machine::topology;

    fn plan(manifest: &str, allowed: &[u32]) -> Plan {
        let files = FixtureMachine::new(manifest);
        let roots = Roots::under(files.path());
        let machine = topology::detect(&roots).expect("a machine");
        Plan::new(&roots, &machine, allowed, Duration::from_secs(1))
    }

    #[test]
    fn cores_come_before_their_second_threads() {
        let machine = "sys/devices/system/cpu/online: 0-7\n\
             sys/devices/system/cpu/cpu{0-7}/topology/core_id: {0,1,2,3,0,1,2,3}\n\
             sys/devices/system/cpu/cpu{0-7}/topology/core_cpus_list: {0,1,2,3,0,1,2,3}";
        let plan = plan(machine, &[0, 1, 2, 3, 4, 5, 6, 7]);
        let stress: Vec<usize> = plan
            .steps
            .iter()
            .filter(|step| step.kernel == Kernel::SquareRoots)
            .map(|step| step.cpus.len())
            .collect();
        assert_eq!(stress, [1, 2, 4, 8]);
        let four = plan.steps.iter().find(|step| step.cpus.len() == 4).expect("there");
        assert_eq!(four.cpus, [0, 1, 2, 3]);
        assert_eq!(plan.steps.len(), 1 + 4 * 6);
        assert_eq!(plan.round(), Duration::from_millis(1200 * 25));
    }

    #[test]
    fn small_cores_also_work_alone() {
        let machine = "sys/devices/system/cpu/online: 0-4\n\
             sys/bus/event_source/devices/cpu_atom/cpus: 2-4";
        let plan = plan(machine, &[0, 1, 2, 3, 4]);
        let groups: Vec<&[u32]> = plan
            .steps
            .iter()
            .filter(|step| step.kernel == Kernel::Memory)
            .map(|step| &step.cpus[..])
            .collect();
        assert_eq!(groups, [&[0][..], &[0, 1], &[0, 1, 2, 3], &[0, 1, 2, 3, 4], &[2], &[2, 3], &[2, 3, 4]]);
    }

    #[test]
    fn only_allowed_cpus_work() {
        let plan = plan("sys/devices/system/cpu/online: 0-3", &[1, 3]);
        assert!(plan.steps.iter().all(|step| step.cpus.iter().all(|cpu| [1, 3].contains(cpu))));
        assert_eq!(plan.steps.iter().filter(|step| step.kernel == Kernel::Pipeline).count(), 2);
    }
}
