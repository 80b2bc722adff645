//! Where the kernel and its modules lie, as records, so that samples of the kernel can be symbolized.

use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;

use crate::recording::encode::{self, RecordTooLong, SampleId};
use crate::recording::features::BuildId;

/// The kernel's name in recordings.
pub const KERNEL_NAME: &str = "[kernel.kallsyms]";

/// Where the kernel's own text lies: between its symbols `_text` (or `_stext`) and `_etext`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KernelText {
    symbol: &'static str,
    addresses: Range<u64>,
}

/// Appends the mappings of the kernel and its modules. Nothing where their addresses are kept secret
/// from this user.
pub fn describe(proc_root: &Path, id: u64, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    let id = SampleId { pid: u32::MAX, tid: 0, id, ..SampleId::default() };
    let Some(text) = fs::File::open(proc_root.join("kallsyms")).ok().and_then(|file| kernel_text(BufReader::new(file)))
    else {
        return Ok(());
    };
    let name = format!("{KERNEL_NAME}{}", text.symbol);
    encode::kernel_mmap(text.addresses.clone(), text.addresses.start, name.as_bytes(), &id, out)?;
    let modules = fs::read_to_string(proc_root.join("modules")).unwrap_or_default();
    for (name, addresses) in modules.lines().filter_map(module) {
        encode::kernel_mmap(addresses, 0, format!("[{name}]").as_bytes(), &id, out)?;
    }
    Ok(())
}

/// Build-ids of the kernel and its loaded modules, from below the root of a sys file system.
pub fn build_ids(proc_root: &Path, sys_root: &Path) -> Vec<BuildId> {
    let read = |path: &Path, name: String| {
        let id = gnu_build_id(&fs::read(path).ok()?)?;
        Some(BuildId { kernel: true, id, path: name.into_bytes() })
    };
    let modules = fs::read_to_string(proc_root.join("modules")).unwrap_or_default();
    let kernel = read(&sys_root.join("kernel/notes"), KERNEL_NAME.to_owned());
    let modules = modules.lines().filter_map(module).filter_map(|(name, _)| {
        let path = sys_root.join(format!("module/{name}/notes/.note.gnu.build-id"));
        read(&path, format!("[{name}]"))
    });
    kernel.into_iter().chain(modules).collect()
}

/// The kernel's symbols come in the order of addresses, or not: all are looked at until both are found.
fn kernel_text(symbols: impl BufRead) -> Option<KernelText> {
    let mut start = None;
    for line in symbols.lines().map_while(Result::ok) {
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(_), Some(name)) = (words.next(), words.next(), words.next()) else { continue };
        let known = match name {
            "_text" => "_text",
            "_stext" if start.is_none() => "_stext",
            "_etext" => "_etext",
            _ => continue,
        };
        let address = u64::from_str_radix(address, 16).ok().filter(|&address| address != 0)?;
        match (known, start) {
            ("_etext", Some((symbol, start))) if start < address => {
                return Some(KernelText { symbol, addresses: start..address });
            }
            ("_etext", _) => return None,
            (symbol, _) => start = Some((symbol, address)),
        }
    }
    None
}

/// A line of `/proc/modules`: `name size references users state address`.
fn module(line: &str) -> Option<(&str, Range<u64>)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let size: u64 = words.get(1)?.parse().ok()?;
    let start = u64::from_str_radix(words.get(5)?.strip_prefix("0x")?, 16).ok().filter(|&start| start != 0)?;
    Some((words[0], start..start.checked_add(size)?))
}

/// The build-id among ELF notes (sizes of name and description, type; name and description padded).
pub fn gnu_build_id(notes: &[u8]) -> Option<Vec<u8>> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let mut rest = notes;
    loop {
        let (header, after) = rest.split_at_checked(12)?;
        let number = |at: usize| Some(u32::from_ne_bytes(header.get(at..at + 4)?.try_into().ok()?));
        let (name_size, description_size) = (number(0)? as usize, number(4)? as usize);
        let (name, after) = after.split_at_checked(name_size.checked_next_multiple_of(4)?)?;
        let padded = description_size.checked_next_multiple_of(4)?;
        let description = after.get(..description_size)?;
        if number(8)? == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return Some(description.to_vec());
        }
        rest = after.get(padded..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_text_lies_between_its_symbols() {
        let symbols = "0000000000000000 A per_cpu\nffffffff81000000 T _stext\nffffffff81000000 T _text\n\
                       ffffffff81001000 T x\nffffffff82000000 T _etext\n";
        let text = kernel_text(symbols.as_bytes()).expect("found");
        assert_eq!(text, KernelText { symbol: "_text", addresses: 0xffff_ffff_8100_0000..0xffff_ffff_8200_0000 });
    }

    #[test]
    fn secret_addresses_are_no_addresses() {
        let symbols = "0000000000000000 T _text\n0000000000000000 T _etext\n";
        assert_eq!(kernel_text(symbols.as_bytes()), None);
        assert_eq!(module("ext4 1000 1 - Live 0x0000000000000000"), None);
        assert_eq!(module("ext4 4096 1 - Live 0xffffffffc0000000"), Some(("ext4", 0xffff_ffff_c000_0000..0xffff_ffff_c000_1000)));
    }

    #[test]
    fn the_build_id_is_found_behind_other_notes() {
        let note = |kind: u32, name: &[u8], description: &[u8]| {
            let mut bytes = Vec::new();
            for number in [name.len() as u32, description.len() as u32, kind] {
                bytes.extend(number.to_ne_bytes());
            }
            for part in [name, description] {
                bytes.extend(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes
        };
        let notes = [note(1, b"Xen\0", b"12345"), note(3, b"GNU\0", &[0xab; 20])].concat();
        assert_eq!(gnu_build_id(&notes), Some(vec![0xab; 20]));
        assert_eq!(gnu_build_id(&notes[..30]), None);
        assert_eq!(gnu_build_id(&[0xff; 40]), None);
    }
}
