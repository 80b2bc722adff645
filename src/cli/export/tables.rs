//! `eprof export --format parquet`: recordings as tables in a folder, to which other recordings add theirs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use eprof::analyze::{EventRoles, survey};
use eprof::profile::ProfileMethod;
use eprof::report::MissingJoules;
use eprof::report::export::Exported;
use eprof::report::store::schema::{TABLES, Table};
use eprof::report::store::{Overlap, Windows, recording_id, write};
use eprof::report::tree::TreeOptions;
use eprof::units::Timestamp;

use crate::cli::Outcome;
use crate::cli::input::InputArgs;
use crate::cli::needed::Needed;
use crate::cli::new_file::NewFile;
use crate::cli::opening;
use crate::cli::output;
use crate::cli::tables_folder;
use crate::cli::work_progress::WorkProgress;

/// Writes the tables of all recordings, one set of files for each recording or group of them. `force` replaces what the same
/// recordings were exported to before.
pub(super) fn export(input: &InputArgs, folder: &Path, force: bool, paths: &[PathBuf]) -> Outcome {
    let groups = groups(paths)?;
    // Those before: groups of this command do not overlap.
    let there = Windows::in_folder(folder)
        .with_context(|| format!("cannot read the tables in {}", folder.display()))?;
    for (done, group) in groups.iter().enumerate() {
        export_group(input, folder, &there, force, group).with_context(|| match done {
            0 => "nothing was exported".to_owned(),
            _ => format!(
                "{done} of {} exports are in {} by now, and this one is not",
                groups.len(),
                folder.display()
            ),
        })?;
    }
    let files = groups.len() * TABLES.len();
    let recordings = paths.len();
    output::say(format_args!(
        "{}: {files} files of {recordings} recording{}; eprof fleet report {0}",
        folder.display(),
        if recordings == 1 { "" } else { "s" }
    ));
    Ok(ExitCode::SUCCESS)
}

/// One recording, or several of one machine and one time.
fn export_group(
    input: &InputArgs,
    folder: &Path,
    there: &Windows,
    force: bool,
    paths: &[PathBuf],
) -> anyhow::Result<()> {
    let needed = Needed { lines: true, ..Needed::STACKS };
    let loaded = input.load_all(paths, needed, input.memory())?;
    let profile = loaded.profile();
    let titles = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    output::warn(profile.warnings.iter().map(|warning| format!("{titles}: {warning}")));
    if loaded.started.is_none() {
        output::warn([format!("{titles}: nothing tells when it was recorded: its time is 1970")]);
    }
    let id = recording_id(profile);
    let place = |table: &Table| folder.join(table.name).join(format!("{:016x}.parquet", id as u64));
    // The last that gets its name tells that all are there.
    let last = TABLES[TABLES.len() - 1];
    if place(last).exists() && !force {
        bail!("{titles} is in {} already ({}): --force replaces it", folder.display(), place(last).display());
    }
    if profile.domains.is_empty() {
        let samples = profile.events.iter().map(|event| event.samples).sum();
        let missing = MissingJoules::of(ProfileMethod::None, samples);
        bail!(
            "{titles}: there are no joules in it, and the tables are of joules: {missing}; `--watts IDLE:BUSY` estimates them"
        );
    }
    let exported = Exported {
        profile: loaded.analysis.as_ref(),
        symbols: &loaded.symbols,
        started: loaded.started,
        options: &TreeOptions::default(),
        warn: &|warning| output::warn([format!("{titles}: {warning}")]),
    };
    if let Some(Overlap { file, domain, time }) = there.overlapping(&exported, &place(last)) {
        let name = file.file_name().unwrap_or_default().display().to_string();
        let way = match folder.join(tables_folder::AGENTS_LOCK).exists() {
            true => "This is a folder of `eprof agent`: export into another one".to_owned(),
            false => format!(
                "Export all recordings of that machine by one command, into another folder or into this one without that \
                 export (rm {}/*/{name})",
                folder.display()
            ),
        };
        bail!(
            "{titles}: {} has joules of {domain} of the same machine, {:.3} s of the same time: what its meter counted then \
             would be in sums twice. {way}",
            file.display(),
            time.as_secs_f64()
        );
    }
    for table in TABLES {
        let parent = folder.join(table.name);
        tables_folder::make(&parent)
            .with_context(|| format!("cannot make the folder {}", parent.display()))?;
    }
    let open = |table: &Table| {
        Ok(NewFile::create(&place(table), tables_folder::readers(&folder.join(table.name))?)?)
    };
    let cannot = || format!("cannot write the tables of {titles} into {}", folder.display());
    let _progress = WorkProgress::of(format!("writing the tables of {titles}"));
    for file in write(&exported, !input.inline(true), open).with_context(cannot)? {
        file.keep().with_context(cannot)?;
    }
    Ok(())
}

/// The recordings that are to be exported together: of one boot those that ran at the same time, since they tell of the
/// same joules; each other one alone.
fn groups(paths: &[PathBuf]) -> anyhow::Result<Vec<Vec<PathBuf>>> {
    let mut of_boots: BTreeMap<String, Vec<&PathBuf>> = BTreeMap::new();
    let mut groups = Vec::new();
    for path in paths {
        match boot(path) {
            Some(boot) => of_boots.entry(boot).or_default().push(path),
            None => groups.push(vec![path.clone()]),
        }
    }
    for of_boot in of_boots.into_values() {
        if let [alone] = of_boot[..] {
            groups.push(vec![alone.clone()]);
            continue;
        }
        let mut timed = Vec::new();
        for path in of_boot {
            timed.push((times(path)?, path.clone()));
        }
        timed.sort();
        let mut until: Option<Timestamp> = None;
        for ((start, end), path) in timed {
            match groups.last_mut().filter(|_| until.is_some_and(|until| start < until)) {
                Some(group) => group.push(path),
                None => groups.push(vec![path]),
            }
            until = until.max(Some(end));
        }
    }
    Ok(groups)
}

/// The boot whose clock a recording has; what cannot be opened is told when it is read.
fn boot(path: &Path) -> Option<String> {
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    let recording = is_file.then(|| opening::open(path).ok()).flatten()?;
    let metadata = recording.metadata().filter(|metadata| metadata.clock == "CLOCK_MONOTONIC")?;
    metadata.identity.as_ref()?.boot.clone()
}

/// When it began and ended on that clock.
fn times(path: &Path) -> anyhow::Result<(Timestamp, Timestamp)> {
    let recording = opening::open(path)?;
    let survey = survey(&recording, &EventRoles::new(&recording));
    let readings = || survey.readings.iter().flatten();
    let sampled = survey.sampled.unwrap_or_default();
    let first = readings().map(|[(time, _), _]| *time).min().unwrap_or(sampled.0);
    let last = readings().map(|[_, (time, _)]| *time).max().unwrap_or(sampled.1);
    Ok((first, last))
}
