//! The energy of instructions, known to a fake GPU, is found again: by the program itself, in virtual
//! time (a library of the testbed), so that no figure depends on how busy this machine is.

use std::path::Path;
use std::process::Command;

use eprof::measure::gpu::Cuda;
use eprof_testbed::fakes::{fake_gpu, virtual_time};

/// A line of the table; figures that were not measured are `None`.
#[derive(Debug)]
struct Line {
    counter: Option<f64>,
    area: Option<f64>,
    last: Option<f64>,
    cycles: f64,
    eliminated: bool,
}

/// Measures with the program's own defaults.
fn measured(sensor: &str, instruction: &str, arguments: &[&str]) -> Line {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = format!(
        "idle 20\nnanoseconds 20\nbase 1.5\nenergy div.u32 2.25\nenergy fma.rn.f32 0.8\n\
         energy abs.s32 1\neliminated abs.s32\n{sensor}"
    );
    let library = fake_gpu(folder.path(), &settings, &[]);
    let output = Command::new(env!("CARGO_BIN_EXE_eprof"))
        .env("LD_PRELOAD", virtual_time(folder.path()))
        .args(["gpu", "instructions", "--only", instruction])
        .args(arguments)
        .arg("--cuda-lib")
        .arg(&library)
        .arg("--nvml-lib")
        .arg(&library)
        .output()
        .expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("compute capability 7.0, 80 multiprocessors"), "{text}");
    let line = text.lines().find(|line| line.starts_with(instruction)).expect("a line of the table");
    println!("{line}");
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| words[at].parse().ok();
    Line {
        counter: number(2),
        area: number(4),
        last: number(5),
        cycles: number(6).expect("cycles"),
        eliminated: line.contains("eliminated"),
    }
}

/// Sensors as real cards have them: Volta's, and that of an A100 without energy counter.
const VOLTA: &str = "refresh_ms 20\nwindow_ms 10\n";
const A100: &str = "refresh_ms 100\nwindow_ms 25\nfail energy 3\n";

#[track_caller]
fn assert_near(found: Option<f64>, truth: f64) {
    let found = found.expect("measured this way");
    assert!((found / truth - 1.0).abs() < 0.03, "{found} of {truth} uJ");
}

#[test]
fn known_energies_are_recovered() {
    for (instruction, truth) in [("div.u32", 2.25), ("fma.rn.f32", 0.8)] {
        let line = measured(VOLTA, instruction, &["--level", "0"]);
        assert_near(line.counter, truth);
        assert_near(line.area, truth);
        assert!((line.cycles - 20.0).abs() < 0.5 && !line.eliminated, "{line:?}");
        // A single reading times the duration charges idling too.
        assert!((line.last.expect("a reading") / truth - 1.0).abs() > 0.03, "{line:?}");
    }
}

#[test]
fn known_energies_are_recovered_without_a_counter() {
    let line = measured(A100, "div.u32", &["--level", "0"]);
    assert_eq!(line.counter, None);
    assert_near(line.area, 2.25);
}

#[test]
fn a_full_gpu_gives_the_energy_of_one_threads_instruction() {
    // 160 blocks of 512 threads: the fake GPU spends the energy once per thread.
    let line = measured(VOLTA, "fma.rn.f32", &["--level", "4", "--full"]);
    assert_near(line.counter, 0.8);
    assert_near(line.area, 0.8);
}

#[test]
fn an_eliminated_chain_is_found_out() {
    let line = measured(VOLTA, "abs.s32", &["--level", "4"]);
    assert!(line.eliminated && line.cycles < 0.5, "{line:?}");
}

#[test]
fn a_machine_without_cuda_is_told_so() {
    let error = Cuda::open(Some(Path::new("/nonexistent/libcuda.so.1")), 0).err().expect("no driver");
    assert!(error.to_string().contains("driver"), "{error}");
}
