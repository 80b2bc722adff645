//! Writes perf.data, version 2, to anything that can be written and rewound.
//!
//! ```text
//! header | ids of each event | attributes | data … | table of features | features
//!    └── says where all of it is; the data's size is rewritten now and then
//! ```
//!
//! The data come last but for the features, so a recording that is cut off anywhere reads up to the
//! size last written to the header. What the features would say of the events (their names) stands at
//! the start of the data too, as EVENT_UPDATE records.

use std::io::{self, IoSlice, Seek, SeekFrom, Write};

use crate::recording::encode::{self, SampleFields, sample_type};
use crate::recording::trailer::Features;

/// Bytes of the file header.
const HEADER_SIZE: u64 = 104;
/// Where the header keeps the size of the data.
const DATA_SIZE_AT: u64 = 48;
/// Size of the first version of `perf_event_attr`.
const SHORTEST_ATTR: usize = 64;
/// Size of `perf_event_attr` in its version 5, which perf has read since Linux 4.1.
const COMMON_ATTR: usize = 112;
/// Where `perf_event_attr` keeps its own size.
const ATTR_SIZE_AT: usize = 4;
/// Where `perf_event_attr` keeps `sample_type`.
const ATTR_SAMPLE_TYPE_AT: usize = 24;

/// One event of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDescription {
    /// `perf_event_attr` as the kernel lays it out, at least 64 bytes.
    pub attr: Vec<u8>,
    /// Ids of its samples, one per opened counter.
    pub ids: Vec<u64>,
    /// Name.
    pub name: String,
}

/// A perf.data file being written.
#[derive(Debug)]
pub struct RecordingWriter<W> {
    file: W,
    events: Vec<EventDescription>,
    sample_types: Vec<u64>,
    data_start: u64,
    data_size: u64,
    scratch: Vec<u8>,
}

impl<W: Write + Seek> RecordingWriter<W> {
    /// Starts a recording at the start of `file`: header, attributes and the events' names.
    ///
    /// # Errors
    /// Errors of writing, and `InvalidInput` for an attribute that is shorter than the first version
    /// of the interface had it, or no multiple of eight bytes.
    pub fn create(mut file: W, mut events: Vec<EventDescription>) -> io::Result<Self> {
        let sample_types = events.iter().map(sample_type_of).collect::<io::Result<Vec<_>>>()?;
        make_equally_long(&mut events);
        let head = file_head(&events);
        file.write_all(&head)?;
        let mut writer = Self {
            file,
            events,
            sample_types,
            data_start: head.len() as u64,
            data_size: 0,
            scratch: Vec::new(),
        };
        writer.write_event_names()?;
        writer.commit()?;
        Ok(writer)
    }

    /// The events, in the order of the attributes.
    pub fn events(&self) -> &[EventDescription] {
        &self.events
    }

    /// Bytes of data so far.
    pub fn data_size(&self) -> u64 {
        self.data_size
    }

    /// Appends whole records.
    pub fn write_raw(&mut self, records: &[u8]) -> io::Result<()> {
        self.file.write_all(records)?;
        self.data_size += records.len() as u64;
        Ok(())
    }

    /// Appends whole records that lie in several places, with as few system calls as possible.
    pub fn write_raw_vectored(&mut self, mut pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
        while !pieces.is_empty() {
            match self.file.write_vectored(pieces) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.data_size += written as u64;
                    IoSlice::advance_slices(&mut pieces, written);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Appends a sample of the event number `event`.
    ///
    /// # Errors
    /// Errors of writing, and `InvalidInput` for an event that does not exist or whose samples hold
    /// fields that cannot be written, and for a sample that is too long for a record.
    pub fn write_sample(&mut self, event: usize, fields: &SampleFields<'_>) -> io::Result<()> {
        let kind = *self.sample_types.get(event).ok_or_else(|| invalid("no such event"))?;
        if kind & !sample_type::WRITABLE != 0 {
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
        self.file.seek(SeekFrom::Start(self.data_start + self.data_size))?;
        self.file.flush()
    }

    /// Writes the features behind the data and closes the recording.
    pub fn finish(mut self, features: &Features) -> io::Result<W> {
        self.commit()?;
        let sections = features.sections(&self.events);
        let mut offset = self.data_start + self.data_size + 16 * sections.len() as u64;
        let mut bits = [0u8; 32];
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
        self.file.seek(SeekFrom::Start(HEADER_SIZE - bits.len() as u64))?;
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

fn sample_type_of(event: &EventDescription) -> io::Result<u64> {
    if event.attr.len() < SHORTEST_ATTR || event.attr.len() % 8 != 0 {
        return Err(invalid(format!("{} bytes are no attribute (event {})", event.attr.len(), event.name)));
    }
    let bytes = &event.attr[ATTR_SAMPLE_TYPE_AT..ATTR_SAMPLE_TYPE_AT + 8];
    bytes.try_into().map(u64::from_le_bytes).map_err(invalid)
}

/// Gives all attributes the same length and lets each say so, since perf reads the table of attributes
/// by the size that each says of itself. Bytes that are zero at the end of all are dropped: an older
/// perf refuses attributes that are longer than those it knows.
fn make_equally_long(events: &mut [EventDescription]) {
    let used =
        |event: &EventDescription| event.attr.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
    let length = events.iter().map(used).max().unwrap_or(0).max(COMMON_ATTR).next_multiple_of(8);
    for event in events {
        event.attr.resize(length, 0);
        event.attr[ATTR_SIZE_AT..ATTR_SIZE_AT + 4].copy_from_slice(&(length as u32).to_le_bytes());
    }
}

/// Header, ids and attributes, with no data yet.
fn file_head(events: &[EventDescription]) -> Vec<u8> {
    let attr_size = events.first().map_or(COMMON_ATTR, |event| event.attr.len()) as u64;
    let entry_size = attr_size + 16;
    let ids_size: u64 = events.iter().map(|event| 8 * event.ids.len() as u64).sum();
    let attrs_start = HEADER_SIZE + ids_size;
    let attrs_size = entry_size * events.len() as u64;

    let mut head = Vec::new();
    head.extend(b"PERFILE2");
    head.extend(HEADER_SIZE.to_le_bytes());
    head.extend(entry_size.to_le_bytes());
    push_section(attrs_start, attrs_size, &mut head);
    push_section(attrs_start + attrs_size, 0, &mut head);
    // The section of event types, long out of use, and the bits of the features.
    push_section(0, 0, &mut head);
    head.extend([0; 32]);

    for event in events {
        event.ids.iter().for_each(|id| head.extend(id.to_le_bytes()));
    }
    let mut ids_at = HEADER_SIZE;
    for event in events {
        head.extend(&event.attr);
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
