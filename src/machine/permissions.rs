//! What this process may do: `perf_event_paranoid`, capabilities, limits, and what each forbids.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::Serialize;

use super::platform;
use super::repair::{self, Repairs};
use super::roots::{Roots, read_number, read_trimmed};

/// Capabilities that matter to a profiler, with their bits (`linux/capability.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// Reads every file.
    DacOverride = 1,
    /// Reads every file and folder.
    DacReadSearch = 2,
    /// Locks memory without limit.
    IpcLock = 14,
    /// Reads model-specific registers.
    SysRawio = 17,
    /// Attaches to other users' processes.
    SysPtrace = 19,
    /// Nearly everything; the only way before [`Capability::Perfmon`].
    SysAdmin = 21,
    /// Sees kernel addresses.
    Syslog = 34,
    /// Uses performance events as root does (Linux 5.8).
    Perfmon = 38,
}

/// The rights of this process, as files of procfs tell them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Permissions {
    /// `kernel.perf_event_paranoid`; `None` on a kernel without perf events.
    pub paranoid: Option<i32>,
    /// `kernel.kptr_restrict`
    pub kptr_restrict: Option<i32>,
    /// `kernel.perf_event_mlock_kb`: ring memory per CPU beyond the limit of locked memory.
    pub mlock_kb: Option<u64>,
    /// Open files, soft and hard limit; `None`: no limit.
    pub open_files: Option<(u64, u64)>,
    /// Effective user id.
    pub uid: u32,
    /// The kernel knows CAP_PERFMON: it is Linux 5.8 or later.
    pub knows_perfmon: bool,
    /// Effective capabilities, as bits.
    pub capabilities: u64,
    /// Capabilities that a program's file can give (`setcap`), as bits: within containers not all.
    pub bounding: u64,
    /// The capabilities count for the whole machine, not only within a user namespace.
    pub in_initial_namespace: bool,
    /// Programs started now cannot gain rights, not even from `setcap`.
    pub no_new_privileges: bool,
    /// System calls are filtered (seccomp).
    pub filtered: bool,
    /// Above level 2 the kernel heeds nothing but CAP_SYS_ADMIN, as those of Debian and Ubuntu do. Without
    /// their patch such levels are as level 2. No file tells the two apart, so it is assumed until the kernel
    /// proves to be another by opening an event.
    pub closed_above_2: bool,
    /// The machine has the PMU `power`, which needs the right to whole CPUs.
    pub power_pmu: bool,
    /// The container around this process.
    pub container: Option<String>,
    /// The hypervisor under this machine.
    pub hypervisor: Option<String>,
}

