//! Names of recordings that tell what they are of: `-o node-%h-rank-%r.data`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use eprof::identity::Job;
use eprof::process::folder_of;

use super::super::opening::DEFAULT_RECORDING;
use super::super::output::{say, warn};
use super::environment::variable;

/// What a recording is called that is one of many.
const PATTERNS: &str = "%h (host), %j (job), %s (job step), %r or %t (rank), %p (eprof's process), %%";

/// What stands for a job, step or rank that there is not.
const NONE: &str = "none";

/// What a name can tell of the recorder.
#[derive(Debug, Clone, Default)]
struct Place {
    /// What the batch system calls the machine, or else its own name up to the first dot.
    host: String,
    /// The place in a job.
    job: Job,
    /// The recorder's process id.
    pid: u32,
}

impl Place {
    /// This process's.
    fn of_this_process(variable: impl Fn(&str) -> Option<String>) -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = host.trim().split('.').next().unwrap_or_default().to_owned();
        let job = Job::of_environment(variable);
        Self { host: job.node.clone().unwrap_or(host), job, pid: std::process::id() }
    }

    /// What `name` means here.
    ///
    /// # Errors
    /// A `%` that stands before none of [`PATTERNS`].
    fn expand(&self, name: &Path) -> anyhow::Result<PathBuf> {
        let mut expanded: Vec<u8> = Vec::new();
        let mut bytes = name.as_os_str().as_bytes().iter();
        while let Some(&byte) = bytes.next() {
            if byte != b'%' {
                expanded.push(byte);
                continue;
            }
            let word = match bytes.next() {
                Some(b'%') => "%".to_owned(),
                Some(b'h') => part(Some(&self.host)),
                Some(b'j') => part(self.job.id.as_deref()),
                Some(b's') => part(self.job.step.as_deref()),
                Some(b'r' | b't') => part(self.job.rank.map(|rank| rank.to_string()).as_deref()),
                Some(b'p') => self.pid.to_string(),
                other => {
                    let shown: Vec<u8> = [b'%'].into_iter().chain(other.copied()).collect();
                    anyhow::bail!(
                        "-o {}: `{}` stands for nothing; there are {PATTERNS}",
                        name.display(),
                        OsStr::from_bytes(&shown).display()
                    );
                }
            };
            expanded.extend(word.as_bytes());
        }
        Ok(OsString::from_vec(expanded).into())
    }

    /// The pattern of names that ranks of one job do not share, in one folder.
    fn pattern_of_ranks(&self) -> PathBuf {
        self.pattern("%r")
    }

    /// The pattern of names that recordings of whole nodes do not share.
    fn pattern_of_nodes(&self) -> PathBuf {
        self.pattern("node-%h")
    }

    /// The pattern of names near this one that ranks do not share; `None` if they do not share this one, or it is of a device or
    /// pipe. A name that has the rank's number was made by a shell: where it is a number of something else, all other ranks
    /// write beside it.
    fn apart(&self, named: &Path) -> Option<PathBuf> {
        let bytes = named.as_os_str().as_bytes();
        let mut patterns = bytes.windows(2).filter(|pair| pair[0] == b'%');
        let tells_ranks = patterns.any(|pair| matches!(pair[1], b'r' | b't' | b'p'));
        let numbers =
            bytes.split(|byte| !byte.is_ascii_digit()).filter_map(|digits| std::str::from_utf8(digits).ok());
        let has_rank =
            numbers.filter_map(|digits| digits.parse().ok()).any(|number| Some(number) == self.job.rank);
        let is_special = std::fs::metadata(named).is_ok_and(|there| !there.is_file());
        if tells_ranks || has_rank || is_special {
            return None;
        }
        let which = if self.job.rank.is_some() { "-%r" } else { "-%p" };
        let mut name = named.file_stem()?.to_owned();
        name.push(which);
        if let Some(ending) = named.extension() {
            name.push(".");
            name.push(ending);
        }
        Some(named.with_file_name(name))
    }

    fn pattern(&self, which: &str) -> PathBuf {
        let of_job = match (&self.job.id, &self.job.step) {
            (Some(_), Some(_)) => "%j.%s-",
            (Some(_), None) => "%j-",
            (None, _) => "",
        };
        format!("eprof-{of_job}{which}.data").into()
    }
}

/// A word that is one part of a path, whatever the environment says.
fn part(word: Option<&str>) -> String {
    let word = word.filter(|word| !word.is_empty()).unwrap_or(NONE);
    word.chars().map(|char| if char == '/' || char.is_control() { '_' } else { char }).collect()
}

