//! How often each event of the power model is sampled: every `R = P / C` events, where C is what one of
//! them costs by the model and P the joules that every sample stands for, whatever its event.
//!
//! Fixed periods and no frequencies: the kernel keeps to a frequency by adapting the period to the events of
//! the last milliseconds, and a period that was right for one function then counts for the next one.

use crate::hardware::{CoreKind, DomainKind, Role};
use crate::power_model::model::PowerModel;
use crate::power_model::presets::Preset;
use crate::units::Joules;

/// Samples a second of all events together on a core that happens to be as busy as [`usual_rate`] says.
/// A core that takes more power is sampled more often, since a sample stands for joules and not for time.
const SAMPLES_PER_SECOND: f64 = 1500.0;
/// However dear or cheap an event is, it is sampled at most so many times as often as if all events cost
/// the same, or so many times as rarely: the kernel throttles more, and less tells nothing of short functions.
const MOST_CHANGE: u64 = 10;

/// Events a second of a busy core: on Sandy Bridge at 2.9 GHz the means over the six programs of Ono et
/// al. (`power_model::paper`), and as many misses of the last cache as a program that now and then
/// reads memory at 4 GB/s. They set the scale only; how often one event is sampled beside another is the
/// model's word.
fn usual_rate(role: Role) -> f64 {
    match role {
        Role::Clk => 3.0e9,
        Role::Inst => 3.4e9,
        Role::Resource => 5.0e8,
        Role::L2 => 8.0e7,
        Role::LlcMiss => 1.0e7,
    }
}

/// Events between two samples if all roles had an equal part in the samples.
fn usual_period(role: Role) -> u64 {
    (usual_rate(role) * Role::ALL.len() as f64 / SAMPLES_PER_SECOND) as u64
}

/// Joules of a sample: what a core as busy as usual spends between two of them.
fn joules_per_sample(costs: &[(Role, f64)]) -> Joules {
    let watts: f64 = costs.iter().map(|&(role, cost)| usual_rate(role) * cost).sum();
    Joules::from_joules(watts / SAMPLES_PER_SECOND)
}

/// The period of an event that costs so many joules; one that costs nothing is sampled as usual.
fn period(role: Role, cost: f64, sample: Joules) -> u64 {
    let usual = usual_period(role);
    let period = if cost > 0.0 { (sample.as_joules() / cost) as u64 } else { usual };
    // Odd, so that sampling does not fall into step with loops of even length.
    period.clamp(usual / MOST_CHANGE, usual * MOST_CHANGE) | 1
}

/// Joules of an event in all domains that do not overlap: the package, or else its cores, and memory.
pub fn cost(model: &PowerModel, role: Role, kind: CoreKind) -> Option<f64> {
    let event = model.event(role, kind)?;
    let of = |domain| model.domain(domain)?.joules_per_event.get(event).copied();
    Some(of(DomainKind::Package).unwrap_or(0.0) + of(DomainKind::Dram).unwrap_or(0.0))
}

/// The periods of events, given by role and kind of core, by the costs that `cost` tells of them. Samples
/// of all kinds of core stand for the same joules: as many as the dearest kind needs.
fn periods(events: &[(Role, CoreKind)], cost: impl Fn(Role, CoreKind) -> f64) -> Vec<u64> {
    let of_kind = |kind: CoreKind| -> Vec<(Role, f64)> {
        let of_kind = events.iter().filter(|event| event.1 == kind);
        of_kind.map(|&(role, kind)| (role, cost(role, kind))).collect()
    };
    let kinds = [CoreKind::Performance, CoreKind::Efficiency];
    let sample = kinds.map(|kind| joules_per_sample(&of_kind(kind)));
    let sample = if sample[0] < sample[1] { sample[1] } else { sample[0] };
    events.iter().map(|&(role, kind)| period(role, cost(role, kind), sample)).collect()
}

/// The periods of events by a model of this machine.
pub fn by_model(model: &PowerModel, events: &[(Role, CoreKind)]) -> Vec<u64> {
    periods(events, |role, kind| cost(model, role, kind).unwrap_or(0.0))
}

