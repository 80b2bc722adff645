//! Writes perf.data, version 2, to anything that can be written and rewound.
//!
//! ```text
//! header | ids of each event | attributes | data … | table of sections | sections (features)
//!    └── says where all of it is; the data's size is rewritten now and then
//! ```
//!
//! The data come last but for the features, so a file that is cut off anywhere reads up to the
//! size last written to the header. What the features would say of the events (their names) stands at
//! the start of the data too, as EVENT_UPDATE records.

use std::io::{self, IoSlice, Seek, SeekFrom, Write};

use crate::encode::{self, SampleFields};
use crate::event::{COMMON_ATTR_SIZE, EventDesc, encoded_attrs};
use crate::features::Features;
use crate::format::{FILE_HEADER_SIZE, MAGIC};

/// Where the header keeps the size of the data.
const DATA_SIZE_AT: u64 = 48;
/// Where the header keeps the bits of the sections that there are, and how many bytes they take.
const SECTION_BITS_AT: u64 = 72;
const SECTION_BITS_SIZE: usize = 32;

/// A write that failed. The recording holds nothing of it, though the file has room for a part.
#[derive(Debug)]
pub struct FailedWrite {
    /// The error.
    pub cause: io::Error,
    /// Bytes that the file took before.
    pub room: usize,
}

impl From<FailedWrite> for io::Error {
    fn from(failed: FailedWrite) -> Self {
        failed.cause
    }
}

/// A perf.data file being written.
#[derive(Debug)]
pub struct PerfDataWriter<W> {
    file: W,
    events: Vec<EventDesc>,
    data_start: u64,
    data_size: u64,
    scratch: Vec<u8>,
}

impl<W: Write + Seek> PerfDataWriter<W> {
    /// Starts a recording at the start of `file`: header, attributes and the events' names.
    ///
    /// # Errors
    /// Errors of writing, and `InvalidInput` for an event whose name is too long for a record.
    pub fn create(mut file: W, events: Vec<EventDesc>) -> io::Result<Self> {
        let head = file_head(&events);
        file.write_all(&head)?;
        let data_start = head.len() as u64;
        let mut writer = Self { file, events, data_start, data_size: 0, scratch: Vec::new() };
        writer.write_event_names()?;
        writer.commit()?;
        Ok(writer)
    }

    /// The events, in the order of the attributes.
    pub fn events(&self) -> &[EventDesc] {
        &self.events
    }

    /// Bytes of the file up to the end of the data.
    pub fn data_end(&self) -> u64 {
        self.data_start + self.data_size
    }

    /// The file itself.
    pub fn get_ref(&self) -> &W {
        &self.file
    }

    /// Appends whole records.
    ///
    /// # Errors
    /// Errors of writing. What was written of these records then is not part of the recording: the
    /// next records take its place.
    pub fn write_raw(&mut self, records: &[u8]) -> io::Result<()> {
        Ok(self.write_raw_vectored(&mut [IoSlice::new(records)])?)
    }

    /// Appends whole records that lie in several places, with as few system calls as possible.
    ///
    /// # Errors
    /// As for [`PerfDataWriter::write_raw`].
    pub fn write_raw_vectored(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<(), FailedWrite> {
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        write_all_vectored(&mut self.file, pieces).inspect_err(|_| {
            // The first error is the one that matters; a second one will come again.
            let _ = self.file.seek(SeekFrom::Start(self.data_start + self.data_size));
        })?;
        self.data_size += length as u64;
        Ok(())
    }

    /// Appends a sample of the event number `event`.
    ///
    /// # Errors
    /// Errors of writing, and `InvalidInput` for an event that does not exist or whose samples hold
    /// fields that cannot be written, and for a sample that is too long for a record.
    pub fn write_sample(&mut self, event: usize, fields: &SampleFields<'_>) -> io::Result<()> {
        let kind = self.events.get(event).ok_or_else(|| invalid("no such event"))?.attr.sample_type;
        if kind & !encode::WRITABLE_FIELDS != 0 {
            return Err(invalid("samples of this event hold fields that cannot be made"));
        }
        let mut record = std::mem::take(&mut self.scratch);
        record.clear();
        encode::sample(kind, fields, &mut record).map_err(invalid)?;
        let written = self.write_raw(&record);
        self.scratch = record;
        written
    }

    /// Makes all data written so far readable even if nothing follows: flushes and updates the header.
    pub fn commit(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(DATA_SIZE_AT))?;
        self.file.write_all(&self.data_size.to_le_bytes())?;
        self.file.seek(SeekFrom::Start(self.data_end()))?;
        self.file.flush()
    }

