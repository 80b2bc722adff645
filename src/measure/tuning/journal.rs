//! Every run as one line of JSON, so that an interrupted tuning goes on where it stopped.
//!
//! The first line says what was tuned; a journal of anything else is refused. A run is known by its
//! setting and purpose: the search asks for the same runs again, and those in the journal are
//! answered from it.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::error::TuningError;
use crate::tune::search::Purpose;
use crate::tune::space::Setting;

const VERSION: u32 = 1;

/// What was tuned: runs may be taken from the journal only if all of it is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of this format.
    pub eprof_tune: u32,
    /// The command template, word by word.
    pub command: Vec<String>,
    /// The setup template.
    pub setup: Option<String>,
    /// Names of the variables, in the order of each setting's values.
    pub variables: Vec<String>,
    /// The measure of speed.
    pub metric: String,
    /// Energy domains and where their joules come from.
    pub meter: Vec<String>,
    /// How threads were placed.
    pub placement: String,
    /// The machine.
    pub host: String,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What was set.
    pub setting: Setting,
    /// Whether it was to verify.
    pub verify: bool,
    /// Time and energy, or performance and efficiency.
    pub values: [f64; 2],
    /// Seconds from start to end.
    pub seconds: f64,
    /// Joules in that time.
    pub joules: f64,
    /// Mean CPU frequency read during the run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ghz: Option<f64>,
}

/// What a journal had when it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JournalState {
    /// Runs that need not be made again.
    pub runs: usize,
}

/// An open journal, locked against others.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Flock<File>,
    known: FxHashMap<(bool, String), VecDeque<Entry>>,
}

impl Header {
    /// A header of this version.
    pub const fn version() -> u32 {
        VERSION
    }

    /// The first thing in which another tuning differs.
    fn difference(&self, other: &Self) -> Option<String> {
        let text = |words: &[String]| words.join(" ");
        let pairs = [
            ("version", self.eprof_tune.to_string(), other.eprof_tune.to_string()),
            ("command", text(&self.command), text(&other.command)),
            ("setup", self.setup.clone().unwrap_or_default(), other.setup.clone().unwrap_or_default()),
            ("variables", text(&self.variables), text(&other.variables)),
            ("metric", self.metric.clone(), other.metric.clone()),
            ("meter", text(&self.meter), text(&other.meter)),
            ("placement", self.placement.clone(), other.placement.clone()),
            ("machine", self.host.clone(), other.host.clone()),
        ];
        let (what, own, others) = pairs.into_iter().find(|(_, own, others)| own != others)?;
        Some(format!("{what}: `{others}` there, `{own}` here"))
    }
}

