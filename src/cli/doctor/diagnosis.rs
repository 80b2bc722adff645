//! What was found, as a value that text and JSON are made from.

use eprof::hardware::{CoreKind, DomainInfo, MachineInfo};
use eprof::machine::gpus::{self, Gpu};
use eprof::machine::model_events::Counters;
use eprof::machine::permissions::{Capability, Gap, Permissions, Severity};
use eprof::machine::repair;
use eprof::machine::topology::{self, CpuGroups};
use eprof::machine::{ModelEvents, Roots, choose_model_events};
use eprof::meter::{Discovery, Rejected, Source};
use serde::Serialize;

use super::event_probe::{EventProbe, EventState, Kernel, Rights};
use super::watch::Watched;

/// What kind of profile can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Energy is measured and programs are sampled.
    Measured,
    /// Programs are sampled; energy is estimated.
    Estimated,
    /// Programs cannot be sampled.
    Nothing,
}

/// All that doctor knows.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    pub verdict: Verdict,
    pub machine: Machine,
    pub counters: Vec<CounterLine>,
    pub events: Vec<EventLine>,
    pub event_notes: Vec<String>,
    pub domains: Vec<DomainInfo>,
    pub not_used: Vec<NotUsed>,
    pub warnings: Vec<String>,
    pub gpus: Vec<Gpu>,
    pub permissions: Permissions,
    pub gaps: Vec<Gap>,
    pub watched: Option<Watched>,
}

/// The machine in numbers.
#[derive(Debug, Serialize)]
pub struct Machine {
    pub cpu_model: String,
    pub cpu_identity: String,
    pub microarchitecture: Option<String>,
    pub arch: String,
    pub kernel: String,
    pub packages: usize,
    pub cores: usize,
    pub small_cores: usize,
    pub threads: usize,
}

/// The counters of one PMU.
#[derive(Debug, Serialize)]
pub struct CounterLine {
    pub pmu: String,
    pub general: usize,
    pub has_fixed: bool,
    pub held_by_watchdog: bool,
}

/// A chosen event.
#[derive(Debug, Serialize)]
pub struct EventLine {
    pub role: String,
    pub name: String,
    pub encoding: String,
    pub core_kind: CoreKind,
    pub reason: String,
    #[serde(flatten)]
    pub state: EventState,
}

/// A source that is not used.
#[derive(Debug, Serialize)]
pub struct NotUsed {
    pub source: String,
    pub what: Option<String>,
    pub why: String,
    pub repair: Option<String>,
}

/// Puts it all together.
pub fn diagnose(roots: &Roots, energy: &Discovery) -> anyhow::Result<Diagnosis> {
    let machine = topology::detect(roots)?;
    let mut permissions = Permissions::read(roots);
    let chosen = choose_model_events(roots, &machine);
    let states = if roots.are_live() {
        Kernel.try_events(&chosen.events)
    } else {
        Rights(&permissions).try_events(&chosen.events)
    };
    let some_open = states.iter().any(|state| !matches!(state, EventState::Refused { .. }));
    if roots.are_live() && some_open && !permissions.has(Capability::SysAdmin) {
        permissions.closed_above_2 = false;
    }
    let mut gaps = permissions.gaps(machine.cpus.len(), chosen.events.len());
    let can_sample = some_open && gaps.iter().all(|gap| gap.severity != Severity::Fatal);
    let verdict = match (can_sample, energy.measures_cpus()) {
        (false, _) => Verdict::Nothing,
        (true, true) => Verdict::Measured,
        (true, false) => Verdict::Estimated,
    };
    gaps.extend(closed_powercap(verdict, energy));
    gaps.extend(no_meter(energy));
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.severity));
    // Of a copied machine, paths are told as they are there.
    let root = if roots.are_live() { String::new() } else { roots.folder().display().to_string() };
    let as_there = |text: &str| if root.is_empty() { text.to_owned() } else { text.replace(&root, "") };
    gaps.iter_mut().for_each(|gap| gap.what = as_there(&gap.what));
    let rejected = energy.rejected.iter().map(|rejected| NotUsed {
        source: rejected.source.clone(),
        what: rejected.what.clone(),
        why: as_there(&rejected.why),
        repair: rejected.repair.clone(),
    });
    Ok(Diagnosis {
        verdict,
        gaps,
        machine: in_numbers(&machine),
        counters: chosen.counters.iter().map(counter_line).collect(),
        events: event_lines(&chosen, states),
        event_notes: chosen.notes,
        domains: energy.domains.clone(),
        not_used: rejected.collect(),
        warnings: energy.warnings.clone(),
        gpus: gpus::list(roots),
        permissions,
        watched: None,
    })
}

/// Files that could tell the energy, but only to root.
fn closed_powercap(verdict: Verdict, energy: &Discovery) -> Option<Gap> {
    let powercap = Source::Powercap.to_string();
    let is_closed =
        |rejected: &&Rejected| rejected.source == powercap && rejected.why.contains("by root only");
    let closed = energy.rejected.iter().find(is_closed)?;
    (verdict != Verdict::Measured).then(|| Gap {
        severity: Severity::Major,
        what: closed.why.clone(),
        consequence: "energy is estimated where the power PMU is closed, too".to_owned(),
        repairs: repair::powercap(),
    })
}

/// No meter for the CPUs, and none that could be opened.
fn no_meter(energy: &Discovery) -> Option<Gap> {
    let nothing_helps = energy.rejected.iter().all(|rejected| rejected.repair.is_none());
    (!energy.measures_cpus() && nothing_helps).then(|| Gap {
        severity: Severity::Minor,
        what: "no meter tells the CPUs' energy, and nothing on this machine opens one".to_owned(),
        consequence: "joules are estimated from CPU time".to_owned(),
        repairs: repair::own_figures(),
    })
}

fn in_numbers(machine: &MachineInfo) -> Machine {
    let cores = machine.first_of_each_core();
    Machine {
        cpu_model: machine.cpu_model.clone(),
        cpu_identity: machine.cpu_identity.clone(),
        microarchitecture: machine.microarchitecture.clone(),
        arch: machine.arch.clone(),
        kernel: machine.kernel.clone(),
        packages: machine.packages().len(),
        cores: cores.len(),
        small_cores: cores.iter().filter(|core| core.kind == CoreKind::Efficiency).count(),
        threads: machine.cpus.len(),
    }
}

fn counter_line(counters: &Counters) -> CounterLine {
    CounterLine {
        pmu: counters.pmu.clone(),
        general: counters.general,
        has_fixed: counters.has_fixed,
        held_by_watchdog: counters.watchdog,
    }
}

fn event_lines(chosen: &ModelEvents, states: Vec<EventState>) -> Vec<EventLine> {
    let line = |(event, state): (&eprof::machine::ModelEvent, EventState)| EventLine {
        role: event.role.to_string(),
        name: event.spec.name.clone(),
        encoding: event.spec.encoding(),
        core_kind: event.core_kind(),
        reason: event.reason.clone(),
        state,
    };
    chosen.events.iter().zip(states).map(line).collect()
}
