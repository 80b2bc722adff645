//! What became of each fault, kept in a file and summed up by folder.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::faults::Fault;

/// What became of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A test failed.
    Noticed,
    /// A test did not end.
    NeverEnds,
    /// All tests that pass by it passed.
    Survived,
    /// Those tests passed that fit in the time for one fault.
    SurvivedBudget,
    /// No test passes by it.
    PassedByNone,
    /// It does not compile, and is none.
    DoesNotCompile,
}

impl Verdict {
    /// Did the tests let it pass?
    pub fn survived(self) -> bool {
        matches!(self, Self::Survived | Self::SurvivedBudget | Self::PassedByNone)
    }
}

/// A line of the file of results.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// The source file.
    pub file: PathBuf,
    /// Its line, from 1.
    pub line: usize,
    /// The function.
    pub function: String,
    /// What is wrong.
    pub what: String,
    /// How many before it say the same of the same function.
    pub nth: usize,
    /// What became of it.
    pub verdict: Verdict,
}

impl Row {
    /// Of this fault.
    pub fn of(fault: &Fault, verdict: Verdict) -> Self {
        let Fault { file, line, function, what, nth, .. } = fault.clone();
        Self { file, line, function, what, nth, verdict }
    }

    /// What it is the same fault by, wherever its line is by now.
    pub fn key(&self) -> Key {
        (self.file.clone(), self.function.clone(), self.what.clone(), self.nth)
    }
}

/// What a fault is known by from one run to the next.
pub type Key = (PathBuf, String, String, usize);

/// What this fault is known by.
pub fn key(fault: &Fault) -> Key {
    (fault.file.clone(), fault.function.clone(), fault.what.clone(), fault.nth)
}

/// Reads the rows of an earlier run.
///
/// # Errors
///
/// The file is not there, or no such file.
pub fn read(path: &Path) -> Result<Vec<Row>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("in {}", path.display())))
        .collect()
}

/// Writes the rows, one a line.
///
/// # Errors
///
/// The file cannot be written.
pub fn write(path: &Path, rows: &[Row]) -> Result<()> {
    let mut text = String::new();
    for row in rows {
        writeln!(text, "{}", serde_json::to_string(row)?)?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The share of faults that survived, by folder, and all together.
pub fn table(rows: &[Row]) -> String {
    let mut folders: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.verdict != Verdict::DoesNotCompile) {
        let parts: Vec<String> = row
            .file
            .components()
            .take(2)
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect();
        for folder in [parts.join("/"), "~ all".to_owned()] {
            let counts = folders.entry(folder).or_default();
            counts[0] += 1;
            counts[1] += usize::from(row.verdict.survived());
            counts[2] += usize::from(row.verdict == Verdict::PassedByNone);
            counts[3] += usize::from(row.verdict == Verdict::SurvivedBudget);
        }
    }
    let mut text =
        format!("{:24} {:>7} {:>9} {:>7} {:>8} {:>7}\n", "", "tried", "survived", "", "no test", "budget");
    for (folder, [tried, survived, by_none, budget]) in folders {
        let share = 100.0 * survived as f64 / tried as f64;
        let folder = folder.trim_start_matches("~ ");
        let _ = writeln!(text, "{folder:24} {tried:7} {survived:9} {share:6.1}% {by_none:8} {budget:7}");
    }
    text
}

/// The share of faults that survived, in per cent; 0 of none.
pub fn survived_percent(rows: &[Row]) -> f64 {
    let survived = rows.iter().filter(|row| row.verdict.survived()).count();
    100.0 * survived as f64 / rows.len().max(1) as f64
}
