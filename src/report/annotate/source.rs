//! Lines of source files, wherever these are.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use rustc_hash::FxHashMap;

use crate::label::Label;

/// Larger files are no source that anybody reads.
const LARGEST: u64 = 32 << 20;

/// Source files, read when they are asked for.
#[derive(Debug, Default)]
pub struct Sources {
    folders: Vec<PathBuf>,
    files: FxHashMap<String, Option<Vec<String>>>,
    /// When the recording began.
    recorded: Option<SystemTime>,
    /// When the program was built, as far as its file tells.
    built: Option<SystemTime>,
    /// Files that were written later.
    changed: Vec<PathBuf>,
    /// Files that were written before the recording, and after the program.
    younger: Vec<PathBuf>,
}

impl Sources {
    /// In these folders, and at the paths that debug information tells; for a recording that began then.
    pub fn new(folders: Vec<PathBuf>, recorded: Option<SystemTime>) -> Self {
        let (files, changed, younger) = Default::default();
        Self { folders, files, recorded, built: None, changed, younger }
    }

    /// Of a program whose file was written then.
    pub fn of_program(self, built: Option<SystemTime>) -> Self {
        Self { built, ..self }
    }

    /// What is to be said of the files that were read: a program that ran cannot be of a source that was written later.
    pub fn warnings(&self) -> Vec<String> {
        let warning = |path: &PathBuf| {
            format!(
                "{} was written after the recording began: its lines may not be those that ran; --source names the folder of \
                 the sources as they were, or record again",
                Label::new(&path.display().to_string())
            )
        };
        let of_program = |path: &PathBuf| {
            format!(
                "{} was written after the program: its lines may not be those that it was built from; build and record again, or \
                 let --source name the folder of the sources as they were",
                Label::new(&path.display().to_string())
            )
        };
        self.changed.iter().map(warning).chain(self.younger.iter().map(of_program)).collect()
    }

    /// Says so where no file that was asked for is here.
    pub fn none_found(&self) -> Option<String> {
        if self.files.values().any(Option::is_some) {
            return None;
        }
        // A path without its beginning is most often of a library.
        let missing = self.files.keys().min_by_key(|path| (!path.starts_with('/'), path.as_str()))?;
        let folders: Vec<String> =
            self.folders.iter().map(|folder| Label::new(&folder.display().to_string()).to_string()).collect();
        let nowhere =
            if folders.is_empty() { String::new() } else { format!(" nor below {}", folders.join(", ")) };
        Some(format!(
            "no source file is where the compiler found it{nowhere}, as {}: there are no lines; --source=FOLDER names the folder \
             that has them by the ends of their paths",
            Label::new(missing)
        ))
    }

    /// The lines of a file; `None` if it is not here.
    pub fn lines(&mut self, path: &str) -> Option<&[String]> {
        if !self.files.contains_key(path) {
            let read = self.read(Path::new(path));
            self.files.insert(path.to_owned(), read);
        }
        self.files.get(path)?.as_deref()
    }

    fn read(&mut self, path: &Path) -> Option<Vec<String>> {
        self.candidates(path).iter().find_map(|path| {
            let metadata = fs::metadata(path).ok()?;
            if !metadata.is_file() || metadata.len() > LARGEST {
                return None;
            }
            let bytes = fs::read(path).ok()?;
            let written = metadata.modified().ok();
            if written.zip(self.recorded).is_some_and(|(written, recorded)| written > recorded) {
                self.changed.push(path.clone());
            } else if written.zip(self.built).is_some_and(|(written, built)| written > built) {
                self.younger.push(path.clone());
            }
            Some(String::from_utf8_lossy(&bytes).lines().map(|line| line.replace('\t', "    ")).collect())
        })
    }

    /// Where the file may be: in each folder the whole path, then without its first folder, and so on.
    fn candidates(&self, path: &Path) -> Vec<PathBuf> {
        let names: Vec<_> = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let ends = |folder: &PathBuf| {
            (0..names.len())
                .map(|from| folder.join(names[from..].iter().collect::<PathBuf>()))
                .collect::<Vec<_>>()
        };
        self.folders.iter().flat_map(ends).chain([path.to_owned()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_below_the_folder_by_the_end_of_its_path() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("src")).expect("a folder");
        fs::write(folder.path().join("src/main.c"), "int main() {\n\treturn 0;\n}\n").expect("written");
        let mut sources = Sources::new(vec![folder.path().to_owned()], None);
        let lines = sources.lines("/build/of/somebody/src/main.c").expect("found");
        assert_eq!(lines, ["int main() {", "    return 0;", "}"]);
        assert!(sources.lines("/build/of/somebody/src/other.c").is_none());
        let mut nowhere = Sources::new(Vec::new(), None);
        assert!(nowhere.lines("/build/of/somebody/src/main.c").is_none());
        let said = nowhere.none_found().expect("none was found");
        assert!(said.contains("as /build/of/somebody/src/main.c: there are no lines"), "{said}");
        assert!(nowhere.lines(folder.path().join("src/main.c").to_str().expect("a path")).is_some());
        assert_eq!((nowhere.none_found(), sources.none_found()), (None, None));
    }

    #[test]
    fn sources_that_were_written_after_the_recording_are_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("main.c");
        fs::write(&path, "int main() {}\n").expect("written");
        let written = fs::metadata(&path).expect("there").modified().expect("a time");
        let warnings = |recorded| {
            let mut sources = Sources::new(Vec::new(), recorded);
            sources.lines(path.to_str().expect("text")).expect("found");
            sources.warnings()
        };
        let second = std::time::Duration::from_secs(1);
        assert!(warnings(None).is_empty() && warnings(Some(written + second)).is_empty());
        let told = warnings(Some(written - second));
        assert!(told.len() == 1 && told[0].contains("main.c was written after the recording"), "{told:?}");
        let of_program = |built| {
            let mut sources = Sources::new(Vec::new(), Some(written + second)).of_program(Some(built));
            sources.lines(path.to_str().expect("text")).expect("found");
            sources.warnings()
        };
        assert!(of_program(written + second).is_empty());
        let told = of_program(written - second);
        assert!(told.len() == 1 && told[0].contains("main.c was written after the program"), "{told:?}");
    }
}
