//! Lines of source files, wherever these are.

use std::fs;
use std::path::{Component, Path, PathBuf};

use rustc_hash::FxHashMap;

/// Larger files are no source that anybody reads.
const LARGEST: u64 = 32 << 20;

/// Source files, read when they are asked for.
#[derive(Debug, Default)]
pub struct Sources {
    folders: Vec<PathBuf>,
    files: FxHashMap<String, Option<Vec<String>>>,
}

impl Sources {
    /// In these folders, and at the paths that debug information tells.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self { folders, files: FxHashMap::default() }
    }

    /// The lines of a file; `None` if it is not here.
    pub fn lines(&mut self, path: &str) -> Option<&[String]> {
        if !self.files.contains_key(path) {
            let read = self.read(Path::new(path));
            self.files.insert(path.to_owned(), read);
        }
        self.files.get(path)?.as_deref()
    }

    fn read(&self, path: &Path) -> Option<Vec<String>> {
        self.candidates(path).iter().find_map(|path| {
            let metadata = fs::metadata(path).ok()?;
            if !metadata.is_file() || metadata.len() > LARGEST {
                return None;
            }
            let bytes = fs::read(path).ok()?;
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
        let mut sources = Sources::new(vec![folder.path().to_owned()]);
        let lines = sources.lines("/build/of/somebody/src/main.c").expect("found");
        assert_eq!(lines, ["int main() {", "    return 0;", "}"]);
        assert!(sources.lines("/build/of/somebody/src/other.c").is_none());
        let mut nowhere = Sources::new(Vec::new());
        assert!(nowhere.lines("/build/of/somebody/src/main.c").is_none());
        assert!(nowhere.lines(folder.path().join("src/main.c").to_str().expect("a path")).is_some());
    }
}
