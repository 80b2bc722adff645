//! Who made the CPU and which one it is, from `/proc/cpuinfo` and, on Arm, sysfs.

use std::collections::BTreeSet;
use std::path::Path;

use super::microarchitecture::{self, ArmPart};
use super::roots::{Roots, read_trimmed};

/// What identifies the CPU model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuIdentity {
    /// Name for people.
    pub model: String,
    /// Name for model files: `GenuineIntel-6-2D-7`, `arm-0x41-0xd0c-r3p1`.
    pub identity: String,
    /// Microarchitecture, if it is one of those known here.
    pub microarchitecture: Option<String>,
    /// Architecture as `uname -m` prints it.
    pub arch: String,
    /// Feature flags of the first CPU.
    pub flags: Vec<String>,
}

impl CpuIdentity {
    /// Reads it. Missing files leave fields empty: a profiler can work without knowing the CPU.
    pub fn read(roots: &Roots) -> Self {
        let text = read_trimmed(&roots.procfs.join("cpuinfo")).unwrap_or_default();
        let field = |name: &str| cpuinfo_field(&text, name);
        let flags = field("flags").or(field("Features")).or(field("isa")).unwrap_or_default();
        let mut identity = if let Some(vendor) = field("vendor_id").filter(|_| field("cpu family").is_some())
        {
            x86(vendor, &text)
        } else {
            let parts = arm_parts(roots, &text);
            if parts.is_empty() { other(&text) } else { arm(roots, &parts) }
        };
        identity.flags = flags.split_whitespace().map(str::to_owned).collect();
        identity.arch = read_trimmed(&roots.procfs.join("sys/kernel/arch"))
            .unwrap_or_else(|_| guess_arch(&identity, &text));
        if identity.identity.is_empty() {
            identity.identity = format!("{}-unknown", identity.arch);
        }
        identity
    }

    /// Whether the first CPU has this feature flag.
    pub fn has_flag(&self, flag: &str) -> bool {
        self.flags.iter().any(|have| have == flag)
    }
}

/// The first line `name : value` of cpuinfo; `None` if missing or empty.
fn cpuinfo_field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo_fields(text, name).next()
}

fn cpuinfo_fields<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .filter(move |(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
        .filter(|value| !value.is_empty())
}

/// perf's way of writing it: family decimal, model and stepping hexadecimal.
fn x86(vendor: &str, text: &str) -> CpuIdentity {
    let number = |name| cpuinfo_field(text, name).and_then(|value| value.parse::<u32>().ok());
    let (family, model) = (number("cpu family").unwrap_or(0), number("model").unwrap_or(0));
    let stepping = number("stepping").unwrap_or(0);
    CpuIdentity {
        model: cpuinfo_field(text, "model name").unwrap_or(vendor).to_owned(),
        identity: format!("{vendor}-{family}-{model:X}-{stepping:X}"),
        microarchitecture: microarchitecture::x86(vendor, family, model, stepping).map(str::to_owned),
        ..CpuIdentity::default()
    }
}

/// The distinct kinds of Arm core: MIDR registers in sysfs, or the same fields of cpuinfo.
fn arm_parts(roots: &Roots, text: &str) -> BTreeSet<ArmPart> {
    let cpus = roots.sysfs.join("devices/system/cpu");
    let from_sysfs: BTreeSet<ArmPart> = super::roots::sorted_names(&cpus)
        .iter()
        .filter(|name| name.strip_prefix("cpu").is_some_and(|n| n.parse::<u32>().is_ok()))
        .filter_map(|name| midr(&cpus.join(name).join("regs/identification/midr_el1")))
        .collect();
    if !from_sysfs.is_empty() {
        return from_sysfs;
    }
    let fields = ["CPU implementer", "CPU part", "CPU variant", "CPU revision"].map(|name| {
        cpuinfo_fields(text, name).map(parse_number).collect::<Option<Vec<u32>>>().unwrap_or_default()
    });
    let [implementers, parts, variants, revisions] = fields;
    let rest = variants.iter().zip(&revisions);
    let ids = implementers.iter().zip(&parts);
    ids.zip(rest)
        .map(|((&implementer, &part), (&variant, &revision))| ArmPart {
            implementer,
            part,
            variant,
            revision,
        })
        .collect()
}

/// MIDR_EL1: implementer 31:24, variant 23:20, part 15:4, revision 3:0 (Arm ARM, D19.2.101).
fn midr(path: &Path) -> Option<ArmPart> {
    let value = parse_number(&read_trimmed(path).ok()?)?;
    Some(ArmPart {
        implementer: value >> 24 & 0xff,
        part: value >> 4 & 0xfff,
        variant: value >> 20 & 0xf,
        revision: value & 0xf,
    })
}

fn parse_number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|value| value as u32),
        None => text.parse().ok(),
    }
}

