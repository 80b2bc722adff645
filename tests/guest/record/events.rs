//! Counts: launched, forked, attached, multiplexed, throttled.

use std::collections::BTreeMap;
use std::path::Path;

use eprof_testbed::eprof;

use super::summary::{Summary, Truth};
use crate::bench::{STEADY, assert_near, run};

/// Threads count nothing before they choose their rates, so that all that is counted is in the truth.
const ONLY_CHOSEN: &str = "echo default clk=0 inst=0 rs=0 l2=0 llc=0 > /proc/simhw; echo reset > /proc/simhw";

const CYCLES: &str = "cycles";
const INSTRUCTIONS: &str = "instructions";

#[test]
fn threads_and_children_are_counted_from_exec_to_exit() {
    let script = format!(
        "{ONLY_CHOSEN}
         ./eprof record -q -o a.data --neighbours=never sh -c './phases -m threads -t 300 -q & ./phases -o asm,l3 -t 300 -q & wait'
         echo == truth; cat /proc/simhw; echo reset > /proc/simhw
         ./eprof record -q -o w.data -a ./phases -m threads -t 300 -q
         echo == all; cat /proc/simhw"
    );
    let Some(run) = run(&STEADY, &script, &["a.data", "w.data"]) else { return };
    compare(&run.recording("w.data"), &Truth::of(run.section("all")));
    let truth = Truth::of(run.section("truth"));
    let recorded = run.recording("a.data");
    let metadata = recorded.metadata.as_ref().expect("metadata");
    assert_eq!(metadata.machine.microarchitecture.as_deref(), Some("sandybridge"));
    assert!(!metadata.system_wide_samples);
    compare(&recorded, &truth);
    for (name, truth) in [(CYCLES, truth.clk), (INSTRUCTIONS, truth.inst)] {
        // Samples miss up to a period, half of one on average, for each of ten tasks on each of two CPUs.
        let event = recorded.event(name);
        let missed = (truth - event.period as f64) / (event.period as f64 / event.samples as f64);
        println!("{} samples of {name}; {missed:.1} periods missed", event.samples);
        assert!((-0.5..20.0).contains(&missed), "samples of {name}: {} of {truth}", event.period);
    }
    assert_eq!(recorded.lost, 0);
}

/// The model's five events, counted from beginning to end.
#[track_caller]
fn compare(recorded: &Summary, truth: &Truth) {
    let metadata = recorded.metadata.as_ref().expect("metadata");
    let truths = [truth.clk, truth.inst, truth.rs, truth.l2, truth.llc];
    for (role, truth) in ["clk", "inst", "resource", "l2", "llc-miss"].into_iter().zip(truths) {
        let event =
            metadata.events.iter().find(|event| event.role.map(eprof::hardware::Role::name) == Some(role));
        let name = &event.unwrap_or_else(|| panic!("no {role} among {:?}", metadata.events)).name;
        let event = recorded.event(name);
        println!("{role} by {name}: {} counted, {truth} true", event.counted);
        assert_near(name, event.counted as f64, truth, 0.02);
    }
}

#[test]
fn a_running_process_is_counted_while_it_is_watched() {
    let script = "./phases -o asm -t 600000 -q & p=$!; sleep 1
        ./eprof record -q -o p.data -p $p --duration 2
        ./eprof record -q -o t.data -t $p --duration 1
        ./eprof record -q -o a.data -a --duration 1
        ./eprof record -q -o n.data --neighbours ./phases -o l1 -t 500 -q
        kill $p; echo == end";
    let Some(run) = run(&[], script, &["p.data", "t.data", "a.data", "n.data"]) else { return };
    for name in ["p.data", "t.data"] {
        let recorded = run.recording(name);
        let (cycles, instructions) = (recorded.event(CYCLES), recorded.event(INSTRUCTIONS));
        // The preset's rates, over the time that the counters ran.
        assert_near(name, cycles.counted as f64, 3.0388 * cycles.running as f64, 0.02);
        assert_near(name, instructions.counted as f64, 5.663 * instructions.running as f64, 0.02);
        assert!(cycles.samples > 100, "{cycles:?}");
    }
    for name in ["a.data", "n.data"] {
        let recorded = run.recording(name);
        assert!(recorded.metadata.as_ref().expect("metadata").system_wide_samples);
        assert!(recorded.event(CYCLES).samples > 100 && recorded.kernel_samples > 0);
    }
}

#[test]
fn events_that_share_counters_are_scaled_right_and_said() {
    let events = "cycles,instructions,r04a2,r08f0,r412e,r4f2e,branches,r00c5";
    // All the time at the same rates: what the scaling cannot know of is not its fault.
    let script = format!(
        "{ONLY_CHOSEN}
         ./eprof record -o m.data -c 1000003 -e {events} sh -c 'echo asm > /proc/simhw; exec ./phases -o asm -t 6000 -q'
         echo == truth; cat /proc/simhw; echo reset > /proc/simhw
         ./eprof record -q --neighbours=never -o t.data -c 1000003 -e {events} \
             sh -c 'echo asm > /proc/simhw; exec ./phases -o asm -t 6000 -q'
         echo == of tasks; cat /proc/simhw"
    );
    let Some(run) = run(&STEADY, &script, &["m.data", "t.data"]) else { return };
    let truth = Truth::of(run.section("truth"));
    let recorded = run.recording("m.data");
    for (name, truth) in
        [("cycles", truth.clk), ("instructions", truth.inst), ("r04a2", truth.rs), ("r08f0", truth.l2)]
    {
        assert_near(name, recorded.event(name).scaled(), truth, 0.03);
    }
    assert!(run.said.contains("was on a counter"), "{}", run.said);
    // Reports let the samples stand for what there was while other events had the counter: of a whole CPU by what its counters
    // say meanwhile, and of tasks by what they say in the end.
    for (recording, truth) in [("m.data", truth), ("t.data", Truth::of(run.section("of tasks")))] {
        let counts = counts_of_report(&run.file(recording));
        for (name, truth) in
            [("cycles", truth.clk), ("instructions", truth.inst), ("r04a2", truth.rs), ("r08f0", truth.l2)]
        {
            assert_near(&format!("{name} of {recording}"), counts[name], truth, 0.04);
        }
    }
}

/// What a report says that the samples of each event stand for.
fn counts_of_report(recording: &Path) -> BTreeMap<String, f64> {
    let output =
        eprof().args(["report", "--format", "json", "-i"]).arg(recording).output().expect("eprof runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let events = report["events"].as_array().expect("events").iter();
    let count =
        |event: &serde_json::Value| Some((event["name"].as_str()?.to_owned(), event["count"].as_f64()?));
    events.filter_map(count).collect()
}

#[test]
fn events_that_come_too_often_are_throttled_and_that_is_said() {
    let script = "echo 1000 > /proc/sys/kernel/perf_event_max_sample_rate
        ./eprof record -o s.data -e cycles -c 20000 ./phases -o asm -t 1000 -q; echo == end";
    let Some(run) = run(&[], script, &["s.data"]) else { return };
    let recorded = run.recording("s.data");
    assert!(recorded.throttled > 0, "{recorded:?}");
    assert!(run.said.contains("held back events"), "{}", run.said);
}
