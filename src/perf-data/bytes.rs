//! Reading numbers out of bytes of either byte order, never beyond their end.

/// Order of the bytes in a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ByteOrder {
    /// Lowest byte first.
    #[default]
    Little,
    /// Highest byte first.
    Big,
}

/// The little-endian `u64` at `at`, if it lies within `bytes`.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let field = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*field))
}

/// The little-endian `u32` at `at`, if it lies within `bytes`.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*field))
}

/// Bytes as little-endian words of eight bytes, as the kernel's records are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'a>(&'a [[u8; 8]]);

impl<'a> Words<'a> {
    /// The whole words that `bytes` begins with.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes.as_chunks().0)
    }

    /// The word of this number, if there are so many.
    #[inline]
    pub(crate) fn u64(self, at: u16) -> Option<u64> {
        self.0.get(usize::from(at)).map(|word| u64::from_le_bytes(*word))
    }

    /// The halves of a word, that at the lower address first.
    #[inline]
    pub(crate) fn u32s(self, at: u16) -> Option<(u32, u32)> {
        self.u64(at).map(|word| (word as u32, (word >> 32) as u32))
    }
}

/// What precedes the first zero byte; everything if there is none.
#[inline]
pub(crate) fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

/// Reads one value after the other.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    order: ByteOrder,
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { rest: bytes, order }
    }

    /// What has not been read yet.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `length` bytes.
    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Option<u16> {
        let bytes = self.array()?;
        Some(match self.order {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        })
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        let bytes = self.array()?;
        Some(match self.order {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        })
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Option<u64> {
        let bytes = self.array()?;
        Some(match self.order {
            ByteOrder::Little => u64::from_le_bytes(bytes),
            ByteOrder::Big => u64::from_be_bytes(bytes),
        })
    }

    /// All that is left, as numbers.
    pub(crate) fn u64s(mut self) -> Vec<u64> {
        let mut numbers = Vec::with_capacity(self.rest.len() / 8);
        while let Some(number) = self.u64() {
            numbers.push(number);
        }
        numbers
    }

    /// Text up to its zero.
    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let text = until_zero(self.rest);
        self.rest = self.rest.get(text.len() + 1..)?;
        Some(text)
    }

    /// A string of the feature sections: its padded length, then its bytes up to a zero.
    pub(crate) fn string(&mut self) -> Option<String> {
        let length = self.u32()? as usize;
        Some(String::from_utf8_lossy(until_zero(self.take(length)?)).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_both_orders() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
        let mut little = Cursor::new(&bytes, ByteOrder::Little);
        assert_eq!(little.u16(), Some(0x0201));
        assert_eq!(little.u32(), Some(0x0605_0403));
        assert_eq!(little.u64(), Some(0x0e0d_0c0b_0a09_0807));
        let mut big = Cursor::new(&bytes, ByteOrder::Big);
        assert_eq!(big.u16(), Some(0x0102));
        assert_eq!(big.u32(), Some(0x0304_0506));
        assert_eq!(big.u64(), Some(0x0708_090a_0b0c_0d0e));
        assert_eq!(big.u16(), None);
    }

    #[test]
    fn a_failed_read_takes_nothing() {
        let mut cursor = Cursor::new(&[1, 2, 3], ByteOrder::Little);
        assert_eq!(cursor.u32(), None);
        assert_eq!(cursor.rest(), &[1, 2, 3]);
        assert_eq!(cursor.take(4), None);
    }

    #[test]
    fn strings_end_at_their_zero() {
        let bytes = [8, 0, 0, 0, b'a', b'b', 0, b'x', 0, 0, 0, 0, 200, 0, 0, 0, b'z'];
        let mut cursor = Cursor::new(&bytes, ByteOrder::Little);
        assert_eq!(cursor.string().as_deref(), Some("ab"));
        assert_eq!(cursor.string(), None);
    }
}
