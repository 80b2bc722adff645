//! Which windows a folder of tables has already, so that no meter's joules come into it twice.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};

use super::recording::window;
use super::schema::BALANCE;
use super::threads;
use crate::report::exporter::Exported;

/// Windows that follow each other may overlap by so many microseconds, by which the wall clock was set meanwhile.
const TOLERANCE: i64 = 1_000;

/// The windows of a folder, by the boot and the domain whose joules they tell.
#[derive(Debug, Default)]
pub struct Windows {
    known: BTreeMap<(String, String), Vec<Window>>,
}

/// A row of a balance.
#[derive(Debug, Clone)]
struct Window {
    /// In microseconds since 1970-01-01 UTC.
    start: i64,
    end: i64,
    file: PathBuf,
}

/// A window that tells of the same joules as what is to be exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// The file of its balance.
    pub file: PathBuf,
    /// The first domain that both have.
    pub domain: String,
    /// How long both were.
    pub time: Duration,
}

impl Windows {
    /// Reads the balances of a folder; one that is not there has none. Files that are no balance of eprof's are for those to tell who
    /// ask them.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn in_folder(folder: &Path) -> io::Result<Self> {
        let mut found = Self::default();
        let entries = match fs::read_dir(folder.join(BALANCE.name)) {
            Ok(entries) => entries,
            // What is no folder is told where one is to be made.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(found);
            }
            Err(error) => return Err(error),
        };
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if !name.starts_with('.') && name.ends_with(".parquet") && path.is_file() {
                let _ = found.add(&path);
            }
        }
        Ok(found)
    }

    fn add(&mut self, path: &Path) -> Result<(), ParquetError> {
        let reader = SerializedFileReader::new(File::open(path)?)?;
        for row in reader.get_row_iter(None)? {
            if let Some((key, start, end)) = read(&row?) {
                self.known.entry(key).or_default().push(Window { start, end, file: path.to_owned() });
            }
        }
        Ok(())
    }

    /// The first window in any file but `own` that has joules of the same meter in the same time as what is to be exported. Of
    /// recordings without a boot or a time nobody knows.
    pub fn overlapping(&self, exported: &Exported<'_>, own: &Path) -> Option<Overlap> {
        exported.started?;
        let profile = exported.profile.profile();
        let (start, end) = window(exported);
        let boots = profile.recordings.iter().filter_map(|origin| origin.identity.as_ref()?.boot.as_deref());
        let boots: Vec<&str> = boots.collect();
        profile.top_domains().find_map(|(_, domain)| {
            let name = threads::shown(&domain.info.name);
            let of_boot = |boot: &&str| self.known.get(&((*boot).to_owned(), name.clone()));
            let common = |window: &Window| end.min(window.end).saturating_sub(start.max(window.start));
            let mut windows = boots.iter().filter_map(of_boot).flatten();
            let found = windows.find(|window| window.file != own && common(window) > TOLERANCE)?;
            let time = Duration::from_micros(common(found).unsigned_abs());
            Some(Overlap { file: found.file.clone(), domain: name.clone(), time })
        })
    }
}

/// The boot, the domain and the window of a row; nothing of a row that tells no boot.
fn read(row: &Row) -> Option<((String, String), i64, i64)> {
    let field =
        |wanted: &str| row.get_column_iter().find(|(name, _)| *name == wanted).map(|(_, field)| field);
    let text = |name: &str| match field(name) {
        Some(Field::Str(text)) => Some(text.clone()),
        _ => None,
    };
    let time = |name: &str| match field(name) {
        Some(Field::TimestampMicros(time) | Field::Long(time)) => Some(*time),
        _ => None,
    };
    let boot = text("boot").filter(|boot| !boot.is_empty())?;
    Some(((boot, text("domain")?), time("window_start")?, time("window_end")?))
}
