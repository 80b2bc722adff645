//! Inputs that `tests/same-outputs.sh` compares two builds with, and that no command of eprof makes:
//!
//! ```text
//! EPROF_INPUTS=FOLDER cargo test --test same_outputs -- --ignored
//! ```
//!
//! They are written once, and read by both builds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use eprof::gpu::trace::{PowerReading, PowerTrace};
use eprof::units::{Joules, Nanoseconds, Timestamp, Watts};
use eprof_testbed::gpu::recording::Gpu;
use eprof_testbed::simulate::alternating::{Alternation, scenario};
use eprof_testbed::simulate::scenario::Sampling;
use eprof_testbed::simulate::{paper, simulate};
use fixture::FixtureMachine;

#[path = "../src/machine/fixture.rs"]
mod fixture;

#[test]
#[ignore = "writes files for tests/same-outputs.sh"]
fn inputs() {
    let folder = PathBuf::from(std::env::var_os("EPROF_INPUTS").expect("EPROF_INPUTS names a folder"));
    simulated(&folder.join("simulated"));
    gpus(&folder.join("gpu"));
    machines(&folder.join("machines"));
}

/// Recordings of all that attribution tells apart: models that are right, wrong and missing, loss, throttling,
/// others' processes, moving threads, several packages, the paper's own runs.
fn simulated(folder: &Path) {
    let base = Alternation {
        duration: Nanoseconds::from_millis(1500),
        joules_per_sample: Joules::from_joules(0.02),
        ..Alternation::default()
    };
    let lossy = Sampling { lost_share: 0.1, most_per_tick: Some(20), ..Sampling::default() };
    let own_only = Sampling { system_wide: false, ..Sampling::default() };
    let alternations = [
        ("plain", base.clone()),
        ("lossy", Alternation { sampling: lossy, others: 2, ..base.clone() }),
        ("own-only", Alternation { sampling: own_only, others: 3, busy: 4, ..base.clone() }),
        ("wrong-model", Alternation { coefficient_errors: vec![0.5, 2.0, 1.5, 0.7, 3.0], ..base.clone() }),
        ("static-unknown", Alternation { static_power_known: false, busy: 2, ..base.clone() }),
        (
            "two-packages",
            Alternation {
                packages: 2,
                cores_per_package: 4,
                migrate_every: Some(Nanoseconds::from_millis(200)),
                ..base
            },
        ),
    ];
    let length = Nanoseconds::from_millis(1200);
    let papers =
        [("paper-program", paper::program(2, 7, length)), ("paper-sequence", paper::sequence(3, 0.05))];
    let scenarios =
        alternations.map(|(name, alternation)| (name, scenario(&alternation))).into_iter().chain(papers);
    fs::create_dir_all(folder).expect("a folder");
    for (name, scenario) in scenarios {
        let simulation = simulate(&scenario).expect("a scenario that fits together");
        fs::write(folder.join(name).with_extension("data"), simulation.recording).expect("room for a file");
    }
}

/// A sensor that lags, a counter, and both in one recording.
fn gpus(folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    // Bursts of a second; the reported power follows with a time constant of 0.8 s.
    let is_loaded = |seconds: f64| (2.0..14.0).contains(&seconds) && !(seconds as u64).is_multiple_of(3);
    let mut reported = 25.0;
    let readings = (0..1600).map(|poll| {
        let seconds = f64::from(poll) * 0.0125;
        let power = if is_loaded(seconds) { 150.0 } else { 25.0 };
        reported += (power - reported) * 0.0125 / 0.8;
        let time = Timestamp::from_nanos(1_000_000_000 + (seconds * 1e9) as u64);
        PowerReading { time, power: Watts::from_watts((reported * 100.0_f64).round() / 100.0) }
    });
    let readings: Vec<PowerReading> = readings.collect();
    let sensor = || Gpu::with_sensor(&PowerTrace::new(readings.clone()));
    let counter = || Gpu::with_counter(|seconds| 30.0 * seconds + 90.0 * seconds.min(5.0), 20.0);
    eprof_testbed::gpu::recording::write(&folder.join("sensor.data"), &[sensor()]);
    eprof_testbed::gpu::recording::write(&folder.join("counter.data"), &[counter()]);
    eprof_testbed::gpu::recording::write(&folder.join("both.data"), &[counter(), sensor()]);
    eprof_testbed::gpu::recording::write(&folder.join("none.data"), &[]);
}

/// The machines of `fixtures/machines`, unfolded.
fn machines(folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let texts = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/machines");
    for entry in fs::read_dir(texts).expect("the folder of machines").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "machine") {
            continue;
        }
        let machine = FixtureMachine::load(&path);
        let to = folder.join(path.file_stem().expect("a name"));
        let _ = fs::remove_dir_all(&to);
        let status = Command::new("cp").arg("-a").arg(machine.path()).arg(&to).status().expect("cp runs");
        assert!(status.success(), "{} is not copied", to.display());
    }
}
