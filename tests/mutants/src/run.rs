//! The steps, in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::edits::Id;
use crate::equivalent::Equivalents;
use crate::faults::{Fault, Source, find};
use crate::judge::{Judge, Record};
use crate::verdicts::{self, Key, Row, Verdict};
use crate::{ARITHMETIC, Arguments, build, cases, tree};

/// What `--survivors` reads and every run writes.
const RESULTS: &str = "results.jsonl";

/// The sources that get faults, with them.
fn faulty(arguments: &Arguments, files: &[PathBuf]) -> Result<Vec<Source>> {
    let arithmetic: Vec<PathBuf> = ARITHMETIC.iter().map(PathBuf::from).collect();
    let wanted = if arguments.paths.is_empty() { &arithmetic } else { &arguments.paths };
    let mut of_tests = BTreeSet::new();
    let mut texts = Vec::new();
    for file in files {
        if file.extension().is_none_or(|extension| extension != "rs") || !file.starts_with("src") {
            continue;
        }
        let text = fs::read_to_string(arguments.project.join(file))?;
        let parsed = syn::parse_file(&text).with_context(|| format!("in {}", file.display()))?;
        of_tests.extend(tree::test_modules(file, &parsed));
        texts.push((file, text));
    }
    let mut sources = Vec::new();
    let mut first: Id = 1;
    for (file, text) in texts {
        if tree::is_test_file(file, &of_tests) || !wanted.iter().any(|wanted| file.starts_with(wanted)) {
            continue;
        }
        let source = find(file, text, first).with_context(|| format!("in {}", file.display()))?;
        first += source.faults.len() as Id;
        sources.push(source);
    }
    Ok(sources)
}

/// The faults to be tried, of those that are not known not to compile.
fn chosen(
    arguments: &Arguments,
    old: &[Row],
    sources: &[Source],
    without: &BTreeSet<Id>,
) -> Result<BTreeSet<Id>> {
    let faults =
        sources.iter().flat_map(|source| &source.faults).filter(|fault| !without.contains(&fault.id));
    let mut faults: Vec<&Fault> = faults.collect();
    if let Some(commit) = &arguments.since {
        let changed = tree::changed_lines(&arguments.project, commit)?;
        faults.retain(|fault| {
            changed.iter().any(|(file, lines)| *file == fault.file && lines.contains(&fault.line))
        });
    }
    if arguments.survivors {
        let survivors: BTreeSet<Key> =
            old.iter().filter(|row| row.verdict.survived()).map(Row::key).collect();
        faults.retain(|fault| survivors.contains(&verdicts::key(fault)));
    }
    let sample = faults.into_iter().skip(arguments.offset).step_by(arguments.every.max(1));
    Ok(sample.map(|fault| fault.id).collect())
}

