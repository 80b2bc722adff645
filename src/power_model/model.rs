//! The power model itself: `watts = static + sum of C_e * rate_e`, domain by domain, and the sampling
//! periods that follow from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::hardware::{CoreKind, DomainKind, Role};
use crate::units::{Joules, Watts};

/// Watts from event rates, for one kind of CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PowerModel {
    /// Name: a preset's, or what calibration called it.
    pub name: String,
    /// Where the numbers come from, for people.
    pub source: String,
    /// How much is claimed for the coefficients.
    pub scale: Scale,
    /// The events, by role; a role appears once per kind of core.
    pub events: Vec<ModelEvent>,
    /// The domains by kind.
    pub domains: BTreeMap<DomainKind, DomainModel>,
}

/// What a model's numbers are worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Joules, as measured on this kind of CPU.
    Joules,
    /// Proportions only: what an event costs beside the others. Measured energy gives the scale.
    Relative,
}

/// An event of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredEvent", into = "StoredEvent")]
pub struct ModelEvent {
    /// What it stands for; `None` if it is none of the events that recordings sample.
    pub role: Option<Role>,
    /// The vendor's name.
    pub name: String,
    /// Encoding as sysfs or perf would write it: the coefficient is of this event, not of its role.
    pub encoding: String,
    /// Kind of core that counts it.
    pub core_kind: CoreKind,
}

impl ModelEvent {
    /// The name of its role, or its own where it has none.
    pub fn role_name(&self) -> &str {
        match self.role {
            Some(role) => role.name(),
            None => &self.name,
        }
    }
}

/// An event as model files have it: one without a role is named in its place.
#[derive(Serialize, Deserialize)]
struct StoredEvent {
    role: String,
    name: String,
    encoding: String,
    #[serde(default)]
    core_kind: CoreKind,
}

impl From<StoredEvent> for ModelEvent {
    fn from(StoredEvent { role, name, encoding, core_kind }: StoredEvent) -> Self {
        Self { role: Role::named(&role), name, encoding, core_kind }
    }
}

impl From<ModelEvent> for StoredEvent {
    fn from(event: ModelEvent) -> Self {
        let role = event.role_name().to_owned();
        let ModelEvent { name, encoding, core_kind, .. } = event;
        Self { role, name, encoding, core_kind }
    }
}

/// The model of one domain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DomainModel {
    /// Power of one package with no event at all.
    pub static_power: Watts,
    /// Its standard error, where fitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub static_std_error: Option<Watts>,
    /// Joules per event, in the order of [`PowerModel::events`].
    pub joules_per_event: Vec<f64>,
    /// What periods are made of, where the source samples by other numbers than what events cost; empty: by
    /// [`DomainModel::joules_per_event`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sampled_by: Vec<f64>,
    /// Their standard errors, where fitted; 0 for a coefficient held at zero.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub std_errors: Vec<f64>,
    /// How well it fits, where fitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<FitQuality>,
}

/// How well a model describes what it was fitted to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FitQuality {
    /// Share of the variance of watts explained.
    pub r_squared: f64,
    /// Relative error of workloads that the fit does not know, each left out in turn: the middle one's by a calibration,
    /// since a kernel that alone tells what an event costs is far off and says little of the others. `None` with fewer
    /// than two workloads.
    pub left_out_error: Option<f64>,
    /// That of the workload that is furthest off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out_worst: Option<f64>,
    /// Condition number of the column-scaled design.
    pub condition: f64,
    /// Observations fitted.
    pub rows: usize,
}

impl PowerModel {
    /// Index of an event by role and kind of core.
    pub fn event(&self, role: Role, core_kind: CoreKind) -> Option<usize> {
        self.events.iter().position(|event| event.role == Some(role) && event.core_kind == core_kind)
    }

    /// The model of a kind of domain, by [`DomainKind::modelled_by`].
    pub fn domain(&self, kind: DomainKind) -> Option<&DomainModel> {
        kind.modelled_by().iter().find_map(|kind| self.domains.get(kind))
    }

    /// Joules per event by domain kind, as a recording's metadata carries them.
    pub fn joules_per_event(&self, event: usize) -> BTreeMap<DomainKind, f64> {
        let of = |domain: &DomainModel| domain.joules_per_event.get(event).copied();
        self.domains.iter().filter_map(|(kind, domain)| Some((*kind, of(domain)?))).collect()
    }

    /// The sampling period `R = P / C`: so many events stand for `energy` in a domain, by what the model samples
    /// by. `None` if the event costs nothing there.
    pub fn period(&self, domain: DomainKind, event: usize, energy: Joules) -> Option<u64> {
        let domain = self.domain(domain)?;
        let costs = if domain.sampled_by.is_empty() { &domain.joules_per_event } else { &domain.sampled_by };
        let cost = *costs.get(event)?;
        let period = energy.as_joules() / cost;
        // The largest period the kernel takes is a signed number.
        (cost > 0.0 && period >= 1.0 && period < i64::MAX as f64).then(|| period.round() as u64)
    }

    /// The power of a domain of one package while events happen at these rates per second, summed over
    /// its cores.
    pub fn watts(&self, domain: DomainKind, rates: &[f64]) -> Option<Watts> {
        let domain = self.domain(domain)?;
        let dynamic: f64 = domain.joules_per_event.iter().zip(rates).map(|(cost, rate)| cost * rate).sum();
        Some(domain.static_power + Watts::from_watts(dynamic))
    }

    /// Whether the numbers make sense: as many as events, none negative, none infinite.
    pub fn is_sound(&self) -> bool {
        let sound = |value: f64| value.is_finite() && value >= 0.0;
        self.domains.values().all(|domain| {
            domain.joules_per_event.len() == self.events.len()
                && domain.joules_per_event.iter().all(|value| sound(*value))
                && (domain.std_errors.is_empty() || domain.std_errors.len() == self.events.len())
                && domain.std_errors.iter().all(|value| sound(*value))
                && sound(domain.static_power.as_watts())
                && (domain.sampled_by.is_empty() || domain.sampled_by.len() == self.events.len())
                && domain.sampled_by.iter().all(|value| sound(*value))
        })
    }
}
