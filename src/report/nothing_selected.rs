//! Why a selection leaves nothing to show: which of its options does.

use std::collections::BTreeSet;

use super::frames::{Detail, FrameTable};
use super::select::{Selection, TaskIds};
use crate::label::Label;
use crate::profile::{CUT_OFF, DAMAGED, Profile};
use crate::symbolize::Symbols;
use crate::units::Joules;

/// So many names are offered where none fits.
const MOST_OFFERED: usize = 8;

/// The options that leave everything out, as the end of a sentence. `selection` is known to leave nothing of the profile.
pub(super) fn why(selection: &Selection, profile: &Profile, symbols: &Symbols) -> String {
    let Selection { weight: _, domain, event, thread, process, task, through } = selection;
    let mut used: Vec<String> = Vec::new();
    let mut alone: Vec<String> = Vec::new();
    let threads = || profile.threads.iter().map(|thread| thread.name.as_str());
    let processes = || profile.threads.iter().map(|thread| thread.process_name.as_str());
    if let Some(pattern) = thread {
        used.push(format!("--thread {pattern}"));
        if !threads().any(|name| pattern.is_match(name)) {
            alone.push(format!("no thread's name matches --thread {pattern}: there are {}", some(threads())));
        }
    }
    if let Some(pattern) = process {
        used.push(format!("--process {pattern}"));
        if !processes().any(|name| pattern.is_match(name)) {
            let known = some(processes());
            alone.push(format!("no process's name matches --process {pattern}: there are {known}"));
        }
    }
    if let Some(TaskIds { pid, tid }) = task {
        let name =
            tid.map_or_else(|| format!("process {pid}"), |tid| format!("thread {tid} of process {pid}"));
        if !profile.threads.iter().any(|thread| TaskIds { pid: *pid, tid: *tid }.includes(thread)) {
            alone.push(format!("{name} has no samples"));
        }
        used.push(name);
    }
    if let Some(pattern) = through {
        used.push(format!("--through {pattern}"));
        let frames = FrameTable::new(profile, symbols, Detail::Function, true);
        if !frames.functions.iter().any(|function| pattern.is_match(function.name.as_str())) {
            alone.push(format!(
                "no function's name matches --through {pattern}: `eprof report --children --inline --limit 0` lists all"
            ));
        }
    }
    if let Some(name) = event {
        used.push(format!("--event {name}"));
        if profile.events.iter().any(|event| event.name == *name && event.samples == 0) {
            alone.push(format!("there are no samples of --event {name}"));
        }
    }
    used.extend(domain.as_ref().map(|name| format!("--domain {name}")));
    match (&alone[..], &used[..]) {
        ([], []) => "the recording has no samples; what it has else `eprof report` says".to_owned(),
        ([], [option]) => format!("what {option} selects took nothing"),
        ([], options) => format!("no sample is left by {} together", options.join(" and ")),
        (reasons, _) => reasons.join("; "),
    }
}

/// Why a recording that is not whole has nothing to show: neither samples nor joules. A whole one may have none, of a program that
/// ended at once.
pub(super) fn cut_off_before_anything(profile: &Profile) -> Option<String> {
    let is_empty = profile.events.iter().all(|event| event.samples == 0) && profile.cells.is_empty();
    let has_joules = profile.domains.iter().any(|domain| domain.balance.measured > Joules::ZERO);
    let why = || {
        let says_where =
            |warning: &&String| [CUT_OFF, DAMAGED].iter().any(|start| warning.starts_with(start));
        let cut = profile.warnings.iter().find(says_where);
        let cut = cut
            .map_or("the recording has no end: its recorder was killed, or the file was cut off", |cut| {
                cut.split(';').next().unwrap_or(cut)
            });
        format!("{cut}; before that it has no sample and no joules. Copy it again, or record again")
    };
    (profile.is_partial && is_empty && !has_joules).then(why)
}

/// Some of the names, each once.
fn some<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: BTreeSet<&str> = names.collect();
    let more = names.len().saturating_sub(MOST_OFFERED);
    let mut said: Vec<String> =
        names.iter().take(MOST_OFFERED).map(|name| Label::new(name).to_string()).collect();
    if more > 0 {
        said.push(format!("{more} more"));
    }
    if said.is_empty() { "none".to_owned() } else { said.join(", ") }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;
    use crate::report::fixture::sample_profile;

    #[test]
    fn the_option_that_leaves_nothing_is_named() {
        let (profile, symbols) = sample_profile();
        let pattern = |text| Some(Regex::new(text).expect("valid"));
        let said = |selection: Selection| why(&selection, &profile, &symbols);
        let nobody =
            Selection { thread: pattern("nobody"), through: pattern("main"), ..Selection::default() };
        let said_of_nobody = said(nobody);
        assert!(said_of_nobody.starts_with("no thread's name matches --thread nobody: there are "));
        assert!(
            said_of_nobody.contains("worker") && !said_of_nobody.contains("--through"),
            "{said_of_nobody}"
        );
        let nothing = Selection { through: pattern("^nothing$"), ..Selection::default() };
        assert!(said(nothing).starts_with("no function's name matches --through ^nothing$"));
        let process = Selection { process: pattern("^nothing$"), ..Selection::default() };
        assert!(said(process).starts_with("no process's name matches --process ^nothing$"));
        // Each of them selects something.
        let both = Selection { thread: pattern("worker"), through: pattern("main"), ..Selection::default() };
        assert_eq!(said(both), "no sample is left by --thread worker and --through main together");
        let domain = Selection { domain: Some("dram-0".to_owned()), ..Selection::default() };
        assert_eq!(said(domain), "what --domain dram-0 selects took nothing");
        assert!(said(Selection::default()).starts_with("the recording has no samples"));
    }

    #[test]
    fn where_a_recording_ends_before_anything() {
        let said = |is_partial: bool, warning: &str| {
            let warnings = vec![warning.to_owned()];
            cut_off_before_anything(&Profile { is_partial, warnings, ..Profile::default() })
        };
        for (warning, expected) in [
            (
                "the recording is damaged at byte 40: a record of 3 bytes cannot be; what precedes it is used",
                "the recording is damaged at byte 40: a record of 3 bytes cannot be; before",
            ),
            (
                "the recording is cut off at byte 40; what precedes it is used",
                "the recording is cut off at byte 40; before",
            ),
            (
                "the CPUs are slow",
                "the recording has no end: its recorder was killed, or the file was cut off; before",
            ),
        ] {
            let said_so = said(true, warning).unwrap_or_default();
            assert!(said_so.starts_with(expected), "{said_so}");
            assert_eq!(said(false, warning), None);
        }
    }
}
