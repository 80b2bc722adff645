//! Power models that are fitted to counts beside watts.

use std::fmt::Write as _;

use eprof::numerics::nnls::Sign;
use eprof::numerics::random::Random;
use eprof::power_model::dataset::{Dataset, Observation};
use eprof::power_model::estimator::{Estimator, EstimatorOptions};
use eprof::power_model::fit::{Fit, FitOptions, Prior, Weighting};
use eprof::power_model::prediction::LeftOutErrors;
use eprof::power_model::select::best_events;
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
