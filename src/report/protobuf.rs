//! As much of Protocol Buffers' wire format as writing a message needs
//! (<https://protobuf.dev/programming-guides/encoding/>).

/// A message being written. Fields that are zero or empty are left out, as in version 3 of the language.
#[derive(Debug, Default, Clone)]
pub(super) struct Message(Vec<u8>);

const VARINT: u64 = 0;
const LENGTH_DELIMITED: u64 = 2;

impl Message {
    /// A number.
    pub fn number(&mut self, field: u64, value: u64) -> &mut Self {
        if value != 0 {
            push_varint(&mut self.0, field << 3 | VARINT);
            push_varint(&mut self.0, value);
        }
        self
    }

    /// A truth value.
    pub fn flag(&mut self, field: u64, value: bool) -> &mut Self {
        self.number(field, u64::from(value))
    }

    /// A repeated number, packed.
    pub fn numbers(&mut self, field: u64, values: impl IntoIterator<Item = u64>) -> &mut Self {
        let mut packed = Vec::new();
        for value in values {
            push_varint(&mut packed, value);
        }
        if packed.is_empty() { self } else { self.bytes(field, &packed) }
    }

    /// A text, empty ones too: in a table of texts their place counts.
    pub fn text(&mut self, field: u64, text: &str) -> &mut Self {
        self.bytes(field, text.as_bytes())
    }

    /// A message inside this one.
    pub fn message(&mut self, field: u64, message: &Message) -> &mut Self {
        self.bytes(field, &message.0)
    }

    /// The message as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        push_varint(&mut self.0, field << 3 | LENGTH_DELIMITED);
        push_varint(&mut self.0, bytes.len() as u64);
        self.0.extend(bytes);
        self
    }
}

/// Seven bits a byte, the lowest first; all bytes but the last have their highest bit set.
fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_in_the_language_s_description() {
        let mut message = Message::default();
        message.number(1, 150).text(2, "testing").numbers(6, [3, 270, 86942]).number(4, 0);
        let expected = b"\x08\x96\x01\x12\x07testing\x32\x06\x03\x8e\x02\x9e\xa7\x05";
        assert_eq!(message.as_bytes(), expected);
    }
}
