//! As much of Protocol Buffers' wire format as writing a message needs
//! (<https://protobuf.dev/programming-guides/encoding/>).

/// A message being written. Fields that are zero or empty are left out, as in version 3 of the language.
#[derive(Debug, Default, Clone)]
pub(super) struct Message(Vec<u8>);

const VARINT: u64 = 0;
const FIXED: u64 = 1;
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

    /// A number of eight bytes.
    pub fn fixed(&mut self, field: u64, value: u64) -> &mut Self {
        if value != 0 {
            push_varint(&mut self.0, field << 3 | FIXED);
            self.0.extend(value.to_le_bytes());
        }
        self
    }

    /// What stands before a message inside this one of so many bytes, which are to follow.
    pub fn head(&mut self, field: u64, length: u64) -> &mut Self {
        push_varint(&mut self.0, field << 3 | LENGTH_DELIMITED);
        push_varint(&mut self.0, length);
        self
    }

    /// More fields of the same message.
    pub fn append(&mut self, fields: &Message) -> &mut Self {
        self.0.extend(&fields.0);
        self
    }

    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// The message as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Bytes, also none.
    pub fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        push_varint(&mut self.0, field << 3 | LENGTH_DELIMITED);
        push_varint(&mut self.0, bytes.len() as u64);
        self.0.extend(bytes);
        self
    }
}

/// Bytes of a message inside another one, with what stands before it.
pub(super) fn length_with_head(field: u64, length: u64) -> u64 {
    Message::default().head(field, length).len() + length
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
pub(super) mod read {
    //! Reads messages, for tests.

    /// A field of a message: a number, or bytes.
    #[derive(Debug, Clone, Copy)]
    pub enum Value<'a> {
        Number(u64),
        Bytes(&'a [u8]),
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = bytes.split_first().expect("a byte");
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    /// The fields of a message, by number.
    pub fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let value = match key & 7 {
                0 => Value::Number(varint(&mut bytes)),
                1 => {
                    let (content, rest) = bytes.split_at(8);
                    bytes = rest;
                    Value::Number(u64::from_le_bytes(content.try_into().expect("eight bytes")))
                }
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (content, rest) = bytes.split_at(length);
                    bytes = rest;
                    Value::Bytes(content)
                }
                kind => panic!("wire type {kind}"),
            };
            fields.push((key >> 3, value));
        }
        fields
    }

    /// Numbers of a packed field.
    pub fn numbers(mut packed: &[u8]) -> Vec<u64> {
        let mut numbers = Vec::new();
        while !packed.is_empty() {
            numbers.push(varint(&mut packed));
        }
        numbers
    }

    /// The messages, or texts, of a field.
    pub fn messages<'a>(fields: &[(u64, Value<'a>)], wanted: u64) -> Vec<&'a [u8]> {
        fields
            .iter()
            .filter_map(|(field, value)| match value {
                Value::Bytes(bytes) if *field == wanted => Some(*bytes),
                _ => None,
            })
            .collect()
    }

    /// The number of a field.
    pub fn number(fields: &[(u64, Value<'_>)], wanted: u64) -> Option<u64> {
        fields.iter().find_map(|(field, value)| match value {
            Value::Number(number) if *field == wanted => Some(*number),
            _ => None,
        })
    }
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
