//! A copy of the kernel's own symbols, kept until the next boot.
//!
//! Printing its hundred thousand symbols takes the kernel longer than eprof takes for a report of as many
//! samples. Where the kernel's own code lies is decided at boot and stays, so that part of its list is kept in
//! the user's cache folder. What comes and goes (modules, BPF programs, trampolines) is not kept: one address
//! outside the kernel's own code, and the kernel is asked again.
//!
//! ```text
//! eprof kernel symbols 1 10f33c68-ad4c-43cf-8730-9fb5e1699e79 ffffffff81000000 ffffffff822090c8
//! ffffffff81000000 T _stext
//! ...
//! ```
//!
//! The first line names the boot, and where code begins and ends. The lines below are those of
//! `/proc/kallsyms`, sorted by address. The kernel tells addresses only to some: the file is its owner's alone,
//! and one that others could have written or read is not used.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use memchr::{memchr, memrchr};

use super::elf::MappedFile;
use super::kallsyms::{Kallsyms, hexadecimal};
use super::symbol_table::{Binding, Symbol};

const FILE_NAME: &str = "kernel-symbols";
/// What the first line begins with; the number is the format's.
const TITLE: &str = "eprof kernel symbols 1 ";
/// Longer than the first line.
const LONGEST_TITLE: usize = 256;
/// Where the kernel's own code begins and ends.
const FIRST_SYMBOL: &[u8] = b"_stext";
const END_SYMBOL: &[u8] = b"_etext";
const OTHERS: u32 = 0o077;
const ROOT: u32 = 0;

/// The running kernel's own symbols, as they were kept.
#[derive(Debug)]
pub(crate) struct KernelCache {
    file: MappedFile,
    /// Offset of the first symbol's line.
    first_line: usize,
    /// The addresses of the kernel's own code.
    code: Range<u64>,
}

impl KernelCache {
    /// What `folder` has of the running kernel.
    pub(crate) fn open(folder: &Path, procfs: &Path) -> Option<Self> {
        let path = folder.join(FILE_NAME);
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(&path).ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.uid() != own_user() || metadata.mode() & OTHERS != 0 {
            return None;
        }
        let file = MappedFile::of(&path, &file).ok()?;
        let start = file.data().get(..LONGEST_TITLE.min(file.data().len()))?;
        let end = memchr(b'\n', start)?;
        let title = std::str::from_utf8(&start[..end]).ok()?.strip_prefix(TITLE)?;
        let mut words = title.split(' ');
        if words.next()? != boot(procfs)? {
            return None;
        }
        let mut address = || hexadecimal(words.next()?.as_bytes());
        let code = address()?..address()?;
        Some(Self { first_line: end + 1, code, file })
    }

    /// The lines that decide which symbols these addresses (ascending) belong to; `None` if one of them is not
    /// of the kernel's own code.
    pub(crate) fn lines_for(&self, addresses: impl IntoIterator<Item = u64>) -> Option<Vec<u8>> {
        let text = self.file.data();
        let mut lines = Vec::new();
        let mut taken = self.first_line;
        for address in addresses {
            if !self.code.contains(&address) {
                return None;
            }
            // All symbols of the place at or before the address, and those of the next place, which end them.
            let behind = self.line_behind(address);
            let before = self.line_from(self.address_of(self.line_before(behind)?)?);
            let end = match self.address_of(behind) {
                Some(next) => self.line_behind(next),
                None => text.len(),
            };
            if end > taken {
                lines.extend_from_slice(text.get(before.max(taken)..end)?);
                taken = end;
            }
        }
        Some(lines)
    }

    /// Offset of the first line of an address above this one; of the end if there is none.
    fn line_behind(&self, address: u64) -> usize {
        self.first_line_where(|here| here > address)
    }

    /// Offset of the first line of this address or one above.
    fn line_from(&self, address: u64) -> usize {
        self.first_line_where(|here| here >= address)
    }

    /// Offset of the first line whose address satisfies a condition that all behind it do, too.
    fn first_line_where(&self, holds: impl Fn(u64) -> bool) -> usize {
        let text = self.file.data();
        // The line lies in `start..=end`, both at the beginning of lines.
        let (mut start, mut end) = (self.first_line, text.len());
        while start < end {
            let middle = start + (end - start) / 2;
            let line = self.line_before(middle + 1).unwrap_or(start).max(start);
            // A line that cannot be read is passed over: the file is not trusted to be whole.
            if self.address_of(line).is_some_and(&holds) {
                end = line;
            } else {
                let length = memchr(b'\n', &text[line..]);
                start = length.map_or(text.len(), |length| line + length + 1);
            }
        }
        end
    }

