//! `eprof stat` by a meter: joules of a guest whose energy is known.

use serde_json::Value;

use crate::bench::{STEADY, run};

/// Watts of the simulated machine without any event, by domain.
const CONSTANT: [(&str, f64); 2] = [("package-0", 12.41 + 3.0), ("package-0-cores", 12.41)];
/// Watts that a CPU adds by the rates of these presets.
const ASM: f64 = 6.724;
const MEM: f64 = 2.986;

/// The guest's time counts its instructions, and nothing but the workload counts events.
const SCRIPT: &str = "echo default clk=0 inst=0 rs=0 l2=0 llc=0 > /proc/simhw
./eprof stat --meter-watch 500 -r 3 --json -o stat.json --vs './phases -q -o mem -t 1000' ./phases -q -o asm -t 1000
./eprof stat --meter-watch 500 --subtract-idle=1 --json -o idle.json ./phases -q -o asm -t 1000
./eprof stat --meter-watch 500 -r 2 ./phases -q -o asm -t 200";

#[test]
fn measured_joules_are_those_of_the_machine() {
    let Some(run) = run(&STEADY, SCRIPT, &["stat.json", "idle.json"]) else { return };
    println!("{}", run.said);
    assert!(run.said.contains(" measured: package-0 (") && run.said.contains(" total "));
    let read = |name: &str| -> Value {
        let text = std::fs::read_to_string(run.file(name)).expect("a file");
        serde_json::from_str(&text).expect("JSON")
    };
    let watts = |command: &Value, part: &str| {
        let parts = command["parts"].as_array().expect("a list");
        let part = parts.iter().find(|found| found["name"] == part).expect("there");
        assert_eq!(part["method"], "measured");
        part["watts"]["mean"].as_f64().expect("a number")
    };
    let stat = read("stat.json");
    for (command, busy) in stat["commands"].as_array().expect("two").iter().zip([ASM, MEM]) {
        assert_eq!(command["runs"].as_array().expect("runs").len(), 3);
        for (domain, constant) in CONSTANT {
            let found = watts(command, domain);
            let error = found / (constant + busy) - 1.0;
            assert!(error.abs() < 0.03, "{domain}: {found} W, {:+.1} %", error * 100.0);
        }
        let total = watts(command, "package-0") + watts(command, "dram-0");
        assert!((watts(command, "total") / total - 1.0).abs() < 1e-9);
    }
    let ratios = stat["ratios"].as_array().expect("a list");
    let energy = ratios.iter().find(|ratio| ratio["part"] == "package-0" && ratio["quantity"] == "energy");
    let ratio = energy.expect("there")["mean"].as_f64().expect("a number");
    let truth = (15.41 + MEM) / (15.41 + ASM);
    assert!((ratio / truth - 1.0).abs() < 0.03, "{ratio} instead of {truth}");

    let idle = read("idle.json");
    let above = watts(&idle["commands"][0], "package-0");
    assert!((above / ASM - 1.0).abs() < 0.05, "{above} W above idle instead of {ASM}");
    let subtracted = idle["domains"][0]["idle_watts_subtracted"].as_f64().expect("watts");
    assert!((subtracted / 15.41 - 1.0).abs() < 0.02, "{subtracted} W idle");
}
