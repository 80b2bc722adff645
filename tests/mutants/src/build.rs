//! Builds the faulty copy: without the faults that do not compile.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::edits::{Id, SWITCH, SWITCH_FILE, Written};
use crate::faults::Source;
use crate::tree::write_if_new;

/// So often at the most are faults taken out and the rest is checked again: types first, then what borrows what.
const MOST_ROUNDS: usize = 40;

#[derive(Deserialize)]
struct Message {
    reason: String,
    message: Option<Diagnostic>,
    executable: Option<PathBuf>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    rendered: Option<String>,
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Span {
    file_name: PathBuf,
    byte_start: usize,
    byte_end: usize,
    is_primary: bool,
}

/// Writes the sources with their faults, and the switch.
fn write(copy: &Path, sources: &[Source], without: &BTreeSet<Id>) -> Result<BTreeMap<PathBuf, Written>> {
    let mut files = BTreeMap::new();
    for source in sources {
        let written = source.edits.write(&source.text, without);
        write_if_new(&copy.join(&source.file), written.text.as_bytes())?;
        files.insert(source.file.clone(), written);
    }
    Ok(files)
}

/// Writes the rest of the sources as they are; the crate's root also names the switch.
///
/// # Errors
///
/// A file cannot be read or written.
pub fn write_rest(project: &Path, copy: &Path, files: &[PathBuf], faulty: &[Source]) -> Result<()> {
    write_if_new(&copy.join(SWITCH_FILE), SWITCH.as_bytes())?;
    for file in files {
        let is_source =
            file.extension().is_some_and(|extension| extension == "rs") && file.starts_with("src");
        if !is_source || faulty.iter().any(|source| source.file == *file) {
            continue;
        }
        let mut text = std::fs::read(project.join(file))?;
        if file == Path::new("src/lib.rs") {
            // What faults leave unused, or let overflow, is meant to be.
            let allowed = b"#![allow(warnings, arithmetic_overflow, unconditional_panic)]\n";
            text.splice(0..0, allowed.iter().copied());
            text.extend_from_slice(b"\npub mod faults_of_tests;\n");
        }
        write_if_new(&copy.join(file), &text)?;
    }
    Ok(())
}

fn cargo(copy: &Path, target: &Path, command: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args([command, "--locked", "--message-format=json", "--package", "eprof"]).current_dir(copy);
    // What the faults leave unused is no error here, and the copy shares what it is built of with nobody.
    cargo.env("CARGO_TARGET_DIR", target).env("RUSTFLAGS", "").env_remove("CARGO_ENCODED_RUSTFLAGS");
    cargo.stdin(Stdio::null()).stderr(Stdio::inherit());
    cargo
}

fn messages(cargo: &mut Command) -> Result<(bool, Vec<Message>)> {
    let output = cargo.stdout(Stdio::piped()).spawn()?.wait_with_output()?;
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let parsed = lines.lines().filter_map(|line| serde_json::from_str(line).ok());
    Ok((output.status.success(), parsed.collect()))
}

/// Takes faults out, beginning with those that are known not to compile, until all does that cargo is told to build.
///
/// # Errors
///
/// It does not compile, and no fault is to blame.
fn build_viable(
    copy: &Path,
    sources: &[Source],
    without: &mut BTreeSet<Id>,
    mut cargo: impl FnMut() -> Command,
) -> Result<Vec<Message>> {
    for round in 1..=MOST_ROUNDS {
        let files = write(copy, sources, without)?;
        let (is_built, messages) = messages(&mut cargo())?;
        if is_built {
            return Ok(messages);
        }
        let before = without.len();
        let mut stranger = None;
        let errors = messages.into_iter().filter_map(|message| message.message);
        for error in errors.filter(|error| error.level == "error") {
            let places = error.spans.iter().filter(|span| span.is_primary);
            let mut blamed = BTreeSet::new();
            for span in places {
                let Some(written) = files.get(&span.file_name) else { continue };
                let place: Range<usize> = span.byte_start..span.byte_end;
                blamed.extend(written.blamed(&place, without));
            }
            if blamed.is_empty() {
                stranger = error.rendered.or(stranger);
            }
            without.extend(blamed);
        }
        eprintln!("round {round}: {} faults do not compile", without.len());
        if without.len() == before {
            bail!("no fault is to blame for: {}", stranger.unwrap_or_default());
        }
    }
    bail!("after {MOST_ROUNDS} rounds there are still errors")
}

/// Takes faults out until the library compiles.
///
/// # Errors
///
/// It does not compile, and no fault is to blame.
pub fn find_viable(copy: &Path, target: &Path, sources: &[Source], without: &mut BTreeSet<Id>) -> Result<()> {
    let check = || {
        let mut cargo = cargo(copy, target, "check");
        cargo.arg("--lib");
        cargo
    };
    build_viable(copy, sources, without, check).map(|_| ())
}

/// A program of tests.
#[derive(Debug, Clone)]
pub struct Program {
    /// Where it lies.
    pub path: PathBuf,
    /// Whether one process runs as many tests as it is told to: those of the compiler's own harness do.
    pub takes_many: bool,
}

/// Builds the unit tests and the named programs of tests.
///
/// # Errors
///
/// They do not compile, and no fault is to blame.
pub fn programs(
    copy: &Path,
    target: &Path,
    sources: &[Source],
    without: &mut BTreeSet<Id>,
    names: &[String],
) -> Result<Vec<Program>> {
    let test = || {
        let mut cargo = cargo(copy, target, "test");
        cargo.args(["--no-run", "--lib"]);
        for name in names.iter().filter(|name| !name.is_empty()) {
            cargo.args(["--test", name]);
        }
        cargo
    };
    let messages = build_viable(copy, sources, without, test)?;
    let mut programs = Vec::new();
    for message in messages.into_iter().filter(|message| message.reason == "compiler-artifact") {
        let (Some(path), Some(target)) = (message.executable, message.target) else { continue };
        if target.kind.iter().any(|kind| kind == "lib") {
            programs.push(Program { path, takes_many: true });
        } else if target.kind.iter().any(|kind| kind == "test") {
            programs.push(Program { path, takes_many: false });
        }
    }
    programs.first().context("no program of tests was built")?;
    Ok(programs)
}