impl Permissions {
    /// Reads them. What cannot be read counts as the kernel's own default.
    pub fn read(roots: &Roots) -> Self {
        let kernel = |name: &str| roots.procfs.join("sys/kernel").join(name);
        let status = read_trimmed(&roots.procfs.join("self/status")).unwrap_or_default();
        let field = |name: &str| {
            status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
        };
        let user_map = read_trimmed(&roots.procfs.join("self/uid_map")).unwrap_or_default();
        Self {
            paranoid: read_number(&kernel("perf_event_paranoid")).ok(),
            kptr_restrict: read_number(&kernel("kptr_restrict")).ok(),
            mlock_kb: read_number(&kernel("perf_event_mlock_kb")).ok(),
            open_files: open_files(&read_trimmed(&roots.procfs.join("self/limits")).unwrap_or_default()),
            uid: field("Uid").and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0),
            knows_perfmon: kernel_version(roots) >= (5, 8),
            capabilities: field("CapEff").and_then(|bits| u64::from_str_radix(bits, 16).ok()).unwrap_or(0),
            bounding: field("CapBnd").and_then(|bits| u64::from_str_radix(bits, 16).ok()).unwrap_or(0),
            in_initial_namespace: user_map.is_empty()
                || user_map.split_whitespace().eq(["0", "0", "4294967295"]),
            no_new_privileges: field("NoNewPrivs") == Some("1"),
            filtered: field("Seccomp").is_some_and(|mode| mode != "0"),
            closed_above_2: true,
            power_pmu: roots.sysfs.join("bus/event_source/devices/power").is_dir(),
            container: platform::container(roots),
            hypervisor: platform::hypervisor(roots),
        }
    }

    /// Whether this process has the capability where the kernel asks for it: in the whole machine.
    pub fn has(&self, capability: Capability) -> bool {
        self.in_initial_namespace && self.capabilities >> (capability as u8) & 1 == 1
    }

    /// Whether `setcap` can give these to a program that this process starts.
    fn can_be_set(&self, capabilities: &[Capability]) -> bool {
        self.in_initial_namespace
            && !self.no_new_privileges
            && capabilities.iter().all(|&capability| self.bounding >> (capability as u8) & 1 == 1)
    }

    fn perfmon(&self) -> bool {
        self.has(Capability::SysAdmin) || self.has(Capability::Perfmon) && !self.is_closed()
    }

    /// `perf_event_paranoid` stands where the kernel heeds only CAP_SYS_ADMIN.
    fn is_closed(&self) -> bool {
        self.closed_above_2 && self.paranoid.is_some_and(|level| level > 2)
    }

    /// May count and sample all tasks of a CPU, and so read the power PMU.
    pub fn cpu_wide_events(&self) -> bool {
        self.paranoid.is_some_and(|level| level <= 0 || self.perfmon())
    }

    /// May sample its own programs within the kernel.
    pub fn own_kernel_events(&self) -> bool {
        self.paranoid.is_some_and(|level| level <= 1 || self.perfmon())
    }

    /// May sample its own programs. Levels above 2 are Debian's, Ubuntu's and Android's.
    pub fn own_events(&self) -> bool {
        self.paranoid.is_some() && (!self.is_closed() || self.perfmon())
    }

    /// How to get the right to sample one's own programs.
    pub fn own_repairs(&self) -> Repairs {
        match &self.container {
            Some(_) => repair::container(self.is_closed()),
            None => repair::own_events(),
        }
    }

    /// How to get the right to count and sample all tasks of a CPU.
    pub fn cpu_wide_repairs(&self) -> Repairs {
        match &self.container {
            // Who starts a container may leave its programs' files this right: settings of the kernel stay closed within.
            Some(_) if self.knows_perfmon && !self.is_closed() && self.can_be_set(&[Capability::Perfmon]) => {
                repair::cpu_wide_events_by_file().or(repair::container(false))
            }
            Some(_) => repair::container(self.is_closed()),
            None if !self.knows_perfmon => repair::cpu_wide_events_before_perfmon(),
            None if self.is_closed() && self.has(Capability::Perfmon) => repair::own_events(),
            None if self.is_closed() => repair::cpu_wide_events_above_2(),
            None => repair::cpu_wide_events(),
        }
    }

    /// How to get the right to sample other users' processes.
    pub fn other_users_repairs(&self) -> Repairs {
        match &self.container {
            Some(_) if !self.can_be_set(&[Capability::Perfmon]) => repair::container(self.is_closed()),
            _ => repair::other_users_tasks(),
        }
    }

    /// How to get the names of kernel functions.
    pub fn kernel_symbols_repairs(&self) -> Repairs {
        let by_file = self.can_be_set(&[Capability::Perfmon, Capability::Syslog]);
        match &self.container {
            Some(_) if by_file => repair::kernel_symbols_by_file().or(repair::container_symbols()),
            Some(_) => repair::container_symbols(),
            None => repair::kernel_symbols(),
        }
    }

    /// Sees the addresses of kernel functions.
    pub fn kernel_symbols(&self) -> bool {
        match self.kptr_restrict.unwrap_or(0) {
            // At 0, plain users see them only where they may profile the kernel, too.
            0 => self.has(Capability::Syslog) || self.paranoid.is_some_and(|level| level <= 1),
            1 => self.has(Capability::Syslog),
            _ => false,
        }
    }

    /// Ring memory is not limited.
    pub fn unlimited_rings(&self) -> bool {
        self.has(Capability::IpcLock) || self.paranoid.is_some_and(|level| level < 0)
    }

    /// Whether a file of the kernel's, which belong to root, may be read, judged by its mode.
    pub fn may_read(&self, path: &Path) -> bool {
        let everyone_may = path.metadata().is_ok_and(|data| data.permissions().mode() & 0o004 != 0);
        let overrides = [Capability::DacOverride, Capability::DacReadSearch];
        everyone_may
            || path.exists()
                && (self.uid == 0 && self.in_initial_namespace
                    || overrides.iter().any(|&right| self.has(right)))
    }

    /// What is missing, what follows from it, and what repairs it. `cpus` and `events` tell how many
    /// files a recording will open.
    pub fn gaps(&self, cpus: usize, events: usize) -> Vec<Gap> {
        let mut gaps = Vec::new();
        self.events(&mut gaps);
        if self.own_events() && !self.kernel_symbols() {
            let level = |level: Option<i32>| level.map_or("unknown".to_owned(), |level| level.to_string());
            let (kptr, paranoid) = (level(self.kptr_restrict), level(self.paranoid));
            gaps.push(Gap::new(
                Severity::Minor,
                format!(
                    "addresses of kernel functions are hidden (kptr_restrict {kptr}, perf_event_paranoid {paranoid})"
                ),
                "time in the kernel has no function names",
                self.kernel_symbols_repairs(),
            ));
        }
        if !self.unlimited_rings() && self.mlock_kb.is_some_and(|kb| kb < 516) {
            let kb = self.mlock_kb.unwrap_or(0);
            gaps.push(Gap::new(
                Severity::Minor,
                format!("sample buffers are limited to {kb} kB per CPU (perf_event_mlock_kb)"),
                "samples may be lost at high rates",
                repair::locked_memory(),
            ));
        }
        // Rings, meters, symbols and standard streams need some, too.
        let wanted = (cpus * events + 64) as u64;
        if let Some((soft, hard)) = self.open_files
            && hard.max(soft) < wanted
        {
            gaps.push(Gap::new(
                Severity::Fatal,
                format!("at most {hard} files may be open, {events} events on {cpus} CPUs need {wanted}"),
                "recordings with all of these events are refused",
                repair::open_files(wanted),
            ));
        }
        gaps
    }

    fn events(&self, gaps: &mut Vec<Gap>) {
        let Some(level) = self.paranoid else {
            gaps.push(Gap::new(
                Severity::Fatal,
                "the kernel has no performance events (no perf_event_paranoid)".to_owned(),
                "nothing can be recorded",
                Repairs::default(),
            ));
            return;
        };
        let (severity, consequence) = if self.cpu_wide_events() {
            return;
        } else if !self.own_events() {
            (Severity::Fatal, "nothing can be recorded")
        } else {
            let consequence = match (self.own_kernel_events(), self.power_pmu) {
                (true, true) => "no power PMU and no system-wide samples",
                (true, false) => "no system-wide samples",
                (false, true) => {
                    "no power PMU, no system-wide samples, and of one's own programs only the time outside the \
                     kernel"
                }
                (false, false) => {
                    "no system-wide samples, and of one's own programs only the time outside the kernel"
                }
            };
            (Severity::Major, consequence)
        };
        let mut what = if self.is_closed() && self.knows_perfmon {
            format!("perf_event_paranoid is {level}, where this kernel heeds only CAP_SYS_ADMIN")
        } else {
            let capability = if self.knows_perfmon { "CAP_PERFMON" } else { "CAP_SYS_ADMIN" };
            format!("perf_event_paranoid is {level} and {capability} is missing")
        };
        if let Some(container) = self.container.as_ref().filter(|_| self.filtered) {
            what += &format!("; {container}'s filter of system calls may refuse perf_event_open besides");
        }
        if !self.in_initial_namespace {
            what += " (rights within a user namespace do not count)";
        }
        if self.no_new_privileges {
            what += "; no_new_privs is set here, so setcap works only from another shell";
        }
        gaps.push(Gap::new(severity, what, consequence, self.cpu_wide_repairs()));
    }
}

