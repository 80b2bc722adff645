//! The six functions of `phases`, which draw from 1.8 to 12.4 W: what eprof says of them beside the truth.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use eprof::numerics::random::Random;
use eprof::power_model::folder;
use eprof::power_model::stored::StoredModel;
use eprof_testbed::eprof;
use tempfile::TempDir;

use crate::bench::Run;

/// The machine that the preset was made of: a cycle costs 6.288 W / 2.9 GHz.
pub const AS_THE_PRESET: [&str; 2] = ["--sim", "c_clk=2168276"];

/// Another machine of its kind: each coefficient of the preset, what a miss costs and what the machine draws at rest,
/// times a half to two.
pub fn drawn(seed: u64) -> String {
    const AS_THE_PRESET: [(&str, f64); 7] = [
        ("c_clk", 2_168_276.0),
        ("c_inst", 206_000.0),
        ("c_rs", 3_161_000.0),
        ("c_l2", 6_058_000.0),
        ("c_llc", 20_000_000.0),
        ("static_mw", 12_410.0),
        ("uncore_mw", 3_000.0),
    ];
    let mut random = Random::seeded(seed);
    let words = AS_THE_PRESET.map(|(name, value)| format!("{name}={:.0}", value * random.symmetric().exp2()));
    words.join(" ")
}

/// A machine as [`drawn`] that no boot had before; `EPROF_SEED` has the one again whose seed was printed.
pub fn drawn_anew() -> String {
    let told = std::env::var("EPROF_SEED").ok().and_then(|text| text.parse().ok());
    let seed = told.unwrap_or_else(|| RandomState::new().hash_one(0) % 1_000_000);
    let machine = drawn(seed);
    println!("a machine by EPROF_SEED={seed}: {machine}");
    machine
}

/// What a guest does first where it is to be calibrated; its model comes back as `model.json`.
pub const CALIBRATE: &str = "export XDG_CONFIG_HOME=/guest/home/.config\n\
     ./eprof calibrate --announce /proc/simhw --precision 0.05 --time-limit 45 --meter-watch 500\n\
     cp /guest/home/.config/eprof/models/*.json model.json\n";

pub const FUNCTIONS: [&str; 6] = ["stress", "asm", "l1", "l2", "l3", "mem"];

/// What a report says of one function with all that it calls.
pub struct Said {
    pub joules: f64,
    pub std_error: f64,
}

/// What the simulated machine says of it.
pub struct Truth {
    pub joules: f64,
    pub milliseconds: f64,
}

pub fn truth(said: &str, function: &str) -> Truth {
    let start = format!("truth work_{function} ");
    let line = said.lines().find_map(|line| line.strip_prefix(&start));
    let line = line.unwrap_or_else(|| panic!("no truth of {function} in {said}"));
    let value = |name: &str| -> f64 {
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        word.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no {name} in {line}"))
    };
    Truth { joules: value("core_j") + value("dram_j"), milliseconds: value("cpu_ms") }
}

