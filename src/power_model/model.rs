//! The power model itself: `watts = static + sum of C_e * rate_e`, domain by domain, and the sampling
//! periods that follow from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::hardware::{CoreKind, DomainKind, Role};
use crate::numerics::student::t_quantile;
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

/// Watts that a model says, and how far they may be off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// The power.
    pub watts: f64,
    /// Lowest and highest power of an interval; `None` where nothing tells.
    pub interval: Option<(f64, f64)>,
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
    /// Workloads that were left out in turn; `None` in files of earlier versions, or with too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workloads: Option<usize>,
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

    /// The power as by [`PowerModel::watts`] with static power of so many packages, and between which watts a measurement
    /// of a program that the model does not know lies with probability `level` (0..1).
    ///
    /// Two things are uncertain: how far off the model is for what was left out when it was made, a share of the power;
    /// and what each event costs, so that rates far beyond those of the calibration are less certain. The interval is
    /// `None` where the model has no such errors: of presets, and of too few workloads.
    pub fn predict(&self, kind: DomainKind, rates: &[f64], packages: u32, level: f64) -> Option<Prediction> {
        /// A median of absolute errors is this share of their standard deviation, where they are normal.
        const MEDIAN_OF_NORMAL: f64 = 0.6745;
        /// As many degrees of freedom as make Student's distribution normal.
        const MANY: usize = 1000;
        let packages = f64::from(packages);
        let domain = self.domain(kind)?;
        let extra = domain.static_power.as_watts() * (packages - 1.0);
        let watts = self.watts(kind, rates)?.as_watts() + extra;
        let interval = || {
            let quality = domain.quality?;
            let misfit = quality.left_out_error? / MEDIAN_OF_NORMAL;
            let of_static = domain.static_std_error.map_or(0.0, |error| error.as_watts() * packages);
            let of_events: f64 =
                domain.std_errors.iter().zip(rates).map(|(error, rate)| (error * rate).powi(2)).sum();
            let share = (misfit.powi(2) + (of_static.powi(2) + of_events) / watts.powi(2)).sqrt();
            let freedom = quality.workloads.map_or(MANY, |workloads| workloads.saturating_sub(1).max(1));
            let distance = t_quantile(level, freedom)? * share;
            (watts > 0.0).then(|| (watts * (-distance).exp(), watts * distance.exp()))
        };
        Some(Prediction { watts, interval: interval() })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::random::Random;
    use crate::power_model::dataset::{Dataset, Observation};
    use crate::power_model::error::ModelError;
    use crate::power_model::fit::{Fit, FitOptions};
    use crate::power_model::validate::{Protocol, validate};

    fn model(domain: DomainModel) -> PowerModel {
        let event = |role: Role| ModelEvent {
            role: Some(role),
            name: role.to_string(),
            encoding: role.to_string(),
            core_kind: CoreKind::Performance,
        };
        PowerModel {
            name: "test".into(),
            source: "test".into(),
            scale: Scale::Joules,
            events: vec![event(Role::Clk), event(Role::Inst)],
            domains: BTreeMap::from([(DomainKind::Package, domain)]),
        }
    }

    fn domain(quality: Option<FitQuality>) -> DomainModel {
        DomainModel {
            static_power: Watts::from_watts(10.0),
            static_std_error: Some(Watts::from_watts(3.0)),
            joules_per_event: vec![1e-9, 2e-9],
            sampled_by: Vec::new(),
            std_errors: vec![0.2e-9, 0.0],
            quality,
        }
    }

    /// Two packages: 20 W static with 6 W of error, 20 W of cycles with 4 W, 10 W of instructions; 5 W of misfit.
    #[test]
    fn an_interval_by_hand() {
        let quality = FitQuality {
            r_squared: 1.0,
            left_out_error: Some(0.06745),
            left_out_worst: None,
            workloads: Some(2),
            condition: 1.0,
            rows: 10,
        };
        let of = |quality| model(domain(quality)).predict(DomainKind::Package, &[20e9, 5e9], 2, 0.5);
        let found = of(Some(quality)).expect("a domain");
        assert!((found.watts - 50.0).abs() < 1e-9);
        // Student's t of one degree at 50 % is 1.
        let share = (0.1f64.powi(2) + (36.0 + 16.0) / 2500.0).sqrt();
        let (low, high) = found.interval.expect("errors are known");
        assert!((high / 50.0 - share.exp()).abs() < 1e-6 && (low / 50.0 - (-share).exp()).abs() < 1e-6);
        assert_eq!(of(None).expect("a domain").interval, None);
        assert_eq!(
            of(Some(FitQuality { left_out_error: None, ..quality })).expect("a domain").interval,
            None
        );
        assert_eq!(model(domain(None)).predict(DomainKind::Dram, &[0.0; 2], 1, 0.95), None);
    }

    /// Kernels that are each off by a share of their own, 5 %; a program of its own kind is off as well.
    #[test]
    fn intervals_of_what_was_stored_hold_what_they_say() {
        let mut random = Random::seeded(12);
        let mut normal = move || (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0;
        let mut other = Random::seeded(13);
        let watts = |rates: &[f64; 2]| 10.0 + 1e-9 * rates[0] + 2e-9 * rates[1];
        let (mut held, mut width, trials) = (0, 0.0, 400);
        for _ in 0..trials {
            let mut data = Dataset::new(vec!["clk".into(), "inst".into()]);
            for kernel in 0..9 {
                let (off, level) = (0.05 * normal(), [other.uniform(), other.uniform()]);
                for core in 1..=4 {
                    let rates = level.map(|level| 1e9 * level * f64::from(core));
                    let watts = watts(&rates) * (off + 0.002 * normal()).exp();
                    let workload = format!("k{kernel}");
                    data.push(Observation { rates: &rates, watts, workload: &workload, frequency: None });
                }
            }
            let options = FitOptions::default();
            let fit = Fit::new(&data, &options).expect("determined");
            let train = |data: &Dataset| -> Result<Fit, ModelError> { Fit::new(data, &options) };
            let left_out =
                validate(&data, Protocol::LeaveOneWorkloadOut, train, Fit::watts).expect("nine kernels");
            let stored = model(DomainModel {
                static_power: Watts::from_watts(fit.constant.value),
                static_std_error: fit.constant.std_error.map(Watts::from_watts),
                joules_per_event: fit.coefficients.iter().map(|of_event| of_event.value).collect(),
                sampled_by: Vec::new(),
                std_errors: fit
                    .coefficients
                    .iter()
                    .map(|of_event| of_event.std_error.unwrap_or(0.0))
                    .collect(),
                quality: Some(FitQuality {
                    r_squared: fit.r_squared,
                    left_out_error: Some(left_out.median_over_folds()),
                    left_out_worst: None,
                    workloads: fit.workloads,
                    condition: fit.condition,
                    rows: fit.rows,
                }),
            });
            let rates = [0, 1].map(|_| 4e9 * other.uniform());
            let found = stored.predict(DomainKind::Package, &rates, 1, 0.95).expect("a domain");
            let (low, high) = found.interval.expect("errors are known");
            held += u32::from((low..=high).contains(&(watts(&rates) * (0.05 * normal()).exp())));
            width += (high / low).ln() / 2.0 / f64::from(trials);
        }
        let share = f64::from(held) / f64::from(trials);
        println!("{share:.3} held, +-{:.1} %", 100.0 * width);
        assert!((0.92..=0.995).contains(&share), "{share}");
        assert!(width < 0.3, "{width}");
    }

    #[test]
    fn periods_by_hand() {
        let period = |cost: f64, joules: f64| {
            let domain = DomainModel { joules_per_event: vec![0.0, cost], ..domain(None) };
            model(domain).period(DomainKind::Package, 1, Joules::from_joules(joules))
        };
        assert_eq!(period(2e-9, 0.01), Some(5_000_000));
        assert_eq!((period(1.0, 1.0), period(1.001, 1.0), period(1.0, 1.4)), (Some(1), None, Some(1)));
        assert_eq!((period(0.0, 1.0), period(0.0, 0.0), period(-1e-9, 1.0)), (None, None, None));
        // More than a signed number of 64 bits is no period.
        assert_eq!(period(1.0, 9.3e18), None);
        assert_eq!(period(1.0, 9.2e18), Some(9_200_000_000_000_000_000));
        // What is sampled by is not what is charged.
        let by_others = DomainModel { sampled_by: vec![0.0, 4e-9], ..domain(None) };
        let by_others = model(by_others);
        assert_eq!(by_others.period(DomainKind::Package, 1, Joules::from_joules(0.01)), Some(2_500_000));
        assert_eq!(by_others.period(DomainKind::Package, 2, Joules::from_joules(0.01)), None);
        assert_eq!(by_others.period(DomainKind::Dram, 1, Joules::from_joules(0.01)), None);
    }

    #[test]
    fn numbers_that_make_no_sense_are_found_one_by_one() {
        let sound = |change: &dyn Fn(&mut DomainModel)| {
            let mut domain = domain(None);
            change(&mut domain);
            model(domain).is_sound()
        };
        assert!(sound(&|_| {}));
        assert!(
            sound(&|domain| domain.std_errors.clear()) && sound(&|domain| domain.sampled_by = vec![0.0, 1.0])
        );
        assert!(!sound(&|domain| domain.joules_per_event.truncate(1)));
        assert!(!sound(&|domain| domain.joules_per_event.push(0.0)));
        assert!(
            !sound(&|domain| domain.std_errors.truncate(1))
                && !sound(&|domain| domain.sampled_by = vec![1.0])
        );
        for wrong in [-1e-12, f64::NAN, f64::INFINITY] {
            assert!(!sound(&|domain| domain.joules_per_event[0] = wrong), "{wrong}");
            assert!(!sound(&|domain| domain.std_errors[1] = wrong), "{wrong}");
            assert!(!sound(&|domain| domain.sampled_by = vec![0.0, wrong]), "{wrong}");
            assert!(!sound(&|domain| domain.static_power = Watts::from_watts(wrong)), "{wrong}");
        }
    }
}
