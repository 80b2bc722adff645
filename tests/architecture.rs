//! Dependencies point one way: this test reads the `use` lines of every file and holds the arrows.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules from the bottom of the pipeline to its top, each with the ones it may use besides itself.
const MAY_USE: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("markup", &[]),
    ("tables", &[]),
    ("machine", &["units", "recording"]),
    ("power_model", &["units", "tables", "machine", "recording"]),
    ("simulate", &["units", "recording", "power_model"]),
    ("recording", &["units"]),
    ("timeline", &["units", "recording", "profile"]),
    ("attribute", &["units", "recording"]),
    ("profile", &["units", "recording"]),
    ("symbolize", &["units", "recording", "profile", "timeline"]),
    (
        "analyze",
        &["units", "recording", "timeline", "attribute", "profile", "power_model", "symbolize", "gpu"],
    ),
    ("report", &["units", "markup", "recording", "profile", "symbolize"]),
    ("tune", &["units", "tables", "markup"]),
    ("stat", &["units", "recording", "report", "tune"]),
];

/// Modules whose arithmetic must not touch the world: values in, values out.
const PURE: &[&str] =
    &["units.rs", "tables", "timeline", "attribute", "profile.rs", "simulate", "tune", "stat"];
const WORLD: &[&str] =
    &["std::fs", "std::net", "std::process", "std::thread", "std::time", "libc::", "nix::"];

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

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Code without comments and without the tests at the end of a file.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("readable source");
    let code = text.split("#[cfg(test)]").next().unwrap_or("");
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn module_of(path: &Path) -> String {
    let relative = path.strip_prefix(sources()).expect("below src");
    let first = relative.components().next().expect("a component").as_os_str().to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

#[test]
fn dependencies_point_one_way() {
    let mut wrong = Vec::new();
    for path in source_files(&sources()) {
        let module = module_of(&path);
        let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == module) else { continue };
        let code = code(&path);
        for used in code.split("crate::").skip(1) {
            let used: String = used.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            if used != module && !used.is_empty() && !allowed.contains(&used.as_str()) {
                wrong.push(format!("{} uses crate::{used}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_in_the_library_depends_on_the_recorder() {
    for path in source_files(&sources()) {
        let module = module_of(&path);
        if !["record", "cli", "main", "lib"].contains(&module.as_str())
            && MAY_USE.iter().any(|(m, _)| *m == module)
        {
            assert!(!code(&path).contains("crate::record::"), "{} uses the recorder", path.display());
        }
    }
}

#[test]
fn arithmetic_touches_no_file_clock_or_thread() {
    for pure in PURE {
        let path = sources().join(pure);
        let files = if path.is_dir() { source_files(&path) } else { vec![path] };
        for file in files {
            let code = code(&file);
            for world in WORLD {
                assert!(!code.contains(world), "{} uses {world}", file.display());
            }
        }
    }
}
