//! Files of sysfs that hold one number and are read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::str::FromStr;

/// An open file that holds one number.
#[derive(Debug)]
pub(super) struct NumberFile(File);

impl NumberFile {
    /// Opens it.
    pub fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// The number now: sysfs asks the driver anew whenever a file is read from its start.
    pub fn read<T: FromStr>(&self) -> io::Result<T> {
        let mut text = [0; 24];
        let length = self.0.read_at(&mut text, 0)?;
        let text = text.get(..length).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
        text.trim()
            .parse()
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("'{text}' is no number")))
    }
}
