//! A part takes no more than its whole.
//!
//! Each kind of domain has a fit of its own: that of the cores and that of the package around them know the power at rest to some
//! tenths of a per cent, and not to the same ones. Where the joules that fits leave for samples come out larger in the parts
//! than in the whole, both are moved until they agree, each by as much as it is unsure: the mean of the normal distribution of
//! both under the condition that they agree.

use super::domain_set::DomainSet;
use crate::analyze::intervals::survey::Survey;
use crate::hardware::DomainInfo;

/// A domain in a domain in a domain: more than meters have of them.
const DEEPEST: usize = 4;

/// Moves fits so that in no domain the parts leave more joules for samples than the whole.
pub(super) fn reconcile(sets: &mut [Option<DomainSet>], domains: &[DomainInfo], survey: &Survey) {
    // What is moved in a part may be a whole itself.
    for _ in 0..DEEPEST {
        for whole in 0..domains.len() {
            let is_part = |&part: &usize| domains[part].parent.as_ref() == Some(&domains[whole].name);
            let parts: Vec<usize> = (0..domains.len()).filter(is_part).collect();
            agree(sets, whole, &parts, survey);
        }
    }
}

/// `None` where nothing is to be moved, or nothing can be.
fn agree(sets: &mut [Option<DomainSet>], whole: usize, parts: &[usize], survey: &Survey) -> Option<()> {
    let fitted = |domain: &usize| sets[*domain].is_some();
    let parts: Vec<usize> = parts.iter().copied().filter(fitted).collect();
    let left = |domain: usize| Some(survey.mean_watts(domain)? - sets[domain].as_ref()?.mean_static_watts()?);
    let of_parts: f64 = parts.iter().map(|&part| left(part)).sum::<Option<f64>>()?;
    let too_much = of_parts - left(whole)?;
    let variance = |domain: usize| sets[domain].as_ref().map_or(0.0, DomainSet::static_variance);
    let all = variance(whole) + parts.iter().map(|&part| variance(part)).sum::<f64>();
    if parts.is_empty() || too_much <= 0.0 || all <= 0.0 || !all.is_finite() {
        return None;
    }
    let shares: Vec<(usize, f64)> = parts.iter().map(|&part| (part, variance(part) / all)).collect();
    let of_whole = variance(whole) / all;
    sets[whole].as_mut()?.move_static(-too_much * of_whole);
    for (part, share) in shares {
        sets[part].as_mut()?.move_static(too_much * share);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::{DomainKind, Method};
    use crate::power_model::event_set::EventSet;
    use crate::power_model::intervals::Intervals;
    use crate::power_model::model::Scale;
    use crate::power_model::prior::Prior;
    use crate::power_model::self_calibration::SelfCalibration;
    use crate::units::{Joules, Timestamp};

    /// Static watts with a standard error of `error`, and an event of 2 nJ that is the less sure the more static power is.
    fn fitted(watts: f64, error: f64) -> Option<DomainSet> {
        let prior = Prior {
            unexplained: 0.06,
            misfit: 0.0,
            joules_per_event: vec![2e-9],
            relative_error: 0.1,
            least_share: 0.0,
            std_errors: Vec::new(),
            scale: Scale::Joules,
            static_watts: Some((watts, error)),
        };
        let intervals = Intervals { static_terms: 1, ..Intervals::default() };
        let mut calibration = SelfCalibration::of_prior(&intervals, &prior, 1.0);
        let together = -0.5 * error * 2e-10;
        calibration.covariance[1] = together;
        calibration.covariance[2] = together;
        let set = EventSet { left_out: vec![None], calibration, spread: None };
        Some(DomainSet::new(set, 0, 0.06))
    }

    fn domain(name: &str, parent: Option<&str>) -> DomainInfo {
        let kind = if parent.is_some() { DomainKind::Cores } else { DomainKind::Package };
        DomainInfo {
            parent: parent.map(str::to_owned),
            ..DomainInfo::new(name, kind, "power PMU", Method::Measured)
        }
    }

    /// Ten seconds of these watts.
    fn survey(watts: [f64; 2]) -> Survey {
        let end = Timestamp::from_nanos(10_000_000_000);
        let reading = |watts: f64| {
            Some([(Timestamp::from_nanos(0), Joules::ZERO), (end, Joules::from_joules(10.0 * watts))])
        };
        Survey { readings: watts.map(reading).to_vec(), ..Survey::default() }
    }

    fn watts(set: &Option<DomainSet>) -> f64 {
        set.as_ref().and_then(DomainSet::static_watts).expect("static power")
    }

    #[test]
    fn what_is_less_sure_moves_more_and_takes_its_coefficients_along() {
        let domains = [domain("package-0", None), domain("cores-0", Some("package-0"))];
        // 20 - 12 = 8 W are left of the package, 15 - 6 = 9 W of the cores in it.
        let mut sets = [fitted(12.0, 0.2), fitted(6.0, 0.1)];
        reconcile(&mut sets, &domains, &survey([20.0, 15.0]));
        assert!((watts(&sets[0]) - 11.2).abs() < 1e-12, "{sets:?}");
        assert!((watts(&sets[1]) - 6.2).abs() < 1e-12, "{sets:?}");
        // Less static power by 4 standard errors, of which the coefficient shares a half with the other sign.
        let cost = |at: usize| sets[at].as_ref().expect("a set").set.calibration.joules_per_event[0];
        assert!((cost(0) - (2e-9 + 0.5 * 4.0 * 2e-10)).abs() < 1e-18, "{}", cost(0));
        assert!((cost(1) - (2e-9 - 0.5 * 2.0 * 2e-10)).abs() < 1e-18, "{}", cost(1));
    }

    #[test]
    fn what_agrees_or_is_exact_stays() {
        let domains = [domain("package-0", None), domain("cores-0", Some("package-0"))];
        for (sets, measured) in [
            ([fitted(12.0, 0.2), fitted(6.0, 0.1)], [20.0, 13.9]),
            ([fitted(12.0, 0.0), fitted(6.0, 0.0)], [20.0, 15.0]),
            ([fitted(12.0, 0.2), None], [20.0, 15.0]),
        ] {
            let mut after = sets.clone();
            reconcile(&mut after, &domains, &survey(measured));
            assert_eq!(format!("{after:?}"), format!("{sets:?}"));
        }
    }
}
