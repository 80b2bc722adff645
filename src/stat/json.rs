//! Measured runs as JSON: every run, and what they add up to.

use serde::Serialize;

use super::interval::Estimate;
use super::measurements::{EnergyOf, Measurements, Part, Quantity, Series};
use super::ratio::Ratio;
use crate::hardware::Method;
use crate::units::Watts;

#[derive(Serialize)]
struct Document<'a> {
    domains: Vec<Domain<'a>>,
    commands: Vec<Command<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ratios: Vec<Compared<'a>>,
    warmup_runs: usize,
    energy_of: EnergyOf,
    interrupted: Option<&'a str>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Domain<'a> {
    name: &'a str,
    source: &'a str,
    method: Method,
    inside: Option<&'a str>,
    in_total: bool,
    idle_watts_subtracted: Option<Watts>,
    /// Of an estimate: one standard error of the watts that were assumed, as a share, in all runs alike. It is in `low` and
    /// `high` of joules and watts, which the truth is to be expected between; beside these stands `half_width_of_repeats` in
    /// place of `half_width`.
    #[serde(skip_serializing_if = "Option::is_none")]
    assumed_watts_error: Option<f64>,
}

#[derive(Serialize)]
struct Command<'a> {
    command: &'a str,
    seconds: Option<Estimate>,
    cpu_seconds: Option<Estimate>,
    parts: Vec<OfPart<'a>>,
    runs: Vec<OneRun>,
}

#[derive(Serialize)]
struct OfPart<'a> {
    name: &'a str,
    method: Method,
    joules: Option<Estimate>,
    watts: Option<Estimate>,
    joule_seconds: Option<Estimate>,
}

#[derive(Serialize)]
struct OneRun {
    seconds: f64,
    cpu_seconds: f64,
    /// In the order of the domains.
    joules: Vec<f64>,
}

#[derive(Serialize)]
struct Compared<'a> {
    part: &'a str,
    quantity: &'static str,
    #[serde(flatten)]
    ratio: Ratio,
}

/// The measurements as a JSON document.
///
/// # Errors
/// If a number is not finite, which JSON cannot hold.
pub fn json(measured: &Measurements) -> Result<String, serde_json::Error> {
    let domains = measured.domains.iter().enumerate().map(|(index, domain)| Domain {
        name: &domain.info.name,
        source: &domain.info.source,
        method: domain.info.method,
        inside: domain.info.parent.as_deref(),
        in_total: domain.in_total,
        idle_watts_subtracted: domain.idle,
        assumed_watts_error: measured.watts_error(Part::Domain(index)),
    });
    let document = Document {
        domains: domains.collect(),
        commands: measured.series.iter().map(|series| command(measured, series)).collect(),
        ratios: ratios(measured),
        warmup_runs: measured.warmups,
        energy_of: measured.energy_of,
        interrupted: measured.interrupted.as_deref(),
        warnings: &measured.warnings,
    };
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}

fn command<'a>(measured: &'a Measurements, series: &'a Series) -> Command<'a> {
    let of = |part, quantity| measured.estimate(series, part, quantity);
    let parts = measured.parts().into_iter().map(|part| OfPart {
        name: measured.name(part),
        method: measured.method(part),
        joules: of(part, Quantity::Energy),
        watts: of(part, Quantity::Power),
        joule_seconds: of(part, Quantity::EnergyDelay),
    });
    let runs = series.runs.iter().map(|run| OneRun {
        seconds: run.seconds,
        cpu_seconds: run.cpu_seconds,
        joules: run.joules.iter().map(|joules| joules.as_joules()).collect(),
    });
    Command {
        command: &series.command,
        seconds: of(measured.whole(), Quantity::Time),
        cpu_seconds: of(measured.whole(), Quantity::CpuTime),
        parts: parts.collect(),
        runs: runs.collect(),
    }
}

fn ratios(measured: &Measurements) -> Vec<Compared<'_>> {
    let of = |part: Part, name, quantity: Quantity| {
        let ratio = measured.ratio(part, quantity)?;
        Some(Compared { part: name, quantity: quantity.name(), ratio })
    };
    let parts = measured.parts();
    let of_domains = parts.iter().flat_map(|&part| {
        Quantity::OF_DOMAINS.map(|quantity| of(part, measured.name(part), quantity)).into_iter().flatten()
    });
    let of_runs = Quantity::OF_RUNS.map(|quantity| of(measured.whole(), "run", quantity));
    of_domains.chain(of_runs.into_iter().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::measurements::fixture::two_programs;
    use super::*;

    #[test]
    fn every_run_and_every_mean_are_there() {
        let text = json(&two_programs()).expect("finite numbers");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["commands"][1]["runs"][2]["joules"][0], 10.8);
        assert_eq!(value["commands"][0]["parts"][3]["name"], "total");
        assert!(value["commands"][0]["seconds"]["half_width"].as_f64().expect("three runs") > 0.1);
        assert_eq!(value["domains"][1]["inside"], "package-0");
        let joules = &value["commands"][0]["parts"][0]["joules"];
        let of = |key: &str| joules[key].as_f64().expect("a number");
        assert!((of("high") - of("low") - 2.0 * of("half_width")).abs() < 1e-9, "{joules}");
        let time =
            value["ratios"].as_array().expect("a list").iter().find(|ratio| ratio["quantity"] == "time");
        assert!((time.expect("there")["mean"].as_f64().expect("a number") - 2.0).abs() < 1e-9);
    }
}
