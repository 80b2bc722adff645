//! Joules per function on a real kernel whose PMU and energy counters are simulated, against the truth.
//!
//! The program `phases` has six functions that draw from 1.8 to 6.7 W. They run for the same time, one
//! after another or in turns; where a profile by time says a sixth for each, the truth is 8 to 31 %.
//! Without the test bench these tests skip, see `main.rs`.

use std::fs;
use std::path::Path;

use eprof::power_model::folder;
use eprof::power_model::stored::StoredModel;
use eprof_testbed::eprof;
use tempfile::TempDir;

use crate::bench::{Run, run};

const FUNCTIONS: [&str; 6] = ["stress", "asm", "l1", "l2", "l3", "mem"];

/// The guest's time counts its instructions: however busy the host is, no interrupt is late by that.
const STEADY: [&str; 2] = ["--icount", "shift=3"];

/// What a report says of one function with all that it calls.
struct Said {
    joules: f64,
    std_error: f64,
}

/// What the simulated machine says of it.
struct Truth {
    joules: f64,
    milliseconds: f64,
}

fn truth(said: &str, function: &str) -> Truth {
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
fn said(recording: &Path, root: &Path, function: &str, model: &str) -> Said {
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
fn root_with_program(run: &Run) -> TempDir {
    let root = tempfile::tempdir().expect("a folder");
    fs::create_dir(root.path().join("guest")).expect("a folder");
    fs::copy(run.file("phases"), root.path().join("guest/phases")).expect("copied");
    root
}

/// Runs the six functions and compares; every error is to be less than `tolerance`, or what chance explains.
fn compare(arguments: &str, tolerance: f64) {
    let script = format!(
        "./eprof record -q --neighbours --meter power --meter-watch 500 -o e.data ./phases {arguments}"
    );
    let Some(run) = run(&STEADY, &script, &["e.data", "phases"]) else { return };
    let root = root_with_program(&run);
    let all_joules: f64 = FUNCTIONS.iter().map(|function| truth(&run.said, function).joules).sum();
    let all_time: f64 = FUNCTIONS.iter().map(|function| truth(&run.said, function).milliseconds).sum();
    let by_time: Vec<f64> = FUNCTIONS
        .iter()
        .map(|function| said(&run.file("e.data"), root.path(), function, "time").joules)
        .collect();
    let all_by_time: f64 = by_time.iter().sum();
    println!("phases {arguments}: joules by function");
    println!("function   truth    said   error      ±   | share: truth    said  by time");
    let (mut held, mut wrong, mut error_bars) = (0, Vec::new(), Vec::new());
    let mut all_said = 0.0;
    for (function, by_time) in FUNCTIONS.iter().zip(&by_time) {
        let (truth, said) =
            (truth(&run.said, function), said(&run.file("e.data"), root.path(), function, "auto"));
        let error = said.joules / truth.joules - 1.0;
        let time_share = by_time / all_by_time;
        println!(
            "{function:<8} {:>7.3} {:>7.3} {:>+6.1}% {:>6.3}   |       {:>5.1}%  {:>5.1}%   {:>5.1}%",
            truth.joules,
            said.joules,
            error * 100.0,
            said.std_error,
            truth.joules / all_joules * 100.0,
            said.joules / all_joules * 100.0,
            time_share * 100.0
        );
        // 95 % of a normal distribution.
        error_bars.push(said.std_error / truth.joules);
        held += i32::from((said.joules - truth.joules).abs() <= 1.96 * said.std_error);
        // The emulator is off by some per cent itself, and the error bar tells the rest.
        let emulator = tolerance * truth.joules;
        if (said.joules - truth.joules).abs() > emulator + 1.96 * said.std_error {
            wrong.push(*function);
        }
        // Time says what time is: about a sixth for each.
        let expected = truth.milliseconds / all_time;
        assert!((time_share - expected).abs() < 0.015, "{function}: {time_share}");
        all_said += said.joules;
    }
    println!(
        "{held} of 6 within 1.96 standard errors; all together {:+.1}%",
        (all_said / all_joules - 1.0) * 100.0
    );
    let least_sure = error_bars.into_iter().fold(0.0, f64::max);
    assert!(least_sure < 0.4, "a bar of {least_sure} of the joules holds anything");
    assert!(wrong.is_empty(), "{wrong:?} are off by more than {tolerance} and their error bars");
}

#[test]
fn functions_one_after_another() {
    compare("-m seq -t 1000 -s 150", 0.03);
}

/// It fails in about half of all recordings, by how late their samples happen to be: the fit takes 15.0 or 16.0 W for
/// static where 15.4 W are true, and its error bars contain neither. `a_calibrated_machine_by_default` holds.
#[test]
#[ignore = "without calibration static power is off by half a watt, and bars do not say so: see README, How accurate"]
fn functions_in_turns_of_5_milliseconds() {
    compare("-m alt -t 1500 -n 5000", 0.06);
}

/// What a user of a calibrated machine gets who names no option: the joules of each function, not only shares. The
/// calibration knows the machine better than 18 s of the program do, and must not be corrected away from it.
#[test]
fn a_calibrated_machine_by_default() {
    let script = "export XDG_CONFIG_HOME=/guest/home/.config\n\
                  ./eprof calibrate --announce /proc/simhw --precision 0.05 --time-limit 45 --meter-watch 500\n\
                  cp /guest/home/.config/eprof/models/*.json model.json\n\
                  ./eprof record -q -a --meter-watch 500 -o e.data -- ./phases -m alt -t 3000 -n 5000\n";
    let Some(run) = run(&STEADY, script, &["e.data", "model.json", "phases"]) else { return };
    let root = root_with_program(&run);
    let models = root.path().join("eprof/models");
    fs::create_dir_all(&models).expect("a folder");
    let model = folder::read(&run.file("model.json")).expect("a model");
    fs::copy(run.file("model.json"), models.join(StoredModel::file_name(&model.cpu_identity)))
        .expect("copied");
    println!("calibrated, six functions in turns of 5 ms, whole system");
    println!("function   truth   auto   error      ±   stored   error");
    let (mut errors, mut of_stored, mut sums, mut held) = (Vec::new(), Vec::new(), [0.0; 2], 0);
    for function in FUNCTIONS {
        let truth = truth(&run.said, function).joules;
        let [auto, stored] =
            ["auto", "stored"].map(|model| said(&run.file("e.data"), root.path(), function, model));
        let [error, error_of_stored] = [&auto, &stored].map(|said| said.joules / truth - 1.0);
        println!(
            "{function:<8} {truth:>7.3} {:>6.3} {:>+6.1}% {:>6.3}   {:>6.3} {:>+6.1}%",
            auto.joules,
            error * 100.0,
            auto.std_error,
            stored.joules,
            error_of_stored * 100.0
        );
        held += u32::from((auto.joules - truth).abs() <= 1.96 * auto.std_error);
        errors.push(error.abs());
        of_stored.push(error_of_stored.abs());
        sums = [sums[0] + truth, sums[1] + auto.joules];
    }
    let mean = |errors: &[f64]| errors.iter().sum::<f64>() / errors.len() as f64;
    let worst = errors.iter().copied().fold(0.0, f64::max);
    let sum = sums[1] / sums[0];
    println!(
        "mean {:.1}% (stored {:.1}%), worst {:.1}%, sum {:.1}%, {held} of 6 within 1.96 standard errors",
        mean(&errors) * 100.0,
        mean(&of_stored) * 100.0,
        worst * 100.0,
        sum * 100.0
    );
    // Reached: mean 1.3 %, worst 2.7 %, sum 100.4 %, 6 held; before the calibration's own errors were believed, 11.6 %,
    // 20 %, 108 % and 1.
    assert!(mean(&errors) < 0.02 && worst < 0.041, "{errors:?}");
    assert!((sum - 1.0).abs() < 0.015, "{sum}");
    assert!(held >= 5, "{held} of 6");
}

/// With the guest's clock counting instructions and a model that is right, what remains is the error of
/// sampling. The kernel's periods follow the program with a delay, eprof's are the model's.
#[test]
fn fixed_periods_are_fairer_than_the_kernels() {
    // The preset does not know what a miss of the last cache costs, so there is no work in memory.
    const FUNCTIONS: [&str; 5] = ["stress", "asm", "l1", "l2", "l3"];
    let record = |name: &str, options: &str| {
        let work = "./phases -m alt -t 1500 -n 5000 -o stress,asm,l1,l2,l3";
        format!(
            "echo == {name}; ./eprof record -q --neighbours=never --meter power {options} -o {name}.data {work}\n"
        )
    };
    let script = record("periods", "") + &record("frequency", "-F 500");
    let files = ["periods.data", "frequency.data", "phases"];
    let Some(run) = run(&STEADY, &script, &files) else { return };
    let root = root_with_program(&run);
    // A meter's domains have more constant power than the preset knows of, the same for all functions: shares.
    let errors = |name: &str| -> [f64; 5] {
        let recording = run.file(&format!("{name}.data"));
        let ratios = FUNCTIONS.map(|function| {
            let truth = truth(run.section(name), function);
            said(&recording, root.path(), function, "preset").joules / truth.joules
        });
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        ratios.map(|ratio| ratio / mean - 1.0)
    };
    let mean_of = |errors: &[f64]| errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len() as f64;
    let [fixed, adapted] = ["periods", "frequency"].map(errors);
    println!("function   fixed periods   -F 500");
    for ((function, fixed), adapted) in FUNCTIONS.iter().zip(fixed).zip(adapted) {
        println!("{function:<8} {:>+13.1}% {:>+8.1}%", fixed * 100.0, adapted * 100.0);
    }
    let [fixed, adapted] = [fixed, adapted].map(|errors| mean_of(&errors));
    println!("mean     {:>13.2}% {:>8.2}%", fixed * 100.0, adapted * 100.0);
    assert!(fixed < 0.015, "{fixed}");
    assert!(fixed < adapted, "{fixed} by periods, {adapted} by frequencies");
}
