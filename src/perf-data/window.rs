//! The part of the record stream that can be looked at: the file itself, and chunks of expanded bytes.

use std::collections::VecDeque;

use crate::raw::{RawRecord, RecordHeader, RecordPosition};

/// Spare chunks kept for reuse.
const SPARE_CHUNKS: usize = 16;

/// Maps positions to bytes.
///
/// The stream of records is cut into segments: stretches of the file, which cost nothing to keep, and
/// chunks of bytes that had to be made. Chunks live until [`Window::release_before`].
#[derive(Debug)]
pub(crate) struct Window<'r> {
    file: &'r [u8],
    segments: VecDeque<Segment>,
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Segment {
    /// Position of its first byte.
    start: u64,
    /// Offset in the file of its first byte, or of the compressed record that it was expanded from.
    offset: u64,
    origin: Origin,
    /// The bytes, unless they are the file's own.
    chunk: Option<Vec<u8>>,
}

/// How a segment's bytes came from the file's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// One for one: offsets go on from the segment's own.
    Copied,
    /// By expanding one compressed record: all have its offset.
    Expanded,
}

impl<'r> Window<'r> {
    pub(crate) fn new(file: &'r [u8]) -> Self {
        Self { file, segments: VecDeque::new(), spare: Vec::new() }
    }

    /// From `position` on, records lie in the file itself, from `offset` on.
    pub(crate) fn continue_in_file(&mut self, position: u64, offset: u64) {
        self.segments.push_back(Segment { start: position, offset, origin: Origin::Copied, chunk: None });
    }

    /// From `position` on, records lie in `chunk`, made of what is at `offset` in the file.
    pub(crate) fn continue_in_chunk(&mut self, position: u64, offset: u64, origin: Origin, chunk: Vec<u8>) {
        self.segments.push_back(Segment { start: position, offset, origin, chunk: Some(chunk) });
    }

    /// All of it lies in the file, one for one.
    pub(crate) fn is_file_alone(&self) -> bool {
        self.segments.len() == 1
            && self.segments.front().is_some_and(|only| only.chunk.is_none() && only.start == only.offset)
    }

    /// The last chunk; empty if the last segment is the file's.
    pub(crate) fn last_chunk(&self) -> &[u8] {
        self.segments.back().and_then(|segment| segment.chunk.as_deref()).unwrap_or_default()
    }

    /// The last chunk, to be changed in place.
    pub(crate) fn last_chunk_mut(&mut self) -> &mut [u8] {
        self.segments.back_mut().and_then(|segment| segment.chunk.as_deref_mut()).unwrap_or_default()
    }

    /// Appends a copy of what is at `offset` in the file to the last chunk, if that is a copy of what
    /// precedes it and has room; `false` if a new chunk is needed.
    pub(crate) fn append(&mut self, position: u64, offset: u64, bytes: &[u8]) -> bool {
        let Some(Segment { start, offset: from, origin: Origin::Copied, chunk: Some(chunk) }) =
            self.segments.back_mut()
        else {
            return false;
        };
        let length = chunk.len() as u64;
        let fits = *start + length == position
            && *from + length == offset
            && chunk.capacity() - chunk.len() >= bytes.len();
        if fits {
            chunk.extend_from_slice(bytes);
        }
        fits
    }

    /// An empty vector with room for `capacity` bytes.
    pub(crate) fn fresh_chunk(&mut self, capacity: usize) -> Vec<u8> {
        let mut chunk = self.spare.pop().unwrap_or_default();
        chunk.clear();
        chunk.reserve(capacity);
        chunk
    }

    /// Gives up the chunks that end before `position`.
    #[inline]
    pub(crate) fn release_before(&mut self, position: RecordPosition) {
        while self.segments.get(1).is_some_and(|next| next.start <= position.0) {
            let released = self.segments.pop_front().and_then(|segment| segment.chunk);
            if let Some(chunk) = released
                && self.spare.len() < SPARE_CHUNKS
            {
                self.spare.push(chunk);
            }
        }
    }

    /// The record at `position`, unless it was released.
    #[inline]
    pub(crate) fn record(&self, position: RecordPosition) -> Option<RawRecord<'_>> {
        let segment = match self.segments.len() {
            1 => self.segments.front()?,
            _ => {
                let behind = self.segments.partition_point(|segment| segment.start <= position.0);
                self.segments.get(behind.checked_sub(1)?)?
            }
        };
        let within = position.0.checked_sub(segment.start)?;
        let offset = match segment.origin {
            Origin::Copied => segment.offset + within,
            Origin::Expanded => segment.offset,
        };
        let bytes = match &segment.chunk {
            None => self.file.get(usize::try_from(offset).ok()?..)?,
            Some(chunk) => chunk.get(usize::try_from(within).ok()?..)?,
        };
        raw_record(bytes, position, offset)
    }
}

/// The record that `bytes` begins with.
#[inline]
pub(crate) fn raw_record(bytes: &[u8], position: RecordPosition, offset: u64) -> Option<RawRecord<'_>> {
    let header = RecordHeader::from_le_bytes(bytes)?;
    let body = bytes.get(crate::format::RECORD_HEADER_SIZE..header.size.into())?;
    Some(RawRecord { position, offset, kind: header.kind, misc: header.misc, body })
}
