//! The records of a recording, one after the other.

use std::io;
use std::ops::Range;

use crate::bytes::ByteOrder;
use crate::decode::Decoder;
use crate::error::ReadError;
use crate::expand::{Expander, begins_frame};
use crate::format::RECORD_HEADER_SIZE;
use crate::header::Data;
use crate::raw::{RawRecord, RecordHeader, RecordPosition};
use crate::record::{Record, RecordContext};
use crate::walk::Walk;
use crate::window::{Origin, Window, raw_record};

/// Room for expanded records; a record has at most 64 KiB.
const SMALLEST_CHUNK: usize = 64 << 10;
const LARGEST_CHUNK: usize = 256 << 10;

/// Records that lie in the file as they are, so that their positions are offsets: see [`Records::in_file`].
#[derive(Debug, Clone, Copy)]
pub struct RecordsInFile<'r> {
    file: &'r [u8],
}

impl<'r> RecordsInFile<'r> {
    /// The record at a position that [`Records::next_raw`] gave, as long as [`Records::in_file`] said so.
    #[inline]
    pub fn get(self, position: RecordPosition) -> Option<RawRecord<'r>> {
        raw_record(self.file.get(usize::try_from(position.0).ok()?..)?, position, position.0)
    }
}

/// Walks the records of a recording in the file's order, expanding compressed ones.
///
/// Two ways to use it:
/// - [`Records::next`] finds and decodes one record after the other; nothing is kept.
/// - [`Records::next_raw`] only finds them. Their positions can be kept, sorted, and looked up again by
///   [`Records::get`], until [`Records::release_before`] gives up the memory of expanded records. A
///   recording without compression lies in the file itself and holds no such memory.
///
/// An error comes after everything before the offending byte. After a recoverable one (see
/// [`ReadError::is_recoverable`]) the next call goes on with the next record, after any other the
/// next call says that there are no more records.
#[derive(Debug)]
pub struct Records<'r> {
    decoder: &'r Decoder,
    file: &'r [u8],
    byte_order: ByteOrder,
    walk: Walk<'r>,
    /// Position of the next record.
    position: u64,
    window: Window<'r>,
    /// The next record in the file follows the last one given out: what is between them is appended to it.
    follows_in_file: bool,
    expander: Option<Expander>,
    expansion_limit: Option<u64>,
    /// Where files begin that were not come to yet, of a recording of several. perf ends none of its streams, and begins one in
    /// each.
    further_files: &'r [usize],
    /// What comes next in the stream cannot be expanded for want of what precedes it.
    stream_is_broken: bool,
    /// Bytes of the window's last chunk that were not given out yet start here.
    chunk_at: usize,
    /// Why expanding stopped, to be said when what was expanded before is given out.
    failure: Option<ReadError>,
    /// A record's beginning, whose rest is in the next compressed record.
    fragment: Vec<u8>,
}

impl<'r> Records<'r> {
    /// The records that lie at `data` in the file. One compressed record expands to at most `expansion_limit`
    /// bytes.
    pub(crate) fn new(
        decoder: &'r Decoder,
        file: &'r [u8],
        byte_order: ByteOrder,
        data: &Data,
        expansion_limit: Option<u64>,
    ) -> Self {
        Self {
            decoder,
            file,
            byte_order,
            walk: Walk::new(file, byte_order, data.range.clone(), data.missing),
            position: data.range.start as u64,
            window: Window::new(file),
            follows_in_file: false,
            expander: None,
            expansion_limit,
            further_files: &[],
            stream_is_broken: false,
            chunk_at: 0,
            failure: None,
            fragment: Vec::new(),
        }
    }

    /// The same of several files, of which further ones begin there.
    pub(crate) fn with_further_files(self, further_files: &'r [usize]) -> Self {
        Self { further_files, ..self }
    }

    /// The next record, decoded; `None` at the end. Records found before are given up.
    ///
    /// # Errors
    /// See [`Records`].
    #[allow(clippy::should_implement_trait, reason = "a record borrows from the iterator")]
    pub fn next(&mut self) -> Result<Option<(RawRecord<'_>, RecordContext, Record<'_>)>, ReadError> {
        self.release_before(RecordPosition(self.position));
        let decoder = self.decoder;
        let Some(raw) = self.next_raw()? else { return Ok(None) };
        let context = decoder.context(&raw);
        let record = decoder.decode(&raw, &context)?;
        Ok(Some((raw, context, record)))
    }

