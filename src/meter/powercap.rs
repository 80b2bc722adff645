//! RAPL through powercap: `/sys/class/powercap/intel-rapl:P[:D]/energy_uj`.
//!
//! The kernel's driver serves Intel (by MSR, by MMIO and by TPMI) and, since Linux 5.11, AMD.

use std::io;
use std::path::PathBuf;

use super::counters::{Channel, CounterMeter, CounterReader};
use super::domain::{self, Place};
use super::finding::{Candidate, Finding, Needs, Search, Site};
use super::number_file::NumberFile;
use super::rejected::{self, Rejected};
use super::source::Source;
use super::wrap::WrappingCounter;
use crate::hardware::{DomainInfo, DomainKind, MachineInfo};
use crate::machine::platform;
use crate::machine::roots::{Roots, read_number, read_trimmed, sorted_names};
use crate::machine::topology::{is_amd, is_x86};
use crate::units::Joules;

const MICRO: f64 = 1e-6;

/// A zone with an energy counter.
struct Zone {
    folder: PathBuf,
    domain: DomainInfo,
    range_uj: u64,
}

struct Powercap {
    zones: Vec<Zone>,
    domains: Vec<DomainInfo>,
}

/// Looks for zones with energy counters.
pub(super) fn find(site: &Site<'_>) -> Search {
    let Site { roots, machine, .. } = *site;
    let class = roots.sysfs.join("class/powercap");
    let names = sorted_names(&class);
    if names.is_empty() {
        return no_zones(roots, machine);
    }
    let mut zones: Vec<Zone> = Vec::new();
    let mut rejected = Vec::new();
    let mut counting: Vec<&String> =
        names.iter().filter(|name| class.join(name).join("energy_uj").exists()).collect();
    // Laptops show the package's counter once more through MMIO; the first is as good, and usually open.
    counting.sort_by_key(|name| name.contains("mmio"));
    for zone in counting {
        let folder = class.join(zone);
        let told_name = read_trimmed(&folder.join("name")).unwrap_or_default();
        let top_name = zone
            .split(':')
            .nth(1)
            .zip(zone.split(':').next())
            .and_then(|(number, control)| read_trimmed(&class.join(format!("{control}:{number}/name"))).ok())
            .unwrap_or_default();
        let Some((kind, place)) = understand(&told_name, &top_name) else {
            let why = format!("a zone named '{told_name}' is not known");
            rejected.push(Rejected::new(Source::Powercap, why).of(zone));
            continue;
        };
        if kind == DomainKind::Cores && is_amd(machine) {
            let why = "on AMD it is the counter of one core, not of all";
            rejected.push(Rejected::new(Source::Powercap, why).of(zone));
            continue;
        }
        // AMD's counter is one per package, whatever the kernel calls a die (mended in Linux 6.14).
        let place = if is_amd(machine) { Place { die: None, ..place } } else { place };
        let domain = domain::describe(machine, kind, place, &Source::Powercap.to_string());
        if let Some(first) = zones.iter().find(|have| have.domain.name == domain.name) {
            let first = first.folder.file_name().unwrap_or_default().to_string_lossy();
            let why = format!("shows the same counter as {first} ({})", domain.name);
            rejected.push(Rejected::new(Source::Powercap, why).of(zone));
            continue;
        }
        let range_uj = read_number(&folder.join("max_energy_range_uj")).unwrap_or(0);
        zones.push(Zone { folder, domain, range_uj });
    }
    if zones.is_empty() {
        rejected.extend(no_zones(roots, machine).rejected);
        return Search { rejected, ..Search::default() };
    }
    let domains = zones.iter().map(|zone| zone.domain.clone()).collect();
    Search::of(Powercap { zones, domains }, rejected)
}

fn no_zones(roots: &Roots, machine: &MachineInfo) -> Search {
    let rejected = |why: &str| Rejected::new(Source::Powercap, why);
    Search::rejecting(if !is_x86(machine) || platform::is_virtual(roots) {
        return Search::default();
    } else if platform::container(roots).is_some() {
        // Docker masks the folder behind the links.
        rejected("no energy zones are shown within this container")
            .with_repair("docker run --security-opt systempaths=unconfined ...")
    } else {
        let module = if is_amd(machine) { "intel_rapl_msr (it serves AMD, too)" } else { "intel_rapl_msr" };
        rejected("the kernel offers no energy zones")
            .with_repair(format!("load its driver: sudo modprobe {module}"))
    })
}

