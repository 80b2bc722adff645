//! Windows that follow each other, as one recording.

use std::io::Cursor;

use perf_data::format::{RECORD_HEADER_SIZE, record_type};
use perf_data::{PerfDataWriter, RawRecord, encode};
use rustc_hash::FxHashSet;

use super::error::LiveError;
use crate::recording::Recording;

/// The file of one recording that has all records of these windows, in their order, each of them once: what lies around a
/// cut is in both windows, and what is known at the beginning of each is told once, at the first one's.
///
/// # Errors
/// None of memory that can be had.
pub fn join(windows: &[&Recording]) -> Result<Vec<u8>, LiveError> {
    let Some(first) = windows.first() else { return Err(LiveError::NotEprofs) };
    let mut records = Vec::new();
    let mut before: FxHashSet<Vec<u8>> = FxHashSet::default();
    for (index, window) in windows.iter().enumerate() {
        let mut all = FxHashSet::default();
        let mut walk = window.records();
        while let Some(raw) = walk.next_raw().map_err(|error| LiveError::Recording(error.into()))? {
            let is_first = index == 0;
            if raw.kind == record_type::FINISHED_ROUND {
                if is_first {
                    encode::finished_round(&mut records);
                }
                continue;
            }
            let is_timeless = window.decoder().time(&raw).is_none();
            let bytes = bytes_of(&raw);
            if is_first || (!is_timeless && !before.contains(&bytes)) {
                records.extend(&bytes);
            }
            all.insert(bytes);
        }
        before = all;
        encode::finished_round(&mut records);
    }
    let mut writer =
        PerfDataWriter::create(Cursor::new(Vec::new()), first.events().to_vec()).map_err(LiveError::Read)?;
    writer.write_raw(&records).map_err(LiveError::Read)?;
    let file = writer.finish(first.features()).map_err(LiveError::Read)?;
    Ok(file.into_inner())
}

fn bytes_of(raw: &RawRecord<'_>) -> Vec<u8> {
    let size = (RECORD_HEADER_SIZE + raw.body.len()) as u16;
    let mut bytes = Vec::with_capacity(size.into());
    bytes.extend(raw.kind.to_le_bytes());
    bytes.extend(raw.misc.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(raw.body);
    bytes
}
