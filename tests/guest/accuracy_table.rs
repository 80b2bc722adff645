//! How far joules per function are off, over many recordings of many kinds: `cargo test --release --test guest
//! accuracy_table -- --ignored --nocapture`, more than an hour; `EPROF_RECORDINGS` of each kind instead of 20.
//!
//! With `EPROF_KEEP=DIR`, recordings are kept there, and those that are there are analysed again instead of being made
//! anew: what a change of the analysis does is seen on the same recordings, within minutes. `EPROF_KINDS='late|50 ms'` takes
//! only the kinds whose names contain one of these.

use std::path::PathBuf;

use crate::bench::{Run, STEADY, run};
use crate::six_functions::{AS_THE_PRESET, CALIBRATE, Comparison, drawn, root_with_program, take_model};

/// One row of the table.
struct Kind {
    name: &'static str,
    /// How the guest keeps time, and how many CPUs it has.
    guest: &'static [&'static str],
    machine: Machine,
    calibrated: bool,
    arguments: &'static str,
}

/// What events cost on the simulated machine.
#[derive(Clone, Copy)]
enum Machine {
    /// As the preset has it, and what else the simulated hardware does (`machine/README.md`).
    AsThePreset(&'static str),
    /// Each coefficient of the preset and what the machine draws at rest, times a half to two, drawn for each boot.
    Drawn,
}

/// The guest's time is the host's: interrupts come late, as on a busy machine.
const LATE: &[&str] = &[];
const TWO_CPUS: &[&str] = &["--smp", "2"];
const BY_5_MS: &str = "-m alt -t 1500 -n 5000";
const LINEAR: Machine = Machine::AsThePreset("");

const KINDS: [Kind; 18] = [
    kind("calibrated, 5 ms", &STEADY, LINEAR, true, BY_5_MS),
    kind("calibrated, late, 5 ms", LATE, LINEAR, true, BY_5_MS),
    kind("preset, 1 ms", &STEADY, LINEAR, false, "-m alt -t 1500 -n 1000"),
    kind("preset, 5 ms", &STEADY, LINEAR, false, BY_5_MS),
    kind("preset, 50 ms", &STEADY, LINEAR, false, "-m alt -t 1500 -n 50000"),
    kind("preset, one by one", &STEADY, LINEAR, false, "-m seq -t 1500"),
    kind("preset, late, 5 ms", LATE, LINEAR, false, BY_5_MS),
    kind("preset wrong by half to twice", &STEADY, Machine::Drawn, false, BY_5_MS),
    kind("calibrated, drawn likewise", &STEADY, Machine::Drawn, true, BY_5_MS),
    kind("preset, two CPUs, all busy", TWO_CPUS, LINEAR, false, "-m threads -t 1500"),
    kind("preset, a neighbour", TWO_CPUS, LINEAR, false, BY_5_MS),
    kind("preset, events held back", &STEADY, LINEAR, false, BY_5_MS),
    kind("a hidden event", &STEADY, Machine::AsThePreset("c_hid=1000000"), false, BY_5_MS),
    kind("calibrated, a hidden event", &STEADY, Machine::AsThePreset("c_hid=1000000"), true, BY_5_MS),
    kind("static power warms up", &STEADY, Machine::AsThePreset("drift_mw=3000 drift_s=20"), false, BY_5_MS),
    kind("frequency changes", &STEADY, Machine::AsThePreset("vary_ms=50 freq=1"), false, BY_5_MS),
    kind("data decide +-30 %", &STEADY, Machine::AsThePreset("vary_ms=35 data_pct=30"), false, BY_5_MS),
    kind(
        "a late, irregular meter",
        &STEADY,
        Machine::AsThePreset("jitter_us=450 skip_pm=50"),
        false,
        BY_5_MS,
    ),
];

const fn kind(
    name: &'static str,
    guest: &'static [&'static str],
    machine: Machine,
    calibrated: bool,
    arguments: &'static str,
) -> Kind {
    Kind { name, guest, machine, calibrated, arguments }
}

impl Machine {
    /// Parameters of the simulated hardware.
    fn parameters(self, boot: u64) -> String {
        match self {
            Self::AsThePreset(more) => format!("{} {more}", AS_THE_PRESET[1]),
            Self::Drawn => drawn(boot),
        }
    }
}

/// Recordings of one boot: a calibration takes longer than all of them.
const TO_A_BOOT: usize = 5;

fn script(kind: &Kind, recordings: usize) -> String {
    let mut script = if kind.calibrated { CALIBRATE.to_owned() } else { String::new() };
    if kind.name.contains("held back") {
        // By the kernel, since they come too often: two samples of each event between two ticks, of which there are 250 a second.
        script += "echo 500 > /proc/sys/kernel/perf_event_max_sample_rate\n";
    }
    for recording in 0..recordings {
        // Another program of other watts, on the other CPU for half of the time.
        let neighbour = if kind.name.contains("neighbour") {
            "(sleep 1; ./phases -m seq -t 4000 -o asm >/dev/null) & sleep 0.1\n"
        } else {
            ""
        };
        script += &format!(
            "{neighbour}echo == {recording}; ./eprof record -q --neighbours --meter power --meter-watch 500 -o e{recording}.data \
             ./phases {}\nwait\n",
            kind.arguments
        );
    }
    script
}

