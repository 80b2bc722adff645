//! Opening a file.

use std::cell::LazyCell;
use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use crate::attr::EventAttr;
use crate::bytes::ByteOrder;
use crate::decode::Decoder;
use crate::error::ReadError;
use crate::event::EventDesc;
use crate::features::Features;
use crate::folder;
use crate::format::{PIPE_HEADER_SIZE, feature};
use crate::header::{self, Data, Head};
use crate::names::derived_name;
use crate::payload::{JoinedParts, join};
use crate::pipe::{Announced, Extent, announced};
use crate::record::EventIndex;
use crate::records::Records;
use crate::source::{self, Bytes};
use crate::tracing_data::tracepoint_names;

/// A perf.data file, opened: what it says about itself, and its [records](PerfData::records).
#[derive(Debug)]
pub struct PerfData {
    bytes: Bytes,
    byte_order: ByteOrder,
    data: Data,
    events: Vec<EventDesc>,
    features: Features,
    features_cut_off: u32,
    decoder: Decoder,
}

/// What a path led to.
pub enum Opened {
    /// A perf.data file.
    PerfData(Box<PerfData>),
    /// Something else, to be read from its beginning.
    Other(Box<dyn Read + Send>),
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerfData(file) => file.fmt(f),
            Self::Other(_) => f.write_str("Other"),
        }
    }
}

