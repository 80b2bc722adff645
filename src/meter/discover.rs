//! Which meters there are, which are used, and why the others are not.

use std::collections::BTreeMap;
use std::time::Duration;

use super::domain::{contains, feeds_cpus, link_parents};
use super::estimate::{AssumedWatts, Estimate};
use super::probe::{Files, Kernel, Probe};
use super::source::{Candidate, Rejected, Search, Source};
use super::watch::Observation;
use super::{EnergyMeter, battery, hwmon, msr, nvml, power_core, powercap, rapl_perf};
use crate::hardware::{DomainInfo, DomainKind, MachineInfo, Method};
use crate::machine::permissions::Permissions;
use crate::machine::roots::Roots;
use crate::machine::topology::{self, TopologyError};
use crate::units::Watts;

/// Two sources of one domain may differ by this much before it is worth a warning.
const TOLERANCE: f64 = 0.05;
/// What the user wishes of the meters.
#[derive(Debug, Clone)]
pub struct MeterOptions {
    /// The user's figures for an estimate; typical ones if `None`.
    pub watts: Option<AssumedWatts>,
    /// How long counters are watched before they are used.
    pub watch: Duration,
    /// Only these sources, in their usual order; all if `None`.
    pub only: Option<Vec<Source>>,
    /// NVIDIA's management library, if not the driver's own.
    pub nvml_library: Option<std::path::PathBuf>,
}

impl Default for MeterOptions {
    /// 25 ms: some 25 moves of a RAPL counter, so that its refresh period is known well enough.
    fn default() -> Self {
        Self { watts: None, watch: Duration::from_millis(25), only: None, nvml_library: None }
    }
}

/// The meters to read, and what a user should know of the choice.
pub struct Discovery {
    /// The meters, each with at least one domain; no domain occurs twice.
    pub meters: Vec<Box<dyn EnergyMeter>>,
    /// All their domains, in the meters' order, with parents.
    pub domains: Vec<DomainInfo>,
    /// Sources and domains that are not used.
    pub rejected: Vec<Rejected>,
    /// What a reader of a report must know.
    pub warnings: Vec<String>,
}

impl Discovery {
    /// Whether a domain that feeds CPUs is measured, not estimated.
    pub fn measures_cpus(&self) -> bool {
        self.domains.iter().any(|domain| domain.method == Method::Measured && feeds_cpus(domain.kind))
    }
}

/// Finds, opens, watches and chooses the meters of this machine.
///
/// Counters are watched for [`MeterOptions::watch`], those that rest for twice as long.
///
/// # Errors
/// If the machine's CPUs cannot be listed. A machine without any meter is no error: its energy is
/// estimated.
pub fn discover(roots: &Roots, options: &MeterOptions) -> Result<Discovery, TopologyError> {
    let machine = topology::detect(roots)?;
    let probe: &dyn Probe =
        if roots.are_live() { &Kernel } else { &Files { rights: Permissions::read(roots) } };
    let mut discovery = arrange(roots, &machine, options, probe);
    if (roots.are_live() || options.nvml_library.is_some()) && options.only.is_none() {
        discovery.add_nvml(options);
    }
    Ok(discovery)
}

impl Discovery {
    /// NVIDIA's GPUs: no kernel interface tells their energy, so nothing else is replaced.
    fn add_nvml(&mut self, options: &MeterOptions) {
        // GPU sensors refresh every 15 to 100 ms: a few refreshes must be seen.
        const WATCH: Duration = Duration::from_millis(600);
        let found = nvml::search(options.nvml_library.as_deref(), WATCH);
        self.rejected.extend(found.rejected);
        self.warnings.extend(found.warnings);
        if let Some(meter) = found.meter {
            self.domains.extend(meter.domains().iter().cloned());
            self.meters.push(Box::new(meter));
        }
    }
}

/// Looks for the places of one source.
type Find = fn(&Roots, &MachineInfo) -> Search;

/// Sources that are tried together. The next tier is tried only while nothing measures the CPUs, but
/// for graphics cards, which none of the better ones tells.
const TIERS: [&[(Source, Find)]; 4] = [
    &[
        (Source::PowerPmu, rapl_perf::find),
        (Source::PowerCorePmu, power_core::find),
        (Source::Powercap, powercap::find),
    ],
    &[(Source::Msr, msr::find)],
    &[(Source::Hwmon, hwmon::find)],
    &[(Source::Battery, battery::find)],
];