impl Journal {
    /// Opens or makes a journal; `fresh` empties it first.
    ///
    /// # Errors
    /// A file that cannot be read or written, is in use, or belongs to another tuning.
    pub fn open(path: &Path, header: &Header, fresh: bool) -> Result<(Self, JournalState), TuningError> {
        let failed = |cause| TuningError::Journal { path: path.into(), cause };
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
        let mut file = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|_| TuningError::JournalInUse(path.into()))?;
        let mut journal_text = String::new();
        if fresh {
            file.set_len(0).map_err(failed)?;
        } else {
            file.read_to_string(&mut journal_text).map_err(failed)?;
        }
        let mut journal = Self { path: path.into(), file, known: FxHashMap::default() };
        let mut state = JournalState::default();
        let mut good = 0;
        for (index, line) in journal_text.split_inclusive('\n').enumerate() {
            // A line without an end was being written when the machine or eprof died.
            let Some(content) = line.strip_suffix('\n') else { break };
            let malformed = |error: serde_json::Error| {
                let reason = format!("line {} is no line of a tuning's journal: {error}", index + 1);
                failed(io::Error::new(io::ErrorKind::InvalidData, reason))
            };
            if index == 0 {
                let other: Header = serde_json::from_str(content).map_err(malformed)?;
                if let Some(difference) = header.difference(&other) {
                    return Err(TuningError::OtherJournal { path: path.into(), difference });
                }
            } else {
                let entry: Entry = serde_json::from_str(content).map_err(malformed)?;
                journal.known.entry((entry.verify, entry.setting.key())).or_default().push_back(entry);
                state.runs += 1;
            }
            good += line.len() as u64;
        }
        journal.file.set_len(good).map_err(failed)?;
        journal.file.seek(io::SeekFrom::End(0)).map_err(failed)?;
        if good == 0 {
            journal.write(header)?;
        }
        Ok((journal, state))
    }

    /// A run of this setting that was not asked for yet.
    pub fn take(&mut self, setting: &Setting, purpose: Purpose) -> Option<Entry> {
        self.known.get_mut(&(purpose == Purpose::Verify, setting.key()))?.pop_front()
    }

    /// Keeps a run; it is on the disk when this returns.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn add(&mut self, entry: &Entry) -> Result<(), TuningError> {
        self.write(entry)
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), TuningError> {
        let failed = |cause| TuningError::Journal { path: self.path.clone(), cause };
        let mut bytes = serde_json::to_vec(line).map_err(|error| failed(error.into()))?;
        bytes.push(b'\n');
        self.file.write_all(&bytes).and_then(|()| self.file.sync_data()).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tune::space::Level;

    fn header() -> Header {
        Header {
            eprof_tune: VERSION,
            command: vec!["./app".into(), "{threads}".into()],
            setup: None,
            variables: vec!["threads".into()],
            metric: "wall time".into(),
            meter: vec!["package-0 (powercap)".into()],
            placement: "Spread".into(),
            host: "node1".into(),
        }
    }

    fn entry(threads: f64, seconds: f64) -> Entry {
        let setting = Setting(vec![Level::Number(threads)]);
        Entry { setting, verify: false, values: [seconds, 10.0], seconds, joules: 10.0, ghz: None }
    }

    #[test]
    fn runs_are_answered_in_their_order_and_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal");
        let (mut journal, state) = Journal::open(&path, &header(), false).expect("made");
        assert_eq!(state.runs, 0);
        for seconds in [1.0, 2.0] {
            journal.add(&entry(4.0, seconds)).expect("written");
        }
        drop(journal);
        let (mut journal, state) = Journal::open(&path, &header(), false).expect("opened");
        assert_eq!(state.runs, 2);
        let setting = entry(4.0, 0.0).setting;
        assert_eq!(journal.take(&setting, Purpose::Verify), None);
        assert_eq!(journal.take(&setting, Purpose::Learn), Some(entry(4.0, 1.0)));
        assert_eq!(journal.take(&setting, Purpose::Learn), Some(entry(4.0, 2.0)));
        assert_eq!(journal.take(&setting, Purpose::Learn), None);
        journal.add(&entry(8.0, 3.0)).expect("written");
        drop(journal);
        assert_eq!(Journal::open(&path, &header(), false).expect("opened").1.runs, 3);
        assert_eq!(Journal::open(&path, &header(), true).expect("emptied").1.runs, 0);
    }

    #[test]
    fn a_line_cut_off_is_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal");
        let (mut journal, _) = Journal::open(&path, &header(), false).expect("made");
        journal.add(&entry(4.0, 1.0)).expect("written");
        journal.add(&entry(4.0, 2.0)).expect("written");
        drop(journal);
        let text = fs::read_to_string(&path).expect("readable");
        fs::write(&path, &text[..text.len() - 9]).expect("writable");
        let (mut journal, state) = Journal::open(&path, &header(), false).expect("opened");
        assert_eq!(state.runs, 1);
        journal.add(&entry(4.0, 5.0)).expect("written");
        drop(journal);
        assert_eq!(Journal::open(&path, &header(), false).expect("whole again").1.runs, 2);
    }

    #[test]
    fn another_tunings_journal_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal");
        drop(Journal::open(&path, &header(), false).expect("made"));
        let other = Header { command: vec!["./other".into()], ..header() };
        let error = Journal::open(&path, &other, false).expect_err("another command").to_string();
        assert!(error.contains("command: `./app {threads}` there, `./other` here"), "{error}");
        fs::write(&path, "{\"a\":1}\n").expect("writable");
        assert!(matches!(Journal::open(&path, &header(), false), Err(TuningError::Journal { .. })));
        assert_eq!(fs::read_to_string(&path).expect("readable"), "{\"a\":1}\n", "not ours to change");
    }

    #[test]
    fn two_at_once_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal");
        let (_journal, _) = Journal::open(&path, &header(), false).expect("made");
        assert!(matches!(Journal::open(&path, &header(), false), Err(TuningError::JournalInUse(_))));
    }
}
