//! How well tuning predicts what was measured on real machines, from a part of the settings.
//!
//! `cargo test --test library tune_data -- --nocapture --test-threads 1` prints the tables.

use std::fs;
use std::path::Path;

use eprof::tune::design;
use eprof::tune::formula::Formula;
use eprof::tune::model::LogModel;
use eprof::tune::runs::{AXES, Axis, Measurements, Responses, Run};
use eprof::tune::space::Space;
use eprof::tune::table::{TableOptions, read_runs};
use eprof_testbed::{published, published_data};

struct Table {
    space: Space,
    runs: Vec<Run>,
    responses: Responses,
}

fn read(path: &Path, options: &TableOptions) -> Table {
    let text = fs::read_to_string(path).expect("readable");
    let table = read_runs(&text, options).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Table { space: table.space, runs: table.runs, responses: table.responses }
}

impl Table {
    /// Root mean square and largest relative error of time and energy at the settings that were left
    /// out, and the leave-one-out error of those that were not.
    fn predict_the_rest(&self, formula: &Formula, settings: &[usize]) -> [[f64; 3]; 2] {
        let trained: Vec<Run> = self
            .runs
            .iter()
            .filter(|run| self.space.position(&run.setting).is_some_and(|at| settings.contains(&at)))
            .cloned()
            .collect();
        let training = Measurements::gather(self.responses, &trained).expect("runs");
        let all = Measurements::gather(self.responses, &self.runs).expect("runs");
        AXES.map(|axis| {
            let model = LogModel::fit(formula, &self.space, &training, axis).expect("determined");
            let errors: Vec<f64> = all
                .settings()
                .iter()
                .filter(|measured| training.find(&measured.setting).is_none())
                .map(|measured| model.value_at(&measured.setting) / measured.value(axis) - 1.0)
                .collect();
            let left_out: Vec<f64> = model.leave_one_out().into_iter().flatten().collect();
            [rms(&errors), errors.iter().fold(0.0, |most: f64, error| most.max(error.abs())), rms(&left_out)]
        })
    }
}

