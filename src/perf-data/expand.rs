//! Expanding compressed records.

use std::io;
use std::ops::Range;

use zstd::stream::raw::{Decoder as ZstdDecoder, InBuffer, Operation, OutBuffer};

use crate::bytes::u32_at;
use crate::error::ReadError;

/// Most bytes that one compressed record may expand to, unless the recording says how large the
/// recorder's rings were. perf's largest ring on a machine without special settings is 512 KiB.
const DEFAULT_LIMIT: u64 = 256 << 20;

/// One zstd stream that runs through all compressed records of a file.
pub(crate) struct Expander {
    stream: ZstdDecoder<'static>,
    limit: u64,
    /// Compressed bytes not taken yet: their place in the file.
    input: Range<usize>,
    /// Offset of the compressed record being expanded.
    offset: u64,
    /// Bytes made of it so far.
    produced: u64,
    /// The last output filled all its room: there may be more of it.
    more: bool,
}

impl Expander {
    pub(crate) fn new(limit: Option<u64>) -> io::Result<Self> {
        Ok(Self {
            stream: ZstdDecoder::new()?,
            limit: limit.unwrap_or(DEFAULT_LIMIT),
            input: 0..0,
            offset: 0,
            produced: 0,
            more: false,
        })
    }

    /// Takes the compressed record at `offset` as the next input.
    pub(crate) fn start(&mut self, offset: usize, payload: Range<usize>) {
        self.offset = offset as u64;
        self.input = payload;
        self.produced = 0;
        self.more = !self.input.is_empty();
    }

    /// Whether the record may have more bytes to give.
    pub(crate) fn has_more(&self) -> bool {
        self.more
    }

    /// Compressed bytes not taken yet.
    pub(crate) fn input_len(&self) -> usize {
        self.input.len()
    }

    /// Offset in the file of the compressed record being expanded.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Expands into the free capacity of `output`.
    pub(crate) fn fill(&mut self, file: &[u8], output: &mut Vec<u8>) -> Result<(), ReadError> {
        let before = output.len();
        while output.len() < output.capacity() {
            let compressed = file.get(self.input.clone()).unwrap_or_default();
            let mut input = InBuffer::around(compressed);
            let filled = output.len();
            let mut room = OutBuffer::around_pos(output, filled);
            let outcome = self.stream.run(&mut input, &mut room);
            let written = room.pos() - filled;
            let taken = input.pos();
            outcome.map_err(|source| ReadError::Compressed { offset: self.offset, source })?;
            self.input.start += taken;
            if taken == 0 && written == 0 {
                break;
            }
        }
        self.more = output.len() == output.capacity() || !self.input.is_empty();
        if self.more && output.len() == before {
            let source = io::Error::new(io::ErrorKind::InvalidData, "the stream does not go on");
            return Err(ReadError::Compressed { offset: self.offset, source });
        }
        self.produced += (output.len() - before) as u64;
        if self.produced > self.limit {
            return Err(ReadError::Expansion { offset: self.offset, limit: self.limit });
        }
        Ok(())
    }
}

/// Whether these compressed bytes begin a zstd stream, rather than continue one.
pub(crate) fn begins_frame(compressed: &[u8]) -> bool {
    const FRAME: u32 = 0xfd2f_b528;
    /// The first of sixteen: frames that decoders pass over.
    const SKIPPABLE_FRAME: u32 = 0x184d_2a50;
    u32_at(compressed, 0).is_some_and(|magic| magic == FRAME || magic & !0xf == SKIPPABLE_FRAME)
}

impl std::fmt::Debug for Expander {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Expander").field("offset", &self.offset).field("input", &self.input).finish()
    }
}