impl PerfData {
    /// Opens a perf.data file of perf or another recorder, or standard input if `path` is `-`.
    ///
    /// A file is mapped into memory; a pipe is copied to a nameless temporary file first, as are the files of a folder that
    /// `perf record --threads` wrote, of which `path` is the one called `data`.
    ///
    /// # Errors
    /// What is wrong with the file, its header or its attributes. Damaged records are no errors
    /// here; reading the [records](PerfData::records) comes to them.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        match Self::open_or_other(path)? {
            Opened::PerfData(file) => Ok(*file),
            Opened::Other(mut reader) => {
                let path = path.to_owned();
                match reader.read(&mut [0]) {
                    Ok(0) => Err(ReadError::Empty { path }),
                    Ok(_) => Err(ReadError::NotPerfData { path }),
                    Err(source) => Err(ReadError::Open { path, source }),
                }
            }
        }
    }

    /// Opens as [`PerfData::open`] does, or begins to read what does not begin as a perf.data file does.
    ///
    /// # Errors
    /// As [`PerfData::open`].
    pub fn open_or_other(path: &Path) -> Result<Opened, ReadError> {
        if path.is_dir() {
            return Err(ReadError::Folder { path: path.to_owned() });
        }
        let opened = source::Opened::open(path);
        match opened.map_err(|source| ReadError::Open { path: path.to_owned(), source })? {
            source::Opened::Recording(bytes) => Ok(Opened::PerfData(Box::new(Self::new(bytes, path)?))),
            source::Opened::Other(reader) => Ok(Opened::Other(reader)),
        }
    }

    /// Reads a recording that is in memory already.
    ///
    /// # Errors
    /// As [`PerfData::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, ReadError> {
        Self::new(Bytes::Owned(bytes), Path::new("(memory)"))
    }

    fn new(bytes: Bytes, path: &Path) -> Result<Self, ReadError> {
        match header::head(path, &bytes)? {
            Head::File(order, header) => {
                let data = header::data(&header, bytes.len())?;
                let attrs = header::attrs(&bytes, order, &header)?;
                let (features, features_cut_off) = header::features(&bytes, order, &header);
                let found = if features.event_descriptions.is_empty() {
                    announced(&bytes, data.range.clone(), order, Extent::BeforeSamples)
                } else {
                    Announced::default()
                };
                let events = events(attrs, &features, &found);
                let (bytes, data) = match header.has_feature(feature::DIR_FORMAT) {
                    true => folder::joined(path, bytes, data)?,
                    false => (bytes, data),
                };
                Ok(Self { features_cut_off, ..Self::with_events(bytes, order, data, events, features)? })
            }
            Head::Pipe(order) => {
                let range = PIPE_HEADER_SIZE as usize..bytes.len();
                let mut found = announced(&bytes, range.clone(), order, Extent::All);
                let attrs = std::mem::take(&mut found.attrs);
                let features = std::mem::take(&mut found.features);
                let events = events(attrs, &features, &found);
                let data = Data::whole(range);
                Self::with_events(bytes, order, data, events, features)
            }
        }
    }

    fn with_events(
        bytes: Bytes,
        byte_order: ByteOrder,
        data: Data,
        events: Vec<EventDesc>,
        features: Features,
    ) -> Result<Self, ReadError> {
        if events.is_empty() {
            return Err(ReadError::NoEvents);
        }
        let decoder = Decoder::new(events.iter().map(|event| (&event.attr, &event.ids[..])))?;
        Ok(Self { bytes, byte_order, data, events, features, features_cut_off: 0, decoder })
    }

    /// The recorded events; [`EventIndex`] counts them.
    #[inline]
    pub fn events(&self) -> &[EventDesc] {
        &self.events
    }

    /// One of the recorded events.
    pub fn event(&self, event: EventIndex) -> Option<&EventDesc> {
        self.events.get(event.0 as usize)
    }

    /// The event of this name; the first, if there are several.
    pub fn event_named(&self, name: &str) -> Option<EventIndex> {
        self.events.iter().position(|event| event.name == name).map(|index| EventIndex(index as u32))
    }

    /// What the recorder wrote down about the machine and itself.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// The recorder finished the file. If not, it was killed or the file was cut off, and the end of
    /// the records and all [features](PerfData::features) are missing.
    pub fn is_complete(&self) -> bool {
        self.data.finished && self.data.missing == 0
    }

    /// How many [features](PerfData::features) the recorder wrote that lie behind the file's end: of a copy that was cut off
    /// behind the last of its records, which are all there.
    pub fn features_cut_off(&self) -> u32 {
        self.features_cut_off
    }

    /// The records come out of several files, each in the order of time, which stand one behind the other here: a record may be
    /// older than any of those before it.
    pub fn is_of_several_files(&self) -> bool {
        !self.data.further_files.is_empty()
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Byte order of the recorded machine. Records are given out in little-endian order anyway.
    #[inline]
    pub fn byte_order(&self) -> ByteOrder {
        self.byte_order
    }

    /// All records, in the file's order.
    pub fn records(&self) -> Records<'_> {
        let expansion_limit = self.features.compression.map(|compression| compression.ring_size.into());
        Records::new(&self.decoder, &self.bytes, self.byte_order, &self.data, expansion_limit)
            .with_further_files(&self.data.further_files)
    }

    /// Records that lie in a stretch of the file which begins with one and ends with another, in the file's order; `None` if
    /// not all of it belongs to the records.
    pub fn records_in(&self, stretch: Range<u64>) -> Option<Records<'_>> {
        let all = self.data_range();
        let is_inside = all.start <= stretch.start && stretch.start <= stretch.end && stretch.end <= all.end;
        let range = usize::try_from(stretch.start).ok()?..usize::try_from(stretch.end).ok()?;
        let data = Data::whole(range);
        is_inside.then(|| Records::new(&self.decoder, &self.bytes, self.byte_order, &data, None))
    }

    /// Touches each page of the records, for a thread that has nothing else to do: one that reads the records meanwhile finds
    /// them mapped, and need not wait for the kernel once in sixteen pages.
    pub fn map_records(&self) {
        const PAGE: usize = 4096;
        std::hint::black_box(self.data().iter().step_by(PAGE).fold(0, |all, byte| all ^ byte));
    }

    /// The bytes of all records, as they lie in the file.
    pub fn data(&self) -> &[u8] {
        self.bytes.get(self.data.range.clone()).unwrap_or_default()
    }

    /// Where they lie.
    pub fn data_range(&self) -> Range<u64> {
        self.data.range.start as u64..self.data.range.end as u64
    }

    /// Decodes the records of this recording.
    #[inline]
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// The value that was written in [parts](crate::payload::PayloadEvent::write_in_parts), as the first samples of
    /// this event; `None` if they are none, not all there, or longer than `longest` bytes together.
    ///
    /// A record that cannot be read ends the search without an error: who reads the records will hear of it.
    pub fn joined_parts(&self, event: EventIndex, longest: usize) -> Option<JoinedParts> {
        join(self.records(), event, longest)
    }
}

/// Gives every attribute its name: as described, as announced, or made from its encoding.
fn events(attrs: Vec<(EventAttr, Vec<u64>)>, features: &Features, found: &Announced) -> Vec<EventDesc> {
    let described = &features.event_descriptions;
    let attrs = if attrs.is_empty() {
        described.iter().map(|event| (event.attr, event.ids.clone())).collect()
    } else {
        attrs
    };
    // Of PMUs with one number the first counts.
    let pmus = features.pmu_names.iter().rev().map(|(kind, name)| (*kind, name.as_str())).collect();
    let tracepoints = LazyCell::new(|| tracepoint_names(&features.tracing_data));
    let name = |index: usize, attr: &EventAttr, ids: &[u64]| {
        let described = described.get(index).map(|event| event.name.as_str());
        match described.or_else(|| found.name_of(ids)).filter(|name| !name.is_empty()) {
            Some(name) => name.to_owned(),
            None => derived_name(attr, &pmus, |id| tracepoints.get(&id).cloned()),
        }
    };
    attrs
        .into_iter()
        .enumerate()
        .map(|(index, (attr, ids))| EventDesc { name: name(index, &attr, &ids), attr, ids })
        .collect()
}
