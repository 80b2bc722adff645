//! AMD's PMU `power_core` (Linux 6.14): one energy counter per core, inside the package's.
//!
//! All threads of a core read the same register, so each core is opened once, on its lowest CPU.

use super::Pace;
use super::domain::{self, Place};
use super::finding::{Search, Site};
use super::rapl_perf::EnergyEvents;
use super::rejected::Rejected;
use super::source::Source;
use crate::hardware::DomainKind;
use crate::machine::permissions::Permissions;
use crate::machine::resolve::resolve_event;
use crate::machine::topology::{CpuGroups, is_amd};
use crate::machine::{cpu_list, platform, pmu::Pmu};
use crate::units::Nanoseconds;

/// Looks for the PMU.
pub(super) fn find(site: &Site<'_>) -> Search {
    let Site { roots, machine, .. } = *site;
    let Some(pmu) = Pmu::named(roots, "power_core") else {
        // Missing everywhere but on AMD, where newer kernels have it.
        let absent = Rejected::new(
            Source::PowerCorePmu,
            "the kernel offers none; AMD's cores have it from Linux 6.14 on",
        );
        let may_have_it = is_amd(machine) && !platform::is_virtual(roots);
        return if may_have_it { Search::rejecting(absent) } else { Search::default() };
    };
    let spec = match resolve_event(roots, "power_core/energy-core/") {
        Ok(specs) => specs.into_iter().next(),
        Err(error) => return Search::rejecting(Rejected::new(Source::PowerCorePmu, error.to_string())),
    };
    let (Some(spec), Some(offered)) = (spec, pmu.cpus) else {
        return Search::rejecting(Rejected::new(Source::PowerCorePmu, "it names no CPU to count on"));
    };
    let (mut counters, mut domains, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for core in machine.first_of_each_core() {
        let siblings = machine.cpus.iter().filter(|cpu| (cpu.package, cpu.core) == (core.package, core.core));
        let Some(cpu) = siblings.map(|cpu| cpu.cpu).find(|cpu| offered.contains(cpu)) else {
            missing.push(core.cpu);
            continue;
        };
        let place = Place { package: Some(core.package), die: None, core: Some(core.core) };
        domains.push(domain::describe(machine, DomainKind::Core, place, &Source::PowerCorePmu.to_string()));
        counters.push((cpu, spec.clone()));
    }
    let mut rejected = Vec::new();
    if !missing.is_empty() {
        let why = format!("no counter for the cores of CPUs {}", cpu_list::format(&missing));
        rejected.push(Rejected::new(Source::PowerCorePmu, why));
    }
    if counters.is_empty() {
        return Search { rejected, ..Search::default() };
    }
    let pace = pace(counters.len());
    let rights = Permissions::read(roots);
    Search::of(EnergyEvents { source: Source::PowerCorePmu, counters, domains, pace, rights }, rejected)
}

/// Each core is read by an interrupt to it, about 3 µs: reading all of them must not take more than
/// about a hundredth of the reader's time, nor wake a core more than a hundred times a second.
fn pace(cores: usize) -> Pace {
    let milliseconds = (cores as u64 * 3 / 10).max(10);
    Pace { shortest: Nanoseconds::from_millis(milliseconds), ..Pace::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_cores_are_read_less_often() {
        let milliseconds = |cores| pace(cores).shortest.as_nanos() / 1_000_000;
        assert_eq!([1, 33, 36, 37, 256].map(milliseconds), [10, 10, 10, 11, 76]);
        assert_eq!(pace(256).longest, Pace::default().longest);
    }
}
