//! Step 2: the recording, a perf.data file with energy readings inside: writer, reader, decoder.

pub mod energy;
pub mod metadata;
pub mod record;
