//! The first lines of every report: what was measured, by what, and where all of it went.

use serde::Serialize;

use super::division::DivisionSummary;
use super::select::Selected;
use crate::hardware::{DomainInfo, Method};
use crate::identity::Identity;
use crate::label::Label;
use crate::profile::{Balance, DomainEnergy, HiddenCallers, MachineEnergy, Origin, Profile, ProfileMethod};
use crate::units::{Joules, Nanoseconds, Watts};

/// One energy domain of the report's head.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainSummary {
    /// Its name.
    pub name: Label,
    /// Where the readings come from.
    pub source: Label,
    /// Measured or estimated.
    pub method: Method,
    /// What its watts may be off by, see [`DomainInfo::error_of_watts`].
    pub watts_error: f64,
    /// The domain that contains it.
    pub parent: Option<Label>,
    /// How many domains contain it.
    pub depth: usize,
    /// It is part of the report's sums.
    pub counted: bool,
    /// Where its joules went.
    pub balance: Balance,
}

/// One event of the report's head.
#[derive(Debug, Clone, PartialEq)]
pub struct EventSummary {
    /// Its name.
    pub name: Label,
    /// Number of samples.
    pub samples: u64,
    /// Sum of periods.
    pub count: u64,
    /// Samples known to be lost.
    pub lost: u64,
    /// Of the samples, those of the recorder and of processes that were not to be recorded: no row has them.
    pub of_others: u64,
    /// Times the kernel throttled it.
    pub throttled: u64,
}

/// How wrong eprof was found to be on the machine of the recording, for functions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verified {
    /// Mean of the errors' sizes, as a share of the truth.
    pub mean_error: f64,
    /// The largest.
    pub worst_error: f64,
    /// The day on which that was found: `2026-11-22`.
    pub date: String,
}

/// What the whole profile is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// What was recorded, if that is known: a command.
    pub subject: Option<Label>,
    /// How the joules were found.
    pub method: ProfileMethod,
    /// From the first to the last sample or reading.
    pub duration: Nanoseconds,
    /// All domains.
    pub domains: Vec<DomainSummary>,
    /// All events.
    pub events: Vec<EventSummary>,
    /// The balance of the domains that are counted.
    pub balance: Balance,
    /// Standard error of the watts that were assumed for the counted domains that no meter counts, as a share of
    /// them; `None` if meters count all of them.
    pub watts_error: Option<f64>,
    /// The recording's end is missing.
    pub is_partial: bool,
    /// Joules follow time alone: all code has the same watts, which say nothing of it.
    pub is_by_time: bool,
    /// How joules were divided among samples.
    pub division: Option<DivisionSummary>,
    /// How often chains of frame pointers lacked callers.
    pub hidden_callers: HiddenCallers,
    /// What `eprof verify` found there, if all joules are measured.
    pub verified: Option<Verified>,
    /// The recordings.
    pub recordings: Vec<RecordingSummary>,
    /// The machines, where there are several recordings.
    pub machines: Vec<MachineSummary>,
}

/// A recording of the report's head.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordingSummary {
    /// Its file.
    pub file: Option<Label>,
    /// Host name of its machine.
    pub hostname: Label,
    /// Release of the kernel.
    pub kernel: Label,
    /// Its machine, among [`Summary::machines`].
    pub machine: u32,
    /// What it says of where it comes from; `None` if nothing.
    pub identity: Option<Identity>,
}

/// A machine of the report's head.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineSummary {
    /// What it is called.
    pub name: Label,
    /// Its boot, where that is known.
    pub boot: Option<Label>,
    /// Where the joules of its domains went, by name.
    pub domains: Vec<(Label, Balance)>,
    /// Where the joules of its counted domains went.
    pub balance: Balance,
}

impl Summary {
    pub(super) fn new(profile: &Profile, selected: &Selected, subject: Option<&str>) -> Self {
        let counted = |index: &usize| selected.domains.contains(index);
        let domains: Vec<DomainSummary> = profile
            .domains
            .iter()
            .enumerate()
            .map(|(index, domain)| DomainSummary {
                name: Label::new(&domain.info.name),
                source: Label::new(&domain.info.source),
                method: domain.info.method,
                watts_error: domain.info.error_of_watts(),
                parent: domain.info.parent.as_deref().map(Label::new),
                depth: depth(profile, domain),
                counted: counted(&index),
                balance: domain.balance,
            })
            .collect();
        let infos = || selected.domains.iter().map(|&index| &profile.domains[index].info);
        let estimated = || infos().filter(|info| info.method == Method::Estimated);
        let all_estimated = estimated().next().is_some() && estimated().count() == infos().count();
        let events = profile.events.iter().map(|event| EventSummary {
            name: Label::new(&event.name),
            samples: event.samples,
            count: event.count,
            lost: event.lost,
            of_others: event.of_others,
            throttled: event.throttled,
        });
        let balance = domains
            .iter()
            .filter(|domain| domain.counted)
            .fold(Balance::default(), |sum, domain| sum + domain.balance);
        Self {
            subject: subject.map(Label::new),
            method: ProfileMethod::of(infos().map(|info| info.method)),
            watts_error: estimated().map(DomainInfo::error_of_watts).reduce(f64::max),
            is_partial: profile.is_partial,
            is_by_time: all_estimated
                || profile.division.as_ref().is_some_and(|division| division.is_by_time),
            duration: profile.duration,
            events: events.collect(),
            domains,
            balance,
            division: profile.division.as_ref().map(|division| DivisionSummary::new(division, profile)),
            hidden_callers: profile.hidden_callers,
            verified: None,
            recordings: profile.recordings.iter().map(RecordingSummary::new).collect(),
            machines: profile
                .machines
                .iter()
                .map(|machine| MachineSummary::new(profile, selected, machine))
                .collect(),
        }
    }

