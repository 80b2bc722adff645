//! RAPL through the kernel's PMU `power`: the best source, since the kernel widens its counters to 64
//! bits and all domains of a package come in one read.

use std::io;

use super::Pace;
use super::counters::{Channel, CounterMeter};
use super::domain::{self, Place};
use super::energy_groups::Groups;
use super::finding::{Candidate, Finding, Needs, Search, Site};
use super::rejected::{self, Rejected};
use super::source::Source;
use super::wrap::WrappingCounter;
use crate::hardware::{DomainInfo, DomainKind, MachineInfo};
use crate::machine::event_spec::EventSpec;
use crate::machine::permissions::Permissions;
use crate::machine::platform;
use crate::machine::pmu::Pmu;
use crate::machine::resolve::resolve_event;
use crate::machine::roots::Roots;
use crate::machine::topology::{is_amd, is_x86};

/// The events of PMU `power` and what they count.
const EVENTS: [(&str, DomainKind); 5] = [
    ("energy-pkg", DomainKind::Package),
    ("energy-cores", DomainKind::Cores),
    ("energy-gpu", DomainKind::Uncore),
    ("energy-ram", DomainKind::Dram),
    ("energy-psys", DomainKind::Platform),
];

/// Counters of one PMU, each on one CPU.
pub(super) struct EnergyEvents {
    pub source: Source,
    pub counters: Vec<(u32, EventSpec)>,
    pub domains: Vec<DomainInfo>,
    pub pace: Pace,
    /// What to say if the kernel refuses.
    pub rights: Permissions,
}

/// Looks for the PMU.
pub(super) fn find(site: &Site<'_>) -> Search {
    let Site { roots, machine, .. } = *site;
    let Some(pmu) = Pmu::named(roots, "power") else {
        return no_pmu(roots, machine);
    };
    let mut rejected = Vec::new();
    let (mut counters, mut domains): (Vec<(u32, EventSpec)>, Vec<DomainInfo>) = (Vec::new(), Vec::new());
    let names = pmu.event_names();
    for (event, kind) in EVENTS.iter().filter(|(event, _)| names.iter().any(|name| name == event)) {
        let spec = match resolve_event(roots, &format!("power/{event}/")) {
            Ok(specs) => specs.into_iter().next(),
            Err(error) => {
                rejected.push(Rejected::new(Source::PowerPmu, error.to_string()));
                None
            }
        };
        let Some(spec) = spec else { continue };
        if spec.unit.as_deref() != Some("Joules") {
            let unit = spec.unit.as_deref().unwrap_or("no unit");
            rejected.push(Rejected::new(Source::PowerPmu, format!("{event} is in {unit}, not in Joules")));
            continue;
        }
        let cpus = spec.cpus.clone().unwrap_or_default();
        for &cpu in &cpus {
            let place = match kind {
                // The platform has one counter, which the first package shows.
                DomainKind::Platform => Place::MACHINE,
                // From Linux 6.9 to 6.13 AMD's event came once per die, each time the package's counter.
                _ if is_amd(machine) => Place { die: None, ..Place::of_cpu(machine, cpu) },
                _ => Place::of_cpu(machine, cpu),
            };
            let domain = domain::describe(machine, *kind, place, &Source::PowerPmu.to_string());
            if domains.iter().any(|have| have.name == domain.name) {
                let why = format!("on CPU {cpu} it shows the counter of {} once more", domain.name);
                rejected.push(Rejected::new(Source::PowerPmu, why).of(*event));
                continue;
            }
            counters.push((cpu, spec.clone()));
            domains.push(domain);
        }
    }
    if counters.is_empty() {
        rejected
            .push(Rejected::new(Source::PowerPmu, "the PMU has no energy events or names no CPU for them"));
        return Search { rejected, ..Search::default() };
    }
    let rights = Permissions::read(roots);
    let pace = Pace::default();
    Search::of(EnergyEvents { source: Source::PowerPmu, counters, domains, pace, rights }, rejected)
}

fn no_pmu(roots: &Roots, machine: &MachineInfo) -> Search {
    let why = match platform::hypervisor(roots) {
        _ if !is_x86(machine) => return Search::default(),
        Some(hypervisor) => format!("{hypervisor} shows its guests no energy counters"),
        None => "the kernel offers no PMU 'power'".to_owned(),
    };
    let rejected = Rejected::new(Source::PowerPmu, why);
    let is_bare = !platform::is_virtual(roots) && platform::container(roots).is_none();
    Search::rejecting(if is_bare {
        rejected.with_repair("load its driver: sudo modprobe rapl")
    } else {
        rejected
    })
}

impl Finding for EnergyEvents {
    fn source(&self) -> Source {
        self.source
    }

    fn domains(&self) -> &[DomainInfo] {
        &self.domains
    }

    fn needs(&self) -> Needs {
        Needs::CpuWideEvents
    }

