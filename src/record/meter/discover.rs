//! Which meters there are, which are used, and why the others are not.

use std::collections::BTreeMap;
use std::time::Duration;

use super::domain::{contains, feeds_cpus, link_parents};
use super::estimate::{AssumedWatts, Estimate};
use super::probe::{Files, Kernel, Probe};
use super::source::{Candidate, Rejected, Search, Source};
use super::watch::Observation;
use super::{EnergyMeter, power_core, powercap, rapl_perf};
use crate::machine::permissions::Permissions;
use crate::machine::roots::Roots;
use crate::machine::topology::{self, TopologyError};
use crate::recording::metadata::{DomainInfo, DomainKind, MachineInfo, Method};
use crate::units::{Joules, Watts};

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
}

impl Default for MeterOptions {
    /// 25 ms: some 25 moves of a RAPL counter, so that its refresh period is known well enough.
    fn default() -> Self {
        Self { watts: None, watch: Duration::from_millis(25), only: None }
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
    Ok(arrange(roots, &machine, options, probe))
}

fn arrange(roots: &Roots, machine: &MachineInfo, options: &MeterOptions, probe: &dyn Probe) -> Discovery {
    let wanted = |source: Source| options.only.as_ref().is_none_or(|only| only.contains(&source));
    let mut rejected = Vec::new();
    let mut candidates = Vec::new();
    let sources: [(Source, fn(&Roots, &MachineInfo) -> Search); 3] = [
        (Source::PowerPmu, rapl_perf::find),
        (Source::PowerCorePmu, power_core::find),
        (Source::Powercap, powercap::find),
    ];
    for (_, find) in sources.iter().filter(|(source, _)| wanted(*source)) {
        let search = find(roots, machine);
        rejected.extend(search.rejected);
        candidates.extend(search.found.into_iter().filter_map(|found| probe.open(found, &mut rejected)));
    }
    let observations = probe.watch(&mut candidates, options.watch);
    let mut warnings = Vec::new();
    let mut choice = choose(candidates, observations, &mut rejected, &mut warnings);
    if wanted(Source::Estimate)
        && !choice.iter().any(|meter| meter.domains().iter().any(|d| feeds_cpus(d.kind)))
    {
        choice.extend(estimate(roots, machine, options.watts, &mut rejected, &mut warnings));
    }
    finish(choice, rejected, warnings)
}

/// Keeps for each domain the best source whose counter moves.
fn choose(
    candidates: Vec<Box<dyn Candidate>>,
    observations: Vec<Vec<Observation>>,
    rejected: &mut Vec<Rejected>,
    warnings: &mut Vec<String>,
) -> Vec<Box<dyn Candidate>> {
    let mut chosen: BTreeMap<String, (Source, Observation)> = BTreeMap::new();
    let mut kept: Vec<Box<dyn Candidate>> = Vec::new();
    for (mut candidate, observations) in candidates.into_iter().zip(observations) {
        let source = candidate.source();
        let resolutions: Vec<Option<Joules>> = observations
            .iter()
            .enumerate()
            .map(|(index, seen)| candidate.resolution(index, seen.step))
            .collect();
        for ((domain, seen), resolution) in
            candidate.domains_mut().iter_mut().zip(&observations).zip(resolutions)
        {
            domain.resolution = resolution;
            domain.refresh = domain.refresh.or(seen.refresh);
        }
        let since_boot = candidate.counts_since_boot();
        let any_core_moves = observations.iter().any(|seen| seen.moves > 0);
        let mut seen = observations.into_iter();
        candidate.retain(&mut |domain| {
            let seen = seen.next().unwrap_or_default();
            let label = || format!("{source} {}", domain.name);
            if let Some(why) = at_rest(domain, &seen, since_boot, any_core_moves) {
                rejected.push(Rejected::new(label(), why));
                return false;
            }
            if let Some((better, by_better)) = chosen.get(&domain.name) {
                warnings.extend(disagreement(&domain.name, (*better, by_better), (source, &seen)));
                rejected.push(Rejected::new(label(), format!("the {better} tells the same")));
                return false;
            }
            chosen.insert(domain.name.clone(), (source, seen));
            true
        });
        kept.push(candidate);
    }
    drop_false_platforms(&mut kept, &chosen, rejected);
    kept.retain(|candidate| !candidate.domains().is_empty());
    kept
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

/// The platform contains the packages; where it tells less than they do, the board does not wire it.
fn drop_false_platforms(
    kept: &mut [Box<dyn Candidate>],
    chosen: &BTreeMap<String, (Source, Observation)>,
    rejected: &mut Vec<Rejected>,
) {
    let all: Vec<DomainInfo> = kept.iter().flat_map(|candidate| candidate.domains().to_vec()).collect();
    let observed = |domain: &DomainInfo| chosen.get(&domain.name).map(|(_, seen)| *seen).unwrap_or_default();
    for candidate in kept {
        let source = candidate.source();
        candidate.retain(&mut |domain| {
            if domain.kind != DomainKind::Platform {
                return true;
            }
            let inside =
                all.iter().filter(|other| other.kind == DomainKind::Package && contains(domain, other));
            let packages: Vec<Observation> = inside.map(observed).collect();
            let inside: Watts = packages.iter().map(Observation::power).sum();
            let platform = observed(domain);
            let unsure =
                platform.granularity() + packages.iter().map(Observation::granularity).fold(0.0, f64::max);
            let is_false = platform.power() < inside * (1.0 - TOLERANCE - unsure);
            if is_false {
                let why = format!("it told {} where the packages inside it told {inside}", platform.power());
                rejected.push(Rejected::new(format!("{source} {}", domain.name), why));
            }
            !is_false
        });
    }
}

fn estimate(
    roots: &Roots,
    machine: &MachineInfo,
    watts: Option<AssumedWatts>,
    rejected: &mut Vec<Rejected>,
    warnings: &mut Vec<String>,
) -> Option<Box<dyn Candidate>> {
    let (assumed, reason) = match watts {
        Some(watts) => (watts, "as told by --watts"),
        None => AssumedWatts::typical(machine),
    };
    match Estimate::start(roots, machine, assumed) {
        Ok(estimate) => {
            warnings.push(format!(
                "no energy meter: joules are estimated from CPU time, {} idle to {} busy ({reason})",
                assumed.idle, assumed.busy
            ));
            Some(Box::new(estimate))
        }
        Err(error) => {
            let why = format!("{} cannot be read: {error}", roots.procfs.join("stat").display());
            rejected.push(Rejected::new(Source::Estimate, why));
            None
        }
    }
}

/// Links the tree of domains and lets the candidates become meters.
fn finish(mut choice: Vec<Box<dyn Candidate>>, rejected: Vec<Rejected>, warnings: Vec<String>) -> Discovery {
    let mut all: Vec<&mut DomainInfo> =
        choice.iter_mut().flat_map(|candidate| candidate.domains_mut()).collect();
    link_parents(&mut all);
    let domains = choice.iter().flat_map(|candidate| candidate.domains().to_vec()).collect();
    let meters = choice.into_iter().map(|candidate| candidate as Box<dyn EnergyMeter>).collect();
    Discovery { meters, domains, rejected, warnings }
}

#[cfg(test)]
mod tests;
