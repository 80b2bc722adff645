//! `eprof calibrate` against a machine whose coefficients are known: a guest with a simulated PMU and
//! RAPL, through the kernel's own interfaces.

use eprof::hardware::{DomainKind, Role};
use eprof::power_model::folder;
use eprof::power_model::model::PowerModel;
use eprof::recording::Recording;
use eprof_testbed::eprof;

use crate::bench::{Run, STEADY, assert_near, run};

/// What the guest is built with: joules per event of a core, joules per miss, constant watts.
const COSTS: [(Role, f64); 4] =
    [(Role::Clk, 2.71e-10), (Role::Inst, 2.06e-10), (Role::Resource, 3.161e-9), (Role::L2, 6.058e-9)];
const MISS: f64 = 2e-8;
/// What a sample stands for: the joules of these events at the rates of a core as busy as usual, of which 1500
/// are taken a second. (3.0e9 x 2.71e-10 + 3.4e9 x 2.06e-10 + 5e8 x 3.161e-9 + 8e7 x 6.058e-9 + 1e7 x 2e-8) / 1500
const JOULES_PER_SAMPLE: f64 = 2.519e-3;
const CONSTANT: [(DomainKind, f64); 3] =
    [(DomainKind::Cores, 12.41), (DomainKind::Package, 12.41 + 3.0), (DomainKind::Dram, 1.5)];

const SCRIPT: &str = r#"
export HOME=/guest/home XDG_CONFIG_HOME=/guest/home/.config
./eprof calibrate --announce /proc/simhw --precision 0.05 --time-limit 45 --meter-watch 500
echo "status $?"
echo "== kept"
./eprof model show stored
cp /guest/home/.config/eprof/models/*.json model.json
echo "== shared"
./phases -o mem -t 600000 -q & neighbour=$!
./eprof record -q --meter-watch 500 -o shared.data ./phases -o asm -t 2000
kill $neighbour
echo "== user"
echo 2 > /proc/sys/kernel/perf_event_paranoid
./setpriv --reuid 1000 --regid 1000 --clear-groups ./eprof calibrate --meter-watch 500; echo "status $?"
echo "== no meter"
./eprof calibrate --meter estimate; echo "status $?"
echo "== end"
"#;

fn cost(model: &PowerModel, domain: DomainKind, role: Role) -> f64 {
    let event = model.events.iter().position(|event| event.role == Some(role));
    let event = event.unwrap_or_else(|| panic!("no {role} among {:?}", model.events));
    model.domains[&domain].joules_per_event[event]
}

#[test]
fn the_coefficients_of_the_simulated_machine_are_recovered() {
    let options = [&STEADY[..], &["-f", "/usr/bin/setpriv"]].concat();
    let Some(run) = run(&options, SCRIPT, &["model.json", "shared.data"]) else { return };
    println!("{}", run.said);
    a_recording_takes_the_model(&run);
    let stored = folder::read(&run.file("model.json")).expect("a model");
    assert!(stored.cpu_identity.starts_with("GenuineIntel-6-2A"), "{}", stored.cpu_identity);
    let model = &stored.model;
    for domain in [DomainKind::Package, DomainKind::Cores] {
        for (role, truth) in COSTS {
            assert_near(&format!("{domain}, {role}"), cost(model, domain, role), truth, 0.03);
        }
    }
    assert_near("dram, llc-miss", cost(model, DomainKind::Dram, Role::LlcMiss), MISS, 0.03);
    for (domain, watts) in CONSTANT {
        let model = &model.domains[&domain];
        assert_near(domain.name(), model.static_power.as_watts(), watts, 0.03);
        let quality = model.quality.expect("fitted");
        assert!(quality.r_squared > 0.999, "{domain}: {quality:?}");
        // Reached: 0.0004 and 0.0020. Without `mem` nothing tells what a miss costs: that one is off by anything.
        assert!(quality.left_out_error.is_some_and(|error| error < 0.003), "{domain}: {quality:?}");
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

/// Beside a neighbour of other watts on the same CPU: sampled by the model's periods, and charged with its
/// own joules.
fn a_recording_takes_the_model(run: &Run) {
    let recording = Recording::open(&run.file("shared.data")).expect("a recording");
    let metadata = recording.metadata().expect("metadata");
    assert!(metadata.system_wide_samples, "root may sample the neighbours, too");
    for (role, truth) in COSTS {
        let event = metadata.events.iter().find(|event| event.role == Some(role));
        let event = event.unwrap_or_else(|| panic!("no {role} among {:?}", metadata.events));
        assert_near(role.name(), event.joules_per_event[&DomainKind::Package], truth, 0.03);
        let sampled = recording.events().iter().find(|sampled| sampled.name == event.name);
        let period = sampled.and_then(|sampled| sampled.attr.fixed_period()).expect("a period");
        assert_near(&event.name, period as f64, JOULES_PER_SAMPLE / truth, 0.03);
    }
    let cores = metadata.domains.iter().find(|domain| domain.name == "package-0-cores").expect("there");
    assert_near("static", cores.static_power.expect("from the model").as_watts(), 12.41, 0.03);

    let section = run.section("shared");
    let truth =
        section.lines().find_map(|line| line.trim().strip_prefix("truth total core_j=")).expect("truth");
    let truth: f64 = truth.trim().parse().expect("joules");
    let report = eprof()
        .args(["report", "--format", "json", "-i"])
        .arg(run.file("shared.data"))
        .output()
        .expect("eprof runs");
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let domains = report["domains"].as_array().expect("a list");
    let cores = domains.iter().find(|domain| domain["name"] == "package-0-cores").expect("there");
    println!("truth {truth} J, {cores}");
    let own = cores["balance"]["attributed"].as_f64().expect("joules");
    // Two seconds in an emulator whose samples come late: correcting the model by them costs some percent.
    assert_near("joules beside a neighbour", own, truth, 0.1);
    assert!(cores["balance"]["other"].as_f64().expect("joules") > 0.2 * own, "{cores}");
}