/// All of it.
///
/// # Errors
///
/// The copy cannot be made or built, or the tests cannot be run.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    fs::create_dir_all(&arguments.folder)?;
    let folder = fs::canonicalize(&arguments.folder)?;
    let (copy, target) = (folder.join("copy/eprof"), folder.join("build"));
    let results = folder.join(RESULTS);
    let files = tree::copy(&arguments.project, &copy)?;
    let sources = faulty(arguments, &files)?;
    build::write_rest(&arguments.project, &copy, &files, &sources)?;
    let count: usize = sources.iter().map(|source| source.faults.len()).sum();
    eprintln!("{count} faults in {} files", sources.len());
    // Tests find what lies beside the project there as well.
    if let Ok(beside) = fs::canonicalize(arguments.project.join("../shared")) {
        let link = folder.join("copy/shared");
        let _ = std::os::unix::fs::symlink(beside, link);
    }
    let faults = || sources.iter().flat_map(|source| &source.faults);
    let listed = Equivalents::read(&arguments.project)?;
    let equivalent = listed.among(&sources)?;
    // What did not compile the time before is not tried once more.
    let old = if results.is_file() { verdicts::read(&results)? } else { Vec::new() };
    let unviable: BTreeSet<Key> =
        old.iter().filter(|row| row.verdict == Verdict::DoesNotCompile).map(Row::key).collect();
    let is_out = |fault: &&Fault| equivalent.contains(&fault.id) || unviable.contains(&verdicts::key(fault));
    let out: BTreeSet<Id> = faults().filter(is_out).map(|fault| fault.id).collect();
    let chosen = chosen(arguments, &old, &sources, &out)?;
    eprintln!(
        "{} known not to compile, {} equivalent; {} of the rest chosen",
        out.len() - equivalent.len(),
        equivalent.len(),
        chosen.len()
    );
    // Only what is to be tried is written.
    let mut without: BTreeSet<Id> =
        faults().map(|fault| fault.id).filter(|fault| !chosen.contains(fault)).collect();
    build::find_viable(&copy, &target, &sources, &mut without)?;
    let unviable = |without: &BTreeSet<Id>| without.intersection(&chosen).copied().collect();
    keep_unviable(&results, &sources, &unviable(&without))?;
    if arguments.list {
        for fault in faults().filter(|fault| !without.contains(&fault.id)) {
            println!("{}:{} {}: {}", fault.file.display(), fault.line, fault.function, fault.what);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let programs = build::programs(&copy, &target, &sources, &mut without, &arguments.tests)?;
    keep_unviable(&results, &sources, &unviable(&without))?;
    let chosen: Vec<&Fault> = faults().filter(|fault| !without.contains(&fault.id)).collect();
    eprintln!("{} of them compile and are tried", chosen.len());
    let cases = cases::find(&programs, &copy, &folder, &arguments.skip, arguments.jobs)?;
    eprintln!("{} tests; failing without a fault: {:?}", cases.cases.len(), cases.failing);
    let judge = Judge {
        programs: &programs,
        copy: &copy,
        cases: &cases,
        budget: Duration::from_secs_f64(arguments.budget),
        until: arguments.minutes.map(|minutes| Instant::now() + Duration::from_secs_f64(60.0 * minutes)),
        jobs: arguments.jobs,
        folder: &folder,
        record: Mutex::new(Record::new(cases.cases.len())),
    };
    // Those that stand far apart in the sources come first, so that a run that is cut short has seen something of all.
    let ids: Vec<Id> = spread(&chosen.iter().map(|fault| fault.id).collect::<Vec<_>>());
    let verdicts: Mutex<BTreeMap<Id, Verdict>> = Mutex::default();
    judge.all(&ids, &|fault, verdict| {
        verdicts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(fault, verdict);
    })?;
    let verdicts = verdicts.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let tried: Vec<&Fault> =
        chosen.iter().copied().filter(|fault| verdicts.contains_key(&fault.id)).collect();
    let rows: Vec<Row> = tried.iter().map(|fault| Row::of(fault, verdicts[&fault.id])).collect();
    listed.print(&sources, &equivalent);
    finish(arguments, &results, &rows, chosen.len())
}

/// The same in an order in which neighbours are far apart.
fn spread(ids: &[Id]) -> Vec<Id> {
    let stride = 97;
    (0..stride).flat_map(|start| ids.iter().copied().skip(start).step_by(stride)).collect()
}

fn finish(arguments: &Arguments, results: &Path, rows: &[Row], chosen: usize) -> Result<ExitCode> {
    for row in rows.iter().filter(|row| row.verdict.survived()) {
        let how = match row.verdict {
            Verdict::PassedByNone => "no test",
            _ => "survived",
        };
        println!("{how}: {}:{} {}: {}", row.file.display(), row.line, row.function, row.what);
    }
    println!("{}", verdicts::table(rows));
    if rows.len() < chosen {
        println!("{} faults were not tried: there was no time", chosen - rows.len());
    }
    keep(results, rows)?;
    let percent = verdicts::survived_percent(rows);
    let is_too_much = arguments.at_most.is_some_and(|most| percent > most);
    Ok(if is_too_much { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What does not compile need not be found out again.
fn keep_unviable(results: &Path, sources: &[Source], without: &BTreeSet<Id>) -> Result<()> {
    let faults = sources.iter().flat_map(|source| &source.faults);
    let unviable = faults.filter(|fault| without.contains(&fault.id));
    let rows: Vec<Row> = unviable.map(|fault| Row::of(fault, Verdict::DoesNotCompile)).collect();
    keep(results, &rows)
}

/// Writes these rows to the results, among what is known of the rest.
fn keep(results: &Path, rows: &[Row]) -> Result<()> {
    let old = verdicts::read(results).unwrap_or_default();
    let new: BTreeSet<Key> = rows.iter().map(Row::key).collect();
    let mut all: Vec<Row> =
        old.into_iter().filter(|row| !new.contains(&row.key())).chain(rows.iter().cloned()).collect();
    all.sort_by_key(|row| (row.file.clone(), row.line, row.what.clone(), row.nth));
    verdicts::write(results, &all)
}