    /// Offset of the line that the byte before `offset` is of.
    fn line_before(&self, offset: usize) -> Option<usize> {
        let before = self.file.data().get(self.first_line..offset.checked_sub(1)?)?;
        Some(self.first_line + memrchr(b'\n', before).map_or(0, |newline| newline + 1))
    }

    fn address_of(&self, line: usize) -> Option<u64> {
        let digits = self.file.data().get(line..)?.split(|&byte| byte == b' ').next()?;
        hexadecimal(digits)
    }
}

/// Keeps the kernel's own part of its list. Does nothing where the list is of no use (hidden, or without the
/// symbols that tell where code begins and ends), or where the kernel shows it to eprof but not to its user.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn keep(folder: &Path, procfs: &Path, list: &[u8]) -> io::Result<()> {
    if own_user() != ROOT && has_capabilities(procfs) {
        return Ok(());
    }
    let (Some(boot), Kallsyms::Symbols(mut symbols)) = (boot(procfs), Kallsyms::parse(list)) else {
        return Ok(());
    };
    symbols.retain(|symbol| !symbol.name.bytes().contains(&b'\t'));
    let address =
        |name: &[u8]| symbols.iter().find(|symbol| symbol.name.bytes() == name).map(|symbol| symbol.start);
    let (Some(start), Some(end)) = (address(FIRST_SYMBOL), address(END_SYMBOL)) else { return Ok(()) };
    symbols.sort_by_key(|symbol| symbol.start);
    if !folder.is_dir() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    // Run by way of sudo, eprof leaves nothing of the administrator's in the user's folder.
    if fs::metadata(folder)?.uid() != own_user() {
        return Ok(());
    }
    // Several threads may read recordings of this machine.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let part = folder.join(format!("{FILE_NAME}.{}.{number}", std::process::id()));
    let written = write(&part, &format!("{TITLE}{boot} {start:016x} {end:016x}\n"), &symbols);
    written.and_then(|()| fs::rename(&part, folder.join(FILE_NAME))).inspect_err(|_| {
        let _ = fs::remove_file(&part);
    })
}