/// What a zone counts, by its own name and that of the zone it lies in.
fn understand(name: &str, top_name: &str) -> Option<(DomainKind, Place)> {
    // A second package calls its zone psys-1; the platform has one counter all the same.
    if name == "psys" || name.starts_with("psys-") {
        return Some((DomainKind::Platform, Place::MACHINE));
    }
    let kind = match name {
        "core" => DomainKind::Cores,
        "uncore" => DomainKind::Uncore,
        "dram" => DomainKind::Dram,
        _ => return Some((DomainKind::Package, package_place(name)?)),
    };
    Some((kind, package_place(top_name)?))
}

/// `package-1` or `package-1-die-0`
fn package_place(name: &str) -> Option<Place> {
    let rest = name.strip_prefix("package-")?;
    match rest.split_once("-die-") {
        Some((package, die)) => {
            Some(Place { package: Some(package.parse().ok()?), die: Some(die.parse().ok()?), core: None })
        }
        None => Some(Place::package(rest.parse().ok()?)),
    }
}

impl Zone {
    /// The kernel gives the largest value, (2³² - 1) steps in microjoules; one step more is zero again.
    fn counter(&self) -> WrappingCounter {
        match self.range_uj {
            0 => WrappingCounter::of_bits(64),
            range => WrappingCounter::below(range.saturating_add((range >> 32).max(1))),
        }
    }

    /// The register's own step: 2⁻ⁿ J, n from 3 to 16, of which the range is 2³² - 1, but for rounding.
    fn resolution(&self) -> Joules {
        let step = self.range_uj as f64 * MICRO / f64::from(u32::MAX);
        let exponent = -step.log2();
        let is_register = (2.5..16.5).contains(&exponent) && (exponent - exponent.round()).abs() < 1e-2;
        Joules::from_joules(if is_register { 2f64.powi(-(exponent.round() as i32)) } else { MICRO })
    }
}

impl Finding for Powercap {
    fn source(&self) -> Source {
        Source::Powercap
    }

    fn domains(&self) -> &[DomainInfo] {
        &self.domains
    }

    fn needs(&self) -> Needs {
        Needs::Files(self.zones.iter().map(|zone| zone.folder.join("energy_uj")).collect())
    }