    fn open(self: Box<Self>, rejected: &mut Vec<Rejected>) -> Option<Box<dyn Candidate>> {
        // Each core's counter in a group of its own would need a ring for each core.
        let mut groups = Groups::new(self.source == Source::PowerPmu);
        let mut channels = Vec::new();
        let mut refused = false;
        for ((cpu, spec), domain) in self.counters.into_iter().zip(self.domains) {
            match groups.open(cpu, &spec) {
                Ok(()) => channels.push(Channel {
                    domain,
                    counter: WrappingCounter::of_bits(64),
                    joules_per_count: spec.scale,
                    resolution: None,
                }),
                Err(error) if is_denied(&error) => refused = true,
                Err(error) => {
                    rejected.push(
                        Rejected::new(self.source, format!("cannot be opened: {error}")).of(domain.name),
                    );
                }
            }
        }
        if let Err(error) = groups.enable() {
            rejected.push(Rejected::new(self.source, format!("cannot be enabled: {error}")));
            return None;
        }
        if refused {
            rejected.push(rejected::cpu_wide_events_refused(self.source, &self.rights));
        }
        (!channels.is_empty()).then(|| {
            let meter =
                CounterMeter::new(self.source, Box::new(groups), channels, false).with_pace(self.pace);
            Box::new(meter) as Box<dyn Candidate>
        })
    }
}

fn is_denied(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

#[cfg(test)]
mod tests {
    use super::super::finding::find_under;
    use super::*;
    use crate::hardware::{CoreKind, CpuInfo, Method};
    use crate::machine::fixture::FixtureMachine;

    /// A software event: a clock that counts nanoseconds, and one that the kernel does not know.
    fn spec(config: u64) -> EventSpec {
        EventSpec {
            scale: 0.25,
            unit: Some("Joules".to_owned()),
            ..EventSpec::plain("software", "software", 1, config)
        }
    }

    #[test]
    fn what_cannot_be_opened_is_told_and_the_rest_is_read() {
        let domain = |name: &str| DomainInfo::new(name, DomainKind::Package, "power PMU", Method::Measured);
        let events = EnergyEvents {
            source: Source::PowerPmu,
            counters: vec![(0, spec(9999)), (0, spec(0))],
            domains: vec![domain("package-0"), domain("package-1")],
            pace: Pace { shortest: crate::units::Nanoseconds::from_millis(7), ..Pace::default() },
            rights: Permissions::default(),
        };
        assert!(matches!(events.needs(), Needs::CpuWideEvents));
        let mut rejected = Vec::new();
        let Some(mut meter) = Box::new(events).open(&mut rejected) else {
            // This user may not count all that runs on a CPU.
            assert!(rejected.iter().any(|rejected| rejected.is_closed), "{rejected:?}");
            return;
        };
        let told: Vec<String> = rejected.iter().map(Rejected::to_string).collect();
        assert!(
            told.len() == 1 && told[0].starts_with("power PMU package-0: cannot be opened: "),
            "{told:?}"
        );
        assert_eq!(
            meter.domains().iter().map(|domain| domain.name.as_str()).collect::<Vec<_>>(),
            ["package-1"]
        );
        assert_eq!(meter.pace().shortest.as_nanos(), 7_000_000);
        assert!(!meter.counts_since_boot());
        let mut readings = Vec::new();
        meter.read(&mut readings).expect("readable");
        let first = readings[0].expect("a reading");
        std::thread::sleep(std::time::Duration::from_millis(2));
        meter.read(&mut readings).expect("readable");
        let second = readings[0].expect("a reading");
        // The first reading is zero joules; a count is a quarter of a joule.
        assert_eq!(first.energy.as_joules(), 0.0);
        assert_eq!(second.energy.as_joules(), (second.raw - first.raw) as f64 * 0.25);
        assert!(second.raw - first.raw >= 2_000_000);
    }

    #[test]
    fn only_two_errors_are_refusals() {
        let is = |code| is_denied(&io::Error::from_raw_os_error(code));
        assert_eq!(
            [libc::EACCES, libc::EPERM, libc::EINVAL, libc::ENOENT].map(is),
            [true, true, false, false]
        );
        assert!(!is_denied(&io::ErrorKind::PermissionDenied.into()), "it is no error of the kernel's");
    }

    /// Two dies of a package, each of which shows the event on a CPU of its own.
    #[test]
    fn dies_have_counters_of_their_own_on_intels_machines_alone() {
        let files = FixtureMachine::new(
            "
sys/bus/event_source/devices/power/type: 30
sys/bus/event_source/devices/power/cpumask: 0,1
sys/bus/event_source/devices/power/format/event: config:0-7
sys/bus/event_source/devices/power/events/energy-pkg: event=0x02
sys/bus/event_source/devices/power/events/energy-pkg.scale: 2.3283064365386962890625e-10
sys/bus/event_source/devices/power/events/energy-pkg.unit: Joules
",
        );
        let roots = Roots::under(files.path());
        let cpu = |n| CpuInfo { cpu: n, core: n, die: n, package: 0, kind: CoreKind::Performance };
        let names = |identity: &str| -> (Vec<String>, usize) {
            let cpus = (0..2).map(cpu).collect();
            let machine = MachineInfo { cpu_identity: identity.to_owned(), cpus, ..MachineInfo::default() };
            let search = find_under(find, &roots, &machine);
            let domains = search.found.iter().flat_map(|found| found.domains());
            (domains.map(|domain| domain.name.clone()).collect(), search.rejected.len())
        };
        let of_dies = ["package-0-die-0", "package-0-die-1"].map(str::to_owned);
        assert_eq!(names("GenuineIntel-6-55-7"), (of_dies.to_vec(), 0));
        // The same counter twice.
        assert_eq!(names("AuthenticAMD-25-11-1"), (vec!["package-0".to_owned()], 1));
    }
}
