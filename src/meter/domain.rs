//! Names of energy domains and which contains which, so that a sum never takes joules twice.

use crate::hardware::{DomainInfo, DomainKind, MachineInfo, Method};

/// Where a domain sits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Package; `None`: the whole machine.
    pub package: Option<u32>,
    /// Die, where a package has several and this is one of them.
    pub die: Option<u32>,
    /// Core, for domains of one core.
    pub core: Option<u32>,
}

impl Place {
    /// The whole machine.
    pub const MACHINE: Self = Self { package: None, die: None, core: None };

    /// A package as a whole.
    pub const fn package(package: u32) -> Self {
        Self { package: Some(package), die: None, core: None }
    }

    /// Where a CPU sits: its package, and its die if the package has several.
    pub fn of_cpu(machine: &MachineInfo, cpu: u32) -> Self {
        let Some(info) = machine.cpus.iter().find(|info| info.cpu == cpu) else { return Self::package(0) };
        let several = machine.cpus.iter().any(|other| other.package == info.package && other.die != info.die);
        Self { package: Some(info.package), die: several.then_some(info.die), core: None }
    }

    /// CPUs fed from here, if that is less than a package.
    fn cpus(self, machine: &MachineInfo) -> Vec<u32> {
        if self.die.is_none() && self.core.is_none() {
            return Vec::new();
        }
        let here = machine.cpus.iter().filter(|cpu| {
            self.package.is_none_or(|package| cpu.package == package)
                && self.die.is_none_or(|die| cpu.die == die)
                && self.core.is_none_or(|core| cpu.core == core)
        });
        here.map(|cpu| cpu.cpu).collect()
    }
}

/// A domain as eprof names it, without parent, resolution and refresh, which are found out later.
pub fn describe(machine: &MachineInfo, kind: DomainKind, place: Place, source: &str) -> DomainInfo {
    DomainInfo {
        package: place.package,
        cpus: place.cpus(machine),
        ..DomainInfo::new(name(kind, place), kind, source, Method::Measured)
    }
}

fn name(kind: DomainKind, place: Place) -> String {
    let die = place.die.map(|die| format!("-die-{die}")).unwrap_or_default();
    let package = place.package.map(|package| format!("package-{package}{die}"));
    let within = |part: &str| match &package {
        Some(package) => format!("{package}-{part}"),
        None => part.to_owned(),
    };
    match kind {
        DomainKind::Platform => "psys".to_owned(),
        DomainKind::Package => package.unwrap_or("packages".to_owned()),
        DomainKind::Cores => within("cores"),
        DomainKind::Core => within(&format!("core-{}", place.core.unwrap_or(0))),
        DomainKind::Uncore => within("uncore"),
        DomainKind::Dram => place.package.map_or("dram".to_owned(), |package| format!("dram-{package}{die}")),
        DomainKind::Gpu => "gpu".to_owned(),
        DomainKind::Battery => "battery".to_owned(),
    }
}

/// Gives every domain the smallest of the others that contains it.
pub fn link_parents(domains: &mut [&mut DomainInfo]) {
    let all: Vec<DomainInfo> = domains.iter().map(|domain| (**domain).clone()).collect();
    for domain in domains {
        let containing = all.iter().filter(|other| contains(other, domain));
        domain.parent = containing.max_by_key(|other| depth(other)).map(|other| other.name.clone());
    }
}

/// Whether `outer` counts all that `inner` counts.
///
/// Intel's psys contains the packages (SDM vol. 3B, 16.10.1); DRAM is beside its package, not inside.
/// Whether psys has the memory in it depends on the board; since the sum must not take joules twice,
/// it is taken to have it.
pub fn contains(outer: &DomainInfo, inner: &DomainInfo) -> bool {
    let same_package = outer.package.is_none() || outer.package == inner.package;
    let same_die = outer.cpus.is_empty() || inner.cpus.iter().all(|cpu| outer.cpus.contains(cpu));
    let same_die = same_die && (outer.cpus.is_empty() || !inner.cpus.is_empty());
    depth(outer) < depth(inner)
        && same_package
        && same_die
        && match outer.kind {
            // A discrete card has its own supply line, but takes it from the same socket in the wall.
            DomainKind::Battery => true,
            DomainKind::Platform => inner.kind != DomainKind::Gpu,
            DomainKind::Package => {
                matches!(inner.kind, DomainKind::Cores | DomainKind::Core | DomainKind::Uncore)
            }
            DomainKind::Cores => inner.kind == DomainKind::Core,
            _ => false,
        }
}

