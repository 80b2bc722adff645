//! A machine for tests.

use std::collections::BTreeMap;

use crate::hardware::{CoreKind, DomainInfo, DomainKind, MachineInfo, Method, Role};
use crate::recording::metadata::{EventInfo, METADATA_FORMAT, Metadata, Target};

/// One package with its cores and memory, sampled by cycles and instructions.
pub fn metadata() -> Metadata {
    Metadata {
        format: METADATA_FORMAT,
        eprof_version: "0.1.0".to_owned(),
        command_line: Vec::new(),
        target: Target::System,
        clock: "CLOCK_MONOTONIC".to_owned(),
        started_unix_ns: 0,
        recorder_pid: 1,
        system_wide_samples: true,
        machine: MachineInfo { cpu_identity: "GenuineIntel-6-2D-7".to_owned(), ..MachineInfo::default() },
        domains: vec![
            domain("package-0", DomainKind::Package, None),
            domain("package-0-cores", DomainKind::Cores, Some("package-0")),
            domain("dram-0", DomainKind::Dram, None),
        ],
        events: vec![
            event("cycles", Role::Clk, "hardware/config=0x0/"),
            event("instructions", Role::Inst, "hardware/config=0x1/"),
        ],
        warnings: Vec::new(),
    }
}

/// A measured domain that feeds all CPUs.
pub fn domain(name: &str, kind: DomainKind, parent: Option<&str>) -> DomainInfo {
    DomainInfo { parent: parent.map(str::to_owned), ..DomainInfo::new(name, kind, "test", Method::Measured) }
}

/// An event without coefficients of its own.
pub fn event(name: &str, role: Role, encoding: &str) -> EventInfo {
    EventInfo {
        name: name.to_owned(),
        role: Some(role),
        encoding: encoding.to_owned(),
        joules_per_event: BTreeMap::new(),
        core_kind: CoreKind::Performance,
    }
}