/// One recording by the default and, where a calibration kept one, by the stored model as it is.
struct Compared {
    auto: Comparison,
    stored: Option<Comparison>,
}

fn comparisons(run: &Run, kind: &Kind, recordings: usize) -> Vec<Compared> {
    let root = root_with_program(run);
    let has_model = kind.calibrated && take_model(run, &root);
    if kind.calibrated && !has_model {
        println!("{}: the calibration was refused", kind.name);
    }
    let of = |recording: usize| {
        let section = run.section(&recording.to_string());
        let by = |model: &str| {
            Comparison::new(section, &run.file(&format!("e{recording}.data")), root.path(), model)
        };
        Compared { auto: by("auto"), stored: has_model.then(|| by("stored")) }
    };
    (0..recordings).map(of).collect()
}

/// A row of the table.
fn print_row(name: &str, all: &[&Comparison]) -> f64 {
    let mean = all.iter().map(|of| of.mean()).sum::<f64>() / all.len() as f64;
    let worst = all.iter().map(|of| of.worst()).fold(0.0, f64::max);
    let sums = all.iter().map(|of| of.sum());
    let (least, most) = (sums.clone().fold(f64::INFINITY, f64::min), sums.fold(0.0, f64::max));
    let held: usize = all.iter().map(|of| of.held()).sum();
    let sums_held = all.iter().filter(|of| of.sum_held()).count();
    println!(
        "{name:<36} {:>10} {:>7.2}% {:>7.1}% {:>7.1} to {:>5.1}% {held:>7} of {:<4} {sums_held:>4} of {}",
        all.len(),
        mean * 100.0,
        worst * 100.0,
        least * 100.0,
        most * 100.0,
        6 * all.len(),
        all.len(),
    );
    mean
}

/// Where the recordings of a boot are kept, if they are to be.
fn kept_in(kind: &Kind, recordings: usize, first: usize) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("EPROF_KEEP")?);
    let name = kind.name.replace(|char: char| !char.is_alphanumeric(), "-");
    Some(folder.join(format!("{name}.{first}.{recordings}")))
}

#[test]
#[ignore = "a bench of an hour, run by .ci/long: EPROF_RECORDINGS=3 makes it shorter"]
fn accuracy_table() {
    let wanted = std::env::var("EPROF_RECORDINGS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    println!(
        "{:<36} {:>10} {:>8} {:>8} {:>17} {:>15} {:>10}",
        "by default options", "recordings", "mean", "worst", "sums", "bars hold", "of sums"
    );
    let named = std::env::var("EPROF_KINDS").unwrap_or_default();
    let is_wanted = |kind: &&Kind| named.split('|').any(|part| kind.name.contains(part));
    for kind in KINDS.iter().filter(is_wanted) {
        let mut all = Vec::new();
        while all.len() < wanted {
            let recordings = TO_A_BOOT.min(wanted - all.len());
            let mut bring: Vec<String> = (0..recordings).map(|at| format!("e{at}.data")).collect();
            bring.push("phases".to_owned());
            bring.extend(kind.calibrated.then(|| "model.json".to_owned()));
            let bring: Vec<&str> = bring.iter().map(String::as_str).collect();
            let parameters = kind.machine.parameters(all.len() as u64);
            println!("{}: {parameters}", kind.name);
            let kept = kept_in(kind, recordings, all.len());
            let run = if let Some(run) = kept.as_deref().and_then(Run::kept) {
                run
            } else {
                let options = [kind.guest, &["--sim", &parameters]].concat();
                let Some(run) = run(&options, &script(kind, recordings), &bring) else {
                    return;
                };
                if let Some(kept) = kept {
                    run.keep(&kept, &bring);
                }
                run
            };
            let comparisons = comparisons(&run, kind, recordings);
            comparisons.iter().for_each(|compared| compared.auto.print(kind.name));
            all.extend(comparisons);
        }
        let of_auto: Vec<&Comparison> = all.iter().map(|compared| &compared.auto).collect();
        let mean = print_row(kind.name, &of_auto);
        let of_stored: Vec<&Comparison> =
            all.iter().filter_map(|compared| compared.stored.as_ref()).collect();
        if of_stored.len() == all.len() {
            let of_stored = print_row(&format!("{}, by --model stored", kind.name), &of_stored);
            // What a recording tells makes a calibration no worse, or by less than a tenth; a thousandth is what the table is rounded to.
            assert!(mean < 1.1 * of_stored + 0.001, "{}: {mean} and {of_stored}", kind.name);
        }
        // By any kind of machine, what is said is better than a profile by time, which is a fifth off.
        assert!(mean < 0.2, "{}", kind.name);
    }
}