    /// The next record, not decoded; `None` at the end.
    ///
    /// # Errors
    /// See [`Records`].
    #[inline]
    pub fn next_raw(&mut self) -> Result<Option<RawRecord<'_>>, ReadError> {
        // Only where records lie in the file itself, which those of big-endian machines never do.
        if self.follows_in_file
            && let Some((offset, RecordHeader { kind, misc, size }, body)) = self.walk.plain()
        {
            let position = RecordPosition(self.position);
            self.position += u64::from(size);
            return Ok(Some(RawRecord { position, offset: offset as u64, kind, misc, body }));
        }
        self.any_raw()
    }

    /// The next record, whatever it is.
    fn any_raw(&mut self) -> Result<Option<RawRecord<'_>>, ReadError> {
        loop {
            if self.expander.is_some()
                && let Some(position) = self.next_expanded()?
            {
                return Ok(self.window.record(position));
            }
            let found = match self.walk.next() {
                Ok(Some(found)) => found,
                Ok(None) => return self.finish().map(|()| None),
                Err(error @ ReadError::Compressed { .. }) => return Err(self.break_stream(error)),
                Err(error) => {
                    self.fragment.clear();
                    return Err(error);
                }
            };
            let offset = found.offset;
            if let Some(compressed) = found.compressed {
                self.follows_in_file = false;
                self.start_expanding(offset, compressed)?;
                continue;
            }
            let size = usize::from(found.header.size);
            if self.byte_order == ByteOrder::Big {
                return Ok(self.turned(offset, size));
            }
            if !self.follows_in_file {
                self.window.continue_in_file(self.position, offset as u64);
                self.follows_in_file = true;
            }
            let position = RecordPosition(self.position);
            self.position += (self.walk.offset() - offset) as u64;
            return Ok(raw_record(&self.file[offset..offset + size], position, offset as u64));
        }
    }

    /// The record at a position that [`Records::next_raw`] gave; `None` if it was released since.
    #[inline]
    pub fn get(&self, position: RecordPosition) -> Option<RawRecord<'_>> {
        self.window.record(position)
    }

    /// Where other threads look records up by their positions, if all that were found so far lie in the file as they are:
    /// of a machine of this byte order, and not compressed.
    pub fn in_file(&self) -> Option<RecordsInFile<'r>> {
        let are_in_file = self.follows_in_file
            && self.expander.is_none()
            && self.window.is_file_alone()
            && self.position == self.walk.offset() as u64;
        are_in_file.then_some(RecordsInFile { file: self.file })
    }

    /// Gives up the memory of expanded records before `position`.
    #[inline]
    pub fn release_before(&mut self, position: RecordPosition) {
        self.window.release_before(position);
    }

    /// The record of a big-endian machine at `offset`, copied and turned round.
    fn turned(&mut self, offset: usize, size: usize) -> Option<RawRecord<'_>> {
        let record = &self.file[offset..offset + size];
        if !self.window.append(self.position, offset as u64, record) {
            let mut chunk = self.window.fresh_chunk(LARGEST_CHUNK);
            chunk.extend_from_slice(record);
            self.window.continue_in_chunk(self.position, offset as u64, Origin::Copied, chunk);
        }
        let chunk = self.window.last_chunk_mut();
        self.chunk_at = chunk.len();
        self.decoder.to_little_endian(&mut chunk[self.chunk_at - size..]);
        let position = RecordPosition(self.position);
        self.position += size as u64;
        self.window.record(position)
    }

    /// The file is walked to its end: was there a rest that the fragment is waiting for?
    fn finish(&mut self) -> Result<(), ReadError> {
        if self.fragment.is_empty() {
            return Ok(());
        }
        let needed = RecordHeader::from_bytes(&self.fragment, self.byte_order)
            .map_or(RECORD_HEADER_SIZE as u64, |header| header.size.into());
        let present = self.fragment.len() as u64;
        let offset = self.walk.offset() as u64;
        self.fragment.clear();
        Err(ReadError::Truncated { offset, needed, present })
    }

    fn start_expanding(&mut self, offset: usize, payload: Range<usize>) -> Result<(), ReadError> {
        while let Some((&start, rest)) = self.further_files.split_first()
            && start <= offset
        {
            self.further_files = rest;
            self.expander = None;
        }
        if self.stream_is_broken && !begins_frame(&self.file[payload.clone()]) {
            let source = io::Error::new(io::ErrorKind::InvalidData, "they continue a damaged stream");
            return Err(ReadError::Compressed { offset: offset as u64, source });
        }
        self.stream_is_broken = false;
        let expander = match self.expander.take() {
            Some(expander) => Ok(expander),
            None => Expander::new(self.expansion_limit),
        };
        match expander {
            Ok(expander) => {
                self.expander.insert(expander).start(offset, payload);
                Ok(())
            }
            Err(source) => Err(ReadError::Compressed { offset: offset as u64, source }),
        }
    }

    /// Nothing more comes out of this stream. A later one may begin, for which nothing of this is kept.
    fn break_stream(&mut self, error: ReadError) -> ReadError {
        self.follows_in_file = false;
        self.expander = None;
        self.fragment.clear();
        self.stream_is_broken = true;
        error
    }

    /// The next record of the compressed record being expanded, if there is one.
    fn next_expanded(&mut self) -> Result<Option<RecordPosition>, ReadError> {
        loop {
            if let Some(size) = self.whole_record_in_chunk()? {
                let position = RecordPosition(self.position);
                if self.byte_order == ByteOrder::Big {
                    let record = self.chunk_at..self.chunk_at + size;
                    self.decoder.to_little_endian(&mut self.window.last_chunk_mut()[record]);
                }
                self.chunk_at += size;
                self.position += size as u64;
                return Ok(Some(position));
            }
            self.keep_fragment();
            if !self.expand_chunk()? {
                return Ok(None);
            }
        }
    }

    /// Size of the record that the rest of the chunk begins with, if all of it is there.
    fn whole_record_in_chunk(&mut self) -> Result<Option<usize>, ReadError> {
        let rest = self.window.last_chunk().get(self.chunk_at..).unwrap_or_default();
        let Some(header) = RecordHeader::from_bytes(rest, self.byte_order) else { return Ok(None) };
        let size = usize::from(header.size);
        if size < RECORD_HEADER_SIZE {
            let offset = self.expander.as_ref().map_or(0, Expander::offset);
            let source = io::Error::new(io::ErrorKind::InvalidData, format!("a record of {size} bytes"));
            return Err(self.break_stream(ReadError::Compressed { offset, source }));
        }
        Ok((size <= rest.len()).then_some(size))
    }

    /// Saves the incomplete record at the end of the chunk.
    fn keep_fragment(&mut self) {
        let rest = self.window.last_chunk().get(self.chunk_at..).unwrap_or_default();
        if !rest.is_empty() {
            self.fragment.clear();
            self.fragment.extend_from_slice(rest);
            self.chunk_at += rest.len();
        }
    }

    /// Expands some more into a new chunk; `false` if the compressed record is used up.
    fn expand_chunk(&mut self) -> Result<bool, ReadError> {
        if let Some(failure) = self.failure.take() {
            return Err(self.break_stream(failure));
        }
        let Some(expander) = self.expander.as_mut().filter(|expander| expander.has_more()) else {
            return Ok(false);
        };
        let room = expander.input_len().saturating_mul(8).clamp(SMALLEST_CHUNK, LARGEST_CHUNK);
        let mut chunk = self.window.fresh_chunk(self.fragment.len() + room);
        chunk.append(&mut self.fragment);
        // What was expanded before an error is given out first.
        self.failure = expander.fill(self.file, &mut chunk).err();
        let offset = expander.offset();
        self.window.continue_in_chunk(self.position, offset, Origin::Expanded, chunk);
        self.chunk_at = 0;
        Ok(true)
    }
}
