//! `perf-PID.map`: the functions that a just-in-time compiler made, as it wrote them down for perf.
//!
//! ```text
//! 7f1c5a2b8e40 1c8 LazyCompile:*hot /srv/app.js:12:5
//! ```
//!
//! The file has no times: memory that was used again belongs to the function that was written last.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::unistd::geteuid;

use super::error::SymbolizeError;
use super::kallsyms::hexadecimal;
use super::symbol_name::SymbolName;
use super::symbol_table::{Binding, Symbol};

/// Most that is kept of a map; a long run of a large program writes some tens of megabytes.
const LARGEST: usize = 1 << 30;
/// Longest line; what C++ and Java call their functions may have some thousands of characters.
const LONGEST_LINE: usize = 1 << 16;

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
    let lines = functions(BufReader::with_capacity(LONGEST_LINE, file), LARGEST).map_err(open)?;
    lines.ok_or(SymbolizeError::PerfMapSize { path, limit: LARGEST as u64 })
}

/// The lines that tell of functions, and nothing else: a map may be of any size, and mostly holes. `None` if they are
/// more than `largest` bytes.
fn functions(mut map: impl BufRead, largest: usize) -> io::Result<Option<Vec<u8>>> {
    let mut kept = Vec::new();
    // Where the line at hand begins; `None` while the rest of one is passed over that is too long.
    let mut line = Some(0);
    loop {
        let piece = map.fill_buf()?;
        if piece.is_empty() {
            let start = line.unwrap_or(kept.len());
            end_line(&mut kept, start, line.is_some());
            return Ok(Some(kept));
        }
        let end = piece.iter().position(|&byte| byte == b'\n');
        let taken = end.unwrap_or(piece.len());
        if let Some(start) = line {
            kept.extend_from_slice(&piece[..taken]);
            if kept.len() - start > LONGEST_LINE {
                kept.truncate(start);
                line = None;
            }
        }
        if end.is_some() {
            let start = line.unwrap_or(kept.len());
            end_line(&mut kept, start, line.is_some());
            line = Some(kept.len());
        }
        map.consume(taken + usize::from(end.is_some()));
        if kept.len() > largest {
            return Ok(None);
        }
    }
}

/// Keeps the line that begins at `start` if it tells of a function.
fn end_line(kept: &mut Vec<u8>, start: usize, is_whole: bool) {
    if is_whole && parse_line(&kept[start..]).is_some() {
        kept.push(b'\n');
    } else {
        kept.truncate(start);
    }
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
    let name = SymbolName::new(name);
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

    #[test]
    fn only_lines_of_functions_are_kept() {
        let long = "x".repeat(LONGEST_LINE);
        let text = format!("100 10 a\n\n{long}\nzz\n\0\0\0\n200 10 b c\n300 10 {long}\n400 10 last");
        for size in [1, 7, 4096] {
            let kept = functions(BufReader::with_capacity(size, text.as_bytes()), usize::MAX);
            let kept = kept.expect("readable").expect("short");
            assert_eq!(String::from_utf8(kept).expect("text"), "100 10 a\n200 10 b c\n400 10 last\n");
        }
        assert_eq!(functions(text.as_bytes(), 8).expect("readable"), None);
    }

    /// A hole of a gigabyte takes no memory: nothing of it is kept.
    #[test]
    fn a_file_of_holes_takes_no_memory() {
        let hole = BufReader::with_capacity(LONGEST_LINE, io::Read::take(io::repeat(0), 1 << 26));
        let kept = functions(hole, usize::MAX).expect("readable").expect("short");
        assert!(kept.is_empty() && kept.capacity() <= 4 * LONGEST_LINE, "{}", kept.capacity());
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
