//! Packages, dies, cores and SMT siblings, and which core is of which kind.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use super::cpu_list;
use super::cpuinfo::CpuIdentity;
use super::roots::{Roots, read_number, read_trimmed};
use crate::hardware::{CoreKind, CpuInfo, MachineInfo};

/// Why the machine could not be described.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// The list of CPUs cannot be read.
    #[error(
        "cannot read the list of online CPUs from {path}: {source}; is sysfs mounted? (mount -t sysfs sysfs /sys)"
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The list of CPUs makes no sense.
    #[error("{path} holds '{text}', which is no list of CPUs")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Its content.
        text: String,
    },
}

/// Describes the machine: its name, its CPU and where every online CPU sits.
///
/// # Errors
/// If the list of online CPUs cannot be read. All else that is missing takes the simplest value: one
/// package, a core per CPU.
pub fn detect(roots: &Roots) -> Result<MachineInfo, TopologyError> {
    let identity = CpuIdentity::read(roots);
    let kernel = |name: &str| read_trimmed(&roots.procfs.join("sys/kernel").join(name)).unwrap_or_default();
    Ok(MachineInfo {
        hostname: kernel("hostname"),
        kernel: kernel("osrelease"),
        arch: identity.arch,
        cpu_model: identity.model,
        cpu_identity: identity.identity,
        microarchitecture: identity.microarchitecture,
        cpus: cpus(roots)?,
    })
}

/// Numbers of the online CPUs, ascending.
///
/// # Errors
/// If sysfs has no readable list of them.
pub fn online(roots: &Roots) -> Result<Vec<u32>, TopologyError> {
    let path = roots.sysfs.join("devices/system/cpu/online");
    let text = match read_trimmed(&path) {
        Ok(text) => text,
        Err(source) => return Err(TopologyError::Unreadable { path, source }),
    };
    match cpu_list::parse(&text) {
        Some(cpus) if !cpus.is_empty() => Ok(cpus),
        _ => Err(TopologyError::Malformed { path, text }),
    }
}

fn cpus(roots: &Roots) -> Result<Vec<CpuInfo>, TopologyError> {
    let online = online(roots)?;
    let kinds = core_kinds(roots, &online);
    // Boards that are described by a device tree have one package; older kernels call their clusters so.
    let is_board = roots.sysfs.join("firmware/devicetree/base/model").exists();
    let mut siblings = BTreeMap::new();
    let mut cpus: Vec<CpuInfo> = online
        .iter()
        .map(|&cpu| {
            let topology = roots.sysfs.join(format!("devices/system/cpu/cpu{cpu}/topology"));
            // The kernel writes -1 for what it does not know.
            let id = |name: &str| {
                read_number::<i64>(&topology.join(name)).ok().and_then(|id| u32::try_from(id).ok())
            };
            let lists = ["core_cpus_list", "thread_siblings_list"];
            let together =
                lists.iter().find_map(|list| cpu_list::parse(&read_trimmed(&topology.join(list)).ok()?));
            siblings.insert(cpu, together.and_then(|list| list.first().copied()).unwrap_or(cpu));
            CpuInfo {
                cpu,
                core: id("core_id").unwrap_or(cpu),
                die: id("die_id").unwrap_or(0),
                package: id("physical_package_id").filter(|_| !is_board).unwrap_or(0),
                kind: kinds.get(&cpu).copied().unwrap_or_default(),
            }
        })
        .collect();
    number_cores_uniquely(&mut cpus, &siblings);
    Ok(cpus)
}

/// Makes `core` tell cores of a package apart. Some platforms number cores within a die or cluster
/// only; there the lowest CPU of a core becomes its number.
fn number_cores_uniquely(cpus: &mut [CpuInfo], first_sibling: &BTreeMap<u32, u32>) {
    let mut cores_by_id: BTreeMap<(u32, u32), BTreeSet<u32>> = BTreeMap::new();
    for cpu in cpus.iter() {
        let first = first_sibling.get(&cpu.cpu).copied().unwrap_or(cpu.cpu);
        cores_by_id.entry((cpu.package, cpu.core)).or_default().insert(first);
    }
    let ambiguous: BTreeSet<u32> =
        cores_by_id.iter().filter(|(_, cores)| cores.len() > 1).map(|((package, _), _)| *package).collect();
    for cpu in cpus.iter_mut().filter(|cpu| ambiguous.contains(&cpu.package)) {
        cpu.core = first_sibling.get(&cpu.cpu).copied().unwrap_or(cpu.cpu);
    }
}

/// Intel says the kind of core by the CPUs of its PMUs, Arm by relative capacity.
fn core_kinds(roots: &Roots, online: &[u32]) -> BTreeMap<u32, CoreKind> {
    let devices = roots.sysfs.join("bus/event_source/devices");
    let cpus_of = |pmu: &str| {
        let text = read_trimmed(&devices.join(pmu).join("cpus")).ok()?;
        cpu_list::parse(&text)
    };
    // Arrow Lake-H and later have a third, slower kind of Atom cores under a PMU of their own.
    let small: Vec<u32> = ["cpu_atom", "cpu_lowpower"].into_iter().filter_map(cpus_of).flatten().collect();
    if !small.is_empty() {
        return small.into_iter().map(|cpu| (cpu, CoreKind::Efficiency)).collect();
    }
    let capacity = |cpu: u32| {
        read_number::<u32>(&roots.sysfs.join(format!("devices/system/cpu/cpu{cpu}/cpu_capacity"))).ok()
    };
    let capacities: BTreeMap<u32, u32> =
        online.iter().filter_map(|&cpu| Some((cpu, capacity(cpu)?))).collect();
    let largest = capacities.values().copied().max().unwrap_or(0);
    // LITTLE cores have 25 to 53 % of the largest core's capacity, middle cores 70 % and more.
    capacities
        .into_iter()
        .filter(|&(_, capacity)| u64::from(capacity) * 3 < u64::from(largest) * 2)
        .map(|(cpu, _)| (cpu, CoreKind::Efficiency))
        .collect()
}

