//! The buckets of a recording one by one: stretches of time in which the same energy was measured.

use std::io::{self, Write};

use serde::Serialize;

use super::error::ReportError;
use super::frames::{Detail, FrameTable};
use super::missing_joules::MissingJoules;
use super::scale::Scale;
use super::summary::method_name;
use super::top_functions::top_functions;
use crate::label::Label;
use crate::profile::{ProfileParts, TimeSlice};
use crate::symbolize::Symbols;
use crate::units::{Joules, Nanoseconds, Timestamp};

/// One bucket.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BucketRow {
    /// Seconds from the recording's start to its own.
    pub start_s: f64,
    /// Seconds from the recording's start to its end.
    pub end_s: f64,
    /// Measured energy of all top-level domains.
    pub joules: Joules,
    /// What the power model alone says; `None` where joules are divided by time.
    pub modelled_joules: Option<Joules>,
    /// The function that spent most in it.
    pub top_function: Option<Label>,
    /// Its share of what the program's samples spent.
    pub top_share: Option<f64>,
}

/// All buckets of a recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BucketReport {
    /// Energy that a bucket was to have.
    pub target_joules: Joules,
    /// Mean energy of the full buckets.
    pub mean_joules: Option<Joules>,
    /// Whether joules are measured: `measured`, `estimated` or `mixed`.
    pub method: &'static str,
    /// How near the buckets came to the target by the meter, or by the estimate.
    pub measured: Spread,
    /// How near the power model alone comes to it: the meter shows what it cannot tell.
    pub modelled: Option<Spread>,
    /// The buckets in the order of time; the last is what was left.
    pub buckets: Vec<BucketRow>,
}

/// How energies of buckets spread around the target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Share of the full buckets that lie within 5 % of the target.
    pub within_5_percent: f64,
    /// The same for 10 %.
    pub within_10_percent: f64,
}

impl BucketReport {
    /// Of a profile that was made with its slices kept.
    ///
    /// # Errors
    /// [`ReportError::NothingWithoutJoules`] if there are no buckets.
    pub fn new(parts: &dyn ProfileParts, symbols: &Symbols) -> Result<Self, ReportError> {
        let profile = parts.profile();
        let has_buckets = !profile.slices.is_empty() && profile.merged.is_empty();
        let division = profile.division.as_ref().filter(|_| has_buckets);
        let Some(division) = division else {
            let why = MissingJoules::in_profile(profile);
            return Err(ReportError::NothingWithoutJoules { what: "buckets are", why });
        };
        let top: Vec<usize> = profile.top_domains().map(|(index, _)| index).collect();
        let has_model = top.iter().all(|&index| division.domains.get(index).is_some_and(Option::is_some));
        let frames = FrameTable::new(profile, symbols, Detail::Function, true);
        let seconds = |time: Timestamp| time.since(profile.start).as_secs_f64();
        let row = |(slice, function): (&TimeSlice, Option<(Label, f64)>)| {
            let (top_function, top_share) = function.unzip();
            BucketRow {
                start_s: seconds(slice.start),
                end_s: seconds(slice.end),
                joules: top.iter().map(|&index| slice.measured[index]).sum(),
                modelled_joules: has_model.then_some(slice.modelled),
                top_function,
                top_share,
            }
        };
        let slices = profile.slices.iter();
        let buckets: Vec<BucketRow> = slices.zip(top_functions(parts, &frames)).map(row).collect();
        let target = division.bucket;
        let full = full(&buckets, target);
        let count = full.len() as f64;
        let mean = full.iter().map(|bucket| bucket.joules).sum::<Joules>();
        let measured = full.iter().map(|bucket| bucket.joules);
        let modelled: Option<Vec<Joules>> = full.iter().map(|bucket| bucket.modelled_joules).collect();
        Ok(Self {
            target_joules: target,
            method: method_name(profile.method()),
            mean_joules: (count > 0.0).then(|| mean / count),
            measured: Spread::of(measured, target),
            modelled: modelled.map(|joules| Spread::of(joules.into_iter(), target)),
            buckets,
        })
    }

