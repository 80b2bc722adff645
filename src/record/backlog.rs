//! How much of a file in memory is still to be read by whoever follows the recording.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

/// What `st_blocks` counts in.
const BLOCK: u64 = 512;

/// The unread part of a file whose reader gives back the memory of what it has read.
#[derive(Debug)]
pub struct Backlog {
    file: File,
    most: u64,
}

impl Backlog {
    /// Of this file, and full with more than so many bytes.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(file: &File, most: u64) -> io::Result<Self> {
        Ok(Self { file: file.try_clone()?, most })
    }

    /// Whether the reader has fallen so far behind that nothing should be added.
    pub fn is_full(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.blocks() * BLOCK > self.most)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_was_given_back_makes_room() {
        use nix::fcntl::{FallocateFlags, fallocate};
        use nix::sys::memfd::{MFdFlags, memfd_create};
        let mut file = File::from(memfd_create(c"backlog", MFdFlags::empty()).expect("memory"));
        let backlog = Backlog::new(&file, 1 << 20).expect("memory");
        file.write_all(&vec![1; 1 << 20]).expect("memory");
        assert!(!backlog.is_full());
        file.write_all(&vec![1; 1 << 20]).expect("memory");
        assert!(backlog.is_full());
        let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        fallocate(&file, hole, 0, 1 << 20).expect("memory");
        assert!(!backlog.is_full());
    }
}
