//! The meters that are found on the machines of `fixtures/machines`: all of them, and each kind asked for alone.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use eprof::machine::roots::Roots;
use eprof::meter::{AssumedWatts, Discovery, MeterOptions, Source, discover};

#[path = "../../../src/machine/fixture.rs"]
mod fixture;

use fixture::FixtureMachine;

fn machines() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/machines");
    let entries = fs::read_dir(folder).expect("the folder of machines").flatten().map(|entry| entry.path());
    let is_machine = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "machine");
    let mut machines: Vec<PathBuf> = entries.filter(is_machine).collect();
    machines.sort();
    machines
}

/// No domain is there twice, and each lies in one that is there, up to one that lies in none.
fn check_tree(found: &Discovery) {
    let parent = |name: &str| {
        let domain = found.domains.iter().find(|domain| domain.name == name).expect("a domain that is there");
        domain.parent.clone()
    };
    let names: BTreeSet<&str> = found.domains.iter().map(|domain| domain.name.as_str()).collect();
    assert_eq!(names.len(), found.domains.len(), "{names:?}");
    for name in names {
        let mut above = parent(name);
        for _ in 0..found.domains.len() {
            above = above.and_then(|name| parent(&name));
        }
        assert_eq!(above, None, "{name}");
    }
    let of_meters = found.meters.iter().flat_map(|meter| meter.domains().iter().map(|domain| &domain.name));
    assert!(of_meters.eq(found.domains.iter().map(|domain| &domain.name)));
}

fn describe(text: &mut String, found: &Discovery, is_whole: bool) {
    check_tree(found);
    for meter in found.meters.iter().filter(|meter| !meter.domains().is_empty()) {
        let pace = meter.pace();
        let _ = writeln!(
            text,
            "  {} read every {} to {}",
            meter.domains()[0].source,
            pace.shortest,
            pace.longest
        );
    }
    for domain in &found.domains {
        if is_whole {
            let _ = writeln!(text, "  {domain:?}");
        } else {
            let _ = writeln!(text, "  {} {:?} in {:?}", domain.name, domain.kind, domain.parent);
        }
    }
    for rejected in &found.rejected {
        let closed = if rejected.is_closed { "closed: " } else { "" };
        let _ = writeln!(text, "  not {closed}{rejected}");
    }
    found.unmet.iter().for_each(|why| text.push_str(&format!("  unmet: {why}\n")));
    found.warnings.iter().for_each(|warning| text.push_str(&format!("  {warning}\n")));
    let _ = writeln!(text, "  measures CPUs: {}, check: {}", found.measures_cpus(), found.check().is_ok());
}

fn found(roots: &Roots, options: &MeterOptions) -> Discovery {
    discover(roots, options).expect("CPUs are listed")
}

/// Both in one test, since most of its time goes to making the thousands of files of these machines.
#[test]
fn meters_are_chosen() {
    let program = std::env::current_exe().expect("its own place").display().to_string();
    let (mut all, mut alone) = (String::new(), String::new());
    for path in machines() {
        let machine = FixtureMachine::load(&path);
        let roots = Roots::under(machine.path());
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // Without the folder that it lies in, and the place of this program.
        let plain = |text: String| {
            let text = text.replace(&machine.path().display().to_string(), "");
            text.replace(&program, "/usr/bin/eprof")
        };
        let mut text = format!("{name}\n");
        describe(&mut text, &found(&roots, &MeterOptions::default()), true);
        all.push_str(&plain(text));
        let mut text = format!("{name}\n");
        for source in Source::ALL {
            let watts = (source == Source::Estimate).then(|| AssumedWatts::parse("12:60").expect("watts"));
            let options = MeterOptions { only: Some(vec![source]), watts, ..MeterOptions::default() };
            let _ = writeln!(text, " {source}");
            // An estimate's watts are the machine's: all that is known of each.
            describe(&mut text, &found(&roots, &options), source == Source::Estimate);
        }
        alone.push_str(&plain(text));
    }
    insta::assert_snapshot!("meters", all);
    insta::assert_snapshot!("meters_of_each_kind", alone);
}
