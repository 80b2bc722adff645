//! Recordings of several files: `perf record --threads` writes a folder of them.
//!
//! The file `data` is a recording as any other, with the records that perf made up before it began. Those of the kernel are in
//! `data.0`, `data.1` and so on, one for each thread that wrote, without any header, mark of a round or order among them. See
//! kernel-notes/perf-data-format.md.

use std::path::{Path, PathBuf};

use crate::error::ReadError;
use crate::header::Data;
use crate::source::Bytes;

/// The records of the file at `path`, which lie at `data` of `bytes`, and behind them those of all files beside it.
///
/// # Errors
/// If there are none beside it, or one cannot be read.
pub(crate) fn joined(path: &Path, bytes: Bytes, data: Data) -> Result<(Bytes, Data), ReadError> {
    // Behind what is cut off nothing could be found.
    if data.missing > 0 {
        return Ok((bytes, data));
    }
    let others: Vec<PathBuf> =
        (0..).map(|number| numbered(path, number)).take_while(|path| path.is_file()).collect();
    if others.is_empty() {
        return Err(ReadError::FilesMissing { path: path.to_owned() });
    }
    let own = bytes.get(data.range.clone()).unwrap_or_default();
    let joined = Bytes::joined(own, &others);
    let (all, further_files) = joined.map_err(|source| ReadError::Open { path: path.to_owned(), source })?;
    let range = 0..all.len();
    Ok((all, Data { range, further_files, ..data }))
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut numbered = path.as_os_str().to_owned();
    numbered.push(format!(".{number}"));
    numbered.into()
}
