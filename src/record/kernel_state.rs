//! Where the kernel and its modules lie, as records, so that samples of the kernel can be symbolized.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::ops::Range;

use perf_data::encode::{self, RecordTooLong, SampleId};
use perf_data::features::BuildId;

use crate::machine::Roots;

/// The kernel's name in recordings.
const KERNEL_NAME: &str = "[kernel.kallsyms]";

/// Where the kernel's own text lies: from its symbol `_text` (or `_stext`) to `_etext`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KernelText {
    symbol: &'static str,
    addresses: Range<u64>,
}

/// Appends the mappings of the kernel and its modules, for the event with this id. Nothing where their
/// addresses are kept secret from this user.
pub fn describe(roots: &Roots, id: u64, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    let id = SampleId { pid: u32::MAX, tid: 0, id, ..SampleId::default() };
    let memory_map = fs::read_to_string(roots.procfs.join("iomem")).unwrap_or_default();
    let symbols = File::open(roots.procfs.join("kallsyms")).ok();
    let Some(text) = symbols.and_then(|file| kernel_text(BufReader::new(file), text_size(&memory_map)))
    else {
        return Ok(());
    };
    let name = format!("{KERNEL_NAME}{}", text.symbol);
    encode::kernel_mmap(text.addresses.clone(), text.addresses.start, name.as_bytes(), &id, out)?;
    let modules = fs::read_to_string(roots.procfs.join("modules")).unwrap_or_default();
    for (name, addresses) in modules.lines().filter_map(module) {
        encode::kernel_mmap(addresses, 0, format!("[{name}]").as_bytes(), &id, out)?;
    }
    Ok(())
}

/// Build-ids of the kernel and its loaded modules.
pub fn build_ids(roots: &Roots) -> Vec<BuildId> {
    let read = |path: &str, name: String| {
        let id = gnu_build_id(&fs::read(roots.sysfs.join(path)).ok()?)?;
        Some(BuildId::of_kernel(id, name.into_bytes()))
    };
    let modules = fs::read_to_string(roots.procfs.join("modules")).unwrap_or_default();
    let kernel = read("kernel/notes", KERNEL_NAME.to_owned());
    let modules = modules.lines().filter_map(module).filter_map(|(name, _)| {
        read(&format!("module/{name}/notes/.note.gnu.build-id"), format!("[{name}]"))
    });
    kernel.into_iter().chain(modules).collect()
}

/// The size of the kernel's code according to `/proc/iomem`, whose addresses only root sees.
fn text_size(memory_map: &str) -> Option<u64> {
    let line = memory_map.lines().find(|line| line.ends_with(": Kernel code"))?;
    let (first, last) = line.split_once(" :")?.0.trim().split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok().filter(|&address| address != 0);
    number(last)?.checked_sub(number(first)?)?.checked_add(1)
}

/// Where the kernel's text lies. Its start comes early in the symbols, its end late, and each symbol
/// costs the kernel some time to tell: where the size is known the rest need not be read.
fn kernel_text(symbols: impl BufRead, size: Option<u64>) -> Option<KernelText> {
    let mut start = None;
    for line in symbols.lines().map_while(Result::ok) {
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(_), Some(name)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let symbol = match name {
            "_text" => "_text",
            "_stext" if start.is_none() => "_stext",
            "_etext" => "_etext",
            _ => continue,
        };
        let address = u64::from_str_radix(address, 16).ok().filter(|&address| address != 0)?;
        let end = match (symbol, size) {
            ("_etext", _) => Some(address),
            // `_text` may follow `_stext`, and is the one that perf looks for first.
            ("_text", Some(size)) => address.checked_add(size),
            _ => None,
        };
        if symbol != "_etext" {
            start = Some((symbol, address));
        }
        if let Some(end) = end {
            let (symbol, start) = start?;
            return (start < end).then_some(KernelText { symbol, addresses: start..end });
        }
    }
    None
}

/// A line of `/proc/modules`: `name size references users state address`.
fn module(line: &str) -> Option<(&str, Range<u64>)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let size: u64 = words.get(1)?.parse().ok()?;
    let start =
        u64::from_str_radix(words.get(5)?.strip_prefix("0x")?, 16).ok().filter(|&start| start != 0)?;
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

    const SYMBOLS: &str = "0000000000000000 A per_cpu\nffffffff81000000 T _stext\nffffffff81000000 T _text\n\
                           ffffffff81001000 T x\nffffffff82000000 T _etext\n";

    #[test]
    fn the_kernels_text_lies_between_its_symbols() {
        let text = kernel_text(SYMBOLS.as_bytes(), None).expect("found");
        assert_eq!(
            text,
            KernelText { symbol: "_text", addresses: 0xffff_ffff_8100_0000..0xffff_ffff_8200_0000 }
        );
    }

    #[test]
    fn a_known_size_saves_reading_on() {
        let memory = "00001000-0009fbff : System RAM\n  01000000-01ffffff : Kernel code\n";
        assert_eq!(text_size(memory), Some(0x100_0000));
        assert_eq!(text_size("  00000000-00000000 : Kernel code\n"), None);
        let only_start = &SYMBOLS[..SYMBOLS.find("ffffffff81001000").expect("there")];
        let text = kernel_text(only_start.as_bytes(), Some(0x100_0000)).expect("found");
        assert_eq!(text.addresses, 0xffff_ffff_8100_0000..0xffff_ffff_8200_0000);
    }

    #[test]
    fn secret_addresses_are_no_addresses() {
        let symbols = "0000000000000000 T _text\n0000000000000000 T _etext\n";
        assert_eq!(kernel_text(symbols.as_bytes(), None), None);
        assert_eq!(module("ext4 1000 1 - Live 0x0000000000000000"), None);
        assert_eq!(
            module("ext4 4096 1 - Live 0xffffffffc0000000"),
            Some(("ext4", 0xffff_ffff_c000_0000..0xffff_ffff_c000_1000))
        );
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
