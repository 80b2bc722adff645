//! Measurements of machines that others published, read into data sets.

use std::fs;
use std::path::{Path, PathBuf};

use eprof::power_model::dataset::Dataset;
use eprof::power_model::observations::observed;
use eprof::power_model::observations::table::{Table, TableColumns};

/// The text of a file.
pub fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).expect("a readable file")).into_owned()
}

/// The name of a file up to its first dot.
pub fn stem(path: &Path) -> String {
    let name = path.file_name().expect("a file").to_string_lossy().into_owned();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// The rows of some tables together.
pub fn rows_of(files: &[PathBuf], columns: &TableColumns) -> Dataset {
    let table = |file: &PathBuf| {
        Table::parse(&file.display().to_string(), &stem(file), &read(file)).expect("a table")
    };
    let tables: Vec<Table> = files.iter().map(table).collect();
    observed::observe(&tables, columns).expect("rows").data
}

/// The same with columns of single CPUs added up.
pub fn observe(files: &[PathBuf], columns: &TableColumns) -> Dataset {
    rows_of(files, columns).with_cpus_summed().0
}

/// The tables of a folder, by name.
pub fn csv_below(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "csv"))
        .collect();
    files.sort();
    files
}

/// Column names as options take them.
pub fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}
