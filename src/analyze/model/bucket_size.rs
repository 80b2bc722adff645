//! How many joules a bucket has.

use crate::analyze::intervals::survey::Survey;
use crate::hardware::DomainInfo;
use crate::profile::BucketReason;
use crate::units::{Joules, Nanoseconds};

/// The target energy of a bucket where the recording is long enough for it.
const USUAL: Joules = Joules::from_joules(1.0);
/// A short recording is cut into this many buckets at least, as far as its meters resolve that.
const FEWEST_BUCKETS: f64 = 50.0;
/// A meter that moves every millisecond tells the energy of a bucket of 20 ms to 5 %.
const USUAL_REFRESHES: f64 = 20.0;
/// Between fewer moves of the meter there is nothing to tell buckets apart by.
const FEWEST_REFRESHES: f64 = 2.0;

/// How buckets are made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BucketSize {
    /// Energy of each.
    pub joules: Joules,
    /// Why so much.
    pub reason: BucketReason,
    /// They are so small that the meter tells the energy of one only to this share of it.
    pub unsure_by: Option<f64>,
}

/// The energy of a bucket and why: as asked, or 1 J, or less for short recordings, but never less than
/// the meters can tell apart. What was asked for may be told badly, if it is told at all.
pub(crate) fn bucket_size(domains: &[DomainInfo], survey: &Survey, asked: Option<Joules>) -> BucketSize {
    let mut total = Joules::ZERO;
    let mut move_of_meters = Joules::ZERO;
    for (index, domain) in domains.iter().enumerate() {
        if domains.iter().any(|other| Some(&other.name) == domain.parent.as_ref()) {
            continue;
        }
        let measured = survey.measured(index);
        total += measured;
        let Some(Some([(first, _), (last, _)])) = survey.readings.get(index) else { continue };
        let refresh = domain.refresh.unwrap_or(Nanoseconds::from_millis(1));
        let span = last.since(*first);
        if span > Nanoseconds::ZERO {
            let per_refresh = measured / span * refresh;
            move_of_meters += per_refresh;
        }
        move_of_meters = move_of_meters.max(domain.resolution.unwrap_or_default());
    }
    let short = total / FEWEST_BUCKETS;
    let (wanted, reason) = match asked {
        Some(asked) => (asked, BucketReason::Asked),
        None if short < USUAL => (short, BucketReason::ShortRecording),
        None => (USUAL, BucketReason::Usual),
    };
    let size = |joules, reason| BucketSize { joules, reason, unsure_by: None };
    let fewest = if asked.is_some() { FEWEST_REFRESHES } else { USUAL_REFRESHES };
    let least = move_of_meters * fewest;
    if wanted <= Joules::ZERO && least <= Joules::ZERO {
        // A recording without any energy has one bucket of any size.
        size(USUAL, BucketReason::Usual)
    } else if wanted < least {
        size(least, BucketReason::MeterResolution)
    } else {
        let moves = if move_of_meters > Joules::ZERO { wanted / move_of_meters } else { f64::INFINITY };
        BucketSize { unsure_by: (moves < USUAL_REFRESHES).then(|| 1.0 / moves), ..size(wanted, reason) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::fixture::domain;
    use crate::hardware::DomainKind;
    use crate::units::Timestamp;

    /// The bucket of a recording of so many seconds at so many watts.
    fn size(seconds: u64, watts: f64, asked: Option<f64>) -> (f64, BucketReason) {
        let ends = [(0, 0.0), (seconds, watts * seconds as f64)]
            .map(|(time, joules)| (Timestamp::from_nanos(time * 1_000_000_000), Joules::from_joules(joules)));
        let survey = Survey { readings: vec![Some(ends)], ..Survey::default() };
        let domains = [domain("package-0", DomainKind::Package, None)];
        let size = bucket_size(&domains, &survey, asked.map(Joules::from_joules));
        ((size.joules.as_joules() * 1e6).round() / 1e6, size.reason)
    }

    #[test]
    fn one_joule_less_for_short_runs_more_for_coarse_meters() {
        assert_eq!(size(100, 20.0, None), (1.0, BucketReason::Usual));
        // 20 J in all: 50 buckets; 20 refreshes of 1 ms at 10 W are 0.2 J.
        assert_eq!(size(2, 10.0, None), (0.4, BucketReason::ShortRecording));
        assert_eq!(size(1, 10.0, None), (0.2, BucketReason::ShortRecording));
        assert_eq!(size(100, 200.0, None), (4.0, BucketReason::MeterResolution));
    }

    #[test]
    fn what_is_asked_for_is_used_if_the_meter_resolves_it() {
        assert_eq!(size(100, 20.0, Some(5.0)), (5.0, BucketReason::Asked));
        assert_eq!(size(100, 20.0, Some(0.1)), (0.1, BucketReason::Asked), "five moves of the meter");
        assert_eq!(size(100, 20.0, Some(0.001)), (0.04, BucketReason::MeterResolution));
        assert_eq!(size(0, 0.0, None).1, BucketReason::Usual);
    }
}
