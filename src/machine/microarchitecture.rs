//! CPU models and the names of their microarchitectures.
//!
//! Families and models are those of the kernel's `arch/x86/include/asm/intel-family.h`, of
//! `arch/x86/kernel/cpu/amd.c` and of `arch/arm64/include/asm/cputype.h`; which models share one table
//! of events is what Intel's and AMD's `mapfile.csv` say.

/// What tells one Arm core from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArmPart {
    /// Who made it (0x41: Arm itself).
    pub implementer: u32,
    /// Which core.
    pub part: u32,
    /// Major revision, the `r` of r3p1.
    pub variant: u32,
    /// Minor revision, the `p` of r3p1.
    pub revision: u32,
}

/// The microarchitecture of an x86 CPU. Hybrid CPUs have one name for both kinds of core.
pub fn x86(vendor: &str, family: u32, model: u32, stepping: u32) -> Option<&'static str> {
    match vendor {
        "GenuineIntel" if family == 6 => intel(model, stepping),
        "AuthenticAMD" | "HygonGenuine" => amd(family, model),
        _ => None,
    }
}

fn intel(model: u32, stepping: u32) -> Option<&'static str> {
    Some(match model {
        0x1a | 0x1e | 0x1f | 0x2e => "nehalem",
        0x25 | 0x2c | 0x2f => "westmere",
        0x2a => "sandybridge",
        0x2d => "sandybridge-ep",
        0x3a => "ivybridge",
        0x3e => "ivybridge-ep",
        0x3c | 0x45 | 0x46 => "haswell",
        0x3f => "haswell-ep",
        0x3d | 0x47 => "broadwell",
        0x4f | 0x56 => "broadwell-ep",
        // Kaby Lake, Coffee Lake and Comet Lake have Skylake's cores.
        0x4e | 0x5e | 0x8e | 0x9e | 0xa5 | 0xa6 => "skylake",
        0x55 if stepping <= 4 => "skylake-sp",
        0x55 => "cascadelake-sp",
        // Rocket Lake (0xa7) has Ice Lake's cores.
        0x7d | 0x7e | 0x9d | 0xa7 => "icelake",
        0x6a | 0x6c => "icelake-sp",
        0x8c | 0x8d => "tigerlake",
        0x8f => "sapphirerapids",
        0xcf => "emeraldrapids",
        0xad | 0xae => "graniterapids",
        0xaf => "sierraforest",
        // Raptor Lake has Alder Lake's table of events.
        0x97 | 0x9a | 0xb7 | 0xba | 0xbf => "alderlake",
        0xbe => "gracemont",
        0xaa | 0xac | 0xb5 => "meteorlake",
        0xc5 | 0xc6 => "arrowlake",
        0xbd => "lunarlake",
        0xcc => "pantherlake",
        0xdd => "clearwaterforest",
        0x37 | 0x4a | 0x4c | 0x4d | 0x5a | 0x5d => "silvermont",
        0x5c | 0x5f => "goldmont",
        0x7a => "goldmont-plus",
        0x86 | 0x96 | 0x9c => "tremont",
        _ => return None,
    })
}

fn amd(family: u32, model: u32) -> Option<&'static str> {
    Some(match (family, model) {
        (0x17, 0x00..=0x2f) | (0x18, _) => "zen1",
        (0x17, _) => "zen2",
        (0x19, 0x00..=0x0f | 0x20..=0x5f) => "zen3",
        (0x19, _) => "zen4",
        (0x1a, 0x00..=0x2f | 0x40..=0x4f | 0x60..=0x7f) => "zen5",
        _ => return None,
    })
}

