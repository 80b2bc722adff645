//! Which CPUs a number of threads runs on.

use std::collections::BTreeMap;

use crate::hardware::{CoreKind, CpuInfo, MachineInfo};

/// How threads are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Spread over packages and cores, one thread per core while there are cores (the paper's
    /// "scatter").
    Spread,
    /// Left to the kernel and the program.
    Free,
}

/// The CPUs for `threads` threads among `allowed`: every core once before any second thread of a core,
/// fast cores before small ones, packages in turns. All of them if there are not more.
pub fn spread(machine: &MachineInfo, allowed: &[u32], threads: usize) -> Vec<u32> {
    let mut by_package: BTreeMap<u32, BTreeMap<u32, Vec<&CpuInfo>>> = BTreeMap::new();
    for cpu in machine.cpus.iter().filter(|cpu| allowed.contains(&cpu.cpu)) {
        by_package.entry(cpu.package).or_default().entry(cpu.core).or_default().push(cpu);
    }
    // Rank: which thread of its core, kind of core, which core of its package, package.
    let mut ranked: Vec<((usize, CoreKind, usize, u32), u32)> = Vec::new();
    for (&package, cores) in &by_package {
        for (core, threads) in cores.values().enumerate() {
            for (sibling, cpu) in threads.iter().enumerate() {
                ranked.push(((sibling, cpu.kind, core, package), cpu.cpu));
            }
        }
    }
    ranked.sort_unstable();
    let mut cpus: Vec<u32> = ranked.into_iter().take(threads).map(|(_, cpu)| cpu).collect();
    cpus.sort_unstable();
    cpus
}

/// What OpenMP runtimes are told, so that they place threads in the same way. `is_set` tells which
/// variables the user has set: how threads are bound is left as it is then.
pub fn openmp_environment(
    placement: Placement,
    threads: usize,
    is_set: impl Fn(&str) -> bool,
) -> Vec<(&'static str, String)> {
    let mut environment = vec![("OMP_NUM_THREADS", threads.to_string())];
    if placement == Placement::Spread && !is_set("OMP_PROC_BIND") && !is_set("OMP_PLACES") {
        environment.push(("OMP_PROC_BIND", "spread".into()));
        environment.push(("OMP_PLACES", "threads".into()));
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(package, core, kind)` of CPUs 0, 1, 2, ...
    fn machine(cpus: &[(u32, u32, CoreKind)]) -> MachineInfo {
        let cpus = cpus.iter().zip(0..).map(|(&(package, core, kind), cpu)| CpuInfo {
            cpu,
            core,
            die: 0,
            package,
            kind,
        });
        MachineInfo { cpus: cpus.collect(), ..MachineInfo::default() }
    }

    const BIG: CoreKind = CoreKind::Performance;
    const SMALL: CoreKind = CoreKind::Efficiency;

    /// Two packages of two cores of two threads, numbered as Linux does: siblings in the second half.
    fn two_packages() -> MachineInfo {
        machine(&[
            (0, 0, BIG),
            (0, 1, BIG),
            (1, 0, BIG),
            (1, 1, BIG),
            (0, 0, BIG),
            (0, 1, BIG),
            (1, 0, BIG),
            (1, 1, BIG),
        ])
    }

    #[test]
    fn packages_then_cores_then_siblings() {
        let all: Vec<u32> = (0..8).collect();
        let machine = two_packages();
        assert_eq!(spread(&machine, &all, 1), [0]);
        assert_eq!(spread(&machine, &all, 2), [0, 2]);
        assert_eq!(spread(&machine, &all, 4), [0, 1, 2, 3]);
        assert_eq!(spread(&machine, &all, 5), [0, 1, 2, 3, 4]);
        assert_eq!(spread(&machine, &all, 6), [0, 1, 2, 3, 4, 6]);
        assert_eq!(spread(&machine, &all, 99), all);
    }

    #[test]
    fn only_allowed_cpus_are_used() {
        assert_eq!(spread(&two_packages(), &[1, 5, 7], 2), [1, 7]);
    }

    #[test]
    fn a_users_own_binding_is_kept() {
        let names = |is_set: fn(&str) -> bool| -> Vec<&str> {
            openmp_environment(Placement::Spread, 4, is_set).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(|_| false), ["OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES"]);
        assert_eq!(names(|name| name == "OMP_PLACES"), ["OMP_NUM_THREADS"]);
        assert_eq!(openmp_environment(Placement::Free, 4, |_| false), [("OMP_NUM_THREADS", "4".to_owned())]);
    }

    #[test]
    fn fast_cores_come_first() {
        let hybrid = machine(&[(0, 0, SMALL), (0, 1, SMALL), (0, 2, BIG), (0, 3, BIG)]);
        assert_eq!(spread(&hybrid, &[0, 1, 2, 3], 2), [2, 3]);
        assert_eq!(spread(&hybrid, &[0, 1, 2, 3], 3), [0, 2, 3]);
        let with_siblings = machine(&[(0, 0, BIG), (0, 0, BIG), (0, 1, SMALL)]);
        assert_eq!(spread(&with_siblings, &[0, 1, 2], 2), [0, 2]);
    }
}
