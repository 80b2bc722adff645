//! The PMUs of the kernel, as `/sys/bus/event_source/devices` shows them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::cpu_list;
use super::pmu_format::BitField;
use super::roots::{Roots, read_number, read_trimmed, sorted_names};
use crate::hardware::CoreKind;

/// A performance monitoring unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pmu {
    /// Its name: `cpu`, `cpu_atom`, `power`, `armv8_pmuv3_0`.
    pub name: String,
    /// What `perf_event_attr.type` must hold.
    pub perf_type: u32,
    /// CPUs to open its events on: those it counts for (`cpus`), or one for each package, die or core
    /// (`cpumask`). `None`: every CPU.
    pub cpus: Option<Vec<u32>>,
    /// Whether it counts for the CPUs' cores, so that tasks can be counted.
    pub is_core: bool,
    folder: PathBuf,
}

/// An event that a PMU names itself.
#[derive(Debug, Clone, PartialEq)]
pub struct PmuEvent {
    /// Its terms: `event=0xc2,umask=0x01`.
    pub terms: String,
    /// Factor from counts to `unit`.
    pub scale: f64,
    /// What the scaled count is in: `Joules`.
    pub unit: Option<String>,
}

impl Pmu {
    /// All PMUs by name, those of small cores last.
    pub fn all(roots: &Roots) -> Vec<Self> {
        let devices = roots.sysfs.join("bus/event_source/devices");
        let names = sorted_names(&devices).into_iter();
        let mut pmus: Vec<Self> = names.filter_map(|name| Self::read(devices.join(&name), name)).collect();
        pmus.sort_by_key(|pmu| pmu.core_kind() == CoreKind::Efficiency);
        pmus
    }

    /// The PMUs of the cores: one, or one per kind of core; none on most virtual machines.
    pub fn cores(roots: &Roots) -> Vec<Self> {
        Self::all(roots).into_iter().filter(|pmu| pmu.is_core).collect()
    }

    /// The PMU of this name.
    pub fn named(roots: &Roots, name: &str) -> Option<Self> {
        Self::all(roots).into_iter().find(|pmu| pmu.name == name)
    }

    fn read(folder: PathBuf, name: String) -> Option<Self> {
        let perf_type = read_number(&folder.join("type")).ok()?;
        let list = |file: &str| cpu_list::parse(&read_trimmed(&folder.join(file)).ok()?);
        let of_cores = list("cpus");
        Some(Self {
            is_core: name == "cpu" || of_cores.is_some(),
            cpus: of_cores.or_else(|| list("cpumask")).filter(|cpus| !cpus.is_empty()),
            name,
            perf_type,
            folder,
        })
    }

    /// The kind of cores it counts for. Small Arm cores are known by the names of their PMUs.
    pub fn core_kind(&self) -> CoreKind {
        const SMALL: [&str; 7] = ["cpu_atom", "cpu_lowpower", "_a7", "_a53", "_a55", "_a510", "_a520"];
        const SMALL_APPLE: [&str; 2] = ["icestorm", "blizzard"];
        let is_small = SMALL.iter().any(|name| self.name.ends_with(name))
            || SMALL_APPLE.iter().any(|name| self.name.contains(name));
        if is_small { CoreKind::Efficiency } else { CoreKind::Performance }
    }

    /// The terms that it understands, and their bits.
    pub fn format(&self) -> BTreeMap<String, BitField> {
        let folder = self.folder.join("format");
        let field = |name: &String| BitField::parse(&read_trimmed(&folder.join(name)).ok()?);
        sorted_names(&folder).into_iter().filter_map(|name| Some((name.clone(), field(&name)?))).collect()
    }

    /// Names of the events that it offers by name.
    pub fn event_names(&self) -> Vec<String> {
        const ATTRIBUTES: [&str; 4] = [".scale", ".unit", ".snapshot", ".per-pkg"];
        let names = sorted_names(&self.folder.join("events"));
        names.into_iter().filter(|name| !ATTRIBUTES.iter().any(|ending| name.ends_with(ending))).collect()
    }

    /// One of these events, however its name is capitalised.
    pub fn event(&self, name: &str) -> Option<PmuEvent> {
        let names = self.event_names();
        let exact = names.iter().find(|have| *have == name);
        let name = exact.or_else(|| names.iter().find(|have| have.eq_ignore_ascii_case(name)))?;
        let file =
            |ending: &str| read_trimmed(&self.folder.join("events").join(format!("{name}{ending}"))).ok();
        Some(PmuEvent {
            terms: file("")?,
            scale: file(".scale").and_then(|text| text.parse().ok()).unwrap_or(1.0),
            unit: file(".unit").filter(|unit| !unit.is_empty()),
        })
    }

    /// What it says it can do: `max_precise`, `pmu_name`, `branches`, ...
    pub fn caps(&self) -> BTreeMap<String, String> {
        let folder = self.folder.join("caps");
        sorted_names(&folder)
            .into_iter()
            .filter_map(|name| Some((name.clone(), read_trimmed(&folder.join(&name)).ok()?)))
            .collect()
    }
}