    fn open(self: Box<Self>, rejected: &mut Vec<Rejected>) -> Option<Box<dyn Candidate>> {
        let (mut files, mut channels, mut closed) = (Vec::new(), Vec::new(), None);
        for zone in self.zones {
            let path = zone.folder.join("energy_uj");
            // An open file may still refuse to be read: no counter behind it, or the register is locked.
            match NumberFile::open(&path).and_then(|file| file.read::<u64>().map(|_| file)) {
                Ok(file) => {
                    files.push(file);
                    channels.push(Channel {
                        counter: zone.counter(),
                        resolution: Some(zone.resolution()),
                        joules_per_count: MICRO,
                        domain: zone.domain,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    closed.get_or_insert(path);
                }
                Err(error) => {
                    let why = format!("cannot be read: {error}");
                    rejected.push(Rejected::new(Source::Powercap, why).of(zone.domain.name));
                }
            }
        }
        if let Some(path) = closed {
            rejected.push(rejected::closed_file(Source::Powercap, &path));
        }
        let reader = Box::new(Files { files });
        (!channels.is_empty()).then(|| {
            let meter = CounterMeter::new(Source::Powercap, reader, channels, true);
            Box::new(meter) as Box<dyn Candidate>
        })
    }
}

struct Files {
    files: Vec<NumberFile>,
}

impl CounterReader for Files {
    fn read(&mut self, raw: &mut Vec<Option<u64>>) -> io::Result<()> {
        raw.clear();
        raw.extend(self.files.iter().map(|file| file.read().ok()));
        Ok(())
    }

    fn remove(&mut self, index: usize) {
        if index < self.files.len() {
            self.files.remove(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::find_under;
    use super::*;
    use crate::hardware::{CoreKind, CpuInfo};
    use crate::machine::fixture::FixtureMachine;

    const TWO_PACKAGES: &str = "
sys/class/powercap/intel-rapl/enabled: 1
sys/class/powercap/intel-rapl:{0-1}/name: package-{0-1}
sys/class/powercap/intel-rapl:{0-1}/energy_uj: {100,200}
sys/class/powercap/intel-rapl:{0-1}/max_energy_range_uj: 262143328850
sys/class/powercap/intel-rapl:{0-1}:0/name: dram
sys/class/powercap/intel-rapl:{0-1}:0/energy_uj: 5
sys/class/powercap/intel-rapl:{0-1}:0/max_energy_range_uj: 65712999613
sys/class/powercap/intel-rapl:2/name: psys
sys/class/powercap/intel-rapl:2/energy_uj: 7
sys/class/powercap/intel-rapl-mmio:0/name: package-0
sys/class/powercap/intel-rapl-mmio:0/energy_uj: 100
";

    fn machine(identity: &str, dies: u32) -> MachineInfo {
        let cpu = |n| CpuInfo { cpu: n, core: n, die: n % dies, package: 0, kind: CoreKind::Performance };
        MachineInfo {
            cpu_identity: identity.to_owned(),
            cpus: (0..dies).map(cpu).collect(),
            ..MachineInfo::default()
        }
    }

    fn names(search: &Search) -> Vec<String> {
        search.found.iter().flat_map(|found| found.domains()).map(|domain| domain.name.clone()).collect()
    }

    #[test]
    fn zones_by_their_names_and_the_mmio_twin_dropped() {
        let files = FixtureMachine::new(TWO_PACKAGES);
        let search = find_under(find, &Roots::under(files.path()), &machine("GenuineIntel-6-55-4", 1));
        assert_eq!(names(&search), ["package-0", "dram-0", "package-1", "dram-1", "psys"]);
        assert_eq!(search.rejected.len(), 1);
        assert_eq!(search.rejected[0].what.as_deref(), Some("intel-rapl-mmio:0"));
        assert!(search.rejected[0].why.contains("same counter as intel-rapl:0"));
    }

    #[test]
    fn a_counter_that_wraps() {
        let files = FixtureMachine::new(TWO_PACKAGES);
        let mut search = find_under(find, &Roots::under(files.path()), &machine("GenuineIntel-6-55-4", 1));
        let mut rejected = Vec::new();
        let mut meter = search.found.remove(0).open(&mut rejected).expect("open");
        meter.retain(&mut |domain| domain.name == "dram-1");
        assert_eq!(meter.domains().len(), 1);
        let mut joules = |text: &str| {
            files.write("sys/class/powercap/intel-rapl:1:0/energy_uj", text);
            let mut readings = Vec::new();
            meter.read(&mut readings).expect("readable");
            readings[0].map(|reading| reading.energy.as_joules())
        };
        assert_eq!(joules("65712000000"), Some(0.0));
        assert!((joules("65712900000").expect("a reading") - 0.9).abs() < 1e-9);
        // The range and one step of 15.3 microjoules further it is zero again.
        let wrapped = joules("100000").expect("a reading");
        assert!((wrapped - (0.9 + 0.099_613 + 0.1 + 15e-6)).abs() < 2e-6, "{wrapped}");
        assert_eq!(joules("no number"), None);
        assert_eq!(joules("99000"), None, "a step backwards is no energy");
        assert!(joules("99001").is_some());
    }

    #[test]
    fn the_registers_step_shows_in_the_range() {
        let step = |range_uj| {
            let domain =
                domain::describe(&MachineInfo::default(), DomainKind::Dram, Place::package(0), "test");
            Zone { folder: PathBuf::new(), domain, range_uj }.resolution().as_joules()
        };
        assert_eq!(step(262_143_328_850), 2f64.powi(-14));
        assert_eq!(step(65_532_610_987), 2f64.powi(-16));
        assert_eq!(step(65_712_999_613), 2f64.powi(-16), "the kernel rounds 15.26 to 15.3 microjoules");
        assert_eq!(step(3_999_984), 1e-6);
        assert_eq!(step(0), 1e-6);
    }

    #[test]
    fn amds_zone_core_is_one_core_only() {
        let files = FixtureMachine::new(
            "sys/class/powercap/intel-rapl:0/name: package-0\nsys/class/powercap/intel-rapl:0/energy_uj: 100\n\
             sys/class/powercap/intel-rapl:0:0/name: core\nsys/class/powercap/intel-rapl:0:0/energy_uj: 9",
        );
        let search = find_under(find, &Roots::under(files.path()), &machine("AuthenticAMD-25-11-1", 1));
        assert_eq!(names(&search), ["package-0"]);
        assert!(search.rejected[0].why.contains("one core"));
    }

    #[test]
    fn amds_dies_mirror_one_counter_intels_do_not() {
        let files = FixtureMachine::new(
            "sys/class/powercap/intel-rapl:{0-1}/name: package-0-die-{0-1}\n\
             sys/class/powercap/intel-rapl:{0-1}/energy_uj: 100",
        );
        let roots = Roots::under(files.path());
        let amd = find_under(find, &roots, &machine("AuthenticAMD-25-11-1", 2));
        assert_eq!(names(&amd), ["package-0"]);
        assert_eq!(amd.rejected.len(), 1);
        let intel = find_under(find, &roots, &machine("GenuineIntel-6-55-7", 2));
        assert_eq!(names(&intel), ["package-0-die-0", "package-0-die-1"]);
    }
}
