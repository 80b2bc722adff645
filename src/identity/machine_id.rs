//! A machine's id, hashed.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// What tells a machine from others. `/etc/machine-id` is to be kept secret (machine-id(5)): this is what systemd derives
/// of it for one application, by which nobody finds the former.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MachineId(String);

/// eprof's own id for this, chosen by chance: `systemd-id128 machine-id --app-specific` with it prints the same.
const APPLICATION: [u8; 16] = *b"\x7c\x1d\x0e\x53\xb2\x9a\x4f\x16\x8e\x44\x2b\x60\xd9\x35\xa1\xc8";

impl MachineId {
    /// From what `/etc/machine-id` holds; `None` if that is no id, as before a machine's first boot.
    pub fn of_file(text: &str) -> Option<Self> {
        let id = bytes(text.trim())?;
        let mut hash = Hmac::<Sha256>::new_from_slice(&id).ok()?;
        hash.update(&APPLICATION);
        let hash = hash.finalize().into_bytes();
        let mut id: [u8; 16] = hash.get(..16)?.try_into().ok()?;
        // As a random UUID, version 4, which is what systemd makes of it.
        id[6] = id[6] & 0x0f | 0x40;
        id[8] = id[8] & 0x3f | 0x80;
        Some(Self(id.iter().map(|byte| format!("{byte:02x}")).collect()))
    }
}

impl fmt::Display for MachineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The 16 bytes of 32 hexadecimal digits that are not all zero.
fn bytes(hex: &str) -> Option<[u8; 16]> {
    let is_id = hex.len() == 32 && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u128::from_str_radix(hex, 16).ok().filter(|&number| is_id && number != 0)?;
    Some(number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_what_systemd_derives() {
        let id = MachineId::of_file("0123456789abcdef0123456789abcdef\n").expect("an id");
        // Python: h = hmac.new(bytes.fromhex(id), bytes.fromhex(application), 'sha256').digest()[:16], and the UUID's bits.
        assert_eq!(id.to_string(), "48213b3b66854158b3c4bee42bd918cd");
        assert_eq!(MachineId::of_file("uninitialized"), None);
        assert_eq!(MachineId::of_file(&"0".repeat(32)), None);
        assert_eq!(MachineId::of_file("+123456789abcdef0123456789abcdef"), None);
    }
}
