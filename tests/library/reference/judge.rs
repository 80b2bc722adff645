//! Asks the reference, and puts eprof's profile beside its answer.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use eprof::analyze;
use eprof::profile::{Balance, Profile};
use eprof::recording::Recording;
use eprof_testbed::{has_program, skip};
use serde_json::{Value, json};

/// Joules by name: of a row of the balance, a thread, or a page of code.
type Joules = BTreeMap<String, f64>;

/// How far eprof may be from the reference, in each domain, as a share of all that its meter counted.
#[derive(Debug, Clone, Copy)]
pub struct Near {
    /// A row of the balance.
    pub balance: f64,
    /// A thread.
    pub thread: f64,
    /// A page of code.
    pub page: f64,
}

/// Differences that were found, as shares.
#[derive(Debug, Clone, Copy, Default)]
struct Far {
    balance: f64,
    thread: f64,
    page: f64,
}

/// Whether there is a Python to run the reference with; says so where there is none.
pub fn is_here() -> bool {
    let found = has_program("python3", &["-c", "import sys; sys.exit(sys.version_info < (3, 8))"]);
    if !found {
        skip("python3 (3.8 or later), which runs the reference, is not installed");
    }
    found
}

/// The profile of a recording, which must be near what the reference finds.
pub fn compare(name: &str, recording: Vec<u8>, options: &analyze::Options, near: Near) -> Profile {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("eprof.data");
    fs::write(&path, &recording).expect("room for a file");
    let recording = Recording::from_bytes(recording).expect("a recording");
    let profile = analyze::analyze(&recording, options);
    let reference = reference(&path, &profile);
    let lost: u64 = profile.events.iter().map(|event| event.lost).sum();
    assert_eq!(Some(lost), reference["lost_records"].as_u64(), "{name}: lost records");
    let mut far = Far::default();
    for (domain, energy) in profile.domains.iter().enumerate() {
        let judged = &reference["domains"][&energy.info.name];
        assert!(judged.is_object(), "{}: the reference has no such domain", energy.info.name);
        let rows = rows(&energy.balance);
        let measured = energy.balance.measured.as_joules();
        let most = |ours: &Joules, theirs: &Joules| most(ours, theirs, measured, &energy.info.name);
        far.balance = far.balance.max(most(&rows, &joules(&judged["balance"])));
        let by = |name: fn(&Profile, usize) -> String| {
            let mut by = Joules::new();
            for cell in 0..profile.cells.len() {
                *by.entry(name(&profile, cell)).or_default() += profile.joules(cell)[domain].as_joules();
            }
            by
        };
        let [threads, pages] = ["threads", "pages"].map(|what| joules(&judged[what]));
        far.thread = far.thread.max(most(&by(thread), &threads));
        far.page = far.page.max(most(&by(page), &pages));
    }
    println!(
        "{name}: at most {:.4} % of a domain's joules in a row of its balance, {:.4} % in a thread, {:.4} % in a page apart",
        100.0 * far.balance,
        100.0 * far.thread,
        100.0 * far.page
    );
    assert!(far.balance <= near.balance, "{name}: a balance is {far:?} off");
    assert!(far.thread <= near.thread, "{name}: a thread is {far:?} off");
    assert!(far.page <= near.page, "{name}: a page is {far:?} off");
    profile
}

/// What the reference says of a recording divided by the model that eprof used.
fn reference(recording: &Path, profile: &Profile) -> Value {
    let report = recording.with_extension("json");
    fs::write(&report, model_of(profile).to_string()).expect("room for a file");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/attribution.py");
    let output = Command::new("python3").args([&script, recording, &report]).output().expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The model as `eprof report --format json` prints it.
fn model_of(profile: &Profile) -> Value {
    let division = profile.division.as_ref().expect("joules were divided");
    let domains = profile.domains.iter().zip(&division.domains);
    let models = domains.filter_map(|(domain, model)| {
        let model = model.as_ref()?;
        let costs = profile.events.iter().zip(&model.joules_per_event);
        Some(json!({
            "name": domain.info.name,
            "static_watts": model.static_power.map(|power| power.as_watts()),
            "coefficients": costs.map(|(event, joules)| json!({"event": event.name, "joules": joules}))
                .collect::<Vec<_>>(),
        }))
    });
    let bucket = division.bucket.as_joules();
    json!({"division": {"bucket_joules": bucket, "domains": models.collect::<Vec<_>>()}})
}

fn rows(balance: &Balance) -> Joules {
    let rows = [
        ("measured", balance.measured),
        ("attributed", balance.attributed),
        ("static", balance.static_energy),
        ("other", balance.other_processes),
        ("recorder", balance.recorder),
        ("lost", balance.lost),
    ];
    rows.into_iter().map(|(name, joules)| (name.to_owned(), joules.as_joules())).collect()
}

fn thread(profile: &Profile, cell: usize) -> String {
    let thread = &profile.threads[profile.cells[cell].thread.0 as usize];
    format!("{}/{}", thread.pid, thread.tid)
}

fn page(profile: &Profile, cell: usize) -> String {
    let leaf = profile.stacks.frames(profile.cells[cell].stack).last().expect("an innermost frame");
    let address = profile.addresses[leaf.0 as usize];
    if address.kernel {
        return "kernel".to_owned();
    }
    format!("{}+{:#x}", profile.modules[address.module.0 as usize].path, address.address & !0xfff)
}

fn joules(value: &Value) -> Joules {
    let values = value.as_object().expect("joules by name").iter();
    values.map(|(name, joules)| (name.clone(), joules.as_f64().expect("a number"))).collect()
}

/// The greatest difference between two tables, as a share of all joules.
fn most(ours: &Joules, theirs: &Joules, of: f64, domain: &str) -> f64 {
    let mut most = 0.0f64;
    for name in ours.keys().chain(theirs.keys()) {
        let [ours, theirs] = [ours, theirs].map(|table| table.get(name).copied().unwrap_or(0.0));
        let share = (ours - theirs).abs() / of;
        if share > most {
            most = share;
            println!("  {domain}: {name}: eprof {ours:.6} J, reference {theirs:.6} J");
        }
    }
    most
}
