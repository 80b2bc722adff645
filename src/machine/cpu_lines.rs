//! The lines of `/proc/stat` that tell how busy each CPU was, to be read many times a second.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::str;

/// Bytes that are read at a time at first: enough for the lines of some thirty CPUs, so that one call reads them.
const ROOM: usize = 2048;

/// The file stays open, and no more of it is read than those lines: opening it and reading what it tells of interrupts, to its end, takes
/// a dozen calls.
#[derive(Debug)]
pub struct CpuLines {
    file: File,
    bytes: Vec<u8>,
}

impl CpuLines {
    /// Of the running kernel's `/proc/stat`, or a file like it.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(stat: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(stat)?, bytes: vec![0; ROOM] })
    }

    /// The lines `cpuN ...` as they are now, and the one of all CPUs before them.
    ///
    /// # Errors
    /// What the system says, and a file that is no text.
    pub fn read(&mut self) -> io::Result<&str> {
        let mut filled = 0;
        let end = loop {
            if filled == self.bytes.len() {
                self.bytes.resize(2 * filled, 0);
            }
            let more = self.file.read_at(&mut self.bytes[filled..], filled as u64)?;
            filled += more;
            let read = &self.bytes[..filled];
            // The kernel writes all of them before anything else.
            match end_of_cpus(read) {
                Some(end) => break end,
                None if more == 0 => break filled,
                None => {}
            }
        };
        str::from_utf8(&self.bytes[..end]).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
    }
}

/// Where the first line begins that is of no CPU, as far as its name is there.
fn end_of_cpus(stat: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let line = &stat[at..];
        let name = line.get(..3)?;
        if name != b"cpu" {
            return Some(at);
        }
        at += memchr::memchr(b'\n', line)? + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_cpus_are_read_anew_each_time_and_nothing_behind_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let stat = folder.path().join("stat");
        // More CPUs than have room at once.
        let cpus = |ticks: u32| (0..200).map(|cpu| format!("cpu{cpu} {ticks} 2 3\n")).collect::<String>();
        std::fs::write(&stat, cpus(1) + "intr 5 cpu9\ncpus 7\n").expect("a file");
        let mut lines = CpuLines::open(&stat).expect("it is there");
        assert_eq!(lines.read().expect("text"), cpus(1));
        // The same file, and one that ends with its CPUs.
        for text in [cpus(98_765), "cpu0 1\ncpu1 2".to_owned(), "cp".to_owned(), String::new()] {
            std::fs::write(&stat, &text).expect("a file");
            assert_eq!(lines.read().expect("text"), text);
        }
        std::fs::write(&stat, b"cpu0 \xff\n").expect("a file");
        assert_eq!(lines.read().expect_err("no text").kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn the_running_kernel_tells_of_its_cpus_alone() {
        let mut lines = CpuLines::open(Path::new("/proc/stat")).expect("it is there");
        for _ in 0..2 {
            let text = lines.read().expect("text");
            assert!(text.starts_with("cpu ") && text.ends_with('\n') && text.contains("\ncpu0 "), "{text}");
            assert!(text.lines().all(|line| line.starts_with("cpu")), "{text}");
        }
    }
}
