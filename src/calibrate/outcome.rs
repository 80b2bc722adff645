//! From watts and rates to a model: which events, what they cost, how good that is.

use std::collections::BTreeMap;

use super::error::CalibrateError;
use crate::hardware::DomainKind;
use crate::power_model::dataset::{Dataset, Observation};
use crate::power_model::error::ModelError;
use crate::power_model::fit::{Fit, FitOptions};
use crate::power_model::model::{DomainModel, FitQuality, ModelEvent, PowerModel, Scale};
use crate::power_model::select::best_events;
use crate::power_model::validate::{Protocol, Validation, validate};
use crate::units::Watts;

/// What one visit of a kernel showed of one domain.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The kernel's name.
    pub workload: &'static str,
    /// Kind of domain.
    pub domain: DomainKind,
    /// Rate of each event on the CPUs that the domain feeds, per second.
    pub rates: Vec<f64>,
    /// Mean power of the domain in watts.
    pub watts: f64,
}

/// A model of this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The model.
    pub model: PowerModel,
    /// Events that were counted and add nothing to those of the model.
    pub left_out: Vec<ModelEvent>,
}

/// Fits a model to all that was observed, with at most `most` of the events.
///
/// Each kind of domain chooses its best events by leaving workloads out; the model has the events of all
/// of them, or those of the first kind alone if together they are too many.
///
/// # Errors
/// [`CalibrateError::Model`] if the observations of a domain do not determine its coefficients,
/// [`CalibrateError::LearnedNothing`] if they do not tell programs' power apart.
pub fn fit(events: &[ModelEvent], most: usize, observed: &[Observed]) -> Result<Calibration, CalibrateError> {
    let options = FitOptions::default();
    let data = by_domain(events, observed);
    let model_error = |domain: DomainKind| move |source| CalibrateError::Model { domain, source };
    let mut chosen: Vec<usize> = Vec::new();
    for (at, (domain, data)) in data.iter().enumerate() {
        let best = best_events(data, most, &options).map_err(model_error(*domain))?;
        let mut all = [&chosen[..], &best].concat();
        all.sort_unstable();
        all.dedup();
        if at == 0 || all.len() <= most {
            chosen = all;
        }
    }
    let mut domains = BTreeMap::new();
    for (at, (domain, data)) in data.iter().enumerate() {
        let left_out = leave_kernels_out(data, most, &options);
        let fit = Fit::new(&data.select(&chosen), &options).map_err(model_error(*domain))?;
        // The first is the whole. Parts of it may well be such that nothing moves them.
        if let (0, Some(why)) = (at, learned_nothing(&fit)) {
            return Err(CalibrateError::LearnedNothing { domain: *domain, why });
        }
        domains.insert(*domain, domain_model(&fit, left_out.as_ref()));
    }
    let is_chosen = |index: &usize| chosen.contains(index);
    let pick = |wanted: bool| {
        (0..events.len())
            .filter(|index| is_chosen(index) == wanted)
            .map(|index| events[index].clone())
            .collect()
    };
    let rows = data.first().map_or(0, |(_, data)| data.len());
    let model = PowerModel {
        name: "calibrated".to_owned(),
        source: format!("eprof calibrate, {rows} visits of {} kernels", kernels(observed)),
        scale: Scale::Joules,
        events: pick(true),
        domains,
    };
    Ok(Calibration { model, left_out: pick(false) })
}

/// Why a fit is worth nothing, if it is not.
fn learned_nothing(fit: &Fit) -> Option<String> {
    /// Share of the variance of power.
    const LEAST_EXPLAINED: f64 = 0.5;
    /// Standard errors.
    const SIGNIFICANT: f64 = 3.0;
    if fit.r_squared < LEAST_EXPLAINED {
        return Some(format!(
            "its events explain {:.0} % of what power differed by between the kernels",
            fit.r_squared.max(0.0) * 100.0
        ));
    }
    let is_significant = |value: f64, error: Option<f64>| value > SIGNIFICANT * error.unwrap_or(0.0);
    let any = fit.coefficients.iter().any(|of_event| is_significant(of_event.value, of_event.std_error));
    (!any).then(|| "what each event costs is uncertain by more than a third of it, for all events".to_owned())
}

