//! The programs and recordings that the others work on. They are made once and kept.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use eprof_testbed::programs;
use eprof_testbed::repeat::repeat;

/// The program under test.
pub const EPROF: &str = env!("CARGO_BIN_EXE_eprof");
/// What is sampled.
pub const EVENT: &str = "cpu-clock";
/// A sample stands for so many nanoseconds of CPU time.
const PERIOD: u64 = 50_000;
/// The same for the large program, whose run of 16 to 20 s of CPU time then has 105 to 130 k samples.
const LARGE_PROGRAM_PERIOD: u64 = 155_000;
/// Threads of the workload.
const THREADS: u64 = 2;

/// The program with deep stacks, compiled with frame pointers.
pub fn workload(folder: &Path) -> anyhow::Result<PathBuf> {
    let program = folder.join("workload");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "-O", "-g", "-Cforce-frame-pointers=yes", "-o"]).arg(&program);
    succeed(rustc.arg(programs::source("workload.rs")))?;
    Ok(program)
}

/// A recording of about so many samples, about 27 frames each, by eprof: with energy readings.
pub fn of_workload(folder: &Path, samples: u64) -> anyhow::Result<PathBuf> {
    let file = folder.join(format!("samples-{samples}.data"));
    if !file.exists() {
        let program = workload(folder)?;
        let seconds = (samples * PERIOD) as f64 * 1e-9 / THREADS as f64;
        eprintln!("recording {samples} samples: about {seconds:.0} s");
        let mut record = Command::new(EPROF);
        record.args(["record", "-q", "-e", EVENT, "-c", &PERIOD.to_string(), "--call-graph", "fp"]);
        let part = file.with_extension("part");
        succeed(record.arg("-o").arg(&part).arg("--").arg(program).args(["seconds", &seconds.to_string()]))?;
        std::fs::rename(part, &file)?;
    }
    Ok(file)
}

/// The recording of so many samples so many times over: what a run that long would have recorded.
pub fn of_long_workload(folder: &Path, samples: u64, repetitions: u64) -> anyhow::Result<PathBuf> {
    let once = of_workload(folder, samples)?;
    if repetitions == 1 {
        return Ok(once);
    }
    let file = folder.join(format!("samples-{samples}-times-{repetitions}.data"));
    if !file.exists() {
        let part = file.with_extension("part");
        repeat(&once, &part, repetitions)?;
        std::fs::rename(part, &file)?;
    }
    Ok(file)
}

/// A recording of a program with full debug information at work: eprof itself, unoptimized, which reads a
/// recording.
pub fn of_large_program(folder: &Path) -> anyhow::Result<(PathBuf, PathBuf)> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = folder.join("full-debug");
    let mut build = Command::new(cargo);
    build.args(["build", "--locked", "--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    build
        .arg("--target-dir")
        .arg(&target)
        .env("CARGO_PROFILE_DEV_DEBUG", "2")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
    build.env("RUSTFLAGS", "-Cforce-frame-pointers=yes");
    succeed(&mut build)?;
    let program = target.join("debug/eprof");
    let file = folder.join("large-program.data");
    let modified = |path: &Path| std::fs::metadata(path).and_then(|it| it.modified());
    // A program that was built again is not the one that was recorded.
    if !modified(&file).is_ok_and(|recorded| modified(&program).is_ok_and(|built| built < recorded)) {
        let input = of_workload(folder, 1_000_000)?;
        let part = file.with_extension("part");
        let mut record = Command::new(EPROF);
        let period = LARGE_PROGRAM_PERIOD.to_string();
        record.args(["record", "-q", "-e", EVENT, "-c", &period, "--call-graph", "fp", "-o"]);
        record.arg(&part).arg("--").arg(&program).args(["report", "--children", "-o", "/dev/null", "-i"]);
        succeed(record.arg(input))?;
        std::fs::rename(part, &file)?;
    }
    Ok((program, file))
}

/// Number of samples of a recording, and of lost ones.
pub fn count(file: &Path) -> anyhow::Result<(u64, u64)> {
    let mut report = Command::new(EPROF);
    report.args(["report", "--format", "json", "--by", "event", "--watts", "1:2", "-i"]).arg(file);
    let output = report.output()?;
    ensure!(output.status.success(), "{report:?}: {}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let sum = |key: &str| -> Option<u64> {
        report["events"].as_array()?.iter().map(|event| event[key].as_u64()).sum()
    };
    Ok((sum("samples").context("samples of the events")?, sum("lost").context("lost ones")?))
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    // What the programs print is not the table's.
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
