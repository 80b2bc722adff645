//! The machine and its logical CPUs.

use serde::{Deserialize, Serialize};

/// The recorded machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineInfo {
    /// Host name.
    pub hostname: String,
    /// Kernel release, as `uname -r` prints it.
    pub kernel: String,
    /// Architecture, as `uname -m` prints it.
    pub arch: String,
    /// The CPU's name for people.
    pub cpu_model: String,
    /// The CPU's name for model files: `GenuineIntel-6-2D-7`, `AuthenticAMD-25-1-1`, `arm-0x41-0xd0c-r3p1`.
    pub cpu_identity: String,
    /// Microarchitecture in short, if known: `sandybridge`, `zen4`, `neoverse-n1`.
    pub microarchitecture: Option<String>,
    /// One entry per online CPU.
    pub cpus: Vec<CpuInfo>,
}

/// Where one logical CPU sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuInfo {
    /// Number of the logical CPU.
    pub cpu: u32,
    /// Core within its package; SMT siblings share it.
    pub core: u32,
    /// Die within its package.
    pub die: u32,
    /// Package (socket).
    pub package: u32,
    /// Kind of core on hybrid machines.
    pub kind: CoreKind,
}

/// The kinds of core of hybrid machines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoreKind {
    /// The only kind, or the large kind.
    #[default]
    Performance,
    /// The small kind (Intel `cpu_atom`, Arm LITTLE).
    Efficiency,
}
