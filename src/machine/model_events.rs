//! Which events are sampled on this machine, and why these.
//!
//! The power model wants four events and the misses of the last cache. Cycles and instructions are
//! opened as generic events, so that they take fixed counters; the others by the encodings of their
//! microarchitecture, put together by sysfs's `format/`. Nothing is chosen that would not fit into the
//! counters at once: a multiplexed sampling event tells too little.

use super::cpuinfo::CpuIdentity;
use super::event_spec::EventSpec;
use super::model_table::{self, Encoding, arm};
use super::pmu::Pmu;
use super::resolve::resolve_event;
use super::roots::{Roots, read_number};
use crate::hardware::{CoreKind, MachineInfo, Role};

/// An event of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelEvent {
    /// Its part.
    pub role: Role,
    /// What to open.
    pub spec: EventSpec,
    /// Why this event.
    pub reason: String,
}

/// What is to be sampled.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelEvents {
    /// The events, by kind of core, then by importance.
    pub events: Vec<ModelEvent>,
    /// What was replaced or left out, and why.
    pub notes: Vec<String>,
    /// Counters for one hardware thread of each kind of core.
    pub counters: Vec<Counters>,
}

/// The counters of a PMU for one hardware thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters {
    /// The PMU.
    pub pmu: String,
    /// Counters that take any event.
    pub general: usize,
    /// Cycles and instructions have counters of their own.
    pub has_fixed: bool,
    /// The kernel's watchdog against lockups holds one.
    pub watchdog: bool,
}

impl Counters {
    /// How many events fit at once, of which `fixed` could use counters of their own.
    fn fit(&self, general: usize, fixed: usize) -> bool {
        let fixed_need = if self.has_fixed { 0 } else { fixed };
        general + fixed_need + usize::from(self.watchdog) <= self.general
    }
}

/// Chooses the model's events for this machine.
pub fn choose_model_events(roots: &Roots, machine: &MachineInfo) -> ModelEvents {
    let mut chosen = ModelEvents::default();
    let pmus = Pmu::cores(roots);
    if pmus.is_empty() {
        clock_instead(roots, &mut chosen);
        return chosen;
    }
    for (index, pmu) in pmus.iter().enumerate() {
        let is_hybrid = pmus.len() > 1;
        Chooser { roots, machine, pmu, index, is_hybrid }.choose(&mut chosen);
    }
    chosen
}

/// No PMU for the cores: CPU time stands for cycles.
fn clock_instead(roots: &Roots, chosen: &mut ModelEvents) {
    let reason =
        "the kernel offers no PMU of the cores, as in most virtual machines: CPU time stands for cycles";
    let events = resolve_event(roots, "cpu-clock").unwrap_or_default().into_iter();
    chosen.events.extend(events.map(|spec| ModelEvent { role: Role::Clk, spec, reason: reason.to_owned() }));
    chosen.notes.push(reason.to_owned());
}

struct Chooser<'a> {
    roots: &'a Roots,
    machine: &'a MachineInfo,
    pmu: &'a Pmu,
    /// Its place among the cores' PMUs.
    index: usize,
    /// There are several.
    is_hybrid: bool,
}