/// Deeper domains are contained in less deep ones, if at all.
fn depth(domain: &DomainInfo) -> u32 {
    match domain.kind {
        DomainKind::Battery => 0,
        DomainKind::Platform => 1,
        DomainKind::Package | DomainKind::Dram | DomainKind::Gpu => 3 + u32::from(!domain.cpus.is_empty()),
        DomainKind::Cores | DomainKind::Uncore => 5,
        DomainKind::Core => 6,
    }
}

/// Whether a domain counts the energy of CPUs.
pub fn feeds_cpus(kind: DomainKind) -> bool {
    !matches!(kind, DomainKind::Dram | DomainKind::Gpu | DomainKind::Uncore)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::{CoreKind, CpuInfo};

    fn machine(cpus: &[(u32, u32, u32)]) -> MachineInfo {
        let cpus = cpus.iter().enumerate().map(|(cpu, &(package, die, core))| CpuInfo {
            cpu: cpu as u32,
            core,
            die,
            package,
            kind: CoreKind::Performance,
        });
        MachineInfo { cpus: cpus.collect(), ..MachineInfo::default() }
    }

    fn parents(mut domains: Vec<DomainInfo>) -> Vec<(String, Option<String>)> {
        let mut all: Vec<&mut DomainInfo> = domains.iter_mut().collect();
        link_parents(&mut all);
        domains.into_iter().map(|domain| (domain.name, domain.parent)).collect()
    }

    #[test]
    fn psys_contains_packages_that_contain_cores() {
        let machine = machine(&[(0, 0, 0), (1, 0, 0)]);
        let domain = |kind, place| describe(&machine, kind, place, "test");
        let tree = parents(vec![
            domain(DomainKind::Platform, Place::MACHINE),
            domain(DomainKind::Package, Place::package(0)),
            domain(DomainKind::Package, Place::package(1)),
            domain(DomainKind::Cores, Place::package(1)),
            domain(DomainKind::Dram, Place::package(1)),
            domain(DomainKind::Core, Place { core: Some(0), ..Place::package(1) }),
            domain(DomainKind::Core, Place { core: Some(0), ..Place::package(0) }),
            domain(DomainKind::Gpu, Place::MACHINE),
        ]);
        let told: Vec<(&str, Option<&str>)> =
            tree.iter().map(|(name, parent)| (name.as_str(), parent.as_deref())).collect();
        assert_eq!(
            told,
            [
                ("psys", None),
                ("package-0", Some("psys")),
                ("package-1", Some("psys")),
                ("package-1-cores", Some("package-1")),
                ("dram-1", Some("psys")),
                ("package-1-core-0", Some("package-1-cores")),
                ("package-0-core-0", Some("package-0")),
                ("gpu", None),
            ]
        );
    }

    #[test]
    fn dies_have_their_own_parts() {
        let machine = machine(&[(0, 0, 0), (0, 1, 1)]);
        let place = Place::of_cpu(&machine, 1);
        assert_eq!(place, Place { package: Some(0), die: Some(1), core: None });
        let die = describe(&machine, DomainKind::Package, place, "test");
        assert_eq!((die.name.as_str(), &die.cpus[..]), ("package-0-die-1", &[1][..]));
        let other = Place { die: Some(0), ..place };
        let tree = parents(vec![
            die,
            describe(&machine, DomainKind::Package, other, "test"),
            describe(&machine, DomainKind::Cores, place, "test"),
        ]);
        assert_eq!(tree[2], ("package-0-die-1-cores".to_owned(), Some("package-0-die-1".to_owned())));
    }

    #[test]
    fn without_a_larger_domain_parts_stand_alone() {
        let machine = machine(&[(0, 0, 0)]);
        let tree = parents(vec![
            describe(&machine, DomainKind::Cores, Place::package(0), "test"),
            describe(&machine, DomainKind::Dram, Place::package(0), "test"),
        ]);
        assert!(tree.iter().all(|(_, parent)| parent.is_none()));
    }
    /// A package of two dies and one of one: what each kind of domain is called, and what it counts as well.
    #[test]
    fn what_counts_what() {
        let machine = machine(&[(0, 0, 0), (0, 1, 1), (1, 0, 0)]);
        let package = |package| Place::package(package);
        let die = Place::of_cpu(&machine, 1);
        let core = |core, place: Place| Place { core: Some(core), ..place };
        use DomainKind::{Battery, Core, Cores, Dram, Gpu, Package, Platform, Uncore};
        let domains = [
            (Battery, Place::MACHINE),
            (Platform, Place::MACHINE),
            (Package, package(0)),
            (Package, package(1)),
            (Package, die),
            (Cores, package(0)),
            (Cores, package(1)),
            (Cores, die),
            (Core, core(1, die)),
            (Core, core(0, package(0))),
            (Core, core(0, package(1))),
            (Uncore, package(0)),
            (Dram, package(0)),
            (Dram, die),
            (Gpu, Place::MACHINE),
            (Package, Place::MACHINE),
            (Cores, Place::MACHINE),
            (Dram, Place::MACHINE),
        ];
        let domains = domains.map(|(kind, place)| describe(&machine, kind, place, "test"));
        let counted = |outer: &DomainInfo| {
            let inner =
                domains.iter().filter(|inner| contains(outer, inner)).map(|inner| inner.name.as_str());
            inner.collect::<Vec<_>>().join(" ")
        };
        let told = domains.iter().map(|outer| (outer.name.as_str(), counted(outer)));
        let of_package_0 =
            "package-0-cores package-0-die-1-cores package-0-die-1-core-1 package-0-core-0 package-0-uncore";
        let of_cpus = "package-0 package-1 package-0-die-1 package-0-cores package-1-cores package-0-die-1-cores \
                       package-0-die-1-core-1 package-0-core-0 package-1-core-0 package-0-uncore dram-0 dram-0-die-1";
        let expected = [
            ("battery", format!("psys {of_cpus} gpu packages cores dram")),
            ("psys", format!("{of_cpus} packages cores dram")),
            ("package-0", of_package_0.to_owned()),
            ("package-1", "package-1-cores package-1-core-0".to_owned()),
            ("package-0-die-1", "package-0-die-1-cores package-0-die-1-core-1".to_owned()),
            ("package-0-cores", "package-0-die-1-core-1 package-0-core-0".to_owned()),
            ("package-1-cores", "package-1-core-0".to_owned()),
            ("package-0-die-1-cores", "package-0-die-1-core-1".to_owned()),
            ("package-0-die-1-core-1", String::new()),
            ("package-0-core-0", String::new()),
            ("package-1-core-0", String::new()),
            ("package-0-uncore", String::new()),
            ("dram-0", String::new()),
            ("dram-0-die-1", String::new()),
            ("gpu", String::new()),
            (
                "packages",
                "package-0-cores package-1-cores package-0-die-1-cores package-0-die-1-core-1 package-0-core-0 \
                 package-1-core-0 package-0-uncore cores"
                    .to_owned(),
            ),
            ("cores", "package-0-die-1-core-1 package-0-core-0 package-1-core-0".to_owned()),
            ("dram", String::new()),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        let fed: Vec<Vec<u32>> = domains.iter().map(|domain| domain.cpus.clone()).collect();
        let narrow = [(4, 1), (7, 1), (8, 1), (9, 0), (10, 2), (13, 1)];
        for (domain, cpus) in fed.iter().enumerate() {
            let expected = narrow.iter().find(|(narrow, _)| *narrow == domain).map(|(_, cpu)| *cpu);
            assert_eq!(*cpus, expected.into_iter().collect::<Vec<u32>>(), "{domain}");
        }
        let of_cpus = domains.iter().filter(|domain| feeds_cpus(domain.kind)).count();
        assert_eq!(of_cpus, domains.len() - 5, "all but the uncore part, memory and the card");
        // A CPU that is not known is of the first package, as are all where there is one.
        assert_eq!((Place::of_cpu(&machine, 9), Place::of_cpu(&machine, 2)), (package(0), package(1)));
        assert_eq!(Place::of_cpu(&machine, 0), Place { die: Some(0), ..package(0) });
    }
}
