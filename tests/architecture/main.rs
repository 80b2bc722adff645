//! Dependencies point one way: this test parses every file and holds the arrows of the table on the crate's page.
//!
//! `EPROF_BLESS=1 cargo test --test architecture` writes the table anew, as the code is; whether that is as it
//! should be, a reader of the difference decides.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use graph::{Circle, circles, rooms, uses};
use modules::{Modules, room};

mod checks;
mod examples;
mod graph;
mod modules;
mod names;
mod resolve;
mod table;

/// Crates of the house: the library, the binary, and what is beside them.
const CRATES: &[(&str, &str)] = &[
    ("eprof", "lib.rs"),
    ("main", "main.rs"),
    ("eprof-cupti-injection", "cupti-injection/lib.rs"),
    ("eprof-fleet", "fleet/main.rs"),
    ("perf-data", "perf-data/lib.rs"),
];

/// What modules with a star must not touch: they take values and give values.
const WORLD: &[&str] = &["std::fs", "std::net", "std::process", "std::thread", "std::time", "libc", "nix"];

/// Parts of such modules that do, and why.
const TOUCH_THE_WORLD: &[(&str, &str)] =
    &[("power_model/folder", "keeps the models of calibrations in files")];

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// All modules, parsed once for all tests.
static HOUSE: LazyLock<Modules> = LazyLock::new(|| {
    let mut modules = Modules::default();
    for (name, root) in CRATES {
        modules.add_crate(name, &sources().join(root), &|path| fs::read_to_string(path).ok());
    }
    modules
});

fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("folder of sources") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            files.extend(source_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Otherwise the test would not see what it holds.
#[test]
fn every_file_is_of_a_module() {
    let known: BTreeSet<&PathBuf> =
        HOUSE.by_id.values().map(|module| &module.file).chain(&HOUSE.test_files).collect();
    let files = source_files(&sources());
    let unknown: Vec<_> = files.iter().filter(|file| !known.contains(file)).collect();
    assert!(unknown.is_empty(), "no module declares {unknown:?}");
    assert!(known.len() > 300, "only {} files", known.len());
}

#[test]
fn every_room_uses_what_the_table_says() {
    let page_path = sources().join("lib.rs");
    let page = fs::read_to_string(&page_path).expect("the crate's page");
    let written = table::parse(&page);
    let actual = table::rows(&rooms(&HOUSE, &uses(&HOUSE)), &written);
    if std::env::var_os("EPROF_BLESS").is_some() {
        fs::write(&page_path, table::replace(&page, &actual)).expect("writable");
        return;
    }
    let differences = checks::differences(&written, &actual);
    assert!(
        differences.is_empty(),
        "{}\n\nas the code is:\n{}\n\nEPROF_BLESS=1 writes this table",
        differences.join("\n"),
        table::print(&actual).join("\n")
    );
}

#[test]
fn no_part_needs_itself_round_about() {
    let found = circles(&HOUSE, &uses(&HOUSE));
    let found: Vec<String> = found.iter().map(Circle::to_string).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn arithmetic_touches_no_file_clock_or_thread() {
    let page = fs::read_to_string(sources().join("lib.rs")).expect("the crate's page");
    let pure: Vec<String> =
        table::parse(&page).into_iter().filter(|row| row.is_pure).map(|row| row.name).collect();
    assert!(!pure.is_empty(), "no module of the table has a star");
    let touching = checks::touching(&HOUSE, WORLD, |id| pure.iter().any(|name| name == room(id)));
    let is_known = |place: &str| TOUCH_THE_WORLD.iter().any(|(known, _)| *known == place);
    let new: Vec<String> = touching
        .iter()
        .filter(|(place, _)| !is_known(place))
        .map(|(place, what)| format!("{place} uses {what}"))
        .collect();
    assert!(new.is_empty(), "{}", new.join("\n"));
    let gone = TOUCH_THE_WORLD.iter().find(|(known, _)| !touching.iter().any(|(place, _)| place == known));
    assert!(gone.is_none(), "touches nothing any more: {gone:?}");
}
