//! Power models that are fitted to counts beside watts.

use std::fmt::Write as _;

use eprof::numerics::nnls::Sign;
use eprof::numerics::random::Random;
use eprof::power_model::dataset::{Dataset, Observation};
use eprof::power_model::estimator::{Estimator, EstimatorOptions};
use eprof::power_model::event_set::choose;
use eprof::power_model::fit::{Fit, FitOptions, Prior, Weighting};
use eprof::power_model::intervals::{Interval, Intervals};
use eprof::power_model::model::Scale;
use eprof::power_model::prediction::LeftOutErrors;
use eprof::power_model::prior::Prior as Believed;
use eprof::power_model::select::best_events;
use eprof::power_model::self_calibration::SelfCalibration;
use eprof::power_model::validate::{Protocol, validate};
use eprof_testbed::figures::rounded;

fn keep(name: &str, text: &str) {
    insta::assert_snapshot!(name, rounded(text));
}

/// 30 W, a cost of each event, an event that depends on another and one that costs nothing.
fn observations(noise: f64) -> Dataset {
    let columns = ["instructions", "misses", "cycles", "nothing"].map(str::to_owned);
    let mut data = Dataset::new(columns.to_vec());
    let mut random = Random::seeded(17);
    let mut uniform = || (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
    for workload in 0..8 {
        let (instructions, misses) = (0.5 + uniform(), uniform());
        for _ in 0..5 {
            let instructions = 1e9 * (instructions + 0.3 * uniform());
            let misses = 1e7 * (misses + 0.2 * uniform());
            let cycles = 0.6 * instructions + 80.0 * misses + 2e8 * uniform();
            let watts = 30.0 + 8e-9 * instructions + 9e-7 * misses + 5e-9 * cycles;
            let watts = watts * (1.0 + noise * (uniform() - 0.5));
            let rates = vec![instructions, misses, cycles, 1e8 * uniform()];
            let name = format!("w{workload}");
            let is_taken = data.push(Observation { rates: &rates, watts, workload: &name, frequency: None });
            assert!(is_taken);
        }
    }
    data
}

#[test]
fn coefficients_are_fitted() {
    let mut text = String::new();
    for noise in [0.0, 0.04] {
        let data = observations(noise);
        for sign in [Sign::NonNegative, Sign::Free] {
            for weighting in [Weighting::Relative, Weighting::Absolute] {
                for strength in [0.0, 0.05] {
                    let prior = Prior { coefficients: vec![6e-9, 1e-6, 4e-9, 0.0], strength };
                    let prior = Some(prior).filter(|prior| prior.strength > 0.0);
                    let is_exact = noise == 0.0 && prior.is_none();
                    let fit = Fit::new(&data, &FitOptions { sign, weighting, prior }).expect("a fit");
                    let off = fit.watts(data.rates(0)) / data.watts(0) - 1.0;
                    assert!(off.abs() < if is_exact { 1e-9 } else { 0.03 }, "{off}");
                    let nano = |coefficient: &eprof::power_model::fit::Coefficient| {
                        (coefficient.value * 1e9, coefficient.std_error.map(|error| error * 1e9))
                    };
                    let _ = writeln!(
                        text,
                        "{noise} {sign:?} {weighting:?} {strength}: {:?} {:?} nJ, {} {} {} {:?}",
                        fit.constant,
                        fit.coefficients.iter().map(nano).collect::<Vec<_>>(),
                        fit.r_squared,
                        fit.condition,
                        fit.mean_error,
                        fit.workloads
                    );
                }
            }
        }
    }
    keep("coefficients", &text);
}

#[test]
fn events_are_selected_and_power_is_estimated() {
    let mut text = String::new();
    for noise in [0.0, 0.04] {
        let data = observations(noise);
        for most in 1..=4 {
            let best = best_events(&data, most, &FitOptions::default()).expect("columns that vary");
            let _ = writeln!(text, "at most {most}: {best:?}");
        }
        let options = EstimatorOptions { max_terms: 3, beam: 6, pool: 10, ..EstimatorOptions::default() };
        let estimator = Estimator::train(&data, &options).expect("an estimator");
        let watts: Vec<f64> =
            (0..data.len()).step_by(7).map(|row| estimator.watts(data.rates(row))).collect();
        for (watts, row) in watts.iter().zip((0..data.len()).step_by(7)) {
            assert!((watts / data.watts(row) - 1.0).abs() < 0.05, "{watts} instead of {} W", data.watts(row));
        }
        let recipes: Vec<String> = estimator.recipes().map(|recipe| recipe.to_string()).collect();
        let _ = writeln!(text, "{recipes:?} {} {watts:?}", estimator.expected_error());
    }
    keep("estimator", &text);
}

#[test]
fn rows_left_out_are_judged() {
    let data = observations(0.04);
    let train = |data: &Dataset| Fit::new(data, &FitOptions::default());
    let mut text = String::new();
    for protocol in [Protocol::LeaveOneWorkloadOut, Protocol::Blocks(5), Protocol::Forward(0.6)] {
        let found = validate(&data, protocol, train, Fit::watts).expect("rows enough");
        assert!(found.mean_over_folds() < 0.05, "{found:?}");
        let means = [found.mean_over_folds(), found.median_over_folds(), found.mean_over_rows()];
        let _ = writeln!(text, "{protocol}: {means:?} {:?}", found.folds);
    }
    let one = data.only(&(0..20).collect::<Vec<_>>());
    for data in [&data, &one] {
        let errors = LeftOutErrors::new(data, train, Fit::watts).expect("rows enough");
        let _ = writeln!(text, "{} {} {:?}", errors.groups(), errors.mean_error(), errors.kind());
        for level in [0.5, 0.9] {
            let (low, high) = errors.interval(40.0, level).expect("groups enough");
            assert!(low < 40.0 && 40.0 < high);
            let _ = writeln!(text, "  {level}: {low} to {high}");
        }
    }
    keep("left_out", &text);
}

/// Joules of a cycle, of an instruction and of a miss, and static watts of two packages, of which the intervals are made.
const TRUTH: [f64; 3] = [0.3e-9, 0.2e-9, 4e-9];
const STATIC: [f64; 2] = [9.0, 14.0];

/// Intervals of 50 ms in five kinds of code, of which one draws more than its events tell.
fn intervals(count: usize, noise: f64) -> Intervals {
    let mut random = Random::seeded(23);
    let phases = [[0.1e9, 0.1e9, 1e5], [3e9, 5e9, 2e6], [3e9, 4e9, 2e8], [2.9e9, 1e9, 1e7], [2e9, 3e9, 1e8]];
    let mut rows = Vec::new();
    for (static_term, static_watts) in STATIC.into_iter().enumerate() {
        for at in 0..count {
            let phase = at / 8 % 5;
            let seconds = 0.05;
            let counts: Vec<f64> =
                phases[phase].iter().map(|rate| rate * seconds * (1.0 + 0.1 * random.symmetric())).collect();
            let of_events: f64 = counts.iter().zip(TRUTH).map(|(count, cost)| count * cost).sum();
            let unexplained = if phase == 3 { 1.1 } else { 1.0 };
            let joules = static_watts * seconds + of_events * unexplained + noise * random.symmetric();
            let counts: Vec<f64> =
                counts.iter().map(|count| count + 1e6 * noise * random.symmetric()).collect();
            let (follows, guessed) = (at % 40 != 0, if at % 17 == 0 { 0.04 } else { 0.0 });
            rows.push(Interval { static_term, follows, seconds, joules, busy: counts[0], counts, guessed });
        }
    }
    Intervals {
        rows,
        count_noise: vec![1e12 * noise * noise / 3.0; 3],
        late_noise: vec![1e12 * noise * noise / 6.0; 3],
        edge_noise: noise * noise / 3.0,
        pieces_of_code: Some(20.0),
        static_terms: 2,
        judged_together: 4,
    }
}

#[test]
fn recordings_correct_what_is_believed() {
    let known = Believed {
        joules_per_event: vec![1.2 * TRUTH[0], 0.8 * TRUTH[1], 1.3 * TRUTH[2]],
        relative_error: 0.3,
        std_errors: Vec::new(),
        misfit: 0.0,
        least_share: 0.0,
        unexplained: 0.05,
        scale: Scale::Joules,
        static_watts: Some((10.0, 6.0)),
    };
    let proportions = Believed {
        scale: Scale::Relative,
        static_watts: Some((0.0, f64::INFINITY)),
        least_share: 0.1,
        ..known.clone()
    };
    let told =
        Believed { std_errors: TRUTH.map(|cost| 0.1 * cost).to_vec(), unexplained: 0.0, ..known.clone() };
    let blind = Believed { static_watts: None, relative_error: 0.5, ..known.clone() };
    let mut text = String::new();
    for (name, prior) in
        [("known", &known), ("proportions", &proportions), ("told", &told), ("blind", &blind)]
    {
        for (count, noise) in [(120, 0.02), (40, 0.1), (6, 0.02)] {
            let intervals = intervals(count, noise);
            let found = SelfCalibration::new(&intervals, prior);
            let all: f64 = intervals.rows.iter().map(|row| found.joules(row)).sum();
            let off = all / intervals.joules() - 1.0;
            // A static power that nobody tells is in no estimate of a few intervals.
            assert!(off.abs() < 0.1 || found.static_watts.is_none(), "{name} {count}: off by {off}");
            if found.is_calibrated && noise < 0.05 && name != "blind" {
                for (event, truth) in TRUTH.iter().enumerate() {
                    let off = found.joules_per_event[event] / truth - 1.0;
                    assert!(off.abs() < 0.3, "{name} {count}, event {event}: {off}");
                }
            }
            let _ = writeln!(text, "{name}, {count} intervals: {}", in_nanojoules(&found));
            let chosen = choose(&intervals, prior, &[1000, 500, if count == 6 { 3 } else { 40 }]);
            let _ = writeln!(
                text,
                "  {:?} {:?}\n  {}",
                chosen.left_out,
                chosen.spread,
                in_nanojoules(&chosen.calibration)
            );
        }
    }
    keep("calibrations", &text);
}

/// Coefficients are far below what counts as nothing in a text of figures.
fn in_nanojoules(found: &SelfCalibration) -> String {
    let nano = |values: &[f64]| values.iter().map(|value| value * 1e9).collect::<Vec<_>>();
    let errors: Vec<f64> = (0..3).map(|event| found.std_error(event)).collect();
    let of_static: Vec<f64> = (0..2).map(|term| found.static_std_error(term)).collect();
    let size = 5;
    let correlation = |(a, b): (usize, usize)| {
        let of =
            |row: usize, column: usize| found.covariance.get(row * size + column).copied().unwrap_or(0.0);
        of(a, b) / (of(a, a) * of(b, b)).sqrt().max(f64::MIN_POSITIVE)
    };
    let correlations: Vec<f64> = [(0, 1), (0, 2), (1, 2), (0, 3), (2, 4)].map(correlation).to_vec();
    format!(
        "{:?} ± {:?} nJ, {:?} ± {of_static:?} W, {correlations:?}; {:?} {} {:?} {} {}",
        nano(&found.joules_per_event),
        nano(&errors),
        found.static_watts,
        found.explained,
        found.mean_error,
        found.unexplained,
        found.intervals,
        found.is_calibrated
    )
}