/// The periods of events where only the microarchitecture is known: by its preset, and of what that does
/// not tell by the generic proportions.
pub fn by_preset(microarchitecture: Option<&str>, events: &[(Role, CoreKind)]) -> Vec<u64> {
    let preset = Preset::for_microarchitecture(microarchitecture).model();
    let generic = Preset::Generic.model();
    // Presets tell of one kind of core.
    let known = |model: &PowerModel, role| cost(model, role, CoreKind::Performance);
    periods(events, |role, _| known(&preset, role).or_else(|| known(&generic, role)).unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power_model::paper;

    fn on_large_cores(roles: &[Role]) -> Vec<(Role, CoreKind)> {
        roles.iter().map(|&role| (role, CoreKind::Performance)).collect()
    }

    #[test]
    fn the_usual_rates_are_the_papers_means() {
        let mut means = [0.0; 4];
        for program in &paper::PROGRAMS {
            let rates = program.rates_per_core();
            means.iter_mut().zip(rates).for_each(|(mean, rate)| *mean += rate / 6.0);
        }
        for (role, mean) in Role::ALL.into_iter().zip(means) {
            let ratio = usual_rate(role) / mean;
            assert!((0.95..1.05).contains(&ratio), "{role}: {mean:e}");
        }
    }

    #[test]
    fn samples_of_all_events_stand_for_the_same_joules() {
        let model = Preset::SandyBridge.model();
        let roles = &Role::ALL[..4];
        let periods = by_preset(Some("sandybridge"), &on_large_cores(roles));
        let joules: Vec<f64> = roles
            .iter()
            .zip(&periods)
            .map(|(&role, &period)| cost(&model, role, CoreKind::Performance).expect("known") * period as f64)
            .collect();
        // 9.27 W by hand: 6.50 + 0.70 + 1.58 + 0.48.
        for joules in joules {
            assert!((joules * SAMPLES_PER_SECOND / 9.27 - 1.0).abs() < 0.01, "{joules} J");
        }
    }

    #[test]
    fn the_papers_programs_are_sampled_by_what_they_spend() {
        let periods = by_preset(Some("sandybridge-ep"), &on_large_cores(&Role::ALL[..4]));
        let samples = |program: &paper::Program| -> f64 {
            program.rates_per_core().iter().zip(&periods).map(|(rate, &period)| rate / period as f64).sum()
        };
        // cpu-stress, 7.68 W a core beside the static part, and cpu-own, 12.49 W.
        let [stress, own] = [0, 1].map(|index| samples(&paper::PROGRAMS[index]));
        assert!((own / stress - 12.49 / 7.68).abs() < 0.005, "{own} and {stress} samples a second");
        assert!((500.0..3000.0).contains(&stress) && (500.0..3000.0).contains(&own));
    }

    #[test]
    fn an_unknown_machine_has_periods_of_about_the_same_rate() {
        let periods = by_preset(None, &on_large_cores(&Role::ALL));
        let samples: f64 =
            Role::ALL.iter().zip(&periods).map(|(&role, &period)| usual_rate(role) / period as f64).sum();
        assert!((samples / SAMPLES_PER_SECOND - 1.0).abs() < 0.01, "{samples}");
        assert!(periods.iter().all(|period| period % 2 == 1));
    }

    #[test]
    fn small_cores_are_sampled_by_the_joules_of_large_ones() {
        let mut model = Preset::Generic.model();
        let large = model.events.len();
        for event in 0..large {
            let mut small = model.events[event].clone();
            small.core_kind = CoreKind::Efficiency;
            model.events.push(small);
            for domain in model.domains.values_mut() {
                domain.joules_per_event.push(domain.joules_per_event[event] / 3.0);
            }
        }
        let events: Vec<(Role, CoreKind)> = [CoreKind::Performance, CoreKind::Efficiency]
            .into_iter()
            .flat_map(|kind| Role::ALL.map(|role| (role, kind)))
            .collect();
        let periods = by_model(&model, &events);
        for ((large, small), role) in periods[..5].iter().zip(&periods[5..]).zip(Role::ALL) {
            // Beside their cycles, the other events of small cores are so cheap that some are sampled as rarely as may be.
            let rarest = (usual_period(role) * MOST_CHANGE) as f64;
            let expected = (*large as f64 * 3.0).min(rarest);
            assert!((*small as f64 / expected - 1.0).abs() < 1e-3, "{periods:?}");
        }
        assert!(periods[5] < usual_period(Role::Clk) * MOST_CHANGE, "cycles are three times as rare");
    }

    #[test]
    fn a_dear_event_is_not_sampled_beyond_measure() {
        let sample = Joules::from_joules(0.01);
        assert_eq!(period(Role::L2, 1.0, sample), (usual_period(Role::L2) / 10) | 1);
        assert_eq!(period(Role::L2, 1e-20, sample), (usual_period(Role::L2) * 10) | 1);
        assert_eq!(period(Role::L2, 0.0, sample), usual_period(Role::L2) | 1);
        assert_eq!(period(Role::L2, 0.0, Joules::from_joules(0.0)), usual_period(Role::L2) | 1);
    }
}
