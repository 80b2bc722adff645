//! Opening a recording.

use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_data::{Decoder, EventDesc, Features, PerfData, Records};

use super::error::RecordingError;
use super::lent_reading::LentReading;
use super::metadata::{METADATA_EVENT, METADATA_FORMAT, Metadata};
use crate::hardware::DomainInfo;

/// No machine's description is so long: who writes longer metadata means to fill the memory.
const LONGEST_METADATA: usize = 64 << 20;

/// A perf.data file of eprof or another recorder, opened: what it says about itself, and its
/// [records](Recording::records).
#[derive(Debug)]
pub struct Recording {
    perf_data: PerfData,
    metadata: Option<Metadata>,
    /// Readings that others took.
    lent: Option<Vec<LentReading>>,
    /// For who waits: see [`Recording::bytes_read`].
    bytes_read: AtomicU64,
}

/// What a path led to.
pub enum Opened {
    /// A recording.
    Recording(Box<Recording>),
    /// Something else, to be read from its beginning.
    Other(Box<dyn Read + Send>),
}

impl Recording {
    /// Opens a perf.data file of perf, eprof or another recorder, or standard input if `path` is `-`.
    ///
    /// # Errors
    /// What is wrong with the file, its header, its attributes or eprof's metadata. Damaged records are
    /// no errors here; reading the [records](Recording::records) comes to them.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        Self::new(PerfData::open(path)?)
    }

    /// Opens a recording as [`Recording::open`] does, or begins to read what does not begin as one does.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn open_or_other(path: &Path) -> Result<Opened, RecordingError> {
        Ok(match PerfData::open_or_other(path)? {
            perf_data::Opened::PerfData(file) => Opened::Recording(Box::new(Self::new(*file)?)),
            perf_data::Opened::Other(reader) => Opened::Other(reader),
        })
    }

    /// Reads a recording that is in memory already.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, RecordingError> {
        Self::new(PerfData::from_bytes(bytes)?)
    }

    fn new(perf_data: PerfData) -> Result<Self, RecordingError> {
        let metadata = metadata_of(&perf_data)?;
        Ok(Self { perf_data, metadata, lent: None, bytes_read: AtomicU64::new(0) })
    }

    /// What eprof wrote down; `None` for other recorders' files.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
    }

    /// Gives the recording the domains and readings of another recorder of its machine, in the order of time, in place of
    /// its own.
    pub(super) fn lend(&mut self, mut domains: Vec<DomainInfo>, readings: Vec<LentReading>) {
        let Some(metadata) = &mut self.metadata else { return };
        for domain in &mut domains {
            let own = metadata.domains.iter().find(|own| own.name == domain.name);
            // Programs number graphics cards each in their own way.
            domain.cuda_ordinal = own.and_then(|own| own.cuda_ordinal);
            domain.rest = domain.rest.or_else(|| own?.rest);
        }
        metadata.domains = domains;
        self.lent = Some(readings);
    }

    /// The readings of meters that count, if they are not in the file, in the order of time.
    pub fn lent_readings(&self) -> Option<&[LentReading]> {
        self.lent.as_deref()
    }

    /// The file.
    pub fn perf_data(&self) -> &PerfData {
        &self.perf_data
    }

    /// The recorded events: [`PerfData::events`].
    pub fn events(&self) -> &[EventDesc] {
        self.perf_data.events()
    }

    /// What the recorder wrote down about the machine and itself: [`PerfData::features`].
    pub fn features(&self) -> &Features {
        self.perf_data.features()
    }

    /// How far in the file a walk through the records has come, for those who wait for it in another thread: of how many
    /// bytes, [`PerfData::size`] says. A recording may be walked through more than once.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// A walk through the records has come to this offset in the file.
    pub(crate) fn note_read(&self, offset: u64) {
        self.bytes_read.store(offset, Ordering::Relaxed);
    }

    /// The recorder finished the file: [`PerfData::is_complete`].
    pub fn is_complete(&self) -> bool {
        self.perf_data.is_complete()
    }

    /// All records, in the file's order: [`PerfData::records`].
    pub fn records(&self) -> Records<'_> {
        self.perf_data.records()
    }

    /// Decodes the records of this recording: [`PerfData::decoder`].
    pub fn decoder(&self) -> &Decoder {
        self.perf_data.decoder()
    }
}

/// Joins the parts of eprof's metadata, which are the first samples of their event.
fn metadata_of(perf_data: &PerfData) -> Result<Option<Metadata>, RecordingError> {
    let event = perf_data.event_named(METADATA_EVENT);
    let joined = event.and_then(|event| perf_data.joined_parts(event, LONGEST_METADATA));
    joined.map(|json| parse_metadata(&json.bytes, json.offset)).transpose()
}

fn parse_metadata(json: &[u8], offset: u64) -> Result<Metadata, RecordingError> {
    /// What every format of the metadata has.
    #[derive(serde::Deserialize)]
    struct Format {
        format: u32,
        eprof_version: String,
    }
    let unreadable = |source| RecordingError::Metadata { offset, source };
    let Format { format, eprof_version } = serde_json::from_slice(json).map_err(unreadable)?;
    if format > METADATA_FORMAT {
        return Err(RecordingError::NewerMetadata { eprof_version, format, known: METADATA_FORMAT });
    }
    serde_json::from_slice(json).map_err(unreadable)
}