impl Chooser<'_> {
    fn choose(&self, chosen: &mut ModelEvents) {
        let counters = self.counters();
        let mut candidates = vec![
            self.generic(Role::Clk, "cycles", "generic event, so that it takes a fixed counter"),
            self.generic(Role::Inst, "instructions", "generic event, so that it takes a fixed counter"),
        ];
        if !counters.has_fixed {
            for candidate in candidates.iter_mut().flatten() {
                candidate.reason = "generic event".to_owned();
            }
        }
        candidates.extend(self.specific(chosen));
        let (mut general, mut fixed) = (0, 0);
        for candidate in candidates {
            let event = match candidate {
                Ok(event) => event,
                Err(note) => {
                    chosen.notes.push(format!("{}: {note}", self.pmu.name));
                    continue;
                }
            };
            let is_fixed = matches!(event.role, Role::Clk | Role::Inst);
            let with = (general + usize::from(!is_fixed), fixed + usize::from(is_fixed));
            if counters.fit(with.0, with.1) {
                (general, fixed) = with;
                chosen.events.push(event);
            } else {
                let watchdog = if counters.watchdog { ", one of which the NMI watchdog holds" } else { "" };
                chosen.notes.push(format!(
                    "{}: {} ({}) is left out: {} counters{watchdog} would have to be shared by turns",
                    self.pmu.name, event.spec.name, event.role, counters.general
                ));
            }
        }
        chosen.counters.push(counters);
    }

    fn counters(&self) -> Counters {
        let identity = CpuIdentity::read(self.roots);
        let is_x86 = super::topology::is_x86(self.machine);
        let name = self.microarchitecture();
        let is_amd = super::topology::is_amd(self.machine);
        let general = match name {
            _ if is_amd && !identity.has_flag("perfctr_core") => 4,
            name => model_table::general_counters(name, self.pmu.core_kind(), is_x86),
        };
        let watchdog =
            read_number::<u32>(&self.roots.procfs.join("sys/kernel/nmi_watchdog")).unwrap_or(0) != 0;
        // Arm has a counter of its own for cycles, none for instructions; AMD has none at all.
        Counters { pmu: self.pmu.name.clone(), general, has_fixed: is_x86 && !is_amd, watchdog }
    }

    /// The microarchitecture of this PMU's cores. Arrow Lake-H's slowest cores are the generation before.
    fn microarchitecture(&self) -> Option<&str> {
        if self.pmu.name == "cpu_lowpower" {
            Some("crestmont")
        } else {
            self.machine.microarchitecture.as_deref()
        }
    }

    fn generic(&self, role: Role, name: &str, reason: &str) -> Result<ModelEvent, String> {
        // One event per PMU, in the order of the PMUs.
        let specs = resolve_event(self.roots, name).map_err(|error| error.to_string())?;
        let spec =
            specs.into_iter().nth(self.index).ok_or_else(|| format!("{name} has no event on this PMU"))?;
        Ok(ModelEvent { role, spec, reason: reason.to_owned() })
    }

    fn resolved(&self, role: Role, event: &str, reason: &str) -> Result<ModelEvent, String> {
        let specs = resolve_event(self.roots, event).map_err(|error| error.to_string())?;
        let spec = specs.into_iter().next().ok_or_else(|| format!("{event} resolves to nothing"))?;
        Ok(ModelEvent { role, spec, reason: reason.to_owned() })
    }

    /// Stalls, L2 and memory by what is known of these cores.
    fn specific(&self, chosen: &mut ModelEvents) -> Vec<Result<ModelEvent, String>> {
        let is_arm = self.machine.arch.starts_with("aarch64") || self.machine.arch.starts_with("arm");
        let known =
            self.microarchitecture().and_then(|name| model_table::core_events(name, self.pmu.core_kind()));
        if let Some(events) = known {
            for encoding in [events.resource, events.l2].iter().filter(|encoding| !encoding.note.is_empty()) {
                chosen.notes.push(format!("{}: {}: {}", self.pmu.name, encoding.name, encoding.note));
            }
            let memory = match events.memory {
                Some(encoding) => self.encoded(Role::LlcMiss, encoding),
                None => {
                    self.generic(Role::LlcMiss, "cache-misses", "generic event: misses of the last cache")
                }
            };
            return vec![
                self.encoded(Role::Resource, events.resource),
                self.encoded(Role::L2, events.l2),
                memory,
            ];
        }
        if is_arm {
            let mut l2 = self.first_listed(Role::L2, &arm::L2);
            let memory = self.first_listed(Role::LlcMiss, &arm::MEMORY);
            if let (Ok(of_l2), Ok(of_memory)) = (&l2, &memory)
                && of_l2.spec.config == of_memory.spec.config
            {
                // One event tells nothing twice, and takes a counter each time.
                l2 = Err(format!("l2 is left out: {} stands for llc-miss already", of_l2.spec.name));
            }
            return vec![self.first_listed(Role::Resource, &arm::RESOURCE), l2, memory];
        }
        let name = self.microarchitecture().unwrap_or("this microarchitecture");
        chosen.notes.push(format!(
            "{}: no encodings are known for {name}, only generic events are used",
            self.pmu.name
        ));
        let l2 = self.generic(
            Role::L2,
            "cache-references",
            "references of the last cache, for want of an L2 event",
        );
        let misses = self.generic(Role::LlcMiss, "cache-misses", "generic event: misses of the last cache");
        let stalls = if self.pmu.event("stalled-cycles-backend").is_some() {
            self.generic(Role::Resource, "stalled-cycles-backend", "generic event, which this PMU lists")
        } else {
            Err("no event for stalls is known here; it is left out".to_owned())
        };
        vec![stalls, l2, misses]
    }

    /// An event of the table, put together by the PMU's own format.
    fn encoded(&self, role: Role, encoding: Encoding) -> Result<ModelEvent, String> {
        let Encoding { name, event, umask, cmask, note } = encoding;
        let cmask = if cmask == 0 { String::new() } else { format!(",cmask={cmask}") };
        let written = format!("{}/event={event:#x},umask={umask:#x}{cmask},name={name}/", self.pmu.name);
        let reason = if note.is_empty() { "the event of the published model" } else { note };
        self.resolved(role, &written, reason)
    }

    /// The first of these architectural events that the core has.
    fn first_listed(&self, role: Role, names: &[&str]) -> Result<ModelEvent, String> {
        let listed = self.pmu.event_names();
        let has = |name: &&&str| listed.iter().any(|have| have == **name);
        let Some(name) = names.iter().find(has) else {
            return Err(format!("{role} is left out: these cores have none of {}", names.join(", ")));
        };
        let reason = format!("architectural event {}", name.to_ascii_uppercase());
        // Cores of another kind have an event of the same name.
        let called = if self.is_hybrid { String::new() } else { format!(",name={name}") };
        self.resolved(role, &format!("{}/{name}{called}/", self.pmu.name), &reason)
    }
}

impl ModelEvent {
    /// The kind of core that it counts on: each kind has a model of its own.
    pub fn core_kind(&self) -> CoreKind {
        self.spec.core_kind
    }
}

#[cfg(test)]
mod tests;
