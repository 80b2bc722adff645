//! Opening a recording.

use std::path::Path;

use perf_data::feature_sections::Features;
use perf_data::record::{EventIndex, Record};
use perf_data::{Decoder, EventDesc, PerfData, Records};

use super::energy::metadata_part;
use super::error::RecordingError;
use super::metadata::{METADATA_EVENT, METADATA_FORMAT, Metadata};

/// A perf.data file of eprof or another recorder, opened: what it says about itself, and its
/// [records](Recording::records).
#[derive(Debug)]
pub struct Recording {
    perf_data: PerfData,
    metadata: Option<Metadata>,
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

    /// Reads a recording that is in memory already.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, RecordingError> {
        Self::new(PerfData::from_bytes(bytes)?)
    }

    fn new(perf_data: PerfData) -> Result<Self, RecordingError> {
        let metadata = metadata_of(&perf_data)?;
        Ok(Self { perf_data, metadata })
    }

    /// What eprof wrote down; `None` for other recorders' files.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
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
    let Some(event) = perf_data.events().iter().position(|event| event.name == METADATA_EVENT) else {
        return Ok(None);
    };
    let event = EventIndex(event as u32);
    let mut records = perf_data.records();
    let mut json = Vec::new();
    let mut parts_read = 0;
    // A record that cannot be read is no matter of opening: who reads the records will hear of it.
    while let Ok(Some((raw, context, record))) = records.next() {
        let Record::Sample(sample) = record else { continue };
        if context.event != Some(event) {
            continue;
        }
        let Some((part, parts, text)) = metadata_part(sample.raw) else { break };
        if part != parts_read {
            break;
        }
        json.extend_from_slice(text);
        parts_read += 1;
        if parts_read >= parts {
            return parse_metadata(&json, raw.offset).map(Some);
        }
    }
    Ok(None)
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
