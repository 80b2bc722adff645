//! The kernel's own list of its symbols, `/proc/kallsyms`.
//!
//! ```text
//! ffffffff81000000 T _stext
//! ffffffffc1937000 t hdmi_driver_init<TAB>[snd_hda_codec_hdmi]
//! ```

use super::symbol_name::SymbolName;
use super::symbol_table::{Binding, Symbol};

/// What a text in the format of kallsyms holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kallsyms<'a> {
    /// Symbols without sizes, in the order of the file. A module's name stands behind a tab in the symbol's.
    Symbols(Vec<Symbol<'a>>),
    /// All addresses are zero: the kernel hides them from this user.
    Hidden,
}

impl<'a> Kallsyms<'a> {
    /// Reads the symbols of code and data (as perf does), skipping lines of another form.
    pub(crate) fn parse(text: &'a [u8]) -> Self {
        let (mut symbols, mut all_zero) = (Vec::with_capacity(text.len() / 40), true);
        for line in lines(text) {
            let Some((start, kind, name)) = parse_line(line) else { continue };
            let binding = match kind {
                b'W' | b'w' => Binding::Weak,
                b'T' | b'D' | b'B' => Binding::Global,
                b't' | b'd' | b'b' => Binding::Local,
                _ => continue,
            };
            all_zero &= start == 0;
            // Arm's marks between code and data.
            if !name.starts_with(b"$") {
                symbols.push(Symbol { start, end: start, binding, plt: false, name: SymbolName::new(name) });
            }
        }
        if all_zero && !symbols.is_empty() { Self::Hidden } else { Self::Symbols(symbols) }
    }
}

/// Lines without their ends. Sixteen bytes at a time are looked at together: the list has a hundred thousand
/// lines.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (wide, _) = rest.as_chunks::<16>();
        let before =
            wide.iter().position(|bytes| bytes.iter().fold(false, |any, &byte| any | (byte == b'\n')));
        let from = 16 * before.unwrap_or(wide.len());
        let end = rest[from..].iter().position(|&byte| byte == b'\n').map_or(rest.len(), |at| from + at);
        let line = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(line)
    })
}

fn parse_line(line: &[u8]) -> Option<(u64, u8, &[u8])> {
    let space = line.iter().position(|&byte| byte == b' ')?;
    let (address, rest) = line.split_at(space);
    let [b' ', kind, b' ', name @ ..] = rest else { return None };
    (!name.is_empty()).then_some((hexadecimal(address)?, *kind, name))
}

/// A number in hexadecimal digits, without prefix.
pub(crate) fn hexadecimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0, |value, &digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            b'A'..=b'F' => digit - b'A' + 10,
            _ => return None,
        };
        Some(value << 4 | u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn symbols_of_kernel_and_modules() {
        let text = b"ffffffff81000000 T _stext\nffffffff81000010 r table\nffffffffc1937000 t init\t[snd]\n\
                     ffffffff81000020 W weak\nffffffff81000030 t $x\nbroken\nffffffff8100004 D\n";
        let Kallsyms::Symbols(symbols) = Kallsyms::parse(text) else { panic!("hidden") };
        let found: Vec<_> =
            symbols.iter().map(|symbol| (symbol.start, symbol.binding, symbol.name.bytes())).collect();
        let expected: [(u64, Binding, &[u8]); 3] = [
            (0xffff_ffff_8100_0000, Binding::Global, b"_stext"),
            (0xffff_ffff_c193_7000, Binding::Local, b"init\t[snd]"),
            (0xffff_ffff_8100_0020, Binding::Weak, b"weak"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn hidden_addresses_are_told() {
        assert_eq!(Kallsyms::parse(b"0000000000000000 T _stext\n0000000000000000 t foo\n"), Kallsyms::Hidden);
        assert_eq!(Kallsyms::parse(b""), Kallsyms::Symbols(Vec::new()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            Kallsyms::parse(&text);
        }

        #[test]
        fn what_the_kernel_prints_is_read_back(address in 1u64.., name in "[a-z_][a-z0-9_.]{0,30}") {
            let text = format!("{address:016x} t {name}\n");
            let Kallsyms::Symbols(symbols) = Kallsyms::parse(text.as_bytes()) else { panic!("hidden") };
            prop_assert_eq!(symbols.len(), 1);
            prop_assert_eq!((symbols[0].start, symbols[0].name.bytes()), (address, name.as_bytes()));
        }
    }
}
