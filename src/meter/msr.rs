//! RAPL registers through `/dev/cpu/N/msr`, for kernels whose drivers do not know the CPU yet.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::counters::{Channel, CounterMeter, CounterReader};
use super::domain::{self, Place};
use super::finding::{Candidate, Finding, Needs, Search, Site};
use super::rejected::{self, Rejected};
use super::source::Source;
use super::wrap::WrappingCounter;
use crate::hardware::{DomainInfo, DomainKind};
use crate::machine::platform;
use crate::machine::topology::{CpuGroups, is_amd};
use crate::units::Joules;

/// Intel SDM vol. 4: units in bits 12:8 of MSR_RAPL_POWER_UNIT, energies in the low 32 bits of the others.
const INTEL_UNIT: u64 = 0x606;
const INTEL: [(u64, DomainKind); 5] = [
    (0x611, DomainKind::Package),
    (0x639, DomainKind::Cores),
    (0x641, DomainKind::Uncore),
    (0x619, DomainKind::Dram),
    (0x64d, DomainKind::Platform),
];
/// AMD PPR: the same layout of units. The register of single cores is left to the PMU `power_core`.
const AMD_UNIT: u64 = 0xc001_0299;
const AMD: [(u64, DomainKind); 1] = [(0xc001_029b, DomainKind::Package)];

/// Servers whose DRAM counter has a step of 2⁻¹⁶ J whatever the unit register says.
const FIXED_DRAM_UNIT: [&str; 5] =
    ["haswell-ep", "broadwell-ep", "skylake-sp", "cascadelake-sp", "icelake-sp"];
/// Servers whose platform counter has a step of 1 J.
const PLATFORM_IN_JOULES: [&str; 2] = ["sapphirerapids", "emeraldrapids"];

/// A register to read, on a CPU of its place.
#[derive(Debug, Clone, PartialEq)]
struct Register {
    device: PathBuf,
    unit_register: u64,
    register: u64,
    domain: DomainInfo,
}

struct Msr {
    registers: Vec<Register>,
    domains: Vec<DomainInfo>,
    microarchitecture: String,
}

/// Looks for the registers' device files.
pub(super) fn find(site: &Site<'_>) -> Search {
    let Site { roots, machine, .. } = *site;
    let is_intel = machine.cpu_identity.starts_with("GenuineIntel");
    if !is_intel && !is_amd(machine) {
        return Search::default();
    }
    let (unit_register, table) = if is_intel { (INTEL_UNIT, &INTEL[..]) } else { (AMD_UNIT, &AMD[..]) };
    let mut registers: Vec<Register> = Vec::new();
    for cpu in machine.packages().iter().flat_map(|&package| machine.package_cpus(package)) {
        let place = Place::of_cpu(machine, cpu);
        let place = if is_intel { place } else { Place { die: None, ..place } };
        let device = roots.dev.join(format!("cpu/{cpu}/msr"));
        for &(register, kind) in table {
            let place = if kind == DomainKind::Platform { Place::MACHINE } else { place };
            let domain = domain::describe(machine, kind, place, &Source::Msr.to_string());
            if !registers.iter().any(|have| have.domain.name == domain.name) {
                registers.push(Register { device: device.clone(), unit_register, register, domain });
            }
        }
    }
    if platform::is_virtual(roots) && !registers.iter().any(|register| register.device.exists()) {
        return Search::default();
    }
    if !registers.iter().any(|register| register.device.exists()) {
        let why = format!("{} does not exist", roots.dev.join("cpu/0/msr").display());
        let load = "load its driver and be root: sudo modprobe msr";
        return Search::rejecting(Rejected::new(Source::Msr, why).with_repair(load));
    }
    let domains = registers.iter().map(|register| register.domain.clone()).collect();
    let microarchitecture = machine.microarchitecture.clone().unwrap_or_default();
    Search::of(Msr { registers, domains, microarchitecture }, Vec::new())
}

