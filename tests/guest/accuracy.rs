//! Joules per function on a real kernel whose PMU and energy counters are simulated, against the truth.
//!
//! Six functions run for the same time, one after another or in turns; where a profile by time says a sixth for each,
//! the truth is 12 to 22 % (8 to 31 % where a cycle costs little). Without the test bench these tests skip, see
//! `main.rs`. `accuracy_table` runs many recordings of many kinds.

use crate::bench::{STEADY, run};
use crate::six_functions::{
    AS_THE_PRESET, CALIBRATE, Comparison, FUNCTIONS, drawn, drawn_anew, root_with_program, said, take_model,
    truth,
};

/// Records the six functions by default options, without a calibration, and holds their joules against the truth.
fn compare(machine: &str, arguments: &str, mean: f64, worst: f64, sum: f64) {
    let script = format!(
        "./eprof record -q --neighbours --meter power --meter-watch 500 -o e.data ./phases {arguments}"
    );
    let Some(run) = run(&[&STEADY[..], &["--sim", machine]].concat(), &script, &["e.data", "phases"]) else {
        return;
    };
    let root = root_with_program(&run);
    let said_of = |model: &str| Comparison::new(&run.said, &run.file("e.data"), root.path(), model);
    let auto = said_of("auto");
    auto.print(&format!("phases {arguments}, not calibrated"));
    assert!(auto.mean() < mean && auto.worst() < worst, "{:?}", auto.errors());
    assert!((auto.sum() - 1.0).abs() < sum, "{}", auto.sum());
    // Reached in 23 recordings of these three kinds: all.
    assert!(auto.held() >= 5, "{} of 6 bars", auto.held());
    // Reached: 0.058 and 0.062, for what the preset's wrong coefficients leave open of one function.
    assert!(auto.least_sure() < 0.09, "a bar of {} of the joules holds anything", auto.least_sure());
    // Time says what time is: about a sixth for each.
    let of_time = |function: &str| said(&run.file("e.data"), root.path(), function, "time").joules;
    let by_time = FUNCTIONS.map(of_time);
    let milliseconds = FUNCTIONS.map(|function| truth(&run.said, function).milliseconds);
    let [all_by_time, all_milliseconds] = [by_time, milliseconds].map(|of| of.iter().sum::<f64>());
    for ((function, joules), time) in FUNCTIONS.iter().zip(by_time).zip(milliseconds) {
        let (share, expected) = (joules / all_by_time, time / all_milliseconds);
        assert!((share - expected).abs() < 0.015, "{function}: {share}");
    }
}

#[test]
fn functions_one_after_another() {
    // Reached in nine recordings: mean 0.1 to 0.7 %, worst 0.2 to 1.4 %, sum 99.4 to 100.7 %, all bars. Whether the machine
    // was at rest before the program began, so that its static power is known from then, is chance: then worst 0.8 %.
    compare(AS_THE_PRESET[1], "-m seq -t 1000 -s 150", 0.011, 0.017, 0.0105);
}

/// Each function's part of an interval differs little from any other interval's: what a machine draws at rest was seen
/// before the program began, or static power could be anything.
#[test]
#[ignore = "long: run by .ci/long"]
fn functions_in_turns_of_5_milliseconds() {
    // Reached in six recordings, three of them with interrupts that come late: mean 1.1 to 3.9 %, worst 5.4 %, sum 100.6
    // to 103.8 %.
    compare(AS_THE_PRESET[1], "-m alt -t 1500 -n 5000", 0.055, 0.08, 0.055);
}

#[test]
#[ignore = "long: run by .ci/long"]
fn functions_in_turns_where_every_coefficient_of_the_preset_is_wrong() {
    // Reached in four recordings: mean 1.2 to 2.3 %, worst 4.2 %, sum 99.4 to 102.3 %.
    // Two of sixteen more, beside other guests and tests, were 4.3 and 4.4 % off, at worst 10.6 %, with bars five times as
    // wide, which held. That is not mended, and fails here.
    compare(&drawn(3), "-m alt -t 1500 -n 5000", 0.035, 0.063, 0.035);
}

/// What a user of a calibrated machine gets who names no option: the joules of each function, not only shares. The
/// calibration knows the machine better than 18 s of the program do, and must not be corrected away from it.
#[test]
fn a_calibrated_machine_by_default() {
    let script = CALIBRATE.to_owned()
        + "./eprof record -q -a --meter-watch 500 -o e.data -- ./phases -m alt -t 3000 -n 5000\n";
    let machine = drawn_anew();
    let options = [&STEADY[..], &["--sim", &machine]].concat();
    let Some(run) = run(&options, &script, &["e.data", "model.json", "phases"]) else { return };
    let root = root_with_program(&run);
    assert!(take_model(&run, &root), "the calibration was refused");
    let said_by = |model: &str| Comparison::new(&run.said, &run.file("e.data"), root.path(), model);
    let (auto, stored) = (said_by("auto"), said_by("stored"));
    auto.print("calibrated, six functions in turns of 5 ms, whole system");
    println!("the stored coefficients alone: mean {:.1}%", stored.mean() * 100.0);
    // Reached in three recordings of a machine as the preset: mean 0.6 %, worst 1.8 %, sum 100.4 %, all held; of five that were
    // drawn: 0.3 %, 1.1 %, 100.2 %. Where a cycle costs an eighth of the preset's, functions draw little beside static power:
    // of five recordings the worst was 4.9 % off.
    assert!(auto.mean() < 0.01 && auto.worst() < 0.027, "{:?}", auto.errors());
    assert!((auto.sum() - 1.0).abs() < 0.0075, "{}", auto.sum());
    assert!(auto.held() >= 5, "{} of 6", auto.held());
}

/// With the guest's clock counting instructions and a model that is right, what remains is the error of
/// sampling. The kernel's periods follow the program with a delay, eprof's are the model's.
#[test]
#[ignore = "long: run by .ci/long"]
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
    let Some(run) = run(&[STEADY, AS_THE_PRESET].concat(), &script, &files) else { return };
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
