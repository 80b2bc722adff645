//! `eprof calibrate` against a machine whose coefficients are known: a guest with a simulated PMU and
//! RAPL, through the kernel's own interfaces.

mod common;
#[path = "guest/bench.rs"]
mod guest;

use eprof::power_model::folder;
use eprof::power_model::model::PowerModel;
use guest::{assert_near, run};

/// What the guest is built with: joules per event of a core, joules per miss, constant watts.
const COSTS: [(&str, f64); 4] =
    [("clk", 2.71e-10), ("inst", 2.06e-10), ("resource", 3.161e-9), ("l2", 6.058e-9)];
const MISS: f64 = 2e-8;
const CONSTANT: [(&str, f64); 3] = [("cores", 12.41), ("package", 12.41 + 3.0), ("dram", 1.5)];

/// The guest's time counts its instructions: however busy the host is, nothing is late.
const STEADY: [&str; 2] = ["--icount", "shift=3"];

const SCRIPT: &str = r#"
export HOME=/guest/home
./eprof calibrate --announce /proc/simhw --precision 0.05 --time-limit 45 --meter-watch 500
echo "status $?"
echo "== kept"
./eprof model show stored
cp /guest/home/.config/eprof/models/*.json model.json
echo "== user"
echo 2 > /proc/sys/kernel/perf_event_paranoid
./setpriv --reuid 1000 --regid 1000 --clear-groups ./eprof calibrate --meter-watch 500; echo "status $?"
echo "== no meter"
./eprof calibrate --meter estimate; echo "status $?"
echo "== end"
"#;

fn cost(model: &PowerModel, domain: &str, role: &str) -> f64 {
    let event = model.events.iter().position(|event| event.role == role);
    let event = event.unwrap_or_else(|| panic!("no {role} among {:?}", model.events));
    model.domains[domain].joules_per_event[event]
}

#[test]
fn the_coefficients_of_the_simulated_machine_are_recovered() {
    let options = [&STEADY[..], &["-f", "/usr/bin/setpriv"]].concat();
    let Some(run) = run(&options, SCRIPT, &["model.json"]) else { return };
    println!("{}", run.said);
    let stored = folder::read(&run.file("model.json")).expect("a model");
    assert!(stored.cpu_identity.starts_with("GenuineIntel-6-2A"), "{}", stored.cpu_identity);
    let model = &stored.model;
    for domain in ["package", "cores"] {
        for (role, truth) in COSTS {
            assert_near(&format!("{domain}, {role}"), cost(model, domain, role), truth, 0.03);
        }
    }
    assert_near("dram, llc-miss", cost(model, "dram", "llc-miss"), MISS, 0.03);
    for (domain, watts) in CONSTANT {
        let model = &model.domains[domain];
        assert_near(domain, model.static_power.as_watts(), watts, 0.03);
        let quality = model.quality.expect("fitted");
        assert!(quality.r_squared > 0.999, "{domain}: {quality:?}");
        assert!(quality.left_out_error.is_some_and(|error| error < 0.1), "{domain}: {quality:?}");
        // Standard errors that mean something hold the truth.
        let error = model.static_std_error.expect("fitted").as_watts();
        assert!(error < 0.01 * watts, "{domain}: {error} W");
    }
    assert!(run.section("kept").contains("RESOURCE_STALLS.RS"), "{}", run.section("kept"));

    let user = run.section("user");
    assert!(user.contains("may not count events of whole CPUs") && user.contains("setcap"), "{user}");
    assert!(user.contains("status 1"), "{user}");
    let without = run.section("no meter");
    assert!(without.contains("no meter measures the CPUs") && without.contains("status 1"), "{without}");
}