fn rms(errors: &[f64]) -> f64 {
    (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt()
}

fn percent(share: f64) -> String {
    if share < 10.0 { format!("{:6.1}", share * 100.0) } else { "   >999".into() }
}

/// From a quarter of the core counts (five at least) the others are predicted.
#[test]
fn core_counts_of_four_machines() {
    let Some(data) = published_data() else { return };
    println!("percent: root mean square and worst error of the core counts left out, time then energy");
    for (machine, limits) in [
        ("amd", Some([0.03, 0.045])),
        ("xeon", Some([0.06, 0.10])),
        // Too few counts for a quarter of them, or two kinds of cores and a jump between: not for a smooth curve.
        ("xu3/static/all_cores", None),
    ] {
        let folder = data.join("multicores-time-energy/raw").join(machine);
        let mut files: Vec<_> =
            fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
        files.sort();
        let (mut sums, mut papers_sums) = ([0.0; 2], [0.0; 2]);
        for path in &files {
            let table = read(path, &TableOptions::default());
            let cores = table.space.size();
            let count = (cores / 4).max(5);
            // The columns are processes (one), cores and frequency (one).
            let settings = design::uniform(&table.space, &[1, count, 1]);
            let [time, energy] = table.predict_the_rest(&Formula::usual(&table.space), &settings);
            let papers = table.predict_the_rest(&Formula::as_in_the_paper(&table.space), &settings);
            println!(
                "{machine} {:<12} {count:>2} of {cores:>2}: {} {}  {} {}   paper's formula: {} {}",
                path.file_name().expect("a name").to_string_lossy(),
                percent(time[0]),
                percent(time[1]),
                percent(energy[0]),
                percent(energy[1]),
                percent(papers[0][0]),
                percent(papers[1][0]),
            );
            for axis in 0..2 {
                sums[axis] += [time, energy][axis][0] / files.len() as f64;
                papers_sums[axis] += papers[axis][0] / files.len() as f64;
            }
        }
        println!(
            "{machine} mean: time {} energy {}; paper's formula: {} {}",
            percent(sums[0]),
            percent(sums[1]),
            percent(papers_sums[0]),
            percent(papers_sums[1])
        );
        if let Some(limits) = limits {
            assert!(sums[0] < limits[0] && sums[1] < limits[1], "{machine}: {sums:?}");
            assert!(
                sums[0] < papers_sums[0] && sums[1] < papers_sums[1],
                "{machine}: logarithms should help"
            );
        }
    }
}

/// An A100 at 35 combinations of clock and power cap: 12 of them predict the others.
#[test]
fn clocks_and_power_caps_of_a_gpu() {
    let Some(folder) = published("gpu-power-frequency-benchmarks") else { return };
    println!("percent: root mean square and worst error of 23 settings from 12, and one left out of the 12");
    for program in ["babelstream", "pi-solver", "waterlily", "breeze"] {
        let folder = folder.join(format!("{program}-benchmarks/cricket-a100"));
        let mut csv = String::from("cap_W,clock_MHz,time_s,energy_Wh\n");
        for mhz in [1005, 1110, 1200, 1305, 1410] {
            for watts in [150, 175, 200, 225, 250, 275, 300] {
                let path = match program {
                    "waterlily" => {
                        format!("data-{mhz}-{watts}/benchmarks/cricket.rc.ucl.ac.uk_2d41ba1/energy-time.json")
                    }
                    "breeze" => format!("energy-{mhz}-{watts}.json"),
                    _ => format!("energy-time-{mhz}-{watts}.json"),
                };
                let text = fs::read_to_string(folder.join(path)).expect("readable");
                let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
                // One of the four programs has no time: only its energy is compared.
                let time = record.get("time").or(record.get("total_time")).and_then(|time| time.as_f64());
                csv += &format!("{watts},{mhz},{},{}\n", time.unwrap_or(1.0), record["energy"]);
            }
        }
        let table = read_runs(&csv, &TableOptions::default()).expect("valid");
        let table = Table { space: table.space, runs: table.runs, responses: table.responses };
        let formula = Formula::usual(&table.space);
        assert_eq!(formula.to_string(), "bs(log(cap)) + clock + bs(log(cap)):clock");
        let settings = design::uniform(&table.space, &design::usual_counts(&table.space, &formula));
        assert_eq!(settings.len(), 12);
        let errors = table.predict_the_rest(&formula, &settings);
        for axis in AXES.into_iter().filter(|&axis| program != "breeze" || axis == Axis::Energy) {
            let [error, worst, left_out] = errors[axis as usize];
            println!(
                "{program:<12} {:<7} {} {} {}",
                Responses::Totals.name(axis),
                percent(error),
                percent(worst),
                percent(left_out)
            );
            assert!(error < 0.035 && worst < 0.07, "{program}");
        }
    }
}

/// 23 languages x 5 power caps, about 19 repeats: two caps of each predict the other three.
#[test]
fn languages_and_power_caps() {
    let Some(path) = published("Energy-Languages-PowerCap/measurements.csv") else { return };
    println!("percent: root mean square and worst error of the settings left out, time then energy");
    let mut means = [0.0; 2];
    let programs = [
        "binary-trees",
        "fannkuch-redux",
        "fasta",
        "k-nucleotide",
        "mandelbrot",
        "n-body",
        "regex-redux",
        "reverse-complement",
        "spectral-norm",
    ];
    for program in programs {
        let options = TableOptions {
            time: Some("Time:ms".into()),
            variables: vec!["Language".into(), "PowerLimit".into()],
            conditions: vec![("Program".into(), program.into())],
            ..TableOptions::default()
        };
        let table = read(&path, &options);
        let size = table.space.size();
        let languages = table.space.variables()[0].levels().len();
        // Two caps of every language, shifted from one to the next so that every cap is seen as often.
        let settings: Vec<usize> = (0..size).filter(|at| (2 * (at / 5) + at % 5) % 5 < 2).collect();
        let [time, energy] = table.predict_the_rest(&Formula::usual(&table.space), &settings);
        println!(
            "{program:<20} {languages} languages, {:>2} of {size}: {} {}  {} {}",
            settings.len(),
            percent(time[0]),
            percent(time[1]),
            percent(energy[0]),
            percent(energy[1])
        );
        for axis in 0..2 {
            means[axis] += [time, energy][axis][0] / programs.len() as f64;
        }
    }
    println!("mean {} {}", percent(means[0]), percent(means[1]));
    // How a language takes a cap of 2 W depends on its threads, of which a common factor knows nothing.
    assert!(means[0] < 0.15 && means[1] < 0.08, "{means:?}");
}
