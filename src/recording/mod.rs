//! Step 2: the recording, a perf.data file with energy readings inside: writer, reader, decoder.
//!
//! ```text
//! source ──► header, features, pipe, names ──► reader: a Recording, its events and metadata
//!   └──────► walk, expand, window ──► records: raw records, by position ──► decode ──► record: what they say
//! ```

pub mod attr;
pub mod compress;
pub mod encode;
pub mod energy;
pub mod feature_sections;
pub mod format;
pub mod gpu_activity;
pub mod gpu_events;
pub mod metadata;
pub mod own_events;
pub mod record;
pub mod trailer;
pub mod writer;

mod bytes;
mod decode;
mod error;
mod expand;
mod header;
mod ids;
mod layout;
mod names;
mod pipe;
mod raw;
mod reader;
mod records;
mod source;
mod tracing_data;
mod walk;
mod window;

pub use bytes::ByteOrder;
pub use decode::Decoder;
pub use error::RecordingError;
pub use raw::{RawRecord, RecordPosition};
pub use reader::{EventDesc, Recording};
pub use records::Records;