/// The report's row of all samples with the function on their stack.
pub fn said(recording: &Path, root: &Path, function: &str, model: &str) -> Said {
    let mut eprof = eprof();
    eprof.arg("report").arg("-i").arg(recording).arg("--symfs").arg(root);
    eprof.args(["--by", "process", "--format", "csv", "--model", model]);
    eprof.arg("--through").arg(format!("^work_{function}$"));
    let output = eprof.env("XDG_CONFIG_HOME", root).output().expect("eprof runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut reader = csv::Reader::from_reader(&output.stdout[..]);
    let headers = reader.headers().expect("a line of names").clone();
    let (mut joules, mut variance) = (0.0, 0.0);
    for record in reader.records() {
        let record = record.expect("a record");
        let value = |name: &str| -> f64 {
            let column = headers.iter().position(|header| header == name).expect("a column");
            record[column].parse().expect("a number")
        };
        joules += value("self_joules");
        variance += value("stderr_joules").powi(2);
    }
    Said { joules, std_error: variance.sqrt() }
}

/// A folder in which the program lies where it lay in the guest.
pub fn root_with_program(run: &Run) -> TempDir {
    let root = tempfile::tempdir().expect("a folder");
    fs::create_dir(root.path().join("guest")).expect("a folder");
    fs::copy(run.file("phases"), root.path().join("guest/phases")).expect("copied");
    root
}

/// Keeps the model of a guest's calibration where reports look that are told that folder; `false` where the calibration
/// kept none.
pub fn take_model(run: &Run, root: &TempDir) -> bool {
    if fs::metadata(run.file("model.json")).is_ok_and(|file| file.len() == 0) {
        return false;
    }
    let models = root.path().join("eprof/models");
    fs::create_dir_all(&models).expect("a folder");
    let model = folder::read(&run.file("model.json")).expect("a model");
    fs::copy(run.file("model.json"), models.join(StoredModel::file_name(&model.cpu_identity)))
        .expect("copied");
    true
}

/// All six beside the truth: joules, not only shares.
pub struct Comparison {
    rows: Vec<(Truth, Said)>,
    /// All six in one row of a report, whose error is not that of six independent ones.
    together: Said,
}

impl Comparison {
    /// Of one recording by a model; `printed` is what `phases` said at its end.
    pub fn new(printed: &str, recording: &Path, root: &Path, model: &str) -> Self {
        let row = |function: &&str| (truth(printed, function), said(recording, root, function, model));
        let rows = FUNCTIONS.iter().map(row).collect();
        let together = said(recording, root, &format!("({})", FUNCTIONS.join("|")), model);
        Self { rows, together }
    }

    /// Errors of the functions as shares of the truth.
    pub fn errors(&self) -> Vec<f64> {
        self.rows.iter().map(|(truth, said)| said.joules / truth.joules - 1.0).collect()
    }

    pub fn mean(&self) -> f64 {
        self.errors().iter().map(|error| error.abs()).sum::<f64>() / self.rows.len() as f64
    }

    pub fn worst(&self) -> f64 {
        self.errors().iter().fold(0.0, |worst: f64, error| worst.max(error.abs()))
    }

    /// What all together were given, as a share of the truth.
    pub fn sum(&self) -> f64 {
        self.rows.iter().map(|(_, said)| said.joules).sum::<f64>() / self.true_sum()
    }

    fn true_sum(&self) -> f64 {
        self.rows.iter().map(|(truth, _)| truth.joules).sum()
    }

    /// Whether the bar of 95 % of all together holds the truth.
    pub fn sum_held(&self) -> bool {
        (self.together.joules - self.true_sum()).abs() <= 1.96 * self.together.std_error
    }

    /// How many bars of 95 % hold the truth.
    pub fn held(&self) -> usize {
        let holds =
            |(truth, said): &&(Truth, Said)| (said.joules - truth.joules).abs() <= 1.96 * said.std_error;
        self.rows.iter().filter(holds).count()
    }

    /// The widest standard error, as a share of the joules.
    pub fn least_sure(&self) -> f64 {
        self.rows.iter().fold(0.0, |widest: f64, (truth, said)| widest.max(said.std_error / truth.joules))
    }

    pub fn print(&self, title: &str) {
        println!("{title}: joules by function");
        println!("function   truth    said   error      ±");
        for ((truth, said), function) in self.rows.iter().zip(FUNCTIONS) {
            let error = (said.joules / truth.joules - 1.0) * 100.0;
            println!(
                "{function:<8} {:>7.3} {:>7.3} {error:>+6.1}% {:>6.3}",
                truth.joules, said.joules, said.std_error
            );
        }
        println!(
            "mean {:.1}%, worst {:.1}%, sum {:.1}% ± {:.1}%, {} of 6 within 1.96 standard errors",
            self.mean() * 100.0,
            self.worst() * 100.0,
            self.sum() * 100.0,
            self.together.std_error / self.true_sum() * 100.0,
            self.held()
        );
    }
}