    /// Writes the features behind the data and closes the file.
    ///
    /// # Errors
    /// Errors of writing; the file is readable without its features if [`PerfDataWriter::commit`]
    /// was called before.
    pub fn finish(mut self, features: &Features) -> io::Result<W> {
        self.commit()?;
        let sections = features.sections(&self.events);
        let mut offset = self.data_end() + 16 * sections.len() as u64;
        let mut bits = [0u8; SECTION_BITS_SIZE];
        let mut table = Vec::new();
        let mut contents = Vec::new();
        for (number, content) in &sections {
            bits[*number as usize / 8] |= 1 << (number % 8);
            push_section(offset, content.len() as u64, &mut table);
            offset += content.len() as u64;
            contents.extend(content);
        }
        self.file.write_all(&table)?;
        self.file.write_all(&contents)?;
        // Only now: sections that do not fit must not be promised.
        self.file.seek(SeekFrom::Start(SECTION_BITS_AT))?;
        self.file.write_all(&bits)?;
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.flush()?;
        Ok(self.file)
    }

    fn write_event_names(&mut self) -> io::Result<()> {
        let mut records = Vec::new();
        for event in &self.events {
            if let Some(&id) = event.ids.first() {
                encode::event_name(id, event.name.as_bytes(), &mut records).map_err(invalid)?;
            }
        }
        self.write_raw(&records)
    }
}

fn write_all_vectored(file: &mut impl Write, mut pieces: &mut [IoSlice<'_>]) -> Result<(), FailedWrite> {
    let mut room = 0;
    // Skips pieces that are empty from the start.
    IoSlice::advance_slices(&mut pieces, 0);
    while !pieces.is_empty() {
        match file.write_vectored(pieces) {
            Ok(0) => return Err(FailedWrite { cause: io::ErrorKind::WriteZero.into(), room }),
            Ok(written) => {
                room += written;
                IoSlice::advance_slices(&mut pieces, written);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(FailedWrite { cause, room }),
        }
    }
    Ok(())
}

/// Header, ids and attributes, with no data yet.
fn file_head(events: &[EventDesc]) -> Vec<u8> {
    let attrs = encoded_attrs(events);
    let entry_size = attrs.first().map_or(COMMON_ATTR_SIZE, Vec::len) as u64 + 16;
    let ids_size: u64 = events.iter().map(|event| 8 * event.ids.len() as u64).sum();
    let attrs_start = FILE_HEADER_SIZE + ids_size;
    let attrs_size = entry_size * events.len() as u64;

    let mut head = Vec::new();
    head.extend(MAGIC.to_le_bytes());
    head.extend(FILE_HEADER_SIZE.to_le_bytes());
    head.extend(entry_size.to_le_bytes());
    push_section(attrs_start, attrs_size, &mut head);
    push_section(attrs_start + attrs_size, 0, &mut head);
    // The section of event types, long out of use, and the bits of the sections that there are.
    push_section(0, 0, &mut head);
    head.extend([0; SECTION_BITS_SIZE]);

    for event in events {
        event.ids.iter().for_each(|id| head.extend(id.to_le_bytes()));
    }
    let mut ids_at = FILE_HEADER_SIZE;
    for (event, attr) in events.iter().zip(attrs) {
        head.extend(attr);
        let size = 8 * event.ids.len() as u64;
        push_section(ids_at, size, &mut head);
        ids_at += size;
    }
    head
}

fn push_section(offset: u64, size: u64, out: &mut Vec<u8>) {
    out.extend(offset.to_le_bytes());
    out.extend(size.to_le_bytes());
}

fn invalid(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
