//! What a user can do about a missing right, least privileged first.

use std::fmt;

use serde::Serialize;

/// One way to get a right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// For whom and for how long it works.
    pub scope: String,
    /// The commands or the text of a file, line by line.
    pub commands: Vec<String>,
}

/// The ways to get a right, least privileged first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Repairs(pub Vec<Repair>);

impl Repairs {
    fn of<const N: usize>(ways: [(&str, Vec<String>); N]) -> Self {
        Self(ways.map(|(scope, commands)| Repair { scope: scope.to_owned(), commands }).into())
    }

    /// These ways, and after them `others`.
    #[must_use]
    pub fn or(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// The first way, for an error message.
    pub fn one_line(&self) -> String {
        self.0.first().map(|first| first.commands.join(" && ")).unwrap_or_default()
    }
}

impl fmt::Display for Repairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for repair in &self.0 {
            writeln!(f, "{}:", repair.scope)?;
            for command in &repair.commands {
                writeln!(f, "    {command}")?;
            }
        }
        Ok(())
    }
}

/// This program's own file, as a user would write it in a shell.
pub fn own_binary() -> String {
    let path = std::env::current_exe().unwrap_or_else(|_| "eprof".into());
    let text = path.display().to_string();
    let is_plain = text.chars().all(|c| c.is_alphanumeric() || "/._-+:@,".contains(c));
    if is_plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

const THIS_BINARY: &str = "for this eprof only, until the file is replaced";
const UNTIL_BOOT: &str = "for all users, until the next boot";
const FOR_EVER: &str = "for all users, for good";

/// To count and sample all tasks of a CPU, and so to read the power PMU.
pub fn cpu_wide_events() -> Repairs {
    Repairs::of([
        (THIS_BINARY, vec![setcap("cap_perfmon")]),
        (UNTIL_BOOT, vec![sysctl("perf_event_paranoid", "0")]),
        (FOR_EVER, vec![sysctl_for_good("perf_event_paranoid", "0")]),
    ])
}

/// To sample other users' processes, whatever `perf_event_paranoid` says.
pub fn other_users_tasks() -> Repairs {
    Repairs::of([
        (THIS_BINARY, vec![setcap("cap_perfmon")]),
        ("as root", vec![format!("sudo {} ...", own_binary())]),
    ])
}

/// To know the code of other users' processes that run already, beside sampling them.
pub fn other_users_code() -> Repairs {
    Repairs::of([
        (THIS_BINARY, vec![setcap("cap_perfmon,cap_syslog,cap_sys_ptrace")]),
        ("as root", vec![format!("sudo {} ...", own_binary())]),
    ])
}

/// To sample one's own programs where `perf_event_paranoid` is above 2; with CAP_PERFMON then all others, too.
pub fn own_events() -> Repairs {
    Repairs::of([
        (UNTIL_BOOT, vec![sysctl("perf_event_paranoid", "2")]),
        (FOR_EVER, vec![sysctl_for_good("perf_event_paranoid", "2")]),
    ])
}

/// As [`cpu_wide_events`], at levels of `perf_event_paranoid` above 2 on kernels that then heed only CAP_SYS_ADMIN:
/// that would be far more than is needed, and level 2 opens nothing but the users' own programs.
pub fn cpu_wide_events_above_2() -> Repairs {
    Repairs::of([
        (
            "level 2 until the next boot, and the rest for this eprof only, until the file is replaced",
            vec![sysctl("perf_event_paranoid", "2"), setcap("cap_perfmon")],
        ),
        ("the same for good", vec![sysctl_for_good("perf_event_paranoid", "2"), setcap("cap_perfmon")]),
        (UNTIL_BOOT, vec![sysctl("perf_event_paranoid", "0")]),
    ])
}

/// As [`cpu_wide_events`], on kernels before 5.8, which do not know CAP_PERFMON.
pub fn cpu_wide_events_before_perfmon() -> Repairs {
    Repairs::of([
        (UNTIL_BOOT, vec![sysctl("perf_event_paranoid", "0")]),
        (FOR_EVER, vec![sysctl_for_good("perf_event_paranoid", "0")]),
        (THIS_BINARY, vec![setcap("cap_sys_admin")]),
    ])
}

/// As [`cpu_wide_events`] within a container that leaves the capability to its programs' files.
pub fn cpu_wide_events_by_file() -> Repairs {
    Repairs::of([(THIS_BINARY, vec![setcap("cap_perfmon")])])
}

/// To probe functions of programs. A probe that is opened by itself wants CAP_SYS_ADMIN since Linux 6.16 and in the stable
/// kernels of July 2025; a program that is attached to all of them, which Linux 6.6 and later know (`knows_programs`), does not.
pub fn probes(knows_programs: bool) -> Repairs {
    let by_file = (THIS_BINARY, vec![setcap("cap_perfmon,cap_bpf")]);
    let as_root = ("as root", vec![format!("sudo {} record --gpu ...", own_binary())]);
    if knows_programs { Repairs::of([by_file, as_root]) } else { Repairs::of([as_root]) }
}

/// To see the addresses of kernel functions, likewise.
pub fn kernel_symbols_by_file() -> Repairs {
    Repairs::of([(THIS_BINARY, vec![setcap("cap_perfmon,cap_syslog")])])
}

/// To see the addresses of kernel functions.
pub fn kernel_symbols() -> Repairs {
    Repairs::of([
        (THIS_BINARY, vec![setcap("cap_perfmon,cap_syslog")]),
        (UNTIL_BOOT, vec!["sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1".to_owned()]),
    ])
}

/// To read powercap's energy counters, closed since CVE-2020-8694 to all but root.
pub fn powercap() -> Repairs {
    const RULE: &str = r#"SUBSYSTEM=="powercap", ACTION=="add", RUN+="/bin/sh -c 'chgrp power-readers /sys%p/energy_uj && chmod g+r /sys%p/energy_uj'""#;
    let own_group = "sudo chgrp \"$(id -gn)\" /sys/class/powercap/*/energy_uj && \
                     sudo chmod g+r /sys/class/powercap/*/energy_uj";
    Repairs::of([
        ("for your own group, until the next boot", vec![own_group.to_owned()]),
        (
            "for members of one group, for good; for you from the next login",
            vec![
                "sudo groupadd --force --system power-readers && sudo usermod -aG power-readers \"$USER\"".to_owned(),
                format!("echo {} | sudo tee /etc/udev/rules.d/70-energy.rules", quoted(RULE)),
                "sudo udevadm control --reload && sudo udevadm trigger --action=add --subsystem-match=powercap".to_owned(),
            ],
        ),
    ])
}

/// To have better estimates where there is no meter.
pub fn own_figures() -> Repairs {
    Repairs::of([(
        "with figures of your own, the watts of all CPUs at rest and busy",
        vec!["eprof record --watts IDLE:BUSY ...".to_owned()],
    )])
}

/// To read model-specific registers.
pub fn msr() -> Repairs {
    Repairs::of([("for root", vec![format!("sudo modprobe msr && sudo {} record ...", own_binary())])])
}

/// To have larger sample buffers.
pub fn locked_memory() -> Repairs {
    Repairs::of([
        (THIS_BINARY, vec![setcap("cap_perfmon,cap_ipc_lock")]),
        (UNTIL_BOOT, vec![sysctl("perf_event_mlock_kb", "4096")]),
    ])
}

/// To open enough files.
pub fn open_files(wanted: u64) -> Repairs {
    Repairs::of([
        (
            "for this shell and what it starts",
            vec![format!("sudo prlimit --pid $$ --nofile={wanted}:{wanted}")],
        ),
        (
            "for one user, from the next login",
            vec![format!("echo \"$USER hard nofile {wanted}\" | sudo tee /etc/security/limits.d/eprof.conf")],
        ),
    ])
}

/// To use perf_event_open within a container; `closed` where the kernel heeds only CAP_SYS_ADMIN, see
/// [`cpu_wide_events_above_2`].
pub fn container(closed: bool) -> Repairs {
    let on_host = closed.then(|| sysctl("perf_event_paranoid", "2"));
    let ways = |command: &str| on_host.iter().cloned().chain([command.to_owned()]).collect();
    Repairs::of([
        ("docker or podman, on the host", ways("docker run --cap-add PERFMON ...")),
        (
            "docker or podman whose filter of system calls does not heed CAP_PERFMON, on the host",
            ways("docker run --cap-add PERFMON --security-opt seccomp=unconfined ..."),
        ),
        (
            "Kubernetes",
            ways("securityContext: {capabilities: {add: [PERFMON]}, seccompProfile: {type: Unconfined}}"),
        ),
    ])
}

/// To see the addresses of kernel functions within a container.
pub fn container_symbols() -> Repairs {
    Repairs::of([("docker or podman", vec!["docker run --cap-add PERFMON --cap-add SYSLOG ...".to_owned()])])
}

fn setcap(capabilities: &str) -> String {
    format!("sudo setcap {capabilities}=ep {}", own_binary())
}

fn sysctl(name: &str, value: &str) -> String {
    format!("sudo sysctl kernel.{name}={value}")
}

fn sysctl_for_good(name: &str, value: &str) -> String {
    format!("echo kernel.{name}={value} | sudo tee /etc/sysctl.d/70-eprof.conf && sudo sysctl --system")
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_privileged_first() {
        let repairs = cpu_wide_events();
        assert!(repairs.one_line().starts_with("sudo setcap cap_perfmon=ep "));
        assert!(repairs.to_string().contains("kernel.perf_event_paranoid=0"));
    }

    #[test]
    fn quotes_survive_the_shell() {
        assert_eq!(quoted("a 'b'"), r"'a '\''b'\'''");
    }
}