/// Something that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// How much it matters.
    pub severity: Severity,
    /// What is missing.
    pub what: String,
    /// What cannot be done without it.
    pub consequence: String,
    /// What gives it, least privileged first.
    pub repairs: Repairs,
}

impl Gap {
    fn new(severity: Severity, what: String, consequence: &str, repairs: Repairs) -> Self {
        Self { severity, what, consequence: consequence.to_owned(), repairs }
    }
}

/// How much a gap matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Details are missing.
    Minor,
    /// Whole kinds of data are missing.
    Major,
    /// Nothing works.
    Fatal,
}

/// Major and minor number of the running kernel; one that is not told counts as recent.
pub fn kernel_version(roots: &Roots) -> (u32, u32) {
    version(&read_trimmed(&roots.procfs.join("sys/kernel/osrelease")).unwrap_or_default())
}

/// Major and minor number of a kernel's release; a release that is not understood counts as recent.
fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
        _ => (u32::MAX, 0),
    }
}

/// `Max open files   1024   524288   files`
fn open_files(limits: &str) -> Option<(u64, u64)> {
    let mut values = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?.split_whitespace();
    let mut limit = || values.next().map(|value| value.parse().unwrap_or(u64::MAX));
    Some((limit()?, limit()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::FixtureMachine;

    fn user(paranoid: &str, capabilities: &str) -> Permissions {
        let machine = FixtureMachine::new(&format!(
            "proc/sys/kernel/perf_event_paranoid: {paranoid}\nproc/sys/kernel/kptr_restrict: 0\n\
             proc/self/uid_map:          0          0 4294967295\n\
             proc/self/limits: Max open files            1024                 4096                 files\n\
             proc/self/status <<end\nUid:\t1000\t1000\t1000\t1000\nCapEff:\t{capabilities}\nSeccomp:\t0\nend"
        ));
        Permissions::read(&Roots::under(machine.path()))
    }

    #[test]
    fn what_each_level_allows() {
        let may = |level| {
            let user = user(level, "0000000000000000");
            (user.own_events(), user.own_kernel_events(), user.cpu_wide_events())
        };
        assert_eq!(may("3"), (false, false, false));
        assert_eq!(may("2"), (true, false, false));
        assert_eq!(may("1"), (true, true, false));
        assert_eq!(may("0"), (true, true, true));
        assert_eq!(may("-1"), (true, true, true));
    }

    const PERFMON: &str = "0000004000000000";
    const SYS_ADMIN: &str = "0000000000200000";

    #[test]
    fn cap_perfmon_is_enough_up_to_level_2() {
        let user_at_2 = user("2", PERFMON);
        assert!(user_at_2.has(Capability::Perfmon) && !user_at_2.has(Capability::SysAdmin));
        assert!(user_at_2.cpu_wide_events() && !user_at_2.kernel_symbols());
        let user_at_4 = user("4", PERFMON);
        assert!(!user_at_4.own_events() && !user_at_4.cpu_wide_events());
        assert!(user("4", SYS_ADMIN).cpu_wide_events());
        let without_patch = Permissions { closed_above_2: false, ..user_at_4 };
        assert!(without_patch.own_events() && without_patch.cpu_wide_events());
        let plain = Permissions { closed_above_2: false, ..user("4", "0") };
        assert!(plain.own_events() && !plain.own_kernel_events());
    }

    #[test]
    fn above_level_2_the_level_is_lowered_before_a_capability_is_given() {
        let commands = user("3", "0").cpu_wide_repairs().0.remove(0).commands;
        assert_eq!(commands[0], "sudo sysctl kernel.perf_event_paranoid=2");
        assert!(commands[1].starts_with("sudo setcap cap_perfmon=ep "));
        let contained = Permissions { container: Some("docker".to_owned()), ..user("3", "0") };
        assert!(contained.cpu_wide_repairs().one_line().contains("sysctl"));
        let contained = Permissions { container: Some("docker".to_owned()), ..user("2", "0") };
        assert!(!contained.cpu_wide_repairs().one_line().contains("sysctl"));
        assert!(contained.cpu_wide_repairs().one_line().starts_with("docker"), "its files get nothing");
        let leaves = Permissions { bounding: u64::from_str_radix(PERFMON, 16).expect("bits"), ..contained };
        let repairs = leaves.cpu_wide_repairs();
        assert!(repairs.one_line().starts_with("sudo setcap cap_perfmon=ep "), "{repairs}");
        assert!(repairs.to_string().contains("docker run"), "{repairs}");
        assert!(leaves.kernel_symbols_repairs().one_line().starts_with("docker"), "CAP_SYSLOG is not left");
        let closed = Permissions { no_new_privileges: true, ..leaves };
        assert!(closed.cpu_wide_repairs().one_line().starts_with("docker"));
    }

    #[test]
    fn rights_in_a_user_namespace_do_not_count() {
        let machine = FixtureMachine::new(
            "proc/sys/kernel/perf_event_paranoid: 2\nproc/self/uid_map: 0 1000 1\n\
             proc/self/status <<end\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nend",
        );
        let root_inside = Permissions::read(&Roots::under(machine.path()));
        assert!(!root_inside.cpu_wide_events());
        let gaps = root_inside.gaps(1, 1);
        assert!(gaps.iter().any(|gap| gap.what.contains("user namespace")), "{gaps:?}");
    }

    #[test]
    fn gaps_come_with_their_repair() {
        let gaps = user("2", "0").gaps(512, 9);
        let told: Vec<Severity> = gaps.iter().map(|gap| gap.severity).collect();
        assert_eq!(told, [Severity::Major, Severity::Minor, Severity::Fatal]);
        assert!(gaps[0].repairs.one_line().contains("setcap cap_perfmon=ep"));
        assert!(gaps[2].what.contains("need 4672"), "{}", gaps[2].what);
        assert!(user("-1", "0").gaps(1, 1).is_empty());
        assert_eq!(user("", "0").gaps(1, 1)[0].severity, Severity::Fatal);
    }

    #[test]
    fn kernels_before_perfmon_need_more() {
        assert_eq!(version("5.4.0-26-generic"), (5, 4));
        assert_eq!(version("6.18.44-fc"), (6, 18));
        assert!(version("") > (5, 8));
        let old = Permissions { knows_perfmon: false, ..user("2", "0") };
        assert!(old.gaps(1, 1)[0].repairs.one_line().contains("sysctl"), "{:?}", old.gaps(1, 1));
    }

    #[test]
    fn roots_files_by_their_mode() {
        let machine = FixtureMachine::new("sys/open [0444]: 1\nsys/closed [0400]: 1");
        let (open, closed) = (machine.path().join("sys/open"), machine.path().join("sys/closed"));
        let plain = user("2", "0");
        assert!(plain.may_read(&open) && !plain.may_read(&closed));
        assert!(user("2", "0000000000000004").may_read(&closed), "CAP_DAC_READ_SEARCH");
        let root = Permissions { uid: 0, ..plain };
        assert!(root.may_read(&closed) && !root.may_read(&machine.path().join("sys/missing")));
    }
}
