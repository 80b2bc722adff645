//! How much memory a process may still take.

use std::path::Path;

use super::Roots;
use super::roots::{read_number, read_trimmed};

/// Memory that is free, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FreeMemory {
    /// In the machine, counting what the kernel would give back; `None` where it does not tell.
    pub in_machine: Option<u64>,
    /// Up to the narrowest limit: of a control group, of the process's data or addresses. `None` if there is none.
    pub within_limits: Option<u64>,
}

impl FreeMemory {
    /// What the calling process may still take.
    pub fn of_process(roots: &Roots) -> Self {
        let meminfo = read_trimmed(&roots.procfs.join("meminfo")).unwrap_or_default();
        let limits = [of_control_groups(roots), of_resource_limits(&roots.procfs.join("self"))];
        Self {
            in_machine: kibibytes(&meminfo, "MemAvailable"),
            within_limits: limits.into_iter().flatten().min(),
        }
    }
}

/// Memory that the calling process has now, in bytes; `None` where the kernel does not tell.
pub fn resident(roots: &Roots) -> Option<u64> {
    kibibytes(&read_trimmed(&roots.procfs.join("self/status")).ok()?, "VmRSS")
}

/// The least that is free in the process's control groups, from its own to the outermost.
fn of_control_groups(roots: &Roots) -> Option<u64> {
    let groups = read_trimmed(&roots.procfs.join("self/cgroup")).ok()?;
    let mounted = roots.sysfs.join("fs/cgroup");
    let free = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        let version = match controllers {
            "" => Some((mounted.clone(), V2)),
            _ if controllers.split(',').any(|name| name == "memory") => Some((mounted.join("memory"), V1)),
            _ => None,
        };
        // In a container the path may be one of the host's, of which only the root is there.
        let ancestors = Path::new(path.trim_start_matches('/')).ancestors();
        let folders =
            ancestors.filter_map(move |path| Some((version.as_ref()?.0.join(path), version.as_ref()?.1)));
        folders.collect::<Vec<_>>()
    });
    free.filter_map(|(folder, files)| files.free(&folder)).min()
}

/// What a version of control groups calls its files, and the memory of files in them.
#[derive(Clone, Copy)]
struct GroupFiles {
    limit: &'static str,
    usage: &'static str,
    cached: [&'static str; 2],
}

const V2: GroupFiles =
    GroupFiles { limit: "memory.max", usage: "memory.current", cached: ["inactive_file", "active_file"] };
const V1: GroupFiles = GroupFiles {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cached: ["total_inactive_file", "total_active_file"],
};
/// Version 1 says so of a group without a limit: the highest number of whole pages.
const UNLIMITED: u64 = 1 << 62;

impl GroupFiles {
    /// What is free in a group; `None` if it has no limit.
    fn free(&self, folder: &Path) -> Option<u64> {
        let limit: u64 = read_number(&folder.join(self.limit)).ok().filter(|limit| *limit < UNLIMITED)?;
        let usage: u64 = read_number(&folder.join(self.usage)).unwrap_or(0);
        let stat = read_trimmed(&folder.join("memory.stat")).unwrap_or_default();
        // Pages of files count as used, and are given back before anything is refused.
        let cached: u64 = self.cached.iter().filter_map(|name| number_of(&stat, name)).sum();
        Some(limit.saturating_sub(usage.saturating_sub(cached)))
    }
}

/// What the process may still take of data and of addresses (`ulimit -d`, `ulimit -v`).
fn of_resource_limits(process: &Path) -> Option<u64> {
    let limits = read_trimmed(&process.join("limits")).ok()?;
    let status = read_trimmed(&process.join("status")).unwrap_or_default();
    let free = |limit: &str, used: &str| {
        let soft = limits.lines().find_map(|line| line.strip_prefix(limit))?.split_whitespace().next()?;
        let soft: u64 = soft.parse().ok()?;
        Some(soft.saturating_sub(kibibytes(&status, used).unwrap_or(0)))
    };
    [free("Max data size", "VmData"), free("Max address space", "VmSize")].into_iter().flatten().min()
}

/// `Name:  123 kB`, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// `name 123`.
fn number_of(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::FixtureMachine;

    fn free(manifest: &str) -> FreeMemory {
        FreeMemory::of_process(&Roots::under(FixtureMachine::new(manifest).path()))
    }

    #[test]
    fn a_machine_without_limits_has_what_is_available() {
        let memory = free(
            "proc/meminfo <<end\nMemTotal: 1000 kB\nMemAvailable:     600 kB\nend\n\
             proc/self/limits: Max data size  unlimited  unlimited  bytes\n\
             proc/self/cgroup: 0::/\n",
        );
        assert_eq!(memory, FreeMemory { in_machine: Some(600 * 1024), within_limits: None });
        assert_eq!(free("proc/uptime: 1"), FreeMemory::default());
    }

    #[test]
    fn the_narrowest_control_group_counts() {
        let memory = free(
            "proc/self/cgroup: 0::/user.slice/app\n\
             sys/fs/cgroup/user.slice/memory.max: 10000\n\
             sys/fs/cgroup/user.slice/memory.current: 9000\n\
             sys/fs/cgroup/user.slice/memory.stat <<end\nanon 1000\ninactive_file 5000\nactive_file 1000\nend\n\
             sys/fs/cgroup/user.slice/app/memory.max: max\n\
             sys/fs/cgroup/user.slice/app/memory.current: 100\n",
        );
        assert_eq!(memory.within_limits, Some(10_000 - 3_000));
    }

    #[test]
    fn version_1_is_found_where_a_container_has_its_root() {
        let memory = free(
            "proc/self/cgroup <<end\n5:cpu:/a\n4:memory:/docker/1234\nend\n\
             sys/fs/cgroup/memory/memory.limit_in_bytes: 5000\n\
             sys/fs/cgroup/memory/memory.usage_in_bytes: 2000\n\
             sys/fs/cgroup/memory/memory.stat: total_inactive_file 500\n",
        );
        assert_eq!(memory.within_limits, Some(3_500));
        let unlimited = "proc/self/cgroup: 4:memory:/\n\
                         sys/fs/cgroup/memory/memory.limit_in_bytes: 9223372036854771712\n";
        assert_eq!(free(unlimited).within_limits, None);
    }

    #[test]
    fn limits_of_the_process_count() {
        let memory = free(
            "proc/self/limits <<end\nMax data size      8192000   unlimited  bytes\n\
             Max address space  unlimited unlimited  bytes\nend\n\
             proc/self/status <<end\nVmSize:  500 kB\nVmData:  1000 kB\nend\n",
        );
        assert_eq!(memory.within_limits, Some(8_192_000 - 1_024_000));
    }
}
