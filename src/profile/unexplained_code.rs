//! What rows tell of code that a model leaves unexplained: by how much they differ in power, how alone they are in the buckets
//! that have measured joules, and how many of them are mixed in an interval.

use super::Profile;

/// CPU time, joules and their variance by sampling, and samples by event of a row.
pub(super) struct RowOfCode<'r> {
    pub seconds: f64,
    pub joules: f64,
    pub sampling_variance: f64,
    pub samples: &'r [f64],
}

/// Two moments of an interval that hang together by less than this on average: some ten pieces of code take turns in it.
const MIXED: f64 = 0.2;

/// By how much rows differ in power: the standard deviation of their watts over CPU time, as a share of the mean. What
/// sampling alone makes them differ by is taken out.
pub(super) fn difference(rows: &[RowOfCode<'_>]) -> f64 {
    let rows = || rows.iter().filter(|row| row.seconds > 0.0);
    let seconds: f64 = rows().map(|row| row.seconds).sum();
    let joules: f64 = rows().map(|row| row.joules).sum();
    if seconds <= 0.0 || joules <= 0.0 {
        return 0.0;
    }
    let mean = joules / seconds;
    let square = |row: &RowOfCode<'_>| {
        let of_chance = row.sampling_variance / (mean * row.seconds).powi(2);
        row.seconds * ((row.joules / row.seconds / mean - 1.0).powi(2) - of_chance)
    };
    (rows().map(square).sum::<f64>() / seconds).max(0.0).sqrt()
}

/// No code differs by more in power over CPU time, one standard deviation as a share of the mean: programs that were
/// measured alone on seven machines differ by 0.2 to 0.6.
const LARGEST_DIFFERENCE: f64 = 0.6;

/// What is known of buckets where only rows are: how many samples of one event and CPU fall into one, and how many CPUs
/// have a part in it.
pub(super) struct Buckets {
    samples: f64,
    cpus: f64,
    /// Samples of one event and CPU in a second of the recording.
    rate: f64,
}

