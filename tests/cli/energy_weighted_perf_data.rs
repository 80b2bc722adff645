//! perf's table of an energy-weighted recording is eprof's report.
//!
//! Needs `perf` and recordings that others published; skips, and says why, where either is missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use eprof_testbed::{eprof, has_program, published_data, skip};

/// Nanojoules by shared object and address or symbol.
type Energy = BTreeMap<(String, String), f64>;

const FOLDERS: [&str; 5] = ["perf_data_converter", "perfparser", "hotspot", "linux-perf-data", "autofdo"];
/// So that neither program finds symbols: the recorded machines' binaries are not here.
const NO_SYMBOLS: [&str; 2] = ["--symfs", "/nonexistent"];

#[test]
fn perf_shows_the_same_energy_per_function() {
    let Some(data) = published_data() else { return };
    if !has_program("perf", &["--version"]) {
        return skip("perf is not installed");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let exported = folder.path().join("energy.data");
    let (mut compared, mut wrong) = (0, Vec::new());
    for path in FOLDERS.iter().flat_map(|folder| recordings_in(&data.join(folder))) {
        let Some(samples) = export(&path, &exported) else { continue };
        let Some(ours) = energy_by_eprof(&path) else { continue };
        let perf = energy_by_perf(&exported);
        if perf.is_empty() {
            // perf cannot read the original either.
            continue;
        }
        compared += 1;
        // Each sample is rounded to a nanojoule.
        let differs = |(a, b): (&f64, &f64)| (a - b).abs() > samples as f64 + 1.0;
        let keys: std::collections::BTreeSet<_> = perf.keys().chain(ours.keys()).collect();
        let different: Vec<String> = keys
            .into_iter()
            .filter(|key| differs((perf.get(key).unwrap_or(&0.0), ours.get(key).unwrap_or(&0.0))))
            .map(|key| format!("{key:?}: perf {:?}, eprof {:?}", perf.get(key), ours.get(key)))
            .collect();
        println!("{}: {samples} samples, {} rows", path.display(), perf.len());
        if !different.is_empty() {
            let shown = different.iter().take(6).cloned().collect::<Vec<_>>().join("\n    ");
            wrong.push(format!("{}: {} rows differ\n    {shown}", path.display(), different.len()));
        }
    }
    assert!(compared > 20, "only {compared} files could be compared");
    assert!(wrong.is_empty(), "{} of {compared} files differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn recordings_in(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(recordings_in(&path));
        } else if path.file_name().is_some_and(|name| name.to_string_lossy().contains(".data")) {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The number of samples written; `None` where there is nothing to export.
fn export(path: &Path, to: &Path) -> Option<u64> {
    let output = eprof()
        .args(["export", "--format", "perf-data", "--watts", "10:30", "-i"])
        .arg(path)
        .arg("-o")
        .arg(to)
        .output()
        .expect("eprof runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let samples = text.split(" samples;").next()?.rsplit(' ').next()?;
    output.status.success().then(|| samples.parse().expect("a number of samples"))
}

fn energy_by_eprof(path: &Path) -> Option<Energy> {
    let output = eprof()
        .args(["report", "--format", "json", "--no-inline", "--watts", "10:30"])
        .args(NO_SYMBOLS)
        .arg("-i")
        .arg(path)
        .output()
        .expect("eprof runs");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    let mut energy = Energy::new();
    for row in report["rows"].as_array()? {
        let (name, module) = (row["name"].as_str()?, row["module"].as_str()?);
        let joules = row["self_joules"].as_f64()?;
        if joules > 0.0 {
            let key = in_common_terms(module, name.rsplit("+0x").next()?);
            *energy.entry(key).or_default() += joules * 1e9;
        }
    }
    Some(energy)
}

fn energy_by_perf(path: &Path) -> Energy {
    let output = Command::new("perf")
        .args(["report", "--stdio", "--no-children", "-g", "none", "--no-branch-stack", "--no-inline"])
        .args(["--no-itrace", "-F", "period,dso,sym", "--percent-limit", "0", "-t", "|"])
        .args(NO_SYMBOLS)
        .arg("-i")
        .arg(path)
        .output()
        .expect("perf runs");
    let mut energy = Energy::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut fields = line.splitn(3, '|').map(str::trim);
        let (Some(period), Some(module), Some(symbol)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let Ok(period) = period.parse::<f64>() else { continue };
        // A mark of the mode, `[.]` or `[k]`, comes before the symbol.
        let symbol = symbol.get(4..).unwrap_or(symbol).trim();
        let key = in_common_terms(module, symbol.trim_start_matches("0x").trim_start_matches('0'));
        *energy.entry(key).or_default() += period;
    }
    energy.retain(|_, period| *period > 0.0);
    energy
}

/// Both programs' words for one thing: code that lies in no file is compared as a whole.
fn in_common_terms(module: &str, symbol: &str) -> (String, String) {
    if module.starts_with('[') || module.starts_with("//") || module.contains(".ko") {
        return ("no file".to_owned(), String::new());
    }
    let file_name = module.rsplit('/').next().unwrap_or(module);
    (file_name.to_owned(), symbol.to_owned())
}
