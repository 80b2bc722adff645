//! Opens recordings, and says what helps where one cannot be opened.

use std::io;
use std::path::Path;

use anyhow::{Context, bail};
use eprof::recording::{Opened, Recording, RecordingError};
use perf_data::{ReadError, input_name};

use super::{denied, recordings};

/// The recording that verbs read if they are told no other.
pub const DEFAULT_RECORDING: &str = eprof::record::DEFAULT_OUTPUT;

/// Opens a recording; says how to make one where the usual one is not there.
pub fn open(path: &Path) -> anyhow::Result<Recording> {
    or_say_how_to_record(path, Recording::open(path))
}

/// Opens a recording, or begins to read what may be the text of another tool.
pub(super) fn open_any(path: &Path) -> anyhow::Result<Opened> {
    or_say_how_to_record(path, Recording::open_or_other(path))
}

fn or_say_how_to_record<T>(path: &Path, opened: Result<T, RecordingError>) -> anyhow::Result<T> {
    if path == Path::new(DEFAULT_RECORDING) && !path.exists() {
        let others = recordings::count_in(Path::new("."));
        let way = match others {
            0 => "make one with `eprof record COMMAND`, or name a file with -i".to_owned(),
            1 => "there is another recording, which `-i .` reads".to_owned(),
            _ => format!(
                "there are {others} other recordings, such as of the ranks of a job: `-i .` reads them all, as one"
            ),
        };
        return opened.with_context(|| format!("no {DEFAULT_RECORDING} here: {way}"));
    }
    if path.is_dir() && recordings::count_in(path) > 0 {
        bail!("{} is a folder of recordings, and this is of one: name one of its files", path.display());
    }
    opened.map_err(|error| {
        let repair = repair(&error, path);
        let is_named = matches!(error, RecordingError::PerfData(_));
        let error = anyhow::Error::from(error);
        let error = if is_named { error } else { error.context(format!("cannot read {}", input_name(path))) };
        match repair {
            Some(repair) => anyhow::anyhow!("{error:#}; {repair}"),
            None => error,
        }
    })
}

/// What helps where a file cannot be read at all.
fn repair(error: &RecordingError, path: &Path) -> Option<String> {
    let name = input_name(path);
    let error = match error {
        RecordingError::PerfData(error) => error,
        RecordingError::Metadata { .. } => {
            return Some(format!(
                "the file is damaged: copy it anew from where it was made, or `eprof record -o {name} COMMAND` records anew"
            ));
        }
        _ => return None,
    };
    match error {
        ReadError::Open { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            denied::repair(path).map(|repair| format!("recordings are their owner's alone: {repair}"))
        }
        ReadError::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            Some(format!("`eprof record -o {name} COMMAND` would make it"))
        }
        ReadError::Empty { .. } => Some(format!("`eprof record -o {name} COMMAND` records anew")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_read_have_a_repair() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.data");
        std::fs::write(&file, "").expect("written");
        let denied = ReadError::Open { path: file.clone(), source: io::ErrorKind::PermissionDenied.into() };
        let denied = or_say_how_to_record::<()>(&file, Err(denied.into())).expect_err("denied").to_string();
        assert!(denied.contains("a.data is your own") && denied.contains("chmod u+rwX "), "{denied}");
        let path = Path::new("run/a.data");
        let said = |error: ReadError| {
            or_say_how_to_record::<()>(path, Err(error.into())).expect_err("an error").to_string()
        };
        let open = |kind: io::ErrorKind| said(ReadError::Open { path: path.to_owned(), source: kind.into() });
        assert!(
            open(io::ErrorKind::NotFound).ends_with("`eprof record -o run/a.data COMMAND` would make it")
        );
        let empty = said(ReadError::Empty { path: path.to_owned() });
        assert!(empty.ends_with("; `eprof record -o run/a.data COMMAND` records anew"), "{empty}");
        let source = serde_json::from_str::<u32>("[").expect_err("no number");
        let damaged = RecordingError::Metadata { offset: 832, source };
        let damaged = or_say_how_to_record::<()>(path, Err(damaged)).expect_err("an error").to_string();
        assert!(
            damaged.starts_with("cannot read run/a.data: the recording's metadata (at byte 832)"),
            "{damaged}"
        );
        assert!(damaged.contains("; the file is damaged: copy it anew"), "{damaged}");
    }
}