/// The name of an Arm core.
pub fn arm(part: &ArmPart) -> Option<&'static str> {
    Some(match (part.implementer, part.part) {
        (0x41, 0xc07) => "cortex-a7",
        (0x41, 0xc09) => "cortex-a9",
        (0x41, 0xc0f) => "cortex-a15",
        (0x41, 0xc0e) => "cortex-a17",
        (0x41, 0xd04) => "cortex-a35",
        (0x41, 0xd03) => "cortex-a53",
        (0x41, 0xd05) => "cortex-a55",
        (0x41, 0xd07) => "cortex-a57",
        (0x41, 0xd08) => "cortex-a72",
        (0x41, 0xd09) => "cortex-a73",
        (0x41, 0xd0a) => "cortex-a75",
        (0x41, 0xd0b) => "cortex-a76",
        (0x41, 0xd0d) => "cortex-a77",
        (0x41, 0xd41) => "cortex-a78",
        (0x41, 0xd42) => "cortex-a78ae",
        (0x41, 0xd4b) => "cortex-a78c",
        (0x41, 0xd46) => "cortex-a510",
        (0x41, 0xd80) => "cortex-a520",
        (0x41, 0xd47) => "cortex-a710",
        (0x41, 0xd4d) => "cortex-a715",
        (0x41, 0xd81) => "cortex-a720",
        (0x41, 0xd87) => "cortex-a725",
        (0x41, 0xd44) => "cortex-x1",
        (0x41, 0xd48) => "cortex-x2",
        (0x41, 0xd4e) => "cortex-x3",
        (0x41, 0xd82) => "cortex-x4",
        (0x41, 0xd85) => "cortex-x925",
        (0x41, 0xd4a) => "neoverse-e1",
        (0x41, 0xd0c) => "neoverse-n1",
        (0x41, 0xd49) => "neoverse-n2",
        (0x41, 0xd8e) => "neoverse-n3",
        (0x41, 0xd40) => "neoverse-v1",
        (0x41, 0xd4f) => "neoverse-v2",
        (0x41, 0xd84) => "neoverse-v3",
        (0x43, 0x0af) => "thunderx2",
        (0x46, 0x001) => "a64fx",
        (0x48, 0xd01) => "tsv110",
        (0x4e, 0x003) => "denver2",
        (0x4e, 0x004) => "carmel",
        (0x51, 0x001) => "oryon",
        (0x61, 0x022 | 0x024 | 0x028) => "icestorm",
        (0x61, 0x023 | 0x025 | 0x029) => "firestorm",
        (0x61, 0x032 | 0x034 | 0x038) => "blizzard",
        (0x61, 0x033 | 0x035 | 0x039) => "avalanche",
        (0xc0, 0xac3) => "ampere-1",
        (0xc0, 0xac4) => "ampere-1a",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_model_number_two_generations() {
        assert_eq!(x86("GenuineIntel", 6, 0x55, 4), Some("skylake-sp"));
        assert_eq!(x86("GenuineIntel", 6, 0x55, 7), Some("cascadelake-sp"));
    }

    #[test]
    fn amd_by_ranges_of_models() {
        assert_eq!(x86("AuthenticAMD", 0x17, 0x01, 2), Some("zen1"));
        assert_eq!(x86("AuthenticAMD", 0x17, 0x31, 0), Some("zen2"));
        assert_eq!(x86("AuthenticAMD", 0x19, 0x01, 1), Some("zen3"));
        assert_eq!(x86("AuthenticAMD", 0x19, 0x11, 1), Some("zen4"));
        assert_eq!(x86("AuthenticAMD", 0x19, 0x61, 2), Some("zen4"));
        assert_eq!(x86("AuthenticAMD", 0x1a, 0x02, 1), Some("zen5"));
        assert_eq!(x86("AuthenticAMD", 0x1a, 0x50, 0), None);
    }

    #[test]
    fn a_stranger_has_no_name() {
        assert_eq!(x86("CentaurHauls", 7, 0x3b, 0), None);
        let part = ArmPart { implementer: 0x41, part: 0xfff, variant: 0, revision: 0 };
        assert_eq!(arm(&part), None);
    }
}
