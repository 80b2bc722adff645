//! Power models on published measurements of real machines: how wrong they are for what they have not
//! seen. Each test prints its table; without the data it says so and skips.

use std::fs;
use std::path::{Path, PathBuf};

use eprof::power_model::dataset::Dataset;
use eprof::power_model::estimator::{Estimator, EstimatorOptions};
use eprof::power_model::observations::perf_stat::{self, PerfStatLog};
use eprof::power_model::observations::table::TableColumns;
use eprof::power_model::validate::{Protocol, Validation, validate};
use eprof_testbed::published;

use crate::published::{read, rows_of, stem};

/// A folder of the published data; `None`, with the reason said, if they are not here.
fn data(folder: &str) -> Option<PathBuf> {
    published(folder)
}

fn estimate(data: &Dataset, protocol: Protocol) -> Validation {
    let options = EstimatorOptions::default();
    validate(data, protocol, |training| Estimator::train(training, &options), Estimator::watts)
        .expect("data that can be validated")
}

fn print(title: &str, validation: &Validation) {
    let folds: Vec<String> =
        validation.folds.iter().map(|fold| format!("{} {:.1}", fold.name, 100.0 * fold.mean)).collect();
    println!(
        "{title}: mean {:.2} %, over rows {:.2} % ({})",
        100.0 * validation.mean_over_folds(),
        100.0 * validation.mean_over_rows(),
        folds.join(", ")
    );
}

/// The files of one server: all tables below its folder.
fn tables_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(tables_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "csv") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Wall power of three servers by their hardware counters, one workload left out: plain least squares
/// reaches 17.4, 8.1 and 3.8 %, and what is chosen 8.9, 5.9 and 3.4 %.
#[test]
fn servers_with_wall_meters() {
    let Some(folder) = data("canuto-power-modelling") else { return };
    for (server, limit) in
        [("AMD_Opteron_6140", 0.14), ("INTEL_Xeon_E5-2650", 0.075), ("INTEL_Xeon_X5650", 0.037)]
    {
        let columns = TableColumns { power: "powerWatts".into(), ..TableColumns::default() };
        let whole = rows_of(&tables_below(&folder.join(server)), &columns);
        let counters = whole.columns().iter().take_while(|name| !name.starts_with("Core_")).count();
        let data = whole.select(&(0..counters).collect::<Vec<_>>());
        let validation = estimate(&data, Protocol::LeaveOneWorkloadOut);
        print(server, &validation);
        assert!(validation.mean_over_folds() <= limit);
        assert!(validation.mean_over_rows() <= limit);
    }
}

/// A phone's big cores at nine clock frequencies, one workload left out at each: plain least squares
/// reaches 3.3 %.
#[test]
fn cores_at_nine_frequencies() {
    let Some(folder) = data("gemstone-applypower") else { return };
    let events =
        ["CycleCount", "Event 0x1b", "Event 0x50", "Event 0x6a", "Event 0x73", "Event 0x14", "Event 0x19"];
    // Not its voltage, which the regulator raises with the power and `eprof model` does not take for an event.
    let events: Vec<String> = events.iter().map(|event| format!("Average A15 {event}")).collect();
    let columns = TableColumns {
        power: "Power A15".into(),
        events: Some(events),
        workload: vec!["Workload Name".into()],
        frequency: Some("Frequency A15".into()),
        ..TableColumns::default()
    };
    let data = rows_of(
        &tables_below(&folder)
            .into_iter()
            .filter(|file| read(file).contains("Workload Name"))
            .collect::<Vec<_>>(),
        &columns,
    );
    let mut sum = 0.0;
    let parts = data.by_frequency();
    for (frequency, data) in &parts {
        let mean = estimate(data, Protocol::LeaveOneWorkloadOut).mean_over_folds();
        println!("{frequency} MHz: {:.2} %", 100.0 * mean);
        sum += mean;
    }
    let mean = sum / parts.len() as f64;
    println!("mean {:.2} %", 100.0 * mean);
    assert_eq!(parts.len(), 9);
    // 3.2 % is reached, and 3.34 % by least squares.
    assert!(mean <= 0.034, "{mean}");
}

/// Package power of a server in 3 s rows, the last 40 % after the first 60 %.
#[test]
fn a_server_later_in_its_day() {
    let Some(folder) = data("kepler-model-db") else { return };
    for table in tables_below(&folder) {
        let columns = TableColumns {
            power: "package_power".into(),
            except: vec!["packge_ratio_package".into()],
            ..TableColumns::default()
        };
        let validation = estimate(&rows_of(std::slice::from_ref(&table), &columns), Protocol::Forward(0.6));
        print(&stem(&table), &validation);
        assert!(validation.mean_over_folds() < 0.111);
    }
}

/// Package power of Haswell machines by cycles, instructions, cache references and misses per second, one
/// workload left out: plain least squares is 127 % wrong on the server. What remains is `sleep`, left
/// out: no other workload shows what the idle machine draws.
#[test]
fn haswell_runs() {
    let Some(folder) = data("rapl_validation") else { return };
    let columns = TableColumns {
        power: "e_pkg_j".into(),
        power_is_energy: true,
        events: Some(["cycles", "instructions", "cache_misses", "cache_refs"].map(String::from).to_vec()),
        workload: vec!["bench".into()],
        duration: Some("elapsed_s".into()),
        only: vec![("machine".into(), "haswell-ep".into())],
        ..TableColumns::default()
    };
    let validation = estimate(
        &rows_of(&[folder.join("derived_run_totals.given.csv")], &columns),
        Protocol::LeaveOneWorkloadOut,
    );
    print("Haswell-EP, totals of runs", &validation);
    assert!(validation.mean_over_folds() < 0.26);
}

/// The same machines' logs at 100 ms, with records broken over two lines and first intervals of 0.37 s
/// that are stamped 0.1 s.
#[test]
fn haswell_logs() {
    let Some(folder) = data("rapl_validation") else { return };
    let phases = folder.join("phase_plots/haswellian-i5");
    let logs: Vec<PerfStatLog> =
        ["hpl_mkl/hpl_mkl", "hpl_atlas/hpl_atlas", "sleep/sleep", "gpu_ksp/kerbal", "gpu_sleep/gpu_sleep"]
            .iter()
            .map(|log| phases.join(format!("{log}.perf")))
            .map(|path| PerfStatLog::parse(&stem(&path), &stem(&path), &read(&path)).expect("a log"))
            .collect();
    for (power, limit) in [("power/energy-pkg/", 0.35), ("power/energy-ram/", 0.15)] {
        let observed = perf_stat::observe(&logs, Some(power), None, &[]).expect("rows");
        let first_intervals =
            observed.notes.iter().filter(|note| note.contains("the first interval lasted 0.3")).count();
        assert_eq!(first_intervals, 5, "{:?}", observed.notes);
        let validation = estimate(&observed.data, Protocol::LeaveOneWorkloadOut);
        print(power, &validation);
        assert!(validation.mean_over_folds() < limit);
    }
    let broken = folder.join("phase_plots/haswell-ep/hpl_atlas/hpl_atlas.perf.phase");
    let log = PerfStatLog::parse("hpl_atlas", "hpl_atlas", &read(&broken)).expect("a log");
    let memory = perf_stat::observe(&[log], Some("power/energy-ram/"), Some(&[]), &[]).expect("rows");
    assert!(memory.data.len() > 500);
    // 0.166 J in 0.1 s when the program begins.
    assert!((memory.data.watts(2) - 1.64).abs() < 0.02);
}
