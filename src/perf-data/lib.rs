//! Reads and writes perf.data, the files of Linux's `perf record`.
//!
//! ```text
//! source ──► header, features, pipe, names ──► reader: a PerfData, its events and features
//!   └──────► walk, expand, window ──► records: raw records, by position ──► decode ──► record: what they say
//! ```

pub mod attr;
pub mod compress;
pub mod encode;
pub mod features;
pub mod format;
pub mod payload;
pub mod record;
pub mod time;
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
pub use error::ReadError;
pub use features::Features;
pub use raw::{RawRecord, RecordPosition};
pub use reader::{EventDesc, PerfData};
pub use records::Records;
pub use time::{Nanoseconds, Timestamp};
pub use writer::PerfDataWriter;