/// One data set per kind of domain, packages first.
fn by_domain(events: &[ModelEvent], observed: &[Observed]) -> Vec<(DomainKind, Dataset)> {
    let columns: Vec<String> = events.iter().map(|event| event.name.clone()).collect();
    let mut domains: Vec<DomainKind> = observed.iter().map(|row| row.domain).collect();
    domains.sort_by_key(|domain| (*domain != DomainKind::Package, *domain));
    domains.dedup();
    let of = |domain: DomainKind| {
        let mut data = Dataset::new(columns.clone());
        for row in observed.iter().filter(|row| row.domain == domain) {
            data.push(Observation {
                rates: &row.rates,
                watts: row.watts,
                workload: row.workload,
                frequency: None,
            });
        }
        (domain, data)
    };
    domains.into_iter().map(of).collect()
}

fn kernels(observed: &[Observed]) -> usize {
    let mut names: Vec<&str> = observed.iter().map(|row| row.workload).collect();
    names.sort_unstable();
    names.dedup();
    names.len()
}

fn domain_model(fit: &Fit, left_out: Option<&Validation>) -> DomainModel {
    DomainModel {
        static_power: Watts::from_watts(fit.constant.value),
        static_std_error: fit.constant.std_error.map(Watts::from_watts),
        sampled_by: Vec::new(),
        joules_per_event: fit.coefficients.iter().map(|coefficient| coefficient.value).collect(),
        std_errors: fit.coefficients.iter().map(|coefficient| coefficient.std_error.unwrap_or(0.0)).collect(),
        quality: Some(FitQuality {
            r_squared: fit.r_squared,
            left_out_error: left_out.map(Validation::median_over_folds),
            left_out_worst: left_out.map(|of| of.worst_fold().mean),
            workloads: fit.workloads,
            condition: fit.condition,
            rows: fit.rows,
        }),
    }
}

