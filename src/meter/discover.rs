//! Which meters there are, which are used, and why the others are not.

use std::collections::BTreeMap;

use super::EnergyMeter;
use super::domain::{contains, feeds_cpus, link_parents};
use super::finding::{Candidate, Site};
use super::kinds::Kind;
use super::options::MeterOptions;
use super::probe::{Files, Kernel, Probe};
use super::rejected::Rejected;
use super::source::Source;
use super::watch::Observation;
use crate::hardware::{DomainInfo, DomainKind, Method};
use crate::machine::permissions::Permissions;
use crate::machine::roots::Roots;
use crate::machine::topology::{self, TopologyError};
use crate::units::Watts;

/// Two sources of one domain may differ by this much before it is worth a warning.
const TOLERANCE: f64 = 0.05;

/// The meters to read, and what a user should know of the choice.
pub struct Discovery {
    /// The meters, each with at least one domain; no domain occurs twice.
    pub meters: Vec<Box<dyn EnergyMeter>>,
    /// All their domains, in the meters' order, with parents.
    pub domains: Vec<DomainInfo>,
    /// Sources and domains that are not used.
    pub rejected: Vec<Rejected>,
    /// Why nothing is read of sources that the user asked for by name.
    pub unmet: Vec<String>,
    /// What a reader of a report must know.
    pub warnings: Vec<String>,
}

/// None of the meters that were asked for by name can be read.
#[derive(Debug, thiserror::Error)]
#[error("energy cannot be measured as --meter says: {}\n  `eprof doctor` lists what there is", .0.join("; "))]
pub struct Unmet(Vec<String>);

impl Discovery {
    /// That something is read, where meters were asked for by name: who asks for one does not want a result without.
    ///
    /// # Errors
    /// Why none of them can be read, and what repairs it.
    pub fn check(&self) -> Result<(), Unmet> {
        if self.meters.is_empty() && !self.unmet.is_empty() { Err(Unmet(self.unmet.clone())) } else { Ok(()) }
    }

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
    Ok(arrange(&Site { roots, machine: &machine, options }, probe))
}

fn arrange(site: &Site<'_>, probe: &dyn Probe) -> Discovery {
    let only = site.options.only.as_deref();
    let mut wanted: Vec<(Source, Kind)> = Source::ALL
        .into_iter()
        .filter(|source| only.is_none_or(|only| only.contains(source)))
        .map(|source| (source, source.kind()))
        .collect();
    wanted.sort_by_key(|(_, kind)| kind.turn);
    let mut choice = Choice::default();
    for turn in wanted.chunk_by(|(_, a), (_, b)| a.turn == b.turn) {
        let cpus_by = choice.measures_cpus();
        let mut candidates = Vec::new();
        for (source, kind) in turn {
            if cpus_by.is_some() && !kind.may_count_cards || *source == Source::Msr && choice.has_rapl {
                continue;
            }
            let search = (kind.find)(site);
            choice.rejected.extend(search.rejected);
            choice.warnings.extend(search.warnings);
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
        let observations = probe.watch(&mut candidates, site.options.watch);
        choice.take(candidates, observations);
    }
    choice.finish(only.unwrap_or_default())
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
            let is_proven = candidate.is_proven();
            for (index, seen) in observations.iter().enumerate().filter(|_| !is_proven) {
                candidate.learn(index, seen);
            }
            let since_boot = candidate.counts_since_boot();
            let any_core_moves = observations.iter().any(|seen| seen.moves > 0);
            let mut seen = observations.into_iter();
            candidate.retain(&mut |domain| {
                let seen = seen.next().unwrap_or_default();
                let reject = |why: String| Rejected::new(&domain.source, why).of(&domain.name);
                let fault = at_rest(domain, &seen, since_boot, any_core_moves);
                if let Some(why) = fault.filter(|_| !is_proven) {
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

    /// Links the tree of domains and lets the candidates become meters.
    fn finish(mut self, asked_for: &[Source]) -> Discovery {
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
        let unmet = asked_for.iter().flat_map(|source| self.unmet(*source)).collect();
        let meters = self.meters.into_iter().map(|meter| meter as Box<dyn EnergyMeter>).collect();
        Discovery { meters, domains, rejected: self.rejected, unmet, warnings: self.warnings }
    }

    /// Why nothing is read of a source that was asked for by name.
    fn unmet(&self, source: Source) -> Vec<String> {
        if self.meters.iter().any(|meter| meter.source() == source) {
            return Vec::new();
        }
        let name = source.to_string();
        let reasons = self.rejected.iter().filter(|rejected| rejected.source.starts_with(&name));
        let reasons: Vec<String> = reasons.map(Rejected::to_string).collect();
        match reasons.is_empty() {
            true => vec![format!("{name}: this machine has no such meter")],
            false => reasons,
        }
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
