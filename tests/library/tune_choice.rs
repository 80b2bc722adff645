//! The form of the model that tuning chooses from the runs alone, on an A100 at 35 combinations of clock and power
//! cap: errors, fronts and intervals of the settings that were not run.
//!
//! `cargo test --test library tune_choice -- --nocapture` prints the tables.

use std::fs;
use std::path::Path;

use eprof::tune::analysis::{Analysis, ErrorLimits, Question};
use eprof::tune::choice::Goal;
use eprof::tune::design;
use eprof::tune::formula::Formula;
use eprof::tune::hold_out::hold_out;
use eprof::tune::runs::{AXES, Measurements, Run};
use eprof::tune::table::{RunsTable, TableOptions, read_runs};
use eprof_testbed::published;

/// 5 clocks and 7 caps of a program whose time and energy were both published.
fn a100(data: &Path, program: &str) -> RunsTable {
    let folder = data.join(format!("{program}-benchmarks/cricket-a100"));
    let mut csv = String::from("cap_W,clock_MHz,time_s,energy_Wh\n");
    for mhz in [1005, 1110, 1200, 1305, 1410] {
        for watts in [150, 175, 200, 225, 250, 275, 300] {
            let path = match program {
                "waterlily" => {
                    format!("data-{mhz}-{watts}/benchmarks/cricket.rc.ucl.ac.uk_2d41ba1/energy-time.json")
                }
                _ => format!("energy-time-{mhz}-{watts}.json"),
            };
            let text = fs::read_to_string(folder.join(path)).expect("readable");
            let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let time = record.get("time").or(record.get("total_time")).and_then(serde_json::Value::as_f64);
            csv += &format!("{watts},{mhz},{},{}\n", time.expect("a time"), record["energy"]);
        }
    }
    read_runs(&csv, &TableOptions::default()).expect("valid")
}

/// What one set of runs says of all settings.
#[derive(Default, Clone, Copy)]
struct Figures {
    /// Root mean square error of time and of energy.
    error: [f64; 2],
    front: [f64; 2],
    /// Share of the values in their intervals of 95 %, and half the intervals' width, of those not run.
    held: f64,
    width: f64,
}

fn figures(table: &RunsTable, settings: &[usize], formula: Option<&str>) -> Option<Figures> {
    let is_run = |run: &&Run| table.space.position(&run.setting).is_some_and(|at| settings.contains(&at));
    let runs: Vec<Run> = table.runs.iter().filter(is_run).cloned().collect();
    let question = Question {
        formula: formula.map(str::to_owned),
        default: table.space.usual_setting(),
        goal: Goal::EnergyDelay,
        level: 0.95,
        limits: ErrorLimits::default(),
        seed: 1,
    };
    let analysis = Analysis::new(table.space.clone(), table.responses, &runs, question).ok()?;
    let all = Measurements::gather(table.responses, &table.runs).expect("runs");
    let compared = hold_out(&analysis, &all);
    let (mut held, mut width, mut count) = (0.0, 0.0, 0.0);
    for measured in all.settings() {
        let at = table.space.position(&measured.setting).expect("in the space");
        if settings.contains(&at) {
            continue;
        }
        for axis in AXES {
            let (low, high) = analysis.predict(axis, at).interval?;
            held += f64::from(u8::from((low..=high).contains(&measured.value(axis))));
            width += (high / low).ln() / 2.0;
            count += 1.0;
        }
    }
    let error = compared.errors.map(|errors| errors.root_mean_square().expect("settings left out"));
    Some(Figures {
        error,
        front: compared.fronts.map_or([f64::NAN; 2], |fronts| fronts.error),
        held: held / count,
        width: width / count,
    })
}

fn mean(all: &[Figures]) -> Figures {
    let mut sum = Figures::default();
    for one in all {
        for axis in 0..2 {
            sum.error[axis] += one.error[axis] / all.len() as f64;
            sum.front[axis] += one.front[axis] / all.len() as f64;
        }
        sum.held += one.held / all.len() as f64;
        sum.width += one.width / all.len() as f64;
    }
    sum
}

fn print(title: &str, figures: &Figures) {
    println!(
        "{title:<44} {:>6.1} {:>6.1}  {:>6.1} {:>6.1}  {:>6.1} {:>6.1}",
        100.0 * figures.error[0],
        100.0 * figures.error[1],
        100.0 * figures.front[0],
        100.0 * figures.front[1],
        100.0 * figures.held,
        100.0 * figures.width
    );
}