/// Whether AMD made the CPU, or Hygon by AMD's design.
pub fn is_amd(machine: &MachineInfo) -> bool {
    ["AuthenticAMD", "HygonGenuine"].iter().any(|vendor| machine.cpu_identity.starts_with(vendor))
}

/// Whether this is an x86 machine, of 32 or 64 bits.
pub fn is_x86(machine: &MachineInfo) -> bool {
    matches!(machine.arch.as_str(), "x86_64" | "i686")
}

/// Facts about groups of CPUs, derived from a machine's list of them.
pub trait CpuGroups {
    /// Numbers of the packages, ascending.
    fn packages(&self) -> Vec<u32>;
    /// CPUs of a package.
    fn package_cpus(&self, package: u32) -> Vec<u32>;
    /// One CPU (the lowest) of each physical core.
    fn first_of_each_core(&self) -> Vec<CpuInfo>;
    /// Whether any core runs more than one thread.
    fn has_smt(&self) -> bool;
    /// Whether cores are of more than one kind.
    fn is_hybrid(&self) -> bool;
}

impl CpuGroups for MachineInfo {
    fn packages(&self) -> Vec<u32> {
        self.cpus.iter().map(|cpu| cpu.package).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn package_cpus(&self, package: u32) -> Vec<u32> {
        self.cpus.iter().filter(|cpu| cpu.package == package).map(|cpu| cpu.cpu).collect()
    }

    fn first_of_each_core(&self) -> Vec<CpuInfo> {
        let mut seen = BTreeSet::new();
        self.cpus.iter().filter(|cpu| seen.insert((cpu.package, cpu.core))).copied().collect()
    }

    fn has_smt(&self) -> bool {
        self.first_of_each_core().len() < self.cpus.len()
    }

    fn is_hybrid(&self) -> bool {
        self.cpus.iter().any(|cpu| Some(cpu.kind) != self.cpus.first().map(|first| first.kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::FixtureMachine;

    fn detected(manifest: &str) -> MachineInfo {
        detect(&Roots::under(FixtureMachine::new(manifest).path())).expect("described")
    }

    #[test]
    fn two_packages_with_smt() {
        let machine = detected(
            "sys/devices/system/cpu/online: 0-7\n\
             sys/devices/system/cpu/cpu{0-7}/topology/physical_package_id: {0,0,1,1}\n\
             sys/devices/system/cpu/cpu{0-7}/topology/core_id: {0,1}\n\
             sys/devices/system/cpu/cpu{0-7}/topology/core_cpus_list: {0-3},{4-7}",
        );
        assert_eq!(machine.packages(), [0, 1]);
        assert_eq!(machine.package_cpus(1), [2, 3, 6, 7]);
        assert_eq!(machine.first_of_each_core().len(), 4);
        assert!(machine.has_smt() && !machine.is_hybrid());
    }

    #[test]
    fn cores_numbered_per_die_become_distinct() {
        let machine = detected(
            "sys/devices/system/cpu/online: 0-3\n\
             sys/devices/system/cpu/cpu{0-3}/topology/die_id: {0,0,1,1}\n\
             sys/devices/system/cpu/cpu{0-3}/topology/core_id: {0,1}\n\
             sys/devices/system/cpu/cpu{0-3}/topology/core_cpus_list: {0-3}",
        );
        let cores: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.core).collect();
        assert_eq!(cores, [0, 1, 2, 3]);
        assert!(!machine.has_smt());
    }

    #[test]
    fn little_cores_by_capacity_middle_cores_not() {
        let machine = detected(
            "sys/devices/system/cpu/online: 0-2\n\
             sys/devices/system/cpu/cpu{0-2}/topology/physical_package_id: -1\n\
             sys/devices/system/cpu/cpu{0-2}/cpu_capacity: {530,830,1024}",
        );
        let kinds: Vec<CoreKind> = machine.cpus.iter().map(|cpu| cpu.kind).collect();
        assert_eq!(kinds, [CoreKind::Efficiency, CoreKind::Performance, CoreKind::Performance]);
        assert_eq!(machine.packages(), [0], "-1 means not known");
    }

    #[test]
    fn clusters_of_a_board_are_no_packages() {
        let machine = detected(
            "sys/devices/system/cpu/online: 0-3\n\
             sys/firmware/devicetree/base/model: Some Board\n\
             sys/devices/system/cpu/cpu{0-3}/topology/physical_package_id: {0,0,1,1}\n\
             sys/devices/system/cpu/cpu{0-3}/topology/core_id: {0,1}\n\
             sys/devices/system/cpu/cpu{0-3}/topology/core_cpus_list: {0-3}",
        );
        assert_eq!(machine.packages(), [0]);
        assert_eq!(machine.first_of_each_core().len(), 4);
    }

    #[test]
    fn no_sysfs_is_said() {
        let nothing = FixtureMachine::new("");
        let error = detect(&Roots::under(nothing.path())).expect_err("nothing there");
        assert!(error.to_string().contains("is sysfs mounted?"), "{error}");
        let damaged = FixtureMachine::new("sys/devices/system/cpu/online: zero");
        assert!(matches!(detect(&Roots::under(damaged.path())), Err(TopologyError::Malformed { .. })));
    }
}