fn write(path: &Path, title: &str, symbols: &[Symbol<'_>]) -> io::Result<()> {
    let file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut file = BufWriter::with_capacity(1 << 16, file);
    file.write_all(title.as_bytes())?;
    for symbol in symbols {
        let kind = match symbol.binding {
            Binding::Weak => 'W',
            Binding::Global => 'T',
            Binding::Local => 't',
        };
        write!(file, "{:016x} {kind} ", symbol.start)?;
        file.write_all(symbol.name.bytes())?;
        file.write_all(b"\n")?;
    }
    file.flush()
}

/// The id of the running kernel's boot.
fn boot(procfs: &Path) -> Option<String> {
    let id = fs::read_to_string(procfs.join("sys/kernel/random/boot_id")).ok()?;
    let id = id.trim_end();
    (!id.is_empty() && !id.contains(' ')).then(|| id.to_owned())
}

/// Has this process rights of its own, by `setcap`?
fn has_capabilities(procfs: &Path) -> bool {
    let status = fs::read_to_string(procfs.join("self/status")).unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.is_some_and(|set| set.bytes().any(|digit| !matches!(digit, b'0' | b' ' | b'\t')))
}

fn own_user() -> u32 {
    nix::unistd::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use proptest::prelude::*;

    use super::super::symbol_table::{GapRule, SymbolTable};
    use super::*;

    const LIST: &str = "\
0000000000000000 D fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000040 t first
ffffffff81000100 T second
ffffffff81000100 W alias_of_second
ffffffff81000100 r no_code
ffffffff81000200 T _etext
ffffffff82000000 D data
ffffffffc0000000 t of_module\t[ext4]
";

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            fs::create_dir_all(folder.path().join("proc/sys/kernel/random")).expect("folders");
            let machine = Self(folder);
            machine.boots("one");
            machine
        }

        fn boots(&self, id: &str) {
            let path = self.procfs().join("sys/kernel/random/boot_id");
            fs::write(path, format!("{id}\n")).expect("a file");
        }

        fn procfs(&self) -> std::path::PathBuf {
            self.0.path().join("proc")
        }

        fn cache(&self) -> std::path::PathBuf {
            self.0.path().join("cache/eprof")
        }

        fn keep(&self, list: &str) {
            keep(&self.cache(), &self.procfs(), list.as_bytes()).expect("kept");
        }

        fn open(&self) -> Option<KernelCache> {
            KernelCache::open(&self.cache(), &self.procfs())
        }
    }

    fn name_at(list: &[u8], address: u64) -> Option<String> {
        let Kallsyms::Symbols(symbols) = Kallsyms::parse(list) else { return None };
        let table = SymbolTable::new(symbols, Vec::new(), GapRule::Kallsyms);
        let found = table.find(address, |symbol| symbol.raw_name().into_owned())?;
        Some(found.raw_name().into_owned())
    }

    #[test]
    fn the_kernels_own_code_is_kept_until_the_next_boot() {
        let machine = Machine::new();
        assert!(machine.open().is_none(), "nothing was kept");
        machine.keep(LIST);
        let cache = machine.open().expect("a cache");
        let first = cache.lines_for([0xffff_ffff_8100_0050]).expect("lines");
        let text = String::from_utf8(first).expect("text");
        let names: Vec<&str> = text.lines().filter_map(|line| line.split(' ').nth(2)).collect();
        assert_eq!(names, ["first", "second", "alias_of_second"]);
        assert_eq!(cache.lines_for([0xffff_ffff_c000_0000]), None, "a module");
        assert_eq!(cache.lines_for([0xffff_ffff_8100_0050, 0xffff_ffff_8100_0200]), None, "behind the code");
        machine.boots("two");
        assert!(machine.open().is_none(), "another boot");
    }

    #[test]
    fn hidden_lists_are_not_kept() {
        let machine = Machine::new();
        machine.keep("0000000000000000 T _stext\n0000000000000000 T _etext\n");
        machine.keep("ffffffff81000000 T other\n");
        assert!(machine.open().is_none());
    }

    #[test]
    fn rights_are_told_by_the_effective_set() {
        let machine = Machine::new();
        assert!(!has_capabilities(&machine.procfs()), "nothing is told");
        fs::create_dir_all(machine.procfs().join("self")).expect("a folder");
        for (set, expected) in [("0000000000000000", false), ("0000004400000000", true)] {
            let status = format!("Name:\teprof\nCapPrm:\tffff\nCapEff:\t{set}\nCapBnd:\t1\n");
            fs::write(machine.procfs().join("self/status"), status).expect("a file");
            assert_eq!(has_capabilities(&machine.procfs()), expected);
        }
    }

    #[test]
    fn the_file_is_its_owners_alone() {
        let machine = Machine::new();
        machine.keep(LIST);
        let path = machine.cache().join(FILE_NAME);
        let mode = |path: &Path| fs::metadata(path).expect("metadata").mode() & 0o777;
        assert_eq!((mode(&path), mode(&machine.cache())), (0o600, 0o700));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).expect("permissions");
        assert!(machine.open().is_none(), "others could have written it");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("permissions");
        let elsewhere = machine.0.path().join("elsewhere");
        fs::rename(&path, &elsewhere).expect("moved");
        symlink(&elsewhere, &path).expect("a link");
        assert!(machine.open().is_none(), "a link leads anywhere");
        machine.keep(LIST);
        assert!(machine.open().is_some(), "a link is replaced");
    }

    proptest! {
        /// Whatever addresses are wanted: their names are those of the whole list.
        #[test]
        fn names_are_those_of_the_whole_list(
            starts in prop::collection::vec(0u64..60, 1..60),
            mut wanted in prop::collection::vec(0u64..64, 0..20),
        ) {
            let mut list = String::from("1000 T _stext\n");
            for (index, start) in starts.iter().enumerate() {
                let kind = ['T', 't', 'W'][index % 3];
                list += &format!("{:x} {kind} {}name{index}\n", 0x1000 + start, "_".repeat(index % 4));
            }
            list += "1040 T _etext\n2000 D data\n3000 t module\t[m]\n";
            let machine = Machine::new();
            machine.keep(&list);
            let cache = machine.open().expect("a cache");
            wanted.sort_unstable();
            let lines = cache.lines_for(wanted.iter().map(|offset| 0x1000 + offset)).expect("lines");
            for offset in wanted {
                prop_assert_eq!(name_at(&lines, 0x1000 + offset), name_at(list.as_bytes(), 0x1000 + offset));
            }
        }

        /// A damaged file gives something or nothing, and always an end.
        #[test]
        fn any_file_is_read(content in prop::collection::vec(any::<u8>(), 0..300), wanted in any::<u64>()) {
            let machine = Machine::new();
            machine.keep(LIST);
            let path = machine.cache().join(FILE_NAME);
            let title = fs::read(&path).expect("a file");
            let title = title.split_inclusive(|&byte| byte == b'\n').next().expect("a line").to_vec();
            fs::write(&path, [title, content].concat()).expect("written");
            let cache = machine.open().expect("a cache");
            cache.lines_for([0xffff_ffff_8100_0000, 0xffff_ffff_8100_0000 + wanted % 0x200]);
        }
    }
}
