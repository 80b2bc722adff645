//! Bytes of a file as text, whatever wrote them.

use thiserror::Error;

/// Why bytes are no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// There are zero bytes, and no mark of UTF-16 before them.
    #[error("binary data, not a table in text")]
    Binary,
}

/// Text without its byte order mark: UTF-8, UTF-16 if it has the mark, and Latin-1 for single bytes that
/// are no UTF-8, so that a `µ` keeps its meaning.
///
/// # Errors
/// [`DecodeError::Binary`] if zero bytes stand between others. At the end they are left out: that is how
/// a log ends when its machine lost power.
pub fn decode(mut bytes: Vec<u8>) -> Result<String, DecodeError> {
    if let Some(text) = utf16(&bytes) {
        return if text.contains('\0') { Err(DecodeError::Binary) } else { Ok(text) };
    }
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    if bytes.contains(&0) {
        return Err(DecodeError::Binary);
    }
    let mut text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => with_latin_1(error.as_bytes()),
    };
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// Text of UTF-16, if it begins with the mark of that.
fn utf16(bytes: &[u8]) -> Option<String> {
    let (pairs, is_little) = match bytes {
        [0xff, 0xfe, pairs @ ..] => (pairs, true),
        [0xfe, 0xff, pairs @ ..] => (pairs, false),
        _ => return None,
    };
    let unit = |pair: &[u8; 2]| if is_little { u16::from_le_bytes(*pair) } else { u16::from_be_bytes(*pair) };
    let units = pairs.as_chunks::<2>().0.iter().map(unit);
    Some(char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

/// UTF-8 in which every other byte is the character of Latin-1 that it would be alone.
fn with_latin_1(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| char::from(*byte)));
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn as_utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect()
    }

    #[test]
    fn marks_and_encodings() {
        let text = "power [µW]\n1\n";
        assert_eq!(decode(text.into()).as_deref(), Ok(text));
        assert_eq!(decode(format!("\u{feff}{text}").into_bytes()).as_deref(), Ok(text));
        assert_eq!(decode(as_utf16(text, u16::to_le_bytes)).as_deref(), Ok(text));
        assert_eq!(decode(as_utf16(text, u16::to_be_bytes)).as_deref(), Ok(text));
        let latin_1: Vec<u8> = text.chars().map(|c| c as u8).collect();
        assert_eq!(decode(latin_1).as_deref(), Ok(text));
        assert_eq!(decode(b"a,b\n1,2\n\0\0\0".to_vec()).as_deref(), Ok("a,b\n1,2\n"));
        assert_eq!(decode(b"\x7fELF\0\0\x01".to_vec()), Err(DecodeError::Binary));
    }

    proptest! {
        #[test]
        fn any_text_survives(text in "[^\0\u{feff}]{0,40}") {
            prop_assert_eq!(decode(text.clone().into_bytes()), Ok(text.clone()));
            prop_assert_eq!(decode(as_utf16(&text, u16::to_le_bytes)), Ok(text));
        }

        #[test]
        fn any_bytes_are_text_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = decode(bytes);
        }
    }
}
