//! A record as it lies in the recording, found but not decoded.

use crate::bytes::{ByteOrder, Cursor, u64_at};
use crate::format::record_type::{AUXTRACE, COMPRESSED, COMPRESSED2, HEADER_TRACING_DATA, USER_START};

/// Where a record stands in the recording: later records have higher positions.
///
/// In a recording without compression it is the record's offset in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RecordPosition(pub(crate) u64);

/// A record as it lies in the recording, in little-endian order.
#[derive(Debug, Clone, Copy)]
pub struct RawRecord<'a> {
    /// Where it stands among the others.
    pub position: RecordPosition,
    /// Offset in the file of the record, or of the compressed record that it begins in.
    pub offset: u64,
    /// Type: one of [`crate::format::record_type`].
    pub kind: u32,
    /// Bits of [`crate::format::misc`].
    pub misc: u16,
    /// What follows the header.
    pub body: &'a [u8],
}

/// A record's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) kind: u32,
    pub(crate) misc: u16,
    /// Bytes of the record, its header included.
    pub(crate) size: u16,
}

impl RecordHeader {
    /// The header that `bytes` begins with.
    #[inline]
    pub(crate) fn from_le_bytes(bytes: &[u8]) -> Option<Self> {
        let word = u64_at(bytes, 0)?;
        Some(Self { kind: word as u32, misc: (word >> 32) as u16, size: (word >> 48) as u16 })
    }

    /// The header that `bytes` of a machine of this order begins with.
    #[inline]
    pub(crate) fn from_bytes(bytes: &[u8], order: ByteOrder) -> Option<Self> {
        let header = Self::from_le_bytes(bytes)?;
        Some(match order {
            ByteOrder::Little => header,
            ByteOrder::Big => Self {
                kind: header.kind.swap_bytes(),
                misc: header.misc.swap_bytes(),
                size: header.size.swap_bytes(),
            },
        })
    }

    /// Whether such a record is all there is of it: neither compressed nor with bytes behind it, see
    /// [`RecordHeader::appended`].
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.kind < USER_START
            || !matches!(self.kind, AUXTRACE | HEADER_TRACING_DATA | COMPRESSED | COMPRESSED2)
    }

    /// Bytes that follow the record without belonging to it, given its body: hardware trace and, in
    /// pipes, tracepoint formats.
    #[inline]
    pub(crate) fn appended(&self, body: &[u8], order: ByteOrder) -> u64 {
        let mut fields = Cursor::new(body, order);
        match self.kind {
            AUXTRACE => fields.u64().unwrap_or(0),
            HEADER_TRACING_DATA => fields.u32().map_or(0, u64::from),
            _ => 0,
        }
    }
}