/// Core names with the board's name, since Arm's cpuinfo has no model name.
fn arm(roots: &Roots, parts: &BTreeSet<ArmPart>) -> CpuIdentity {
    let names: Vec<String> = parts
        .iter()
        .map(|part| match microarchitecture::arm(part) {
            Some(name) => name.to_owned(),
            None => format!("Arm core {:#04x}-{:#05x}", part.implementer, part.part),
        })
        .collect();
    let boards = ["firmware/devicetree/base/model", "devices/virtual/dmi/id/product_name"];
    let board =
        boards.iter().find_map(|path| read_trimmed(&roots.sysfs.join(path)).ok().filter(|s| !s.is_empty()));
    let cores = names.join(" + ");
    let identities: Vec<String> = parts
        .iter()
        .map(|p| format!("{:#04x}-{:#05x}-r{}p{}", p.implementer, p.part, p.variant, p.revision))
        .collect();
    // Core names are told for the largest kind; the events are Arm's architectural ones on all.
    let microarchitecture = parts.iter().rev().find_map(microarchitecture::arm).map(str::to_owned);
    CpuIdentity {
        model: board.map_or(cores.clone(), |board| format!("{board} ({cores})")),
        identity: format!("arm-{}", identities.join("+")),
        microarchitecture,
        ..CpuIdentity::default()
    }
}

/// RISC-V, POWER, s390 and the rest: whatever line names the CPU.
fn other(text: &str) -> CpuIdentity {
    let names = ["uarch", "cpu", "model name", "vendor_id", "CPU"];
    let name = names.iter().find_map(|name| cpuinfo_field(text, name)).unwrap_or_default();
    let identity = ["mvendorid", "marchid", "mimpid"].iter().filter_map(|name| cpuinfo_field(text, name));
    let ids: Vec<&str> = identity.collect();
    CpuIdentity {
        model: name.to_owned(),
        identity: if ids.is_empty() {
            name.replace([' ', ','], "-")
        } else {
            format!("riscv-{}", ids.join("-"))
        },
        ..CpuIdentity::default()
    }
}

/// `/proc/sys/kernel/arch` came with Linux 6.1.
fn guess_arch(identity: &CpuIdentity, text: &str) -> String {
    let arch = if identity.has_flag("lm") {
        "x86_64"
    } else if cpuinfo_field(text, "cpu family").is_some() {
        "i686"
    } else if identity.identity.starts_with("arm-") {
        if cpuinfo_field(text, "CPU architecture").is_some_and(|v| v.starts_with('7')) {
            "armv7l"
        } else {
            "aarch64"
        }
    } else if identity.identity.starts_with("riscv-") {
        "riscv64"
    } else {
        std::env::consts::ARCH
    };
    arch.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::FixtureMachine;

    fn identity(manifest: &str) -> CpuIdentity {
        CpuIdentity::read(&Roots::under(FixtureMachine::new(manifest).path()))
    }

    #[test]
    fn an_intel_cpu() {
        let identity = identity(
            "proc/cpuinfo <<end\nprocessor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 45\n\
             model name\t: Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz\nstepping\t: 7\nflags\t\t: fpu lm avx\nend",
        );
        assert_eq!(identity.identity, "GenuineIntel-6-2D-7");
        assert_eq!(identity.microarchitecture.as_deref(), Some("sandybridge-ep"));
        assert_eq!(identity.arch, "x86_64");
        assert!(identity.has_flag("avx") && !identity.has_flag("hypervisor"));
    }

    #[test]
    fn an_arm_board_by_cpuinfo_and_by_sysfs() {
        let board = identity(
            "proc/cpuinfo <<end\nprocessor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n\
             CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd08\nCPU revision\t: 3\nend\n\
             sys/firmware/devicetree/base/model: Raspberry Pi 4 Model B Rev 1.4\0",
        );
        assert_eq!(board.identity, "arm-0x41-0xd08-r0p3");
        assert_eq!(board.model, "Raspberry Pi 4 Model B Rev 1.4 (cortex-a72)");
        assert_eq!(board.arch, "aarch64");

        let server = identity(
            "sys/devices/system/cpu/cpu0/regs/identification/midr_el1: 0x00000000413fd0c1\nproc/cpuinfo:",
        );
        assert_eq!(server.identity, "arm-0x41-0xd0c-r3p1");
        assert_eq!(server.microarchitecture.as_deref(), Some("neoverse-n1"));
    }

    #[test]
    fn nothing_known_is_no_error() {
        let identity = identity("");
        assert_eq!(identity.microarchitecture, None);
        assert!(identity.identity.ends_with("-unknown"));
    }
}
