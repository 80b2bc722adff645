//! Names of symbols, which are read when they are asked for.

/// The name of a symbol: what stands before the first zero, or all where there is none.
///
/// Where it ends is not looked for before somebody asks: names lie all over a table of strings of tens of megabytes, most are
/// never printed, and to read them all takes longer, and more memory, than the rest of a symbol table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SymbolName<'a>(&'a [u8]);

impl<'a> SymbolName<'a> {
    /// One that begins these bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The name itself.
    pub(crate) fn bytes(self) -> &'a [u8] {
        let end = memchr::memchr(0, self.0).unwrap_or(self.0.len());
        &self.0[..end]
    }

    /// The name and what follows it in its file.
    pub(crate) fn unread(self) -> &'a [u8] {
        self.0
    }

    /// Whether there is no letter in it.
    pub(crate) fn is_empty(self) -> bool {
        matches!(self.0.first(), None | Some(0))
    }
}

impl PartialEq for SymbolName<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0) || self.bytes() == other.bytes()
    }
}

impl Eq for SymbolName<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_before_the_first_zero_or_with_its_bytes() {
        let name = SymbolName::new;
        assert_eq!(name(b"main\0other\0").bytes(), b"main");
        assert_eq!(name(b"main").bytes(), b"main");
        assert_eq!(name(b"main\0other"), name(b"main"));
        assert_ne!(name(b"main\0"), name(b"mai\0n"));
        assert!(name(b"").is_empty() && name(b"\0x").is_empty() && !name(b"x").is_empty());
    }
}
