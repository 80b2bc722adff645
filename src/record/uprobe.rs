//! Probes on functions of programs (uprobes), without a tool and without tracefs: the kernel's `uprobe`
//! PMU takes a file and an offset. See kernel-notes/uprobes.md.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use object::{Object, ObjectSegment, ObjectSymbol, ReadCache};

use crate::machine::Roots;

/// A place in a file's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uprobe {
    /// The file.
    pub path: CString,
    /// Offset in the file.
    pub offset: u64,
    /// Registers that a sample has, by their bits.
    pub registers: u64,
    /// A sample has a call path.
    pub with_call_path: bool,
    /// Bytes of the stack to copy, a multiple of eight; 0: none beyond what the call path needs.
    pub stack_bytes: u32,
    /// It fires when the function returns, not when it is called.
    pub on_return: bool,
    /// A program in the kernel hands its calls over, and not an event of the kernel's uprobes for each CPU.
    pub by_program: bool,
}

/// How the kernel wants uprobes asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UprobePmu {
    /// The PMU's number.
    pub perf_type: u32,
    /// `config` of a probe on the function's return.
    pub on_return: u64,
}

impl UprobePmu {
    /// As sysfs says; `None` on kernels without uprobes or before Linux 4.17.
    pub fn find(roots: &Roots) -> Option<Self> {
        let folder = roots.sysfs.join("bus/event_source/devices/uprobe");
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let bit: u32 = read("format/retprobe")?.trim().strip_prefix("config:")?.parse().ok()?;
        Some(Self { perf_type: read("type")?.trim().parse().ok()?, on_return: 1u64.checked_shl(bit)? })
    }
}

/// The offsets in a file at which these functions begin; those that it does not have are left out.
///
/// # Errors
/// When the file cannot be read or is no ELF file.
pub fn offsets<'a>(path: &Path, functions: &[&'a str]) -> io::Result<Vec<(&'a str, u64)>> {
    let cache = ReadCache::new(File::open(path)?);
    let file = object::File::parse(&cache).map_err(io::Error::other)?;
    let mut found: Vec<(&str, u64)> = Vec::new();
    for symbol in file.dynamic_symbols().chain(file.symbols()) {
        let Ok(name) = symbol.name() else { continue };
        let Some(&function) = functions.iter().find(|function| **function == name) else { continue };
        if !symbol.is_definition() || found.iter().any(|(known, _)| *known == function) {
            continue;
        }
        let address = symbol.address();
        let offset = file.segments().find_map(|segment| {
            let (start, length) = segment.file_range();
            let inside = address.checked_sub(segment.address())?;
            (inside < length).then(|| start.checked_add(inside))?
        });
        found.extend(offset.map(|offset| (function, offset)));
    }
    Ok(found)
}

/// A path as the kernel takes it; `None` if it holds a zero byte.
pub fn kernel_path(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pmu_is_described_by_sysfs() {
        let root = tempfile::tempdir().expect("folder");
        let roots = Roots::under(root.path());
        assert_eq!(UprobePmu::find(&roots), None);
        let folder = roots.sysfs.join("bus/event_source/devices/uprobe/format");
        fs::create_dir_all(&folder).expect("folder");
        fs::write(folder.join("retprobe"), "config:0\n").expect("file");
        fs::write(folder.join("../type"), "9\n").expect("file");
        assert_eq!(UprobePmu::find(&roots), Some(UprobePmu { perf_type: 9, on_return: 1 }));
    }

    /// A function that this test finds in its own program.
    #[unsafe(no_mangle)]
    extern "C" fn eprof_probe_offset_test(value: u64) -> u64 {
        value.rotate_left(7)
    }

    #[test]
    fn an_offset_is_where_the_functions_code_lies_in_the_file() {
        assert_eq!(eprof_probe_offset_test(1), 128);
        let own = std::env::current_exe().expect("a program");
        let found = offsets(&own, &["eprof_probe_offset_test", "no_such_function"]).expect("readable");
        let [("eprof_probe_offset_test", offset)] = found[..] else { panic!("{found:?}") };
        let file = fs::read(&own).expect("readable");
        // SAFETY: the function's own code, of which its first eight bytes are read.
        let code = unsafe { std::slice::from_raw_parts(eprof_probe_offset_test as *const u8, 8) };
        assert_eq!(&file[offset as usize..offset as usize + 8], code);
        assert!(offsets(Path::new("/proc/self/status"), &["main"]).is_err());
    }
}