    /// How the joules of buckets were found, in words.
    pub(super) fn found_as(&self) -> &'static str {
        match self.method {
            "estimated" => "as estimated",
            "mixed" => "as partly measured, partly estimated",
            _ => "as measured",
        }
    }

    /// The buckets without the last one, if that was closed by the recording's end.
    pub fn full(&self) -> &[BucketRow] {
        full(&self.buckets, self.target_joules)
    }

    /// Writes the buckets as one JSON object.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_json(&self, mut out: impl Write) -> Result<(), ReportError> {
        serde_json::to_writer_pretty(&mut out, self).map_err(io::Error::from)?;
        writeln!(out)?;
        Ok(())
    }

    /// Writes the buckets as CSV.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_csv(&self, out: impl Write) -> Result<(), ReportError> {
        let mut writer = csv::Writer::from_writer(out);
        let columns =
            ["start_s", "end_s", "joules", "modelled_joules", "top_function", "top_share", "method"];
        writer.write_record(columns).map_err(io::Error::other)?;
        for bucket in &self.buckets {
            let name = bucket.top_function.as_ref().map(|name| name.csv().into_owned());
            let modelled = bucket.modelled_joules.map(|joules| joules.as_joules().to_string());
            let record = [
                bucket.start_s.to_string(),
                bucket.end_s.to_string(),
                bucket.joules.as_joules().to_string(),
                modelled.unwrap_or_default(),
                name.unwrap_or_default(),
                bucket.top_share.map(|share| share.to_string()).unwrap_or_default(),
                self.method.to_owned(),
            ];
            writer.write_record(record).map_err(io::Error::other)?;
        }
        writer.flush()?;
        Ok(())
    }

    /// Writes the buckets as a table of at most `limit` rows.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_table(&self, limit: usize, width: usize, mut out: impl Write) -> Result<(), ReportError> {
        let percent = |share: f64| format!("{:.1}%", share * 100.0);
        let mean = self.mean_joules.map(|mean| format!(", mean {mean}")).unwrap_or_default();
        let full = self.full().len();
        let rest: Joules = self.buckets.iter().skip(full).map(|bucket| bucket.joules).sum();
        let rest = if self.buckets.len() > full { format!(", and a rest of {rest}") } else { String::new() };
        writeln!(out, "{full} buckets of {}{mean}{rest}", self.target_joules)?;
        let mut spread = |name: &str, spread: &Spread| {
            let (five, ten) = (percent(spread.within_5_percent), percent(spread.within_10_percent));
            writeln!(out, "{name}: {five} within 5% of that, {ten} within 10%")
        };
        spread(self.found_as(), &self.measured)?;
        if let Some(modelled) = &self.modelled {
            spread("by the power model alone", modelled)?;
        }
        let largest = self.buckets.iter().map(|bucket| bucket.joules).fold(Joules::ZERO, Joules::max);
        let scale = Scale::for_largest(largest);
        writeln!(
            out,
            "\n{:>10} {:>10} {:>9} {:>9} {:>6}  top function",
            "start s", "end s", scale.unit, "model", "share"
        )?;
        for bucket in self.buckets.iter().take(limit) {
            let modelled = bucket.modelled_joules.map(|joules| scale.show(joules)).unwrap_or_default();
            let share = bucket.top_share.map(percent).unwrap_or_default();
            let name =
                bucket.top_function.as_ref().map(|name| name.short_name(width.saturating_sub(52).max(20)));
            let (start, end) = (bucket.start_s, bucket.end_s);
            let numbers = format!(
                "{start:>10.4} {end:>10.4} {:>9} {modelled:>9} {share:>6}",
                scale.show(bucket.joules)
            );
            writeln!(out, "{}", format!("{numbers}  {}", name.unwrap_or_default()).trim_end())?;
        }
        if self.buckets.len() > limit {
            writeln!(out, "… {} more (--limit)", self.buckets.len() - limit)?;
        }
        Ok(())
    }
}

impl Spread {
    fn of(joules: impl ExactSizeIterator<Item = Joules> + Clone, target: Joules) -> Self {
        let count = joules.len().max(1) as f64;
        let within = |share: f64| {
            let near = |joules: &Joules| (*joules / target - 1.0).abs() <= share;
            joules.clone().filter(near).count() as f64 / count
        };
        Self { within_5_percent: within(0.05), within_10_percent: within(0.10) }
    }
}

/// The recording's end closes the last bucket, full or not.
fn full(buckets: &[BucketRow], target: Joules) -> &[BucketRow] {
    match buckets.split_last() {
        Some((last, rest)) if last.joules < target * 0.999 => rest,
        _ => buckets,
    }
}

