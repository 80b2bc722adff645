//! What rows tell of code that a model leaves unexplained: by how much they differ in power, and how alone they are in the
//! buckets that have measured joules.

use super::Profile;

/// CPU time, joules and their variance by sampling, and samples by event of a row.
pub(super) struct RowOfCode<'r> {
    pub seconds: f64,
    pub joules: f64,
    pub sampling_variance: f64,
    pub samples: &'r [f64],
}

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

/// What is known of buckets where only rows are: how many samples of one event and CPU fall into one, and how many CPUs
/// have a part in it.
pub(super) struct Buckets {
    samples: f64,
    cpus: f64,
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
        Self { samples: samples * share / (events * cpus), cpus }
    }

    /// How much of a bucket in which a row is found is that row's beyond its share of the whole: the mean correlation of
    /// a sample with those around it, on its own CPU.
    pub fn purity(&self, autocorrelation: f64) -> f64 {
        let x = autocorrelation.clamp(0.0, 1.0);
        let count = self.samples.max(1.0);
        let mean = if x > 1.0 - 1e-9 { 1.0 } else { (1.0 - x.powf(count)) / (count * (1.0 - x)) };
        mean / self.cpus
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
        let buckets = Buckets { samples: 10.0, cpus: 1.0 };
        assert_eq!(buckets.purity(1.0), 1.0);
        assert_eq!(buckets.purity(0.0), 0.1);
        assert!(Buckets { samples: 10.0, cpus: 4.0 }.purity(1.0) == 0.25);
    }
}