/// Joules per count of a domain, from the unit register.
fn joules_per_count(microarchitecture: &str, kind: DomainKind, unit_register: u64) -> f64 {
    let exponent = (unit_register >> 8 & 0x1f) as i32;
    match kind {
        DomainKind::Dram if FIXED_DRAM_UNIT.contains(&microarchitecture) => 2f64.powi(-16),
        DomainKind::Platform if PLATFORM_IN_JOULES.contains(&microarchitecture) => 1.0,
        // Silvermont and Airmont count in 2ⁿ microjoules.
        _ if microarchitecture == "silvermont" => 2f64.powi(exponent) * 1e-6,
        _ => 2f64.powi(-exponent),
    }
}

impl Finding for Msr {
    fn source(&self) -> Source {
        Source::Msr
    }

    fn domains(&self) -> &[DomainInfo] {
        &self.domains
    }

    fn needs(&self) -> Needs {
        Needs::Files(self.registers.iter().map(|register| register.device.clone()).collect())
    }

    fn open(self: Box<Self>, rejected: &mut Vec<Rejected>) -> Option<Box<dyn Candidate>> {
        let (mut readers, mut channels, mut closed) = (Vec::new(), Vec::new(), None);
        for Register { device, unit_register, register, domain } in self.registers {
            let opened = File::open(&device).and_then(|file| {
                let unit = read_register(&file, unit_register)?;
                // A register that this CPU lacks answers with an input/output error.
                read_register(&file, register)?;
                Ok((file, unit))
            });
            match opened {
                Ok((file, unit)) => {
                    let step = joules_per_count(&self.microarchitecture, domain.kind, unit);
                    readers.push((file, register));
                    channels.push(Channel {
                        domain,
                        counter: WrappingCounter::of_bits(32),
                        joules_per_count: step,
                        resolution: Some(Joules::from_joules(step)),
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    closed.get_or_insert(device);
                }
                Err(_) => {}
            }
        }
        if let Some(device) = closed {
            rejected.push(rejected::closed_file(Source::Msr, &device));
        } else if channels.is_empty() {
            rejected.push(Rejected::new(
                Source::Msr,
                "this CPU has no energy registers, or its hypervisor hides them",
            ));
        }
        (!channels.is_empty()).then(|| {
            let meter = CounterMeter::new(Source::Msr, Box::new(Registers(readers)), channels, true);
            Box::new(meter) as Box<dyn Candidate>
        })
    }
}

struct Registers(Vec<(File, u64)>);

impl CounterReader for Registers {
    fn read(&mut self, raw: &mut Vec<Option<u64>>) -> io::Result<()> {
        raw.clear();
        // Only the low 32 bits are the counter on all models; the rest is reserved on most.
        let value = |(file, register): &(File, u64)| Some(read_register(file, *register).ok()? & 0xffff_ffff);
        raw.extend(self.0.iter().map(value));
        Ok(())
    }

    fn remove(&mut self, index: usize) {
        if index < self.0.len() {
            self.0.remove(index);
        }
    }
}

/// The device takes the register's number as the offset.
fn read_register(file: &File, register: u64) -> io::Result<u64> {
    let mut value = [0; 8];
    file.read_exact_at(&mut value, register)?;
    Ok(u64::from_le_bytes(value))
}

#[cfg(test)]
mod tests {
    use super::super::finding::find_under;
    use super::*;
    use crate::hardware::MachineInfo;
    use crate::hardware::{CoreKind, CpuInfo};
    use crate::machine::fixture::FixtureMachine;
    use crate::machine::roots::Roots;

    fn machine(identity: &str, microarchitecture: &str) -> MachineInfo {
        let cpu = |n| CpuInfo { cpu: n, core: n, die: 0, package: n, kind: CoreKind::Performance };
        MachineInfo {
            cpu_identity: identity.to_owned(),
            microarchitecture: Some(microarchitecture.to_owned()),
            cpus: (0..2).map(cpu).collect(),
            ..MachineInfo::default()
        }
    }

    #[test]
    fn units_by_model() {
        let unit = |name, kind, register| joules_per_count(name, kind, register);
        assert_eq!(unit("skylake", DomainKind::Package, 0xa0e03), 2f64.powi(-14));
        assert_eq!(unit("skylake-sp", DomainKind::Dram, 0xa0e03), 2f64.powi(-16));
        assert_eq!(unit("sandybridge", DomainKind::Dram, 0xa1003), 2f64.powi(-16));
        assert_eq!(unit("sapphirerapids", DomainKind::Platform, 0xa0e03), 1.0);
        assert_eq!(unit("skylake", DomainKind::Platform, 0xa0e03), 2f64.powi(-14));
        assert_eq!(unit("zen2", DomainKind::Package, 0xa1003), 2f64.powi(-16));
        assert!((unit("silvermont", DomainKind::Package, 0x505) - 32e-6).abs() < 1e-12);
    }

    #[test]
    fn a_register_that_wraps() {
        // A sparse file whose offsets are the registers' numbers; 0x619 and 0x611 lie 8 bytes apart.
        let files = FixtureMachine::new("dev/cpu/0/msr:");
        let device = files.path().join("dev/cpu/0/msr");
        let write = |register: u64, value: u64| {
            let file = File::options().write(true).open(&device).expect("writable");
            file.write_all_at(&value.to_le_bytes(), register).expect("written");
        };
        write(0x606, 0xa0e03);
        write(0x611, 0xffff_fff0);
        let found =
            find_under(find, &Roots::under(files.path()), &machine("GenuineIntel-6-55-4", "skylake-sp"));
        let mut rejected = Vec::new();
        let mut meter = found.found.into_iter().next().expect("found").open(&mut rejected).expect("open");
        assert_eq!(meter.domains().len(), 1, "the other registers are beyond the end of the file");
        let mut joules = || {
            let mut readings = Vec::new();
            meter.read(&mut readings).expect("readable");
            readings[0].expect("a reading").energy.as_joules()
        };
        assert_eq!(joules(), 0.0);
        write(0x611, 0xdead_0000_0000 | 0x0ff0);
        assert_eq!(joules(), 4096.0 / 16384.0);
    }

    #[test]
    fn one_register_per_package_and_none_for_strangers() {
        let files = FixtureMachine::new("dev/cpu/{0-1}/msr:");
        let roots = Roots::under(files.path());
        let names = |search: &Search| -> Vec<String> {
            search.found.iter().flat_map(|found| found.domains()).map(|domain| domain.name.clone()).collect()
        };
        assert_eq!(
            names(&find_under(find, &roots, &machine("AuthenticAMD-25-11-1", "zen4"))),
            ["package-0", "package-1"]
        );
        assert!(find_under(find, &roots, &machine("arm-0x41-0xd0c-r3p1", "neoverse-n1")).found.is_empty());
        let none = FixtureMachine::new("dev/");
        let search = find_under(find, &Roots::under(none.path()), &machine("AuthenticAMD-25-11-1", "zen4"));
        assert!(search.rejected[0].repair.as_deref().is_some_and(|repair| repair.contains("modprobe msr")));
    }

    #[test]
    fn what_is_read_of_a_register_goes_with_its_place() {
        let files = FixtureMachine::new("dev/cpu/0/msr:");
        let device = files.path().join("dev/cpu/0/msr");
        let file = || File::options().read(true).write(true).open(&device).expect("readable");
        let numbers = [0x611, 0x619, 0x639];
        for (number, value) in numbers.iter().zip([1u64, 2, 3]) {
            file().write_all_at(&value.to_le_bytes(), *number).expect("written");
        }
        let mut registers = Registers(numbers.map(|number| (file(), number)).into());
        let read = |registers: &mut Registers| {
            let mut values = Vec::new();
            registers.read(&mut values).expect("readable");
            values.into_iter().flatten().collect::<Vec<u64>>()
        };
        assert_eq!(read(&mut registers), [1, 2, 3]);
        registers.remove(1);
        assert_eq!(read(&mut registers), [1, 3]);
        registers.remove(2);
        assert_eq!(read(&mut registers), [1, 3], "there is no third one any more");
    }
}
