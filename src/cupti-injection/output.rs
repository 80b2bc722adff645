//! The file that records go to.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::wire::Record;

/// Records on their way into this process's file.
#[derive(Debug)]
pub struct Output {
    file: File,
    waiting: Vec<u8>,
    names: HashMap<Vec<u8>, u32>,
}

impl Output {
    /// More than this in memory is written at once.
    const ENOUGH: usize = 64 * 1024;

    /// Makes this process's file in eprof's folder.
    ///
    /// # Errors
    /// If the folder is gone, or belongs to another user.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let path = folder.join(std::process::id().to_string());
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        Ok(Self { file, waiting: Vec::new(), names: HashMap::new() })
    }

    /// Takes a record.
    pub fn record(&mut self, record: &Record<'_>) {
        record.encode(&mut self.waiting);
        if self.waiting.len() > Self::ENOUGH {
            self.flush();
        }
    }

    /// The number of a name, told before its first use.
    pub fn name(&mut self, text: &[u8]) -> u32 {
        if let Some(id) = self.names.get(text) {
            return *id;
        }
        let id = self.names.len() as u32;
        self.names.insert(text.to_vec(), id);
        self.record(&Record::Name { id, text });
        id
    }

    /// Writes what there is. What the disk has no room for is dropped: the program matters more.
    pub fn flush(&mut self) {
        let _ = self.file.write_all(&self.waiting);
        self.waiting.clear();
    }

    /// Nobody will read it any more: eprof has ended its recording and removed the file.
    pub fn is_abandoned(&self) -> bool {
        self.file.metadata().is_ok_and(|data| data.nlink() == 0)
    }
}