    /// With what was found on the machine, where that says something of this recording's joules.
    pub(super) fn with_verified(mut self, verified: Option<&Verified>) -> Self {
        self.verified = verified.filter(|_| self.method == ProfileMethod::Measured).cloned();
        self
    }

    /// Mean power of the counted domains; `None` without joules or time.
    pub fn mean_power(&self) -> Option<Watts> {
        (self.has_joules() && self.duration > Nanoseconds::ZERO)
            .then(|| self.balance.measured / self.duration)
    }

    /// There are joules to report.
    pub fn has_joules(&self) -> bool {
        self.method != ProfileMethod::None && self.balance.measured > Joules::ZERO
    }

    /// What stands where a reader could take joules for measured: in pictures, names and comments of exports.
    pub(super) fn estimate_mark(&self) -> Option<&'static str> {
        self.method.estimate_mark().filter(|_| self.has_joules())
    }

    /// All samples of all events.
    pub fn samples(&self) -> u64 {
        self.events.iter().map(|event| event.samples).sum()
    }

    /// All samples that no row has.
    pub fn of_others(&self) -> u64 {
        self.events.iter().map(|event| event.of_others).sum()
    }

    /// All samples known to be lost.
    pub fn lost(&self) -> u64 {
        self.events.iter().map(|event| event.lost).sum()
    }
}

impl RecordingSummary {
    fn new(origin: &Origin) -> Self {
        Self {
            file: origin.name.as_deref().map(Label::new),
            hostname: Label::new(&origin.hostname),
            kernel: Label::new(&origin.kernel),
            machine: origin.machine,
            identity: origin.identity.clone(),
        }
    }
}

impl MachineSummary {
    fn new(profile: &Profile, selected: &Selected, machine: &MachineEnergy) -> Self {
        let of_domain = machine.balances.iter().enumerate();
        let known: Vec<(usize, Balance)> =
            of_domain.filter_map(|(at, balance)| Some((at, (*balance)?))).collect();
        let counted = known.iter().filter(|(at, _)| selected.domains.contains(at));
        Self {
            name: Label::new(&machine.name),
            boot: machine.boot.as_deref().map(Label::new),
            balance: counted.fold(Balance::default(), |sum, (_, balance)| sum + *balance),
            domains: known
                .iter()
                .map(|(at, balance)| (Label::new(&profile.domains[*at].info.name), *balance))
                .collect(),
        }
    }
}

/// What joules are together that were found so: a column's title, and the whole that a balance is of.
pub(super) fn whole_title(method: ProfileMethod) -> &'static str {
    match method {
        ProfileMethod::Measured | ProfileMethod::None => "measured",
        ProfileMethod::Estimated => "estimated",
        ProfileMethod::Mixed => "all",
    }
}

/// How joules were found, for people.
pub(super) fn how(method: ProfileMethod) -> &'static str {
    match method {
        ProfileMethod::Measured | ProfileMethod::None => "measured",
        ProfileMethod::Estimated => "ESTIMATED, not measured",
        ProfileMethod::Mixed => "partly measured, partly ESTIMATED",
    }
}

/// The name of a method in files.
pub(super) fn method_name(method: ProfileMethod) -> &'static str {
    match method {
        ProfileMethod::Measured => "measured",
        ProfileMethod::Estimated => "estimated",
        ProfileMethod::Mixed => "mixed",
        ProfileMethod::None => "none",
    }
}

fn depth(profile: &Profile, domain: &DomainEnergy) -> usize {
    let mut depth = 0;
    let mut here = domain;
    while let Some(parent) = here.info.parent.as_deref()
        && let Some(next) = profile.domains.iter().find(|other| other.info.name == parent)
        && depth < profile.domains.len()
    {
        depth += 1;
        here = next;
    }
    depth
}