/// How far off kernels are that were left out, their events chosen without them; `None` if some kernel is the only one
/// that tells an event's cost.
fn leave_kernels_out(data: &Dataset, most: usize, options: &FitOptions) -> Option<Validation> {
    let train = |data: &Dataset| -> Result<(Fit, Vec<usize>), ModelError> {
        let columns = best_events(data, most, options)?;
        Ok((Fit::new(&data.select(&columns), options)?, columns))
    };
    let watts = |(fit, columns): &(Fit, Vec<usize>), rates: &[f64]| {
        fit.watts(&columns.iter().map(|&column| rates[column]).collect::<Vec<_>>())
    };
    validate(data, Protocol::LeaveOneWorkloadOut, train, watts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::{CoreKind, Role};

    fn event(role: Role) -> ModelEvent {
        ModelEvent {
            role: Some(role),
            name: role.to_string(),
            encoding: format!("cpu/{role}/"),
            core_kind: CoreKind::Performance,
        }
    }

    /// Power that follows no event is none of theirs, and power that is the same for all kernels tells nothing.
    #[test]
    fn what_tells_no_program_from_another_is_no_model() {
        let events = [event(Role::Clk), event(Role::Inst)];
        let observed = |watts: fn(usize) -> f64| -> Vec<Observed> {
            let visit = |index: usize| {
                let (workload, rates) = RATES[index % RATES.len()];
                let rates = rates[..2].to_vec();
                Observed { workload, domain: DomainKind::Package, rates, watts: watts(index) }
            };
            (0..3 * RATES.len()).map(visit).collect()
        };
        let unrelated = observed(|index| [15.0, 22.0, 16.0, 25.0, 15.5, 24.0, 17.0][index % 7]);
        let error = fit(&events, 4, &unrelated).expect_err("nothing follows from these");
        assert!(error.to_string().contains("learned nothing of the package domain"), "{error}");
        let constant = observed(|index| 15.0 + 0.01 * f64::from(index as u32 * 7 % 5));
        let error = fit(&events, 4, &constant).expect_err("all the same");
        assert!(error.to_string().contains("learned nothing"), "{error}");
    }

    /// Joules per event of a core, as Sandy Bridge has them.
    const COSTS: [f64; 5] = [2.71e-10, 2.06e-10, 3.161e-9, 6.058e-9, 0.0];
    const MISS: f64 = 2e-8;

    /// The kernels' rates in the published tables.
    const RATES: [(&str, [f64; 5]); 7] = [
        ("idle", [0.0; 5]),
        ("stress", [3.0191e9, 5.4608e9, 1.6878e6, 0.0, 1e4]),
        ("asm", [3.0388e9, 5.6630e9, 1.4747e9, 1.1907e7, 1e4]),
        ("l1", [3.0191e9, 9.1013e8, 2.0314e8, 2.2846e7, 2e4]),
        ("l2", [3.0191e9, 2.2993e9, 2.1877e8, 2.3571e7, 1e5]),
        ("l3", [2.9981e9, 5.2585e9, 5.8686e8, 3.5750e8, 2e6]),
        ("mem", [2.8385e9, 8.8255e8, 5.2667e8, 6.1111e7, 6e7]),
    ];

    /// Visits of all kernels on one and two cores, three rounds, with a ripple of this share of the power.
    fn visits(ripple: f64) -> Vec<Observed> {
        let mut observed = Vec::new();
        let mut number = 0u32;
        for round in 0..3 {
            for cores in [1.0, 2.0] {
                for (workload, rates) in RATES {
                    number += 1;
                    let wave = 1.0 + ripple * f64::from((number * 7 + round * 3) % 11).mul_add(0.2, -1.0);
                    let rates: Vec<f64> = rates.iter().map(|rate| rate * cores).collect();
                    let sum: f64 = rates.iter().zip(COSTS).map(|(rate, cost)| rate * cost).sum();
                    let package = (15.41 + sum) * wave;
                    let dram = (1.5 + MISS * rates[4]) * wave;
                    for (domain, watts) in [(DomainKind::Package, package), (DomainKind::Dram, dram)] {
                        observed.push(Observed { workload, domain, rates: rates.clone(), watts });
                    }
                }
            }
        }
        observed
    }

    #[test]
    fn a_known_machine_is_found() {
        let events = Role::ALL.map(event);
        let calibration = fit(&events, 5, &visits(0.0005)).expect("enough visits");
        let model = &calibration.model;
        assert!(model.is_sound());
        let package = &model.domains[&DomainKind::Package];
        assert!((package.static_power.as_watts() / 15.41 - 1.0).abs() < 0.01);
        for (index, role) in Role::ALL.iter().enumerate().take(4) {
            let at = model.event(*role, CoreKind::Performance).expect("chosen");
            let error = package.joules_per_event[at] / COSTS[index] - 1.0;
            assert!(error.abs() < 0.03, "{role}: {:+.2} %", error * 100.0);
        }
        let miss = model.event(Role::LlcMiss, CoreKind::Performance).expect("memory needs it");
        assert!((model.domains[&DomainKind::Dram].joules_per_event[miss] / MISS - 1.0).abs() < 0.03);
        let quality = package.quality.expect("fitted");
        assert!(quality.r_squared > 0.999 && quality.rows == 42);
        assert!(quality.left_out_error.is_some_and(|error| error < 0.05), "{quality:?}");
    }

    #[test]
    fn fewer_counters_take_the_events_that_matter_most() {
        let events = Role::ALL.map(event);
        let calibration = fit(&events, 2, &visits(0.0005)).expect("enough visits");
        assert_eq!(calibration.model.events.len(), 2);
        assert_eq!(calibration.left_out.len(), 3);
        assert!(calibration.model.domains[&DomainKind::Package].quality.expect("fitted").r_squared > 0.8);
    }

    #[test]
    fn events_that_never_happen_are_no_model() {
        let events = Role::ALL.map(event);
        let mut observed = visits(0.0);
        observed.iter_mut().for_each(|row| row.rates.fill(0.0));
        let error = fit(&events, 5, &observed).expect_err("nothing to learn from").to_string();
        assert!(error.contains("no model of the package domain"), "{error}");
    }
}
