//! Functions of just-in-time compilers, placed in time.
//!
//! A compiler that writes a jitdump file maps it once, executable, so that the recording names it
//! (`jit-1234.dump`). What the file says is then replayed beside the records.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::unistd::geteuid;
use rustc_hash::FxHashSet;

use crate::symbolize::jitdump::Jitdump;
use crate::timeline::Tasks;
use crate::units::Timestamp;

/// Larger files are not read: compilers write some hundred bytes per function.
const LARGEST_FILE: u64 = 1 << 30;

/// Announced functions that are not yet mapped, by time.
#[derive(Debug, Clone)]
pub struct JitFunctions {
    waiting: VecDeque<Function>,
    /// The recording's clock is the one of jitdump files. If not, all functions are mapped at once.
    same_clock: bool,
    /// Files that were read. A recording may say again and again that one is mapped.
    read: FxHashSet<String>,
    warnings: Vec<String>,
}

#[derive(Debug, Clone)]
struct Function {
    time: Timestamp,
    pid: u32,
    address: u64,
    size: u64,
    name: String,
}

impl JitFunctions {
    /// Nothing announced yet.
    pub fn new(same_clock: bool) -> Self {
        Self { waiting: VecDeque::new(), same_clock, read: FxHashSet::default(), warnings: Vec::new() }
    }

    /// A file was mapped: if it is a jitdump file, its functions will come.
    pub fn mapped(&mut self, path: &[u8]) {
        let Ok(path) = std::str::from_utf8(path) else { return };
        if !is_jitdump(path) || !self.read.insert(path.to_owned()) {
            return;
        }
        match read(Path::new(path)) {
            Ok(file) => self.add(path, &file),
            Err(error) => {
                self.warnings.push(format!("{path}: {error}; functions compiled at run time have no names"));
            }
        }
    }

    /// Maps all functions that were announced up to `now`.
    #[inline]
    pub fn advance(&mut self, now: Timestamp, tasks: &mut Tasks) {
        while self.waiting.front().is_some_and(|next| next.time <= now || !self.same_clock) {
            let Some(next) = self.waiting.pop_front() else { return };
            tasks.map_jit_function(next.pid, next.address, next.size, &next.name);
        }
    }

    /// What went wrong.
    pub fn into_warnings(mut self) -> Vec<String> {
        self.warnings.sort();
        self.warnings.dedup();
        self.warnings
    }

    fn add(&mut self, path: &str, file: &[u8]) {
        let dump = match Jitdump::new(file) {
            Ok(dump) => dump,
            Err(error) => return self.warnings.push(format!("{path}: {error}")),
        };
        let mut functions: Vec<Function> = std::mem::take(&mut self.waiting).into();
        functions.extend(dump.map(|event| Function {
            time: event.time,
            pid: event.pid,
            address: event.address,
            size: event.size,
            name: String::from_utf8_lossy(event.name).into_owned(),
        }));
        // Stable: a function and the one that replaces it may have one time.
        functions.sort_by_key(|function| function.time);
        self.waiting = functions.into();
    }
}

fn is_jitdump(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let pid = name.strip_prefix("jit-").and_then(|rest| rest.strip_suffix(".dump"));
    pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Reads a jitdump file. A name in a recording can lead anywhere, and compilers write to folders that all users share:
/// to open a pipe would block, and the functions of this user's programs are not for others to name.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if metadata.uid() != 0 && metadata.uid() != geteuid().as_raw() {
        return Err(io::Error::other("the file belongs neither to this user nor to root"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_jitdump_files_are_opened() {
        assert!(is_jitdump("/tmp/.debug/jit/x/jit-123.dump"));
        assert!(!is_jitdump("/tmp/jit-.dump"));
        assert!(!is_jitdump("/tmp/jit-12x.dump"));
        assert!(!is_jitdump("/usr/lib/libjit-1.so"));
    }

    #[test]
    fn a_missing_file_is_a_warning() {
        let mut functions = JitFunctions::new(true);
        functions.mapped(b"/nonexistent/jit-1.dump");
        assert_eq!(functions.into_warnings().len(), 1);
    }

    #[test]
    fn pipes_and_files_of_others_are_not_read() {
        use std::os::unix::fs::chown;
        let folder = tempfile::tempdir().expect("folder");
        let pipe = folder.path().join("jit-1.dump");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        assert_eq!(read(&pipe).expect_err("refused").to_string(), "not a regular file");
        let file = folder.path().join("jit-2.dump");
        std::fs::write(&file, "JiTD").expect("written");
        assert_eq!(read(&file).expect("one's own"), b"JiTD");
        if chown(&file, Some(65534), None).is_ok() {
            assert!(read(&file).is_err(), "another user's");
        }
    }

    #[test]
    fn a_file_is_read_once() {
        let mut functions = JitFunctions::new(true);
        for _ in 0..3 {
            functions.mapped(b"/nonexistent/jit-1.dump");
        }
        assert_eq!(functions.warnings.len(), 1);
    }

    fn announced(same_clock: bool) -> JitFunctions {
        let function = |time, address| Function {
            time: Timestamp::from_nanos(time),
            pid: 1,
            address,
            size: 0x10,
            name: format!("f{address}"),
        };
        JitFunctions {
            waiting: vec![function(5, 0x100), function(7, 0x200)].into(),
            ..JitFunctions::new(same_clock)
        }
    }

    /// Which of the two functions are mapped by then.
    fn mapped(functions: &mut JitFunctions, now: u64) -> usize {
        let mut tasks = Tasks::default();
        let before = functions.waiting.len();
        functions.advance(Timestamp::from_nanos(now), &mut tasks);
        before - functions.waiting.len()
    }

    #[test]
    fn functions_are_there_from_the_moment_they_are_announced() {
        let mut functions = announced(true);
        assert_eq!([4, 5, 6, 7].map(|now| mapped(&mut functions, now)), [0, 1, 0, 1]);
        assert_eq!(mapped(&mut announced(true), 100), 2);
        // Times of another clock tell nothing: they are there from the beginning.
        assert_eq!(mapped(&mut announced(false), 0), 2);
    }
}
