//! Getting at a recording's bytes: files are mapped, pipes are written to a nameless file first.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::ops::Deref;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use memmap2::{Advice, Mmap, UncheckedAdvice};

use crate::header;
use crate::input_name::STANDARD_INPUT;

/// A recording is known by so many bytes.
const BEGINNING: usize = 8;
/// Pages of so many bytes are given back at a time.
const GIVEN_BACK: usize = 8 << 20;

/// The bytes of a recording.
#[derive(Debug)]
pub(crate) enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// What a path leads to.
pub(crate) enum Opened {
    Recording(Bytes),
    /// Something else, from its beginning.
    Other(Box<dyn Read + Send>),
}

impl Opened {
    /// Opens the file at `path`, or standard input if it is `-`.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = if path == Path::new(STANDARD_INPUT) {
            File::from(io::stdin().as_fd().try_clone_to_owned()?)
        } else {
            File::open(path)?
        };
        if !file.metadata()?.is_file() {
            return Self::spool(file);
        }
        let mut beginning = [0; BEGINNING];
        match file.read_exact_at(&mut beginning, 0) {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
            _ if header::is_recording(&beginning) => Ok(Self::Recording(Bytes::map(&file)?)),
            _ => Ok(Self::Other(Box::new(file))),
        }
    }

    /// Copies what comes out of a pipe to a file without a name, so that a recording of any size can be
    /// read back and forth without filling the memory.
    ///
    /// Of what does not begin as a recording does no more is read: it may never end.
    fn spool(mut pipe: impl Read + Send + 'static) -> io::Result<Self> {
        let mut beginning = Vec::new();
        pipe.by_ref().take(BEGINNING as u64).read_to_end(&mut beginning)?;
        if !header::is_recording(&beginning) {
            return Ok(Self::Other(Box::new(io::Cursor::new(beginning).chain(pipe))));
        }
        let mut file = nameless_file(&spool_folder())?;
        file.write_all(&beginning)?;
        io::copy(&mut pipe, &mut file)?;
        file.flush()?;
        file.rewind()?;
        Ok(Self::Recording(Bytes::map(&file)?))
    }
}

impl Bytes {
    fn map(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Self::Owned(Vec::new()));
        }
        // SAFETY: the map is read-only and never given out as anything but bytes, any of which are
        // valid. Another process that writes to the file changes what we read, which the reader takes
        // as it takes every damaged file. One that shortens it makes reading beyond the new end raise SIGBUS,
        // which ends the process unless it has a handler.
        let map = unsafe { Mmap::map(file)? };
        // Only advice: reading works without.
        let _ = map.advise(Advice::Sequential);
        Ok(Self::Mapped(map))
    }

    /// These bytes and all of those files, one behind the other, and where each of the files begins.
    pub(crate) fn joined(first: &[u8], others: &[PathBuf]) -> io::Result<(Self, Vec<usize>)> {
        let mut file = nameless_file(&spool_folder())?;
        file.write_all(first)?;
        let (mut end, mut starts) = (first.len(), Vec::new());
        for path in others {
            starts.push(end);
            end += io::copy(&mut File::open(path)?, &mut file)? as usize;
        }
        file.flush()?;
        Ok((Self::map(&file)?, starts))
    }
}

impl Drop for Bytes {
    /// Gives the pages back piece by piece: while the kernel unmaps all of a large file at once, some 60 ms per
    /// gigabyte, no other thread can map anything.
    fn drop(&mut self) {
        let Self::Mapped(map) = self else { return };
        for start in (0..map.len()).step_by(GIVEN_BACK) {
            let length = GIVEN_BACK.min(map.len() - start);
            // SAFETY: pages of a file that is mapped for reading come back from the file if they are read again.
            let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, length) };
        }
    }
}

/// The user's choice, or the folder for temporary files that is on a disk: `/tmp` is often in memory.
fn spool_folder() -> PathBuf {
    let on_disk = Path::new("/var/tmp");
    match std::env::var_os("TMPDIR") {
        None if on_disk.is_dir() => on_disk.to_owned(),
        _ => std::env::temp_dir(),
    }
}

fn nameless_file(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().custom_flags(libc::O_TMPFILE).open(folder) {
        Ok(file) => Ok(file),
        // Not every file system knows files without names.
        Err(_) => {
            let path = folder.join(format!("perf-data-pipe-{}", std::process::id()));
            let file = options.create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_read_to_its_end() {
        let numbers = (0..100_000u32).flat_map(u32::to_le_bytes);
        let content: Vec<u8> = b"PERFILE2".iter().copied().chain(numbers).collect();
        let opened = Opened::spool(io::Cursor::new(content.clone())).expect("a writable folder");
        let Opened::Recording(bytes) = opened else { panic!("it begins as a recording") };
        assert!(matches!(bytes, Bytes::Mapped(_)));
        assert_eq!(&bytes[..], &content[..]);
    }

    #[test]
    fn what_is_no_recording_is_not_read_to_its_end() {
        let Opened::Other(all) = Opened::spool(io::repeat(b'y')).expect("readable") else {
            panic!("no recording");
        };
        let mut first = Vec::new();
        all.take(1_000).read_to_end(&mut first).expect("readable");
        assert_eq!(first, [b'y'; 1_000]);
        assert!(matches!(Opened::spool(io::empty()), Ok(Opened::Other(_))));
    }
}
