//! What the machine runs in: a virtual machine, a container, or nothing of the sort.

use super::cpuinfo::CpuIdentity;
use super::roots::{Roots, read_trimmed};

/// Whether the machine is virtual.
pub fn is_virtual(roots: &Roots) -> bool {
    hypervisor(roots).is_some()
}

/// The hypervisor under this machine, by the best name that can be found; `None` on bare metal.
///
/// x86 CPUs have a flag for it; elsewhere firmware tells.
pub fn hypervisor(roots: &Roots) -> Option<String> {
    let read = |path: &str| read_trimmed(&roots.sysfs.join(path)).ok().filter(|text| !text.is_empty());
    let dmi = |name: &str| read(&format!("class/dmi/id/{name}"));
    // Names of vendors and products that firmware of virtual machines carries.
    const MARKS: [(&str, &str); 12] = [
        ("QEMU", "QEMU"),
        ("KVM", "KVM"),
        ("VMware", "VMware"),
        ("VirtualBox", "VirtualBox"),
        ("innotek", "VirtualBox"),
        ("Xen", "Xen"),
        ("HVM domU", "Xen"),
        ("Virtual Machine", "Hyper-V"),
        ("Amazon EC2", "Amazon EC2"),
        ("Google Compute Engine", "Google Compute Engine"),
        ("OpenStack", "OpenStack"),
        ("Bochs", "Bochs"),
    ];
    let told = [dmi("sys_vendor"), dmi("product_name"), read("firmware/devicetree/base/model")];
    let by_firmware = told.iter().flatten().find_map(|text| {
        MARKS.iter().find(|(mark, _)| text.contains(mark)).map(|(_, name)| (*name).to_owned())
    });
    if CpuIdentity::read(roots).has_flag("hypervisor") {
        let name = by_firmware
            .or_else(|| read("hypervisor/type"))
            .unwrap_or_else(|| "unknown hypervisor".to_owned());
        return Some(name);
    }
    // EC2's bare-metal instances carry Amazon's name, too; on x86 the flag decides.
    let is_x86 = CpuIdentity::read(roots).arch.starts_with("x86") || CpuIdentity::read(roots).arch == "i686";
    if is_x86 {
        return None;
    }
    let metal = dmi("product_name").is_some_and(|name| name.contains("metal"));
    let dummy =
        read("firmware/devicetree/base/compatible").is_some_and(|text| text.contains("linux,dummy-virt"));
    by_firmware.filter(|_| !metal).or_else(|| dummy.then(|| "QEMU".to_owned()))
}

/// What contains this process: `docker`, `podman`, `kubernetes`, `lxc`, ...; `None` outside containers.
pub fn container(roots: &Roots) -> Option<String> {
    if roots.folder().join(".dockerenv").exists() {
        return Some("docker".to_owned());
    }
    if let Ok(text) = read_trimmed(&roots.folder().join("run/.containerenv")) {
        let engine = text.lines().find_map(|line| line.strip_prefix("engine=")).unwrap_or("podman");
        return Some(engine.trim_matches('"').split('-').next().unwrap_or("podman").to_owned());
    }
    // systemd writes the manager's name here for those that tell it.
    let told =
        read_trimmed(&roots.folder().join("run/systemd/container")).ok().filter(|name| !name.is_empty());
    told.or_else(|| {
        let cgroup = read_trimmed(&roots.procfs.join("self/cgroup")).unwrap_or_default();
        let marks = [("docker", "docker"), ("kubepods", "kubernetes"), ("libpod", "podman"), ("lxc", "lxc")];
        marks.into_iter().find(|(mark, _)| cgroup.contains(mark)).map(|(_, name)| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::FixtureMachine;

    fn told(manifest: &str) -> (Option<String>, Option<String>) {
        let machine = FixtureMachine::new(manifest);
        let roots = Roots::under(machine.path());
        (hypervisor(&roots), container(&roots))
    }

    #[test]
    fn the_cpus_flag_decides_on_x86() {
        let cpu = |flags: &str| {
            format!("proc/cpuinfo <<end\nvendor_id : GenuineIntel\ncpu family : 6\nflags : lm {flags}\nend\n")
        };
        assert_eq!(told(&cpu("")), (None, None));
        assert_eq!(told(&cpu("hypervisor")).0.as_deref(), Some("unknown hypervisor"));
        let ec2 = "sys/class/dmi/id/sys_vendor: Amazon EC2\n";
        assert_eq!(told(&(cpu("hypervisor") + ec2)).0.as_deref(), Some("Amazon EC2"));
        assert_eq!(told(&(cpu("") + ec2)).0, None, "an instance without hypervisor");
    }

    #[test]
    fn arm_by_firmware() {
        let cpu = "proc/sys/kernel/arch: aarch64\n";
        assert_eq!(told(&format!("{cpu}sys/class/dmi/id/sys_vendor: QEMU")).0.as_deref(), Some("QEMU"));
        let metal = "sys/class/dmi/id/sys_vendor: Amazon EC2\nsys/class/dmi/id/product_name: c7g.metal";
        assert_eq!(told(&format!("{cpu}{metal}")).0, None);
    }

    #[test]
    fn containers_by_their_marks() {
        assert_eq!(told(".dockerenv:").1.as_deref(), Some("docker"));
        assert_eq!(told("run/.containerenv: engine=\"podman-4.3.1\"").1.as_deref(), Some("podman"));
        assert_eq!(told("proc/self/cgroup: 0::/kubepods/besteffort/pod1").1.as_deref(), Some("kubernetes"));
        assert_eq!(told("proc/self/cgroup: 0::/user.slice").1, None);
    }
}
