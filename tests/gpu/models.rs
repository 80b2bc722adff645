//! How wrong GPU power models are about kernels and applications that they never saw, on published
//! measurements. The figures are those reached, with little room: a change that makes them worse is seen.

use eprof::gpu::model::candidates::Allowed;
use eprof::gpu::model::table::{Roles, Table};
use eprof::gpu::model::validate::{Validation, leave_group_out};
use eprof_testbed::{published, skip};

fn read(file: &str) -> Option<String> {
    published(file).map(|path| std::fs::read_to_string(path).expect("readable"))
}

#[track_caller]
fn validate(what: &str, text: &str, roles: &Roles, allowed: Allowed) -> Validation {
    let table = Table::parse(text, roles).expect("a table");
    let validation = leave_group_out(&table, allowed, usize::MAX, |_, _| {}).expect("a fit");
    let coverage = validation.coverage(&table, 0.95).expect("groups enough");
    println!(
        "{what}: {} rows in {} groups, mean error {:.2} %, median {:.2} %, R2 {:.3}; intervals of 95 % hold {:.1} %, +-{:.0} %",
        table.rows.len(),
        table.by_group().len(),
        validation.mean_error * 100.0,
        validation.median_error * 100.0,
        validation.r2,
        coverage.held * 100.0,
        coverage.half_width * 100.0
    );
    validation
}

fn roles(target: &str, group: &str) -> Roles {
    Roles { target: Some(target.to_owned()), group: vec![group.to_owned()], ..Roles::default() }
}

/// Names of the power measurements of the kernels in `hw_perf.csv`, in its order. The two files name
/// kernels differently; the workbook beside them says which is which. Kernels of one benchmark are
/// numbered by the workbook, not by their order in the file.
const ACCELWATTCH: [&str; 25] = [
    "btree_k1",
    "btree_k2",
    "backprop_k1",
    "backprop_k2",
    "hotspot_k1",
    "kmeans_k1",
    "srad_v1_k1",
    "parboil_sad_k1",
    "parboil_sgemm_k1",
    "parboil_mriq_k1",
    "dct8x8_k1",
    "dct8x8_k2",
    "binomialOptions_k1",
    "fastWalshTransform_k1",
    "fastWalshTransform_k2",
    "histogram_k1",
    "mergeSort_k2",
    "mergeSort_k1",
    "quasirandomGenerator_k1",
    "quasirandomGenerator_k2",
    "sobolQRNG_k1",
    "cutlass_k1",
    "cutlass_k2",
    "cutlass_k3",
    "cudaTensorCoreGemm_k1",
];

fn accelwattch() -> Option<String> {
    let (counters, power) =
        (read("accelwattch/hw_perf.csv")?, read("accelwattch/hw_power_validation_volta.csv")?);
    let watts = |name: &str| {
        let line = power.lines().find(|line| line.split(',').next() == Some(name)).expect("measured");
        line.split(',').nth(1).expect("watts").to_owned()
    };
    let mut lines = counters.lines();
    let mut text = format!("{},power_w\n", lines.next().expect("names"));
    for (line, name) in lines.zip(ACCELWATTCH) {
        text += &format!("{line},{}\n", watts(name));
    }
    Some(text)
}

/// 25 kernels and 15 counters, none of which tells what the instructions were. AccelWattch itself, whose
/// model knows them and was fitted to microbenchmarks, is 7.5 % wrong about these kernels.
#[test]
fn accelwattch_kernels_left_out_one_by_one() {
    let Some(text) = accelwattch() else { return };
    let roles = roles("power_w", "Kernel");
    // Three kernels of cutlass are one function with other sizes: rows of their own.
    let roles = Roles { group: vec!["Benchmark".to_owned(), "Kernel".to_owned()], ..roles };
    let chosen = validate("accelwattch", &text, &roles, Allowed::All);
    assert!(chosen.mean_error < 0.105, "{}", chosen.mean_error);
    let published = validate("accelwattch, as published in 2009", &text, &roles, Allowed::Published);
    assert!(chosen.mean_error < 0.6 * published.mean_error);
}