/// The file to write. Ranks that were told no name must not all write one.
pub(super) fn output(named: Option<&Path>, of_node: bool, quiet: bool) -> anyhow::Result<PathBuf> {
    let place = Place::of_this_process(variable);
    if let Some((name, value)) = Job::misread_rank(variable).filter(|_| !quiet) {
        warn([format!(
            "{name} is `{value}`, which is no rank: the recording has none, and %r in its name is `{NONE}`"
        )]);
    }
    if named == Some(Path::new("-")) {
        anyhow::bail!(
            "a recording is a file, whose header is written last, and no stream: name one with -o, such as -o {DEFAULT_RECORDING}; \
             a file that is called - is ./-"
        );
    }
    if let Some(named) = named {
        let pattern = if of_node || !Job::has_ranks(variable) { None } else { place.apart(named) };
        let Some(pattern) = pattern else { return place.expand(named) };
        if !quiet && place.job.rank.is_none_or(|rank| rank == 0) {
            warn([format!(
                "all ranks would write one file, -o {}: each writes {} instead (put %r where the rank is to stand)",
                named.display(),
                pattern.display()
            )]);
        }
        return place.expand(&pattern);
    }
    if of_node {
        return place.expand(&place.pattern_of_nodes());
    }
    if !Job::has_ranks(variable) {
        return Ok(DEFAULT_RECORDING.into());
    }
    let pattern = place.pattern_of_ranks();
    // Once for all: who starts a thousand ranks does not want to read a thousand lines.
    if !quiet && place.job.rank.is_none_or(|rank| rank == 0) {
        say(format_args!("each rank writes a recording of its own, {} (-o names others)", pattern.display()));
    }
    place.expand(&pattern)
}

/// Makes the folder that the recordings of a job are written into, where nothing but it is missing: nobody can make that of
/// `-o %j/%r.data` before the job has its number, and a job that waited for hours shall not run unrecorded for want of it. What
/// cannot be made is told when the recording is opened.
pub(super) fn make_folder_of_job(output: &Path) {
    if Job::has_ranks(variable) || Job::of_environment(variable).id.is_some() {
        // Another rank may have made it just before.
        let _ = std::fs::create_dir(folder_of(output));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        let some = |text: &str| Some(text.to_owned());
        let job = Job { id: some("4711"), step: some("0"), rank: Some(3), node: some("n1") };
        Place { host: "node7".to_owned(), job, pid: 99 }
    }

    fn expand(place: &Place, name: &str) -> String {
        place.expand(Path::new(name)).expect(name).display().to_string()
    }

    #[test]
    fn names_tell_the_place() {
        assert_eq!(expand(&place(), "run/%h-%j.%s-%r-%t-%p-100%%.data"), "run/node7-4711.0-3-3-99-100%.data");
        assert_eq!(expand(&Place::default(), "%h-%j.%s-%r"), "none-none.none-none");
        assert_eq!(expand(&place(), "plain.data"), "plain.data");
    }

    #[test]
    fn a_name_from_outside_leads_nowhere_else() {
        let job = Job { id: Some("../../etc/x".to_owned()), ..Job::default() };
        assert_eq!(expand(&Place { job, ..place() }, "%j.data"), ".._.._etc_x.data");
    }

    #[test]
    fn what_stands_for_nothing_is_refused() {
        for wrong in ["%x.data", "100%", "%é"] {
            let error = place().expand(Path::new(wrong)).expect_err(wrong).to_string();
            assert!(error.contains("stands for nothing") && error.contains("%%"), "{error}");
        }
        let bytes = OsStr::from_bytes(b"\xff%r");
        assert_eq!(
            place().expand(Path::new(bytes)).expect("any bytes"),
            Path::new(OsStr::from_bytes(b"\xff3"))
        );
    }

    #[test]
    fn ranks_and_nodes_have_names_of_their_own() {
        let expand_of = |place: &Place, pattern: PathBuf| expand(place, &pattern.display().to_string());
        let place = place();
        assert_eq!(expand_of(&place, place.pattern_of_ranks()), "eprof-4711.0-3.data");
        assert_eq!(expand_of(&place, place.pattern_of_nodes()), "eprof-4711.0-node-node7.data");
        let without_job = Place { job: Job { rank: Some(5), ..Job::default() }, ..place };
        assert_eq!(expand_of(&without_job, without_job.pattern_of_ranks()), "eprof-5.data");
    }

    #[test]
    fn ranks_that_are_told_one_name_write_names_beside_it() {
        let apart =
            |place: &Place, name: &str| place.apart(Path::new(name)).map(|name| name.display().to_string());
        assert_eq!(apart(&place(), "run/all.data").as_deref(), Some("run/all-%r.data"));
        assert_eq!(apart(&place(), "run-%j-%h").as_deref(), Some("run-%j-%h-%r"));
        assert_eq!(expand(&place(), "run/all-%r.data"), "run/all-3.data");
        assert_eq!(apart(&Place::default(), "all.data").as_deref(), Some("all-%p.data"));
        assert_eq!(apart(&place(), "run4/all.data").as_deref(), Some("run4/all-%r.data"));
        for name in ["3.data", "rank_03.data", "3/all.data", "all-%r.data", "%t.data", "%p.data", "/dev/null"]
        {
            assert_eq!(apart(&place(), name), None, "{name}");
        }
    }
}
