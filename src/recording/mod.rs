//! Step 2: the recording, a perf.data file with energy readings inside: writer, reader, decoder.

pub mod encode;
pub mod energy;
pub mod features;
pub mod metadata;
pub mod record;
pub mod writer;