/// 12 of 35 settings, evenly spread and 20 times at random.
#[test]
fn clocks_and_caps_of_an_a100_from_twelve_runs() {
    let Some(data) = published("gpu-power-frequency-benchmarks") else { return };
    println!("{:<44} {:>13}  {:>13}  {:>13}", "percent", "error t, E", "front t, E", "held, +-");
    for program in ["babelstream", "pi-solver", "waterlily"] {
        let table = a100(&data, program);
        let usual = Formula::usual(&table.space);
        let even = design::uniform(&table.space, &design::usual_counts(&table.space, &usual));
        let designs: [(&str, Vec<Vec<usize>>); 2] = [
            ("even", vec![even]),
            ("random", (0..20).map(|seed| design::random(&table.space, 12, seed)).collect()),
        ];
        for (design, all) in &designs {
            let of = |formula: Option<&str>| -> Vec<Figures> {
                all.iter().filter_map(|settings| figures(&table, settings, formula)).collect()
            };
            let usual = of(Some(&usual.to_string()));
            let chosen = of(None);
            let (fixed, found) = (mean(&usual), mean(&chosen));
            print(&format!("{program}, {design}: one form ({})", usual.len()), &fixed);
            print(&format!("  chosen ({})", chosen.len()), &found);
            // Reached: errors of 3.9 and 7.9 %, fronts 2.9 and 8.5 %, 92 to 95 % held by +-10 %. Babelstream's even
            // design is one of those that tell nothing better than the usual form, with a front of 18.6 %.
            if *design == "random" {
                assert!(found.error[0] < 0.058 && found.error[1] < 0.118, "{program}: {:?}", found.error);
                assert!(found.front[0] < 0.044 && found.front[1] < 0.127, "{program}: {:?}", found.front);
                assert!(found.front[1] < 0.8 * fixed.front[1], "{program}: {:?}", found.front);
                assert!(found.held > 0.88 && found.width < 0.15, "{program}: {} {}", found.held, found.width);
                assert!(found.width < fixed.width, "{program}");
            }
        }
    }
}

/// Twenty designs of so many core counts of two servers, the lowest and the highest among them.
fn of_cores(table: &RunsTable, runs: usize) -> Vec<Vec<usize>> {
    let last = table.space.size() - 1;
    let with_ends = |seed| {
        let mut settings = design::random(&table.space, runs, seed);
        for (at, end) in [(0, 0), (runs - 1, last)] {
            if !settings.contains(&end) {
                settings[at] = end;
            }
        }
        settings
    };
    (0..20).map(with_ends).collect()
}

/// Core counts that were not run, of programs on 48 and on 20 cores. Without Amdahl's law among the forms the same designs
/// are 13 and 14, 10 and 10, 9 and 10, 7 and 9 % off, and intervals of +-21, 13, 25 and 19 % hold 90, 89, 91 and 94 %.
#[test]
fn core_counts_of_two_servers() {
    let Some(data) = published("multicores-time-energy/raw") else { return };
    println!("{:<44} {:>13}  {:>13}  {:>13}", "percent", "error t, E", "front t, E", "held, +-");
    // Reached: errors of 9.0 and 10.3, 7.4 and 8.1, 7.2 and 9.0, 6.4 and 8.4 %; 92, 91, 93 and 95 % held by +-17, 11, 21
    // and 18 %.
    for (machine, runs, errors, held, width) in [
        ("amd", 8, [0.13, 0.135], 0.88, 0.20),
        ("amd", 12, [0.092, 0.098], 0.88, 0.126),
        ("xeon", 8, [0.088, 0.10], 0.90, 0.245),
        ("xeon", 10, [0.071, 0.088], 0.91, 0.19),
    ] {
        let mut files: Vec<_> = fs::read_dir(data.join(machine))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        files.sort();
        let mut all = Vec::new();
        for path in &files {
            let text = fs::read_to_string(path).expect("readable");
            let table = read_runs(&text, &TableOptions::default()).expect("valid");
            let found: Vec<Figures> = of_cores(&table, runs)
                .iter()
                .filter_map(|settings| figures(&table, settings, None))
                .collect();
            all.push(mean(&found));
        }
        let found = mean(&all);
        print(&format!("{machine}, {runs} runs, {} programs", all.len()), &found);
        assert!(found.error[0] < errors[0] && found.error[1] < errors[1], "{machine}: {:?}", found.error);
        assert!(found.held > held && found.width < width, "{machine}: {} {}", found.held, found.width);
    }
}
