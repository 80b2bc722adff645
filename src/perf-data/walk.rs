//! Finding the records in the file: from header to header, past what is appended to them.

use std::hint::black_box;
use std::io;
use std::ops::Range;

use crate::bytes::{ByteOrder, Cursor};
use crate::error::ReadError;
use crate::format::{RECORD_HEADER_SIZE, record_type};
use crate::raw::RecordHeader;

/// Bytes before the compressed ones of a [`record_type::COMPRESSED2`]: header and length.
const COMPRESSED2_HEADER_SIZE: usize = 16;
/// Most bytes that perf compresses into one record.
const LONGEST_PAYLOAD: usize = (1 << 16) - COMPRESSED2_HEADER_SIZE - 1;

/// A record in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Offset of its header.
    pub(crate) offset: usize,
    pub(crate) header: RecordHeader,
    /// Where the compressed bytes lie in the file, if it is a compressed record.
    pub(crate) compressed: Option<Range<usize>>,
}

/// Walks the records of a file without looking into them.
#[derive(Debug)]
pub(crate) struct Walk<'r> {
    file: &'r [u8],
    order: ByteOrder,
    /// Offset of the next record.
    at: usize,
    /// Where the records end.
    end: usize,
    /// Bytes of records that the header promises beyond the file's end.
    missing: u64,
    /// The file was loaded into the CPU's cache up to here.
    loaded: usize,
    /// Compressed records up to here belong to one whose length overflowed.
    chain_end: usize,
}

impl<'r> Walk<'r> {
    pub(crate) fn new(file: &'r [u8], order: ByteOrder, data: Range<usize>, missing: u64) -> Self {
        Self { file, order, at: data.start, end: data.end, missing, loaded: data.start, chain_end: 0 }
    }

    /// Offset behind the record found last and all that is appended to it.
    #[inline]
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// Finds nothing any more.
    fn stop(&mut self) {
        self.at = self.end;
        self.missing = 0;
    }

    /// The next record, if it is as nearly all are: of a little-endian machine, whole, not compressed, and with nothing
    /// appended to it. Gives its offset, its header and what follows that. For any other, [`Walk::next`] is to be asked.
    #[inline(always)]
    pub(crate) fn plain(&mut self) -> Option<(usize, RecordHeader, &'r [u8])> {
        if self.at >= self.loaded {
            self.load_ahead();
        }
        let rest = self.file.get(self.at..self.end)?;
        let header = RecordHeader::from_le_bytes(rest)?;
        let (size, offset) = (usize::from(header.size), self.at);
        let body = rest.get(RECORD_HEADER_SIZE..size).filter(|_| header.is_plain())?;
        self.at += size;
        Some((offset, header, body))
    }

    /// The next record; `None` at the end. After an error that is not recoverable there is none.
    pub(crate) fn next(&mut self) -> Result<Option<Found>, ReadError> {
        if self.at >= self.loaded {
            self.load_ahead();
        }
        let rest = &self.file[self.at..self.end];
        let Some(header) = RecordHeader::from_bytes(rest, self.order) else { return self.finish(rest.len()) };
        if matches!(header.kind, record_type::COMPRESSED | record_type::COMPRESSED2) {
            return self.compressed(header, rest).map(Some);
        }
        let size = usize::from(header.size);
        if size < RECORD_HEADER_SIZE {
            return Err(self.impossible_size(size));
        }
        let Some(body) = rest.get(RECORD_HEADER_SIZE..size) else {
            return Err(self.truncated(size as u64));
        };
        let whole = header.appended(body, self.order).saturating_add(size as u64);
        if whole > rest.len() as u64 {
            return Err(self.truncated(whole));
        }
        let offset = self.at;
        self.at += whole as usize;
        Ok(Some(Found { offset, header, compressed: None }))
    }

    /// Loads the next stretch of the file into the cache in one go.
    ///
    /// Headers lie at irregular distances, and where the next one is stands in the one before, so walking
    /// them waits for the memory at each. Reading whole stretches first lets the CPU fetch many lines at
    /// once, which takes a fifth of the time, and what is decoded next is there as well.
    #[cold]
    fn load_ahead(&mut self) {
        const STRETCH: usize = 8 << 10;
        const CACHE_LINE: usize = 64;
        let end = self.end.min(self.at + STRETCH);
        let lines = self.file.get(self.at..end).unwrap_or_default().chunks_exact(CACHE_LINE);
        black_box(lines.fold(0, |all, line| all ^ line[0]));
        self.loaded = end.max(self.at + 1);
    }

