//! The kernel's list of symbols, read while the recording is: printing its hundred thousand lines takes the
//! kernel longer than a small recording takes eprof.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use super::kernel_cache::KernelCache;
use super::options::SymbolizeOptions;
use super::running_kernel::check_running;

/// The reading of `/proc/kallsyms` in a thread of its own. It is given up when this is dropped.
#[derive(Debug)]
pub struct KernelListAhead {
    path: PathBuf,
    is_given_up: Arc<AtomicBool>,
    reading: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

/// Bytes between two looks at whether they are still wanted.
const PIECE: u64 = 1 << 18;

impl KernelListAhead {
    /// Begins to read, if the running kernel is the recorded one, its symbols are not kept from another time, and
    /// there is a second CPU to do it.
    pub fn begin(options: &SymbolizeOptions) -> Option<Self> {
        let threads = options.threads.or_else(|| thread::available_parallelism().ok().map(usize::from));
        if threads.is_none_or(|threads| threads < 2) {
            return None;
        }
        check_running(options, options.kernel_build_id.as_deref()).ok()?;
        let is_kept = |folder: &PathBuf| KernelCache::open(folder, &options.procfs).is_some();
        if options.kernel_cache.as_ref().is_some_and(is_kept) {
            return None;
        }
        let path = options.procfs.join("kallsyms");
        let is_given_up = Arc::new(AtomicBool::new(false));
        let reading = thread::Builder::new().name("kernel symbols".to_owned()).spawn({
            let (path, is_given_up) = (path.clone(), is_given_up.clone());
            move || read(&path, &is_given_up)
        });
        Some(Self { path, is_given_up, reading: Some(reading.ok()?) })
    }

    /// What was read, if it is of this path.
    pub(crate) fn finish(mut self, path: &Path) -> Option<io::Result<Vec<u8>>> {
        let reading = self.reading.take().filter(|_| self.path == path)?;
        reading.join().ok()
    }
}

impl Drop for KernelListAhead {
    fn drop(&mut self) {
        self.is_given_up.store(true, Ordering::Relaxed);
    }
}

fn read(path: &Path, is_given_up: &AtomicBool) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut text = Vec::new();
    while !is_given_up.load(Ordering::Relaxed) {
        if (&mut file).take(PIECE).read_to_end(&mut text)? == 0 {
            break;
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn options(folder: &Path, threads: usize, release: &str) -> SymbolizeOptions {
        SymbolizeOptions {
            procfs: folder.to_owned(),
            kernel_release: Some(release.to_owned()),
            threads: Some(threads),
            ..SymbolizeOptions::default()
        }
    }

    #[test]
    fn the_whole_list_of_the_recorded_kernel_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let list = b"ffffffff81000000 T _stext\n".repeat(30_000);
        fs::create_dir_all(folder.path().join("sys/kernel")).expect("folders");
        fs::write(folder.path().join("sys/kernel/osrelease"), "6.1.0\n").expect("a file");
        fs::write(folder.path().join("kallsyms"), &list).expect("a file");
        let begin = |threads, release| KernelListAhead::begin(&options(folder.path(), threads, release));
        assert!(begin(2, "6.2.0").is_none(), "another kernel");
        assert!(begin(1, "6.1.0").is_none(), "no CPU for it");
        let path = folder.path().join("kallsyms");
        let text = begin(2, "6.1.0").and_then(|ahead| ahead.finish(&path));
        assert!(text.is_some_and(|text| text.is_ok_and(|text| text == list)));
        let elsewhere = begin(2, "6.1.0").and_then(|ahead| ahead.finish(Path::new("/proc/kallsyms")));
        assert!(elsewhere.is_none(), "another list is wanted");
    }
}