fn arrange(roots: &Roots, machine: &MachineInfo, options: &MeterOptions, probe: &dyn Probe) -> Discovery {
    let wanted = |source: Source| options.only.as_ref().is_none_or(|only| only.contains(&source));
    let mut choice = Choice::default();
    for tier in TIERS {
        let cpus_by = choice.measures_cpus();
        let mut candidates = Vec::new();
        for (source, find) in tier.iter().filter(|(source, _)| wanted(*source)) {
            if cpus_by.is_some() && *source != Source::Hwmon || *source == Source::Msr && choice.has_rapl {
                continue;
            }
            let search = find(roots, machine);
            choice.rejected.extend(search.rejected);
            choice.has_rapl |=
                matches!(source, Source::PowerPmu | Source::Powercap) && !search.found.is_empty();
            for found in search.found {
                let is_needed = |domain: &DomainInfo| cpus_by.is_none() || domain.kind == DomainKind::Gpu;
                let found_domains = found.domains().to_vec();
                for domain in found_domains.iter().filter(|domain| !is_needed(domain)) {
                    let better = cpus_by.as_ref().map(ToString::to_string).unwrap_or_default();
                    let why = format!("{better} measures the CPUs better");
                    choice.rejected.push(Rejected::new(&domain.source, why).of(&domain.name));
                }
                if found_domains.iter().any(is_needed)
                    && let Some(mut candidate) = probe.open(found, &mut choice.rejected)
                {
                    candidate.retain(&mut |domain| is_needed(domain));
                    candidates.push(candidate);
                }
            }
        }
        let observations = probe.watch(&mut candidates, options.watch);
        choice.take(candidates, observations);
    }
    if wanted(Source::Estimate) && choice.measures_cpus().is_none() {
        choice.estimate(roots, machine, options.watts);
    }
    choice.finish()
}

/// What has been chosen so far.
#[derive(Default)]
struct Choice {
    meters: Vec<Box<dyn Candidate>>,
    /// By a domain's name: which source tells it, and what was seen of it.
    by_name: BTreeMap<String, (Source, Observation)>,
    rejected: Vec<Rejected>,
    warnings: Vec<String>,
    /// The kernel offers RAPL's counters, though perhaps not to this user.
    has_rapl: bool,
}

impl Choice {
    /// The source that measures the CPUs, if one does.
    fn measures_cpus(&self) -> Option<Source> {
        let mut of_cpus =
            self.meters.iter().filter(|meter| meter.domains().iter().any(|d| feeds_cpus(d.kind)));
        of_cpus.next().map(|meter| meter.source())
    }

    /// Keeps of each domain the best source whose counter moves.
    fn take(&mut self, candidates: Vec<Box<dyn Candidate>>, observations: Vec<Vec<Observation>>) {
        for (mut candidate, observations) in candidates.into_iter().zip(observations) {
            let source = candidate.source();
            for (index, seen) in observations.iter().enumerate() {
                candidate.learn(index, seen);
            }
            let since_boot = candidate.counts_since_boot();
            let any_core_moves = observations.iter().any(|seen| seen.moves > 0);
            let mut seen = observations.into_iter();
            candidate.retain(&mut |domain| {
                let seen = seen.next().unwrap_or_default();
                let reject = |why: String| Rejected::new(&domain.source, why).of(&domain.name);
                if let Some(why) = at_rest(domain, &seen, since_boot, any_core_moves) {
                    self.rejected.push(reject(why));
                    return false;
                }
                if let Some((better, by_better)) = self.by_name.get(&domain.name) {
                    self.warnings.extend(disagreement(&domain.name, (*better, by_better), (source, &seen)));
                    self.rejected.push(reject(format!("the {better} tells the same")));
                    return false;
                }
                self.by_name.insert(domain.name.clone(), (source, seen));
                true
            });
            self.meters.push(candidate);
        }
        self.drop_false_platforms();
        self.meters.retain(|meter| !meter.domains().is_empty());
    }

