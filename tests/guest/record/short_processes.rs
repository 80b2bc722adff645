//! Processes that end within the first period of every event: no sample tells of them, the program's counters do.

use std::collections::BTreeSet;

use eprof_testbed::eprof;

use crate::bench::{Run, STEADY, run};
use crate::six_functions::root_with_program;

/// Half a second of one function, and then four hundred processes of some milliseconds, of which half have no sample.
const SCRIPT: &str = "
echo default clk=2e9 inst=1e9 rs=1e8 l2=2e6 llc=2e5 > /proc/simhw; echo reset > /proc/simhw
cat > program <<'END'
./phases -o l1 -t 500 -q
started=0
while [ $started -lt 400 ]; do
    (:)
    started=$((started + 1))
done
END
./eprof record -q -o s.data --neighbours=never --meter power --meter-watch 500 sh program
";

/// Name, count of all events and joules of each row, and what else was said.
fn said(run: &Run, options: &[&str]) -> (Vec<(String, f64, f64)>, String) {
    let root = root_with_program(run);
    let mut eprof = eprof();
    eprof.arg("report").arg("-i").arg(run.file("s.data")).arg("--symfs").arg(root.path());
    let output = eprof.args(["--format", "csv", "--limit", "0"]).args(options).output().expect("eprof runs");
    let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{warnings}");
    let mut reader = csv::Reader::from_reader(&output.stdout[..]);
    let headers = reader.headers().expect("a line of names").clone();
    let column = |name: &str| headers.iter().position(|header| header == name).expect("a column");
    let (name, count, joules) = (column("name"), column("self_count"), column("self_joules"));
    let row = |record: csv::StringRecord| {
        let number = |at: usize| record[at].parse::<f64>().expect("a number");
        (record[name].to_owned(), number(count), number(joules))
    };
    (reader.records().map(|record| row(record.expect("a record"))).collect(), warnings)
}

#[test]
fn short_processes_are_charged_by_the_programs_counters() {
    let Some(run) = run(&STEADY, SCRIPT, &["s.data", "phases"]) else { return };
    let recorded = run.recording("s.data");
    let events = || recorded.events.values().filter(|event| event.counted > 0);
    let counted: f64 = events().map(|event| event.counted as f64).sum();
    let sampled: f64 = events().map(|event| event.period as f64).sum();
    let (rows, warnings) = said(&run, &[]);
    let told: f64 = rows.iter().map(|row| row.1).sum();
    println!("{counted:e} counted, {sampled:e} sampled, {told:e} told\n{rows:#?}\n{warnings}");
    assert!(sampled < 0.9 * counted, "most processes are too long for this test");
    // Less what tasks with samples had after the last of them, where an event was sampled in few of them.
    assert!((told / counted - 1.0).abs() < 0.02, "{told:e} of {counted:e}");
    let short = rows.iter().find(|row| row.0 == "short processes, not sampled").expect("a row of them");
    // Of the event that was sampled most: a task without a sample had less than a period, and one with some less than one after its
    // last, on each CPU. How many have one is chance: on a busy host more of them.
    let (name, event) = recorded.events.iter().max_by_key(|(_, event)| event.samples).expect("events");
    let (of_event, _) = said(&run, &["--event", name]);
    let short_of_event = of_event.iter().find(|row| row.0 == short.0).expect("a row of them").1;
    let tasks: BTreeSet<u32> = recorded.sampled.iter().map(|(task, _)| *task).collect();
    let without = (1 + recorded.started).saturating_sub(tasks.len() as u64) as f64;
    let period = event.period as f64 / event.samples as f64;
    let missing = event.counted as f64 - event.period as f64;
    let least = missing - recorded.sampled.len() as f64 * period;
    let most = missing.min(without * period);
    println!(
        "{without} tasks without a sample, {} with; {name}: {least:e} to {most:e} of {missing:e}, {short_of_event:e} told",
        tasks.len()
    );
    assert!(without > 50.0 && (least..=most).contains(&short_of_event) && short_of_event > 0.0, "{name}");
    assert!(short.2 > 0.0, "{short:?}");
    for sentence in ["left no sample", "stand for", "the periods of samples"] {
        assert!(!warnings.contains(sentence), "{warnings}");
    }
}
