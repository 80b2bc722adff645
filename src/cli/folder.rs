//! Folders that options name.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};

/// Takes a folder that is there: what is to be found in one that is mistyped would silently be missing.
pub fn folder() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|path| check(&path))
}

fn check(path: &OsStr) -> io::Result<PathBuf> {
    let path = PathBuf::from(path);
    match std::fs::metadata(&path)?.is_dir() {
        true => Ok(path),
        false => Err(io::ErrorKind::NotADirectory.into()),
    }
}
