//! What can be wrong with a recording.

use perf_data::ReadError;

/// Why a recording cannot be opened. Offsets are bytes from the file's start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The perf.data file cannot be read.
    #[error(transparent)]
    PerfData(#[from] ReadError),
    /// The recorder's own description cannot be understood.
    #[error("the recording's metadata (at byte {offset}) cannot be read")]
    Metadata {
        /// Where its last part lies.
        offset: u64,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A newer eprof recorded this.
    #[error(
        "the recording was made by eprof {eprof_version}, whose metadata has format {format}; \
         this eprof knows formats up to {known}: update eprof"
    )]
    NewerMetadata {
        /// Version of the recorder.
        eprof_version: String,
        /// Format of the metadata.
        format: u32,
        /// Highest known format.
        known: u32,
    },
}