impl Buckets {
    pub fn of(profile: &Profile, rows: &[RowOfCode<'_>]) -> Self {
        let length = profile.duration.as_secs_f64();
        let seconds: f64 = rows.iter().map(|row| row.seconds).sum();
        let cpus = if length > 0.0 { (seconds / length).max(1.0) } else { 1.0 };
        let samples: f64 = rows.iter().flat_map(|row| row.samples).sum();
        let is_sampled = |event: &usize| rows.iter().any(|row| row.samples[*event] > 0.0);
        let events = (0..profile.events.len()).filter(is_sampled).count().max(1) as f64;
        let measured: f64 =
            profile.top_domains().map(|(_, domain)| domain.balance.measured.as_joules()).sum();
        let bucket = profile.division.as_ref().map_or(0.0, |division| division.bucket.as_joules());
        let share = if measured > 0.0 { (bucket / measured).min(1.0) } else { 0.0 };
        let of_one = samples / (events * cpus);
        let rate = if length > 0.0 { of_one / length } else { 0.0 };
        Self { samples: of_one * share, cpus, rate }
    }

    /// How much of a bucket in which a row is found is that row's beyond its share of the whole: the mean correlation of
    /// a sample with those around it, on its own CPU.
    pub fn purity(&self, autocorrelation: f64) -> f64 {
        let x = autocorrelation.clamp(0.0, 1.0);
        let count = self.samples.max(1.0);
        let mean = if x > 1.0 - 1e-9 { 1.0 } else { (1.0 - x.powf(count)) / (count * (1.0 - x)) };
        mean / self.cpus
    }

    /// What code is off by, as a share of its joules, if intervals of so many seconds are off by the share `of_intervals`: by
    /// more, as several pieces of code in one level each other out. Their mean varies by as much less as any two moments of it
    /// hang together.
    pub fn unmixed(&self, of_intervals: f64, seconds: f64, autocorrelation: f64) -> f64 {
        let together = self.together(seconds, autocorrelation);
        let of_code = of_intervals * (self.cpus / together).sqrt();
        of_code.min(of_intervals.max(LARGEST_DIFFERENCE))
    }

    /// Whether intervals of so many seconds mix so much code that they tell little of any: where it takes turns evenly, they
    /// differ by less than chance would have it.
    pub fn are_mixed(&self, seconds: f64, autocorrelation: f64) -> bool {
        self.together(seconds, autocorrelation) < MIXED
    }

    /// How any two moments of an interval hang together on average.
    fn together(&self, seconds: f64, autocorrelation: f64) -> f64 {
        let x = autocorrelation.clamp(0.0, 1.0);
        let count = (self.rate * seconds).max(1.0);
        if x > 1.0 - 1e-6 {
            return 1.0;
        }
        // The mean of x^|i - j| over all pairs of `count` samples.
        let beside = 2.0 * x * (1.0 - x.powf(count)) / (count * (1.0 - x));
        ((1.0 + x - beside) / (count * (1.0 - x))).clamp(1.0 / count, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seconds: f64, joules: f64, sampling_variance: f64) -> RowOfCode<'static> {
        RowOfCode { seconds, joules, sampling_variance, samples: &[] }
    }

    #[test]
    fn rows_differ_by_their_watts_and_not_by_chance() {
        // 8 and 12 W around 10.
        assert!((difference(&[row(2.0, 16.0, 0.0), row(2.0, 24.0, 0.0)]) - 0.2).abs() < 1e-12);
        // Standard errors of 4 J of 20 are as much as they differ by.
        assert_eq!(difference(&[row(2.0, 16.0, 16.0), row(2.0, 24.0, 16.0)]), 0.0);
        assert_eq!(difference(&[row(0.0, 3.0, 0.0)]), 0.0);
    }

    #[test]
    fn code_that_runs_long_on_one_cpu_has_buckets_of_its_own() {
        let buckets = Buckets { samples: 10.0, cpus: 1.0, rate: 1000.0 };
        assert_eq!(buckets.purity(1.0), 1.0);
        assert_eq!(buckets.purity(0.0), 0.1);
        assert!(Buckets { cpus: 4.0, ..buckets }.purity(1.0) == 0.25);
    }

    #[test]
    fn what_takes_turns_within_an_interval_is_off_by_more_than_it() {
        let buckets = Buckets { samples: 10.0, cpus: 1.0, rate: 1000.0 };
        assert_eq!(buckets.unmixed(0.02, 0.1, 1.0), 0.02);
        // A hundred independent samples: a tenth of the deviation of one.
        assert!((buckets.unmixed(0.02, 0.1, 0.0) - 0.2).abs() < 1e-12);
        assert_eq!(buckets.unmixed(0.2, 0.1, 0.0), LARGEST_DIFFERENCE);
        // Three samples that hang together by a half: (3 + 2 x 2 x 0.5 + 2 x 0.25) / 9 of the variance.
        let of_three = buckets.unmixed(0.02, 0.003, 0.5);
        assert!((of_three - 0.02 / (5.5f64 / 9.0).sqrt()).abs() < 1e-12, "{of_three}");
        assert!(
            buckets.are_mixed(0.1, 0.5) && !buckets.are_mixed(0.003, 0.5) && !buckets.are_mixed(0.1, 1.0)
        );
        // Five independent samples are not mixed yet, six are.
        assert!(!buckets.are_mixed(0.005, 0.0) && buckets.are_mixed(0.006, 0.0));
        assert_eq!(Buckets { cpus: 4.0, ..buckets }.unmixed(0.02, 0.1, 1.0), 0.04);
    }

    #[test]
    fn chance_is_taken_out_row_by_row() {
        // 8 and 12 W around 10; standard errors of 2 and 1 J of 20: 0.03 and 0.0375 are left of 0.04.
        let found = difference(&[row(2.0, 16.0, 4.0), row(2.0, 24.0, 1.0)]);
        assert!((found - 0.03375f64.sqrt()).abs() < 1e-12, "{found}");
        // A row counts by its time: 10.25 W on average over one and seven seconds of 8.5 and 10.5 W.
        let found = difference(&[row(1.0, 8.5, 0.0), row(7.0, 73.5, 0.0), row(0.0, 9.0, 0.0)]);
        let squares = ((8.5f64 / 10.25 - 1.0).powi(2) + 7.0 * (10.5f64 / 10.25 - 1.0).powi(2)) / 8.0;
        assert!((found - squares.sqrt()).abs() < 1e-12, "{found}");
    }

    /// Ten seconds, in which two CPUs ran for all of the time; 50 J in buckets of one.
    #[test]
    fn buckets_by_hand() {
        use crate::hardware::{DomainInfo, DomainKind, Method};
        use crate::profile::{Balance, BucketReason, Division, DomainEnergy, EventTotals};
        use crate::units::{Joules, Nanoseconds};

        let event = |name: &str| EventTotals { name: name.to_owned(), ..EventTotals::default() };
        let profile = Profile {
            duration: Nanoseconds::from_millis(10_000),
            events: vec![event("cycles"), event("misses")],
            domains: vec![DomainEnergy {
                info: DomainInfo::new("package-0", DomainKind::Package, "test", Method::Measured),
                balance: Balance { measured: Joules::from_joules(50.0), ..Balance::default() },
            }],
            division: Some(Division {
                model: String::new(),
                source: String::new(),
                is_exact: false,
                left_out: Vec::new(),
                domains: Vec::new(),
                bucket: Joules::from_joules(1.0),
                bucket_reason: BucketReason::Usual,
                is_by_time: false,
                static_is_spread: false,
                in_place_of_time: None,
            }),
            ..Profile::default()
        };
        let rows = |samples: [&'static [f64]; 2]| {
            samples.map(|samples| RowOfCode { samples, ..row(10.0, 20.0, 0.0) })
        };
        let found = |profile: &Profile, samples| {
            let Buckets { samples, cpus, rate } = Buckets::of(profile, &rows(samples));
            (samples, cpus, rate)
        };
        // 400 samples of the one event are 200 of a CPU: 20 a second, 4 in a fiftieth.
        assert_eq!(found(&profile, [&[100.0, 0.0], &[300.0, 0.0]]), (4.0, 2.0, 20.0));
        assert_eq!(
            found(&profile, [&[100.0, 200.0], &[300.0, 200.0]]),
            (4.0, 2.0, 20.0),
            "of two events alike"
        );
        assert_eq!(
            found(&Profile { division: None, ..profile.clone() }, [&[100.0, 0.0], &[300.0, 0.0]]).0,
            0.0
        );
        let whole = Profile { duration: Nanoseconds::ZERO, domains: Vec::new(), ..profile.clone() };
        assert_eq!(
            found(&whole, [&[100.0, 0.0], &[300.0, 0.0]]),
            (0.0, 1.0, 0.0),
            "nothing is divided by nothing"
        );
        let longer = Profile { duration: Nanoseconds::from_millis(40_000), ..profile };
        assert_eq!(
            found(&longer, [&[100.0, 0.0], &[300.0, 0.0]]),
            (8.0, 1.0, 10.0),
            "never less than one CPU"
        );
    }
}
