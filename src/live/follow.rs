//! The reader's end of a recording that grows in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::memfd::{MFdFlags, memfd_create};
use perf_data::format::{FILE_HEADER_SIZE, MAGIC};

use super::error::LiveError;
use crate::recording::Recording;

/// Where the header says where the records are, and how many bytes of them.
const DATA_AT: u64 = 40;
/// Bytes that are read at a time.
const MOST_AT_ONCE: u64 = 4 << 20;
/// Memory is given back in pages of so many bytes: a hole frees whole pages only.
const PAGE: u64 = 1 << 16;

/// Reads what a recorder has written to a file in memory, once, and gives the memory back.
#[derive(Debug)]
pub struct Follower {
    file: File,
    read_to: u64,
    freed_to: u64,
}

impl Follower {
    /// A file in memory for a recorder to write, and the reader's end of it.
    ///
    /// # Errors
    /// What the system says.
    pub fn create() -> io::Result<(File, Self)> {
        let file = File::from(memfd_create(c"eprof-live", MFdFlags::MFD_CLOEXEC)?);
        let reader = file.try_clone()?;
        Ok((file, Self { file: reader, read_to: 0, freed_to: 0 }))
    }

    /// What the file says of the recording before its first sample; `None` while that is not all there. The records so
    /// far are read again by [`Follower::read`].
    ///
    /// # Errors
    /// A file that is no recording.
    pub fn head(&mut self) -> Result<Option<Recording>, LiveError> {
        let Some((start, end)) = self.data()? else { return Ok(None) };
        if end == start {
            return Ok(None);
        }
        let mut head = vec![0; end as usize];
        self.file.read_exact_at(&mut head, 0).map_err(LiveError::Read)?;
        let recording = Recording::from_bytes(head)?;
        self.read_to = start;
        self.freed_to = start.next_multiple_of(PAGE);
        Ok(recording.metadata().is_some().then_some(recording))
    }

    /// Appends some of what has been written since the last call, not always whole records; `false` if there was nothing.
    ///
    /// # Errors
    /// What the system says.
    pub fn read(&mut self, out: &mut Vec<u8>) -> Result<bool, LiveError> {
        let Some((_, end)) = self.data()? else { return Ok(false) };
        let is_more = self.read_to < end;
        if is_more {
            let size = (end - self.read_to).min(MOST_AT_ONCE) as usize;
            let before = out.len();
            out.resize(before + size, 0);
            self.file.read_exact_at(&mut out[before..], self.read_to).map_err(LiveError::Read)?;
            self.read_to += size as u64;
        }
        self.give_back().map_err(LiveError::Read)?;
        Ok(is_more)
    }

    /// Frees the memory of what was read.
    fn give_back(&mut self) -> io::Result<()> {
        let to = self.read_to / PAGE * PAGE;
        if to > self.freed_to {
            let how = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            match fallocate(&self.file, how, self.freed_to as i64, (to - self.freed_to) as i64) {
                Ok(()) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.freed_to = to;
        }
        Ok(())
    }

    /// Where the records begin, and the end of those that the writer has committed.
    fn data(&self) -> Result<Option<(u64, u64)>, LiveError> {
        let mut header = [0; FILE_HEADER_SIZE as usize];
        match self.file.read_exact_at(&mut header, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read.map_err(LiveError::Read)?,
        }
        let word = |at: u64| {
            let at = at as usize;
            header[at..at + 8].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let (start, size) = (word(DATA_AT), word(DATA_AT + 8));
        Ok((word(0) == MAGIC).then_some((start, start + size)))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use perf_data::PerfDataWriter;

    use super::*;
    use crate::analyze::fixture;

    #[test]
    fn records_come_once_and_their_memory_goes() {
        let (file, mut follower) = Follower::create().expect("memory");
        assert!(follower.head().expect("no recording yet").is_none());
        let metadata = fixture::metadata();
        let events = crate::recording::own_events::descriptions(&metadata.domains);
        let mut writer = PerfDataWriter::create(file, events).expect("memory");
        let mut records = Vec::new();
        let now = crate::units::Timestamp::from_nanos(1);
        crate::recording::own_events::metadata(&metadata, now, &mut records).expect("short");
        writer.write_raw(&records).expect("memory");
        assert!(follower.head().expect("readable").is_none(), "not committed");
        writer.commit().expect("memory");
        let head = follower.head().expect("readable").expect("all there");
        assert_eq!(head.metadata(), Some(&metadata));
        let mut all = Vec::new();
        assert!(follower.read(&mut all).expect("readable"));
        assert!(all.ends_with(&records));
        let more = records.repeat(4_000);
        writer.write_raw(&more).expect("memory");
        writer.commit().expect("memory");
        all.clear();
        let mut reads = 0;
        while follower.read(&mut all).expect("readable") {
            reads += 1;
            assert!(all.len() as u64 <= reads * MOST_AT_ONCE);
        }
        assert!(all == more);
        let held = follower.file.metadata().expect("open").blocks() * 512;
        assert!(held < 4 * PAGE, "{held} of {} bytes are still held", more.len());
    }
}
