//! Several recordings as one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, bail};
use eprof::analyze::{Dimensions, MemoryLimit};
use eprof::merge::{InTime, lacking_slices, merge};
use eprof::profile::Profile;
use eprof::recording::Recording;
use eprof::recording::node_meters::{self, NodeMeters};
use eprof::symbolize::{SymbolizeOptions, Symbolizer, Symbols};

use super::input::InputArgs;
use super::loading::{Found, Loaded};
use super::needed::Needed;

/// Why a file that cannot be read ends all of it.
const NAMED: &str = "one of several recordings cannot be read, and without it the sums would be too low: leave it out if that is meant \
     (of a folder, files that do not begin as recordings are left out with a warning)";

impl InputArgs {
    /// Reads these recordings, one after the other; several become one.
    pub fn load_all(&self, paths: &[PathBuf], needed: Needed, memory: MemoryLimit) -> anyhow::Result<Loaded> {
        match paths {
            [path] => self.load_file(path, needed, memory),
            _ => self.load_several(paths, needed, memory),
        }
    }

    fn load_several(&self, paths: &[PathBuf], needed: Needed, memory: MemoryLimit) -> anyhow::Result<Loaded> {
        // Threads tell whose samples are of which recording. Each profile is there twice in the end, as it is and as
        // a part of the whole.
        let needed = Needed { dimensions: Dimensions { threads: true, ..needed.dimensions }, ..needed };
        let memory = memory.shared_by(2 * paths.len());
        let meters = node_meters(paths);
        let (mut profiles, mut symbols, mut subjects) = (Vec::new(), Vec::new(), Vec::new());
        for path in paths {
            let (profile, of_one, subject) = self.read_one_of(paths.len(), path, needed, memory, &meters)?;
            profiles.push(profile);
            symbols.push(of_one);
            subjects.push(subject);
        }
        // Few share threads for a part of their time. These are read once more, so that not all are kept in time.
        let lacking = if needed.slices { Vec::new() } else { lacking_slices(&profiles) };
        for at in lacking.into_iter().filter(|&at| paths[at].is_file()) {
            let in_time = Needed { slices: true, ..needed };
            let (profile, of_one, _) = self.read_one_of(paths.len(), &paths[at], in_time, memory, &meters)?;
            (profiles[at], symbols[at]) = (profile, of_one);
        }
        let merged = merge(profiles, if needed.slices { InTime::Told } else { InTime::LeftOut });
        let mut all = Symbols::default();
        let (mut modules, mut addresses) = (0, 0);
        for (&number, part) in merged.order.iter().zip(&merged.profile.merged) {
            all.append(std::mem::take(&mut symbols[number]), modules, addresses);
            modules += part.profile.modules.len() as u32;
            addresses += part.profile.addresses.len();
        }
        let subject = subject(&merged.profile, merged.order.iter().filter_map(|&at| subjects[at].as_deref()));
        let started = merged.profile.recordings.iter().filter_map(|origin| origin.started_unix_ns).min();
        let started = started.and_then(|nanos| UNIX_EPOCH.checked_add(Duration::from_nanos(nanos)));
        Ok(Loaded {
            analysis: Box::new(merged.profile),
            symbols: all,
            subject,
            verified: None,
            started,
            events: Vec::new(),
            // Nobody looks for more of several recordings.
            symbolizer: Symbolizer::new(SymbolizeOptions::default()),
        })
    }

    /// One of so many recordings: its profile, names, and what was recorded.
    fn read_one_of(
        &self,
        count: usize,
        path: &Path,
        needed: Needed,
        memory: MemoryLimit,
        meters: &NodeMeters,
    ) -> anyhow::Result<(Profile, Symbols, Option<String>)> {
        let name = path.display().to_string();
        let Loaded { analysis, symbols, subject, .. } =
            self.read(path, needed, memory, meters).map_err(|error| naming(error, &name)).context(NAMED)?;
        let mut profile = match analysis {
            Found::Text(profile) => *profile,
            Found::Recording(analysis) => match analysis.into_whole() {
                Some(profile) => profile,
                None => bail!(
                    "{name} has more call stacks than there is memory for beside the other {} recordings: give more by \
                     --memory, or report fewer at once",
                    count - 1
                ),
            },
        };
        profile.recordings.resize_with(1, Default::default);
        profile.recordings[0].name = Some(name);
        Ok((profile, symbols, subject))
    }
}

/// The readings of the machines of which some recording left them to another. Files that cannot be read, or not more than
/// once, are for others to complain about.
fn node_meters(paths: &[PathBuf]) -> NodeMeters {
    let open = |path: &PathBuf| Recording::open(path).ok();
    let files = || paths.iter().filter(|path| path.is_file());
    let boot = |recording: &Recording| node_meters::boot(recording).map(str::to_owned);
    let borrowers = files().filter_map(open).filter(node_meters::borrows);
    let boots: BTreeSet<String> = borrowers.filter_map(|recording| boot(&recording)).collect();
    let mut meters = NodeMeters::default();
    if !boots.is_empty() {
        let lenders = files().filter_map(open);
        let lenders = lenders.filter(|recording| boot(recording).is_some_and(|boot| boots.contains(&boot)));
        lenders.for_each(|recording| meters.add(&recording));
    }
    meters
}

/// An error that says of which of the files it is.
fn naming(error: anyhow::Error, name: &str) -> anyhow::Error {
    if format!("{error:#}").contains(name) { error } else { error.context(name.to_owned()) }
}

/// What was recorded, how often, and on how many machines.
fn subject<'a>(profile: &Profile, subjects: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    subjects.for_each(|subject| *counts.entry(subject).or_default() += 1);
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let mut text = count(profile.recordings.len(), "recording");
    text += &format!(" of {}", count(profile.machines.len(), "machine"));
    let is_one = counts.len() == 1;
    let mut commands = counts.into_iter().map(|(subject, count)| match count {
        _ if is_one => subject.to_owned(),
        1 => subject.to_owned(),
        _ => format!("{count} of {subject}"),
    });
    const SHOWN: usize = 3;
    let shown: Vec<String> = commands.by_ref().take(SHOWN).collect();
    let more = commands.count();
    if !shown.is_empty() {
        text += &format!(": {}", shown.join("; "));
    }
    if more > 0 {
        text += &format!("; and {more} more");
    }
    Some(text)
}