    /// The platform contains the packages; where it tells less than they do, the board does not wire it.
    fn drop_false_platforms(&mut self) {
        let all: Vec<DomainInfo> = self.meters.iter().flat_map(|meter| meter.domains().to_vec()).collect();
        let observed =
            |domain: &DomainInfo| self.by_name.get(&domain.name).map(|(_, seen)| *seen).unwrap_or_default();
        for meter in &mut self.meters {
            meter.retain(&mut |domain| {
                if domain.kind != DomainKind::Platform {
                    return true;
                }
                let inside =
                    all.iter().filter(|other| other.kind == DomainKind::Package && contains(domain, other));
                let packages: Vec<Observation> = inside.map(observed).collect();
                let inside: Watts = packages.iter().map(Observation::power).sum();
                let platform = observed(domain);
                let coarsest = packages.iter().map(Observation::granularity).fold(0.0, f64::max);
                let unsure = TOLERANCE + platform.granularity() + coarsest;
                let is_false = platform.power() < inside * (1.0 - unsure);
                if is_false {
                    let why =
                        format!("it told {} where the packages inside it told {inside}", platform.power());
                    self.rejected.push(Rejected::new(&domain.source, why).of(&domain.name));
                }
                !is_false
            });
        }
    }

    /// No meter for the CPUs: CPU time and assumed watts.
    fn estimate(&mut self, roots: &Roots, machine: &MachineInfo, watts: Option<AssumedWatts>) {
        let (assumed, reason) = match watts {
            Some(watts) => (watts, "as told by --watts"),
            None => AssumedWatts::typical(machine),
        };
        match Estimate::start(roots, machine, assumed) {
            Ok(estimate) => {
                self.warnings.push(format!(
                    "no energy meter for the CPUs: joules are estimated from CPU time, {} idle to {} busy ({reason})",
                    assumed.idle, assumed.busy
                ));
                self.meters.push(Box::new(estimate));
            }
            Err(error) => {
                let why = format!("{} cannot be read: {error}", roots.procfs.join("stat").display());
                self.rejected.push(Rejected::new(Source::Estimate, why));
            }
        }
    }

    /// Links the tree of domains and lets the candidates become meters.
    fn finish(mut self) -> Discovery {
        if self.measures_cpus() == Some(Source::Battery) {
            self.warnings.push(
                "only the battery tells energy: of the whole machine, anew every few seconds; programs that run for \
                 less than a minute are told badly"
                    .to_owned(),
            );
        }
        if self.measures_cpus().is_some_and(|source| source < Source::Hwmon) {
            // Nothing is gained by opening a second way to the same counters.
            self.rejected.iter_mut().for_each(|rejected| rejected.repair = None);
        }
        let mut all: Vec<&mut DomainInfo> =
            self.meters.iter_mut().flat_map(|meter| meter.domains_mut()).collect();
        link_parents(&mut all);
        let domains = self.meters.iter().flat_map(|meter| meter.domains().to_vec()).collect();
        let meters = self.meters.into_iter().map(|meter| meter as Box<dyn EnergyMeter>).collect();
        Discovery { meters, domains, rejected: self.rejected, warnings: self.warnings }
    }
}

/// Why a counter that did not move is none; `None` if it moved or may well rest.
fn at_rest(
    domain: &DomainInfo,
    seen: &Observation,
    since_boot: bool,
    any_core_moves: bool,
) -> Option<String> {
    let watched = seen.span;
    match seen.last_raw {
        None => Some("it could not be read".to_owned()),
        Some(_) if seen.moves > 0 => None,
        Some(0) if since_boot => Some("it has stood at zero since the machine was started".to_owned()),
        // A core asleep takes nothing; so does a graphics part.
        Some(_) if domain.kind == DomainKind::Core && any_core_moves => None,
        Some(_) if since_boot && matches!(domain.kind, DomainKind::Uncore | DomainKind::Gpu) => None,
        Some(_) => Some(format!("it did not move in {watched}")),
    }
}

/// A warning if two sources of one domain tell too different powers.
///
/// Powers, not energies: the two are read one after the other, and a pause of the reader between
/// them makes one of the watches longer.
fn disagreement(
    domain: &str,
    (better, by_better): (Source, &Observation),
    (other, by_other): (Source, &Observation),
) -> Option<String> {
    let (a, b) = (by_better.power(), by_other.power());
    let apart = (a - b).as_watts().abs() / a.as_watts().max(b.as_watts()).max(f64::MIN_POSITIVE);
    let unsure = by_better.granularity() + by_other.granularity();
    (apart > TOLERANCE + unsure).then(|| {
        let percent = apart * 100.0;
        format!(
            "{domain}: while both were watched the {better} told {a} and {other} {b}, {percent:.0} % apart; one of \
             them is wrong"
        )
    })
}

#[cfg(test)]
mod tests;
