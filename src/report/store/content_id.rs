//! Ids that follow from content.

use sha2::{Digest, Sha256};

/// An id in the making: the first eight bytes, the lowest first, of the SHA-256 of what it stands for. Of a hundred million
/// different stacks two have the same id once in 4000 such collections.
pub(super) struct ContentId(Sha256);

impl ContentId {
    /// Of a kind of thing, so that things of different kinds differ.
    pub fn new(kind: &str) -> Self {
        let mut id = Self(Sha256::new());
        id.text(kind);
        id
    }

    /// Adds a text: its length in bytes, and it.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
        self
    }

    /// Adds a number, its lowest byte first.
    pub fn number(&mut self, number: u64) -> &mut Self {
        self.0.update(number.to_le_bytes());
        self
    }

    pub fn finish(self) -> i64 {
        let digest = self.0.finalize();
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        i64::from_le_bytes(first)
    }
}
