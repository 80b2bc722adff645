//! Faults that make no difference: a list in the repository, with a reason each.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::edits::Id;
use crate::faults::{Fault, Source};

/// Where they are listed, below the project: one a line, as in the results, with a reason in place of the verdict.
const LIST: &str = "tests/mutants/equivalent.jsonl";

/// A fault that cannot be observed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    file: PathBuf,
    function: String,
    what: String,
    /// Which of those that say the same; all of them if none is named.
    nth: Option<usize>,
    /// Why nothing depends on it.
    reason: String,
}

impl Entry {
    fn is(&self, fault: &Fault) -> bool {
        self.file == fault.file
            && self.function == fault.function
            && self.what == fault.what
            && self.nth.is_none_or(|nth| nth == fault.nth)
    }
}

/// The list.
#[derive(Debug)]
pub struct Equivalents(Vec<Entry>);

impl Equivalents {
    /// Reads the project's list.
    ///
    /// # Errors
    ///
    /// It is not there, a line of it is no entry, or an entry has no reason.
    pub fn read(project: &Path) -> Result<Self> {
        let text = fs::read_to_string(project.join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let entries = text.lines().enumerate().map(|(line, text)| {
            let entry: Entry =
                serde_json::from_str(text).with_context(|| format!("in {LIST}, line {}", line + 1))?;
            if entry.reason.trim().is_empty() {
                bail!("{LIST}, line {}: there is no reason", line + 1);
            }
            Ok(entry)
        });
        entries.collect::<Result<_>>().map(Self)
    }

    /// Those of these sources.
    ///
    /// # Errors
    ///
    /// Entries name one of these files and no fault in it: the code has changed since.
    pub fn among(&self, sources: &[Source]) -> Result<BTreeSet<Id>> {
        let (mut found, mut missing) = (BTreeSet::new(), String::new());
        for entry in &self.0 {
            let Some(source) = sources.iter().find(|source| source.file == entry.file) else { continue };
            let before = found.len();
            found.extend(source.faults.iter().filter(|fault| entry.is(fault)).map(|fault| fault.id));
            if found.len() == before {
                missing += &format!("\n{} {}: {}", entry.file.display(), entry.function, entry.what);
            }
        }
        if !missing.is_empty() {
            bail!(
                "{LIST} names faults that are not there, or names them twice; look whether they still make no difference, and \
                 change or remove the lines:{missing}"
            );
        }
        Ok(found)
    }

    /// Says how many were left out, and which, with their reasons.
    pub fn print(&self, sources: &[Source], equivalent: &BTreeSet<Id>) {
        for fault in sources.iter().flat_map(|source| &source.faults) {
            let entry = self.0.iter().find(|entry| entry.is(fault));
            if let Some(entry) = entry.filter(|_| equivalent.contains(&fault.id)) {
                let Fault { file, line, function, what, .. } = fault;
                println!("equivalent: {}:{line} {function}: {what}: {}", file.display(), entry.reason);
            }
        }
        println!("{} faults that make no difference were left out", equivalent.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::find;

    fn sources() -> Vec<Source> {
        vec![find(Path::new("src/a.rs"), "fn f() { g(a < b); g(a < b); }".to_owned(), 1).expect("Rust")]
    }

    fn list(nth: &str) -> String {
        let what = "<= for < in a < b";
        format!(
            "{{\"file\":\"src/a.rs\",\"function\":\"f\",\"what\":\"{what}\",{nth}\"reason\":\"never equal\"}}\n"
        )
    }

    #[test]
    fn one_or_all_of_those_that_say_the_same_are_named() {
        let of = |nth: &str| Equivalents::parse(&list(nth)).expect("a list").among(&sources());
        let both = of("").expect("two");
        let second = of("\"nth\":1,").expect("one");
        assert_eq!((both.len(), second.len()), (2, 1));
        assert_eq!(both.last(), second.last());
    }

    /// Code changes, and with it what makes no difference: a stale line would end the next run of faults.
    #[test]
    fn the_projects_list_names_faults_that_are_there() {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let list = Equivalents::read(&project).expect("a list");
        let files: BTreeSet<&PathBuf> = list.0.iter().map(|entry| &entry.file).collect();
        let source = |file: &PathBuf| {
            let text =
                fs::read_to_string(project.join(file)).unwrap_or_else(|error| panic!("{file:?}: {error}"));
            find(file, text, 1).expect("Rust")
        };
        // Numbers of faults are told apart within a run: here each file is one.
        let stale: Vec<String> = files
            .into_iter()
            .filter_map(|file| Some(list.among(&[source(file)]).err()?.to_string()))
            .collect();
        assert!(stale.is_empty(), "{}", stale.join("\n"));
    }

    #[test]
    fn an_entry_that_names_nothing_is_an_error() {
        let list = Equivalents::parse(&list("\"nth\":2,")).expect("a list");
        assert!(list.among(&sources()).is_err());
        // Of other files nothing is known in this run.
        assert!(list.among(&[]).is_ok_and(|found| found.is_empty()));
    }

    #[test]
    fn a_reason_is_needed() {
        assert!(Equivalents::parse(&list("").replace("never equal", " ")).is_err());
        assert!(Equivalents::parse("{\"file\":\"src/a.rs\"}").is_err());
    }
}