    fn compressed(&mut self, header: RecordHeader, rest: &[u8]) -> Result<Found, ReadError> {
        let size = usize::from(header.size);
        let Extent { payload, length } = match header.kind {
            record_type::COMPRESSED if size < RECORD_HEADER_SIZE => return Err(self.impossible_size(size)),
            record_type::COMPRESSED => Extent { payload: RECORD_HEADER_SIZE..size, length: size },
            _ if self.at < self.chain_end => self.link(size)?,
            _ => self.compressed2(size, rest)?,
        };
        if length > rest.len() {
            return Err(self.truncated(length as u64));
        }
        let offset = self.at;
        self.at += length;
        let compressed = Some(offset + payload.start..offset + payload.end);
        Ok(Found { offset, header, compressed })
    }

    /// The extent of a record whose compressed bytes are counted apart from it.
    ///
    /// perf 6.16 and later pad the record to a multiple of eight and compute its 16-bit size of what
    /// they compressed at once, however many records that took. Where that is more than 64 KiB, the
    /// size is what remains of it, nothing is padded, the first record counts the bytes of all, and those
    /// behind it (see [`Walk::link`]) have the right size but count nothing. perf itself cannot read that.
    fn compressed2(&mut self, size: usize, rest: &[u8]) -> Result<Extent, ReadError> {
        let counted = rest.get(RECORD_HEADER_SIZE..).and_then(|body| Cursor::new(body, self.order).u64());
        let Some(counted) = counted else { return Err(self.truncated(COMPRESSED2_HEADER_SIZE as u64)) };
        // Nobody compresses 4 GiB at once, and no sum overflows below that.
        let Ok(counted) = u32::try_from(counted) else { return Err(self.miscounted(size)) };
        let whole = COMPRESSED2_HEADER_SIZE + counted as usize;
        if whole <= size {
            return Ok(Extent { payload: COMPRESSED2_HEADER_SIZE..whole, length: size });
        }
        let padded = whole.next_multiple_of(8);
        let fits_one = whole <= COMPRESSED2_HEADER_SIZE + LONGEST_PAYLOAD;
        let overflowed = padded > usize::from(u16::MAX) && (fits_one || padded as u16 == size as u16);
        if !overflowed {
            return Err(self.miscounted(size));
        }
        if whole > rest.len() {
            return Err(self.truncated(whole as u64));
        }
        let length = whole.min(COMPRESSED2_HEADER_SIZE + LONGEST_PAYLOAD);
        self.chain_end = self.at + whole;
        Ok(Extent { payload: COMPRESSED2_HEADER_SIZE..length, length })
    }

    /// The extent of a record behind one whose length overflowed: all of it is compressed bytes.
    fn link(&mut self, size: usize) -> Result<Extent, ReadError> {
        if size < COMPRESSED2_HEADER_SIZE || self.at + size > self.chain_end {
            return Err(self.miscounted(size));
        }
        Ok(Extent { payload: COMPRESSED2_HEADER_SIZE..size, length: size })
    }

    /// The end of the file is reached: was it the end of the records?
    fn finish<T>(&mut self, left: usize) -> Result<Option<T>, ReadError> {
        if left > 0 || self.missing > 0 {
            return Err(self.truncated(RECORD_HEADER_SIZE as u64));
        }
        Ok(None)
    }

    fn truncated(&mut self, needed: u64) -> ReadError {
        let error =
            ReadError::Truncated { offset: self.at as u64, needed, present: (self.end - self.at) as u64 };
        self.stop();
        error
    }

    fn impossible_size(&mut self, size: usize) -> ReadError {
        let error = ReadError::RecordSize { offset: self.at as u64, size: size as u64 };
        self.stop();
        error
    }

    /// The walk goes on behind a compressed record that miscounts, if its size is possible.
    fn miscounted(&mut self, size: usize) -> ReadError {
        let source = io::Error::new(io::ErrorKind::InvalidData, "they are counted wrong");
        let offset = self.at as u64;
        if size >= RECORD_HEADER_SIZE && size <= self.end - self.at {
            self.at += size;
        } else {
            self.stop();
        }
        ReadError::Compressed { offset, source }
    }
}

/// Where the compressed bytes lie in a record, and how long it really is.
struct Extent {
    payload: Range<usize>,
    length: usize,
}