/// The larger tables take minutes where nothing is optimised.
fn is_optimised() -> bool {
    if cfg!(debug_assertions) {
        skip("large tables are for an optimised build: cargo test --release --test gpu models");
    }
    !cfg!(debug_assertions)
}

/// A table that is too large for a build without optimisation; the figure it must stay below.
fn assert_large(what: &str, file: &str, roles: &Roles, limit: f64) {
    if !is_optimised() {
        return;
    }
    let Some(text) = read(file) else { return };
    let error = validate(what, &text, roles, Allowed::All).mean_error;
    assert!(error < limit, "{what}: {error}");
}

/// Utilisations and clock only, of 20 applications at 10 clocks: 8.1 % is reached, and 9.2 % without steps of the clock.
#[test]
fn v100_applications_left_out_one_by_one() {
    let file = "NV-DVFS-Benchmark/v100-dvfs-real-profile.csv";
    let Some(text) = read(file) else { return };
    let found = validate("V100", &text, &roles("average_power", "benchmark"), Allowed::All);
    assert!(found.mean_error < 0.088, "{}", found.mean_error);
    let table = Table::parse(&text, &roles("average_power", "benchmark")).expect("a table");
    let coverage = found.coverage(&table, 0.95).expect("groups enough");
    // 94 % is reached.
    assert!((0.90..0.99).contains(&coverage.held), "{coverage:?}");
}

/// What kernels of CUDA are made of, by their PTX, says next to nothing of other kernels' power: a constant, off by the
/// least share on average, is 39.6 and 20.1 % off. Nobody may do worse for having counters: 39.4 and 18.9 % are reached, of
/// every tenth row.
#[test]
fn counters_that_tell_little_do_no_harm() {
    for (file, limit) in [("all_merge_df_Ampere.csv", 0.397), ("all_merge_df_K80.csv", 0.195)] {
        let Some(text) = read(&format!("gpu-power-prediction/{file}")) else { return };
        let (heading, rows) = text.split_once('\n').expect("rows");
        let rows: Vec<&str> = rows.lines().filter(|line| !line.is_empty()).collect();
        let step = rows.len().div_ceil(400);
        let some = rows.iter().step_by(step).map(|row| format!("{row}\n")).collect::<String>();
        let roles = Roles { exclude: vec!["Loops".to_owned()], ..roles("Avg", "KernelName") };
        let found = validate(file, &format!("{heading}\n{some}"), &roles, Allowed::All);
        assert!(found.mean_error < limit, "{file}: {}", found.mean_error);
    }
}

/// The same with counts of 120 kinds of instruction: six times as many columns as applications. 16.6 % is reached, twice what
/// the utilisations alone give: one application, `eigenvalues`, is 86 % off. A build gave 13.8 % in which recipes were compared with
/// columns that the left-out rows had helped to choose.
#[test]
fn v100_applications_with_more_columns_than_applications() {
    let file = "NV-DVFS-Benchmark/v100-dvfs-real.csv";
    assert_large("V100, all columns", file, &roles("average_power", "benchmark"), 0.17);
}

#[test]
fn gtx_1080_ti_applications_left_out_one_by_one() {
    let file = "GPU-DVFS-Job-Schedule/gtx1080ti-dvfs-real-Performance-Power.csv";
    assert_large("GTX 1080 Ti", file, &roles("power/W", "appName"), 0.145);
}

/// Microbenchmarks and applications over core and memory clocks.
#[test]
fn titan_x_kernels_left_out_one_by_one() {
    let file =
        "gpupowermodel/v2.0_TPDS2019__local_examples__TitanX__titanx_micro_names_peak_idle_HPCAandCF.csv";
    assert_large("Titan X", file, &Roles::default(), 0.05);
}
