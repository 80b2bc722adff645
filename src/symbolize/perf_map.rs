//! `perf-PID.map`: the functions that a just-in-time compiler made, as it wrote them down for perf.
//!
//! ```text
//! 7f1c5a2b8e40 1c8 LazyCompile:*hot /srv/app.js:12:5
//! ```
//!
//! The file has no times: memory that was used again belongs to the function that was written last.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::unistd::geteuid;

use super::error::SymbolizeError;
use super::kallsyms::hexadecimal;
use super::symbol_table::{Binding, Symbol};

/// Most that is read of a map; a long run of a large program writes some tens of megabytes.
const LARGEST: u64 = 1 << 30;

/// Reads the map of a process; empty if there is none. As any user can put a file there, it must belong to this user
/// or root, as perf demands too.
pub(crate) fn read(folder: &Path, pid: u32) -> Result<Vec<u8>, SymbolizeError> {
    let path = folder.join(format!("perf-{pid}.map"));
    let open = |source| SymbolizeError::Open { path: path.clone(), source };
    // A pipe would block.
    let file = match OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path) {
        Ok(file) => file,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(open(source)),
    };
    let metadata = file.metadata().map_err(open)?;
    if !metadata.is_file() {
        return Ok(Vec::new());
    }
    if metadata.uid() != 0 && metadata.uid() != geteuid().as_raw() {
        return Err(SymbolizeError::PerfMapOwner { path });
    }
    // It is read and not mapped into memory: its process may still be writing.
    let mut text = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut text).map_err(open)?;
    if text.len() as u64 > LARGEST {
        return Err(SymbolizeError::PerfMapSize { path, limit: LARGEST });
    }
    Ok(text)
}

/// The functions that remain when each line replaces what lay there before, without overlaps.
pub(crate) fn parse(text: &[u8]) -> Vec<Symbol<'_>> {
    let mut functions: BTreeMap<u64, Symbol<'_>> = BTreeMap::new();
    for line in text.split(|&byte| byte == b'\n') {
        let Some(function) = parse_line(line) else { continue };
        cut_out(&mut functions, function.start, function.end);
        functions.insert(function.start, function);
    }
    functions.into_values().collect()
}

fn parse_line(line: &[u8]) -> Option<Symbol<'_>> {
    let mut parts = line.splitn(3, |&byte| byte == b' ');
    let mut number = || {
        let digits = parts.next()?;
        hexadecimal(digits.strip_prefix(b"0x").unwrap_or(digits))
    };
    let (start, size) = (number()?, number()?);
    let name = parts.next()?.trim_ascii_end();
    let end = start.checked_add(size).filter(|&end| end > start)?;
    (!name.is_empty()).then_some(Symbol { start, end, binding: Binding::Global, plt: false, name })
}

/// Removes what lies between two addresses; functions that reach over an edge are shortened.
fn cut_out(functions: &mut BTreeMap<u64, Symbol<'_>>, start: u64, end: u64) {
    if let Some((_, before)) = functions.range_mut(..start).next_back()
        && before.end > start
    {
        let behind = Symbol { start: end, ..*before };
        before.end = start;
        if behind.end > end {
            functions.insert(end, behind);
        }
    }
    while let Some((&first, function)) = functions.range(start..end).next() {
        let behind = Symbol { start: end, ..*function };
        functions.remove(&first);
        if behind.end > end {
            functions.insert(end, behind);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Vec<(u64, u64, String)> {
        let readable = |symbol: Symbol<'_>| (symbol.start, symbol.end, symbol.raw_name().into_owned());
        parse(text.as_bytes()).into_iter().map(readable).collect()
    }

    #[test]
    fn names_may_hold_spaces_and_addresses_a_prefix() {
        let found = parsed("7f10 20 LazyCompile:*hot /srv/my app.js:12:5\n0x8000 0x10 py::main:/x.py\n");
        let expected = [
            (0x7f10, 0x7f30, String::from("LazyCompile:*hot /srv/my app.js:12:5")),
            (0x8000, 0x8010, String::from("py::main:/x.py")),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn later_functions_replace_earlier_ones() {
        let found = parsed("100 100 old\n140 10 new\n");
        let name = |name: &str| String::from(name);
        let expected =
            [(0x100, 0x140, name("old")), (0x140, 0x150, name("new")), (0x150, 0x200, name("old"))];
        assert_eq!(found, expected);
        assert_eq!(parsed("100 10 a\n110 10 b\nf8 20 c\n").last().map(|last| last.0), Some(0x118));
    }

    #[test]
    fn broken_lines_are_skipped() {
        let text =
            "zz 10 a\n100 b\n100 0 empty\nffffffffffffffff 10 beyond\n\n100 10 good\n100 10\n100 10 \n";
        assert_eq!(parsed(text), [(0x100, 0x110, String::from("good"))]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            parse(&text);
        }

        /// An address belongs to the last line that covers it.
        #[test]
        fn the_last_line_wins(lines in proptest::collection::vec((0u64..200, 1u64..60), 1..20)) {
            let text: String =
                (0..).zip(&lines).map(|(index, (start, size))| format!("{start:x} {size:x} f{index}\n")).collect();
            let found = parse(text.as_bytes());
            for address in 0..270 {
                let covers = |&(_, (start, size)): &(usize, &(u64, u64))| (*start..start + size).contains(&address);
                let expected = lines.iter().enumerate().rfind(covers).map(|(index, _)| format!("f{index}"));
                let here = found.iter().find(|symbol| (symbol.start..symbol.end).contains(&address));
                prop_assert_eq!(here.map(|symbol| symbol.raw_name().into_owned()), expected);
            }
        }
    }
}