impl BucketRow {
    /// How long it took to spend its joules.
    pub fn duration(&self) -> Nanoseconds {
        Nanoseconds::from_secs_f64(self.end_s - self.start_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Method;
    use crate::profile::{Balance, BucketReason, Division, DomainDivision};
    use crate::report::fixture::{Divided, Fixture, Spent, in_slice};
    use crate::units::Watts;

    fn report(modelled: [f64; 4]) -> BucketReport {
        let mut fixture = Fixture::default();
        fixture.domain("package-0", None, Method::Measured, "test", [0.0; 4]);
        fixture.event("cycles", 0);
        fixture.thread(1, 1, "app", "app");
        for function in ["hot", "cold"] {
            let spent = Spent { samples: 1, millis: 1, joules: &[1.0] };
            fixture.cell(0, 0, 0, &format!("/bin/app`main  /bin/app`{function}"), spent);
        }
        let (mut profile, symbols) = fixture.finish();
        let model = DomainDivision {
            joules_per_event: vec![1e-9],
            std_errors: vec![0.0],
            static_power: None,
            static_std_error: Watts::ZERO,
            static_rise: None,
            is_calibrated: true,
            explained: None,
            mean_error: 0.0,
            unexplained: None,
            believed_unexplained: 0.0,
            intervals: 9,
        };
        profile.division = Some(Division {
            model: "test".to_owned(),
            source: String::new(),
            is_exact: false,
            left_out: vec![None],
            domains: vec![Some(model)],
            bucket: Joules::from_joules(1.0),
            bucket_reason: BucketReason::Usual,
            static_is_spread: false,
            in_place_of_time: None,
            is_by_time: false,
        });
        let measured = [1.0, 1.0, 1.0, 0.4];
        profile.slices = (0..4)
            .map(|at| TimeSlice {
                start: Timestamp::from_nanos(at as u64 * 100_000_000),
                end: Timestamp::from_nanos((at as u64 + 1) * 100_000_000),
                measured: vec![Joules::from_joules(measured[at])],
                modelled: Joules::from_joules(modelled[at]),
                balance: Balance::default(),
                by_cell: in_slice(&[(0, 0.1 * at as f32), (1, 0.25)]),
            })
            .collect();
        let report = BucketReport::new(&profile, &symbols).expect("buckets");
        for spare_bytes in [usize::MAX, 0] {
            let divided = Divided::new(&profile, 2, |cell| 1 - cell).within(spare_bytes);
            let of_parts = BucketReport::new(&divided, &symbols).expect("buckets");
            assert_eq!(of_parts, report, "in parts, with {spare_bytes} bytes beside");
        }
        report
    }

    #[test]
    fn shares_are_of_full_buckets() {
        let report = report([1.0, 1.08, 1.5, 0.1]);
        assert_eq!(report.full().len(), 3);
        assert_eq!(report.measured, Spread { within_5_percent: 1.0, within_10_percent: 1.0 });
        let modelled = report.modelled.expect("a model");
        assert!((modelled.within_5_percent - 1.0 / 3.0).abs() < 1e-12);
        assert!((modelled.within_10_percent - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_top_function_is_the_one_with_most_joules() {
        let report = report([1.0; 4]);
        let names: Vec<&str> =
            report.buckets.iter().filter_map(|bucket| Some(bucket.top_function.as_ref()?.as_str())).collect();
        assert_eq!(names, ["cold", "cold", "cold", "hot"]);
        assert_eq!(report.buckets[1].duration(), Nanoseconds::from_millis(100));
        let mut text = Vec::new();
        report.write_table(2, 80, &mut text).expect("a vector takes all");
        let text = String::from_utf8(text).expect("text");
        assert!(
            text.starts_with(
                "3 buckets of 1.000 J, mean 1.000 J, and a rest of 400.0 mJ\nas measured: 100.0% within 5%"
            ),
            "{text}"
        );
        assert!(text.ends_with("… 2 more (--limit)\n"), "{text}");
    }

    #[test]
    fn without_slices_there_are_no_buckets() {
        let (profile, symbols) = Fixture::default().finish();
        let error = BucketReport::new(&profile, &symbols).expect_err("nothing was measured").to_string();
        assert!(error.contains("buckets are of nothing else") && !error.contains("--weight"), "{error}");
    }
}
