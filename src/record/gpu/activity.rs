//! Files in which the library that CUDA loads into a program tells when the program's kernels ran, and
//! the environment that makes CUDA load it.
//!
//! Each process has a file of its own in a folder that only the program's user can enter. What a process
//! wrote stays when it dies. The files are the program's: nothing in them is trusted.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use eprof_cupti_injection::{FOLDER_VARIABLE, LIBRARY_VARIABLE, RATE_VARIABLE, wire};

use crate::process::Credentials;
use crate::record::options::CuptiOptions;
use crate::recording::gpu_activity::GpuActivity;

const INJECTION: &str = "libeprof_cupti_injection.so";
/// The variable by which CUDA's driver is told what to load, in 64-bit programs.
const INJECTION_VARIABLE: &str = "CUDA_INJECTION64_PATH";

/// What is said before a recording with CUPTI.
pub const COST: &str = "CUPTI watches each launch of a GPU kernel: long kernels cost nothing to speak of, \
     but a program of many short ones may take half as long again, or twice as long";

/// The files of one recording.
#[derive(Debug)]
pub struct ActivityFiles {
    folder: PathBuf,
    injection: PathBuf,
    options: CuptiOptions,
    processes: BTreeMap<u32, ProcessFile>,
}

#[derive(Debug)]
struct ProcessFile {
    file: File,
    /// Read and not yet handed on: the beginning of a record.
    waiting: Vec<u8>,
    /// Something in it is not the library's; the rest is left alone.
    broken: bool,
}

impl ActivityFiles {
    /// Makes the folder for a program that is to be started, as this user.
    ///
    /// # Errors
    /// A sentence that says why not: no program, no library, or no place for the folder.
    pub fn create(
        options: &CuptiOptions,
        command: Option<&[OsString]>,
        run_as: Option<&Credentials>,
    ) -> Result<Self, String> {
        if command.is_none() {
            return Err(
                "CUPTI can only watch a program from its start: give eprof the command to run".to_owned()
            );
        }
        let injection = injection_library(options.injection.as_deref())?;
        let template = std::env::temp_dir().join("eprof-cupti-XXXXXX");
        let made = |error: io::Error| format!("no folder {} can be made: {error}", template.display());
        // Only its owner can enter it.
        let folder = nix::unistd::mkdtemp(&template).map_err(|errno| made(errno.into()))?;
        let files = Self { folder, injection, options: options.clone(), processes: BTreeMap::new() };
        if let Some(user) = run_as {
            user.give(&files.folder).map_err(|errno| made(errno.into()))?;
        }
        Ok(files)
    }

    /// Variables for the program.
    pub fn environment(&self) -> Vec<(CString, CString)> {
        let mut variables: Vec<(&str, OsString)> = vec![
            (INJECTION_VARIABLE, self.injection.clone().into()),
            (FOLDER_VARIABLE, self.folder.clone().into()),
        ];
        variables.extend(self.options.library.clone().map(|path| (LIBRARY_VARIABLE, path.into())));
        variables.extend(self.options.max_rate.map(|rate| (RATE_VARIABLE, rate.to_string().into())));
        let text = |text: &OsStr| CString::new(text.as_bytes()).ok();
        variables.iter().filter_map(|(name, value)| Some((text(name.as_ref())?, text(value)?))).collect()
    }

    /// Whole records that were written since, by process, each piece short enough for a sample. At most
    /// `most` bytes of each process; tells whether there may be more.
    pub fn collect(&mut self, most: u64, mut take: impl FnMut(GpuActivity<'_>)) -> bool {
        for pid in self.new_processes() {
            if let Some(file) = open(&self.folder.join(pid.to_string())) {
                self.processes.insert(pid, ProcessFile { file, waiting: Vec::new(), broken: false });
            }
        }
        let mut more = false;
        for (pid, process) in self.processes.iter_mut().filter(|(_, process)| !process.broken) {
            let read = (&process.file).take(most).read_to_end(&mut process.waiting).unwrap_or(0);
            more |= read as u64 == most;
            loop {
                let (end, broken) = wire::whole(&process.waiting, GpuActivity::LONGEST);
                process.broken = broken;
                if end == 0 {
                    break;
                }
                take(GpuActivity { pid: *pid, records: &process.waiting[..end] });
                process.waiting.drain(..end);
            }
        }
        more
    }

    fn new_processes(&self) -> Vec<u32> {
        let names = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let pids = names.filter_map(|name| name.to_str()?.parse::<u32>().ok());
        pids.filter(|pid| !self.processes.contains_key(pid)).collect()
    }
}

impl Drop for ActivityFiles {
    /// A program that still runs sees that its file is gone, and stops writing.
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Opens what is a file and no link, and does not wait for what is none.
fn open(path: &Path) -> Option<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// The library, where a build or an installation puts it.
fn injection_library(named: Option<&Path>) -> Result<PathBuf, String> {
    let own = std::env::current_exe().unwrap_or_default();
    let beside = own.parent().unwrap_or(Path::new("/"));
    let usual = ["", "../lib/eprof", "../lib"].map(|folder| beside.join(folder).join(INJECTION));
    let candidates = named.map_or_else(|| usual.to_vec(), |path| vec![path.to_owned()]);
    candidates.iter().find_map(|path| path.canonicalize().ok()).ok_or_else(|| {
        let places: Vec<String> = candidates.iter().map(|path| path.display().to_string()).collect();
        format!(
            "the library that CUDA is to load into the program is not there ({}); `cargo build --release` makes it: \
             copy it beside eprof, or name it with --cupti-injection",
            places.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use eprof_cupti_injection::wire::Record;

    use super::*;

    fn files(folder: &Path) -> ActivityFiles {
        ActivityFiles {
            folder: folder.to_owned(),
            injection: PathBuf::new(),
            options: CuptiOptions::default(),
            processes: BTreeMap::new(),
        }
    }

    fn launch(time: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        Record::Launch { time, tid: 1, correlation: 2 }.encode(&mut bytes);
        bytes
    }

    fn collected(files: &mut ActivityFiles) -> Vec<(u32, Vec<u8>)> {
        let mut all = Vec::new();
        files.collect(1 << 20, |activity| all.push((activity.pid, activity.records.to_vec())));
        all
    }

    #[test]
    fn records_are_handed_on_once_and_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut files = files(folder.path());
        assert_eq!(collected(&mut files), []);
        let mut file = File::create(folder.path().join("42")).expect("a file");
        let (first, second) = (launch(1), launch(2));
        file.write_all(&[&first[..], &second[..5]].concat()).expect("written");
        assert_eq!(collected(&mut files), [(42, first)]);
        assert_eq!(collected(&mut files), []);
        file.write_all(&second[5..]).expect("written");
        assert_eq!(collected(&mut files), [(42, second)]);
    }

    #[test]
    fn pieces_fit_into_samples() {
        let folder = tempfile::tempdir().expect("a folder");
        let all: Vec<u8> = (0..5000).flat_map(launch).collect();
        fs::write(folder.path().join("7"), &all).expect("written");
        let pieces = collected(&mut files(folder.path()));
        assert!(pieces.len() > 2 && pieces.iter().all(|(_, piece)| piece.len() <= GpuActivity::LONGEST));
        assert_eq!(pieces.concat_records(), all);
    }

    trait Concat {
        fn concat_records(&self) -> Vec<u8>;
    }

    impl Concat for Vec<(u32, Vec<u8>)> {
        fn concat_records(&self) -> Vec<u8> {
            self.iter().flat_map(|(_, piece)| piece.clone()).collect()
        }
    }

    #[test]
    fn what_is_not_the_librarys_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let secret = folder.path().join("secret");
        fs::write(&secret, launch(1)).expect("written");
        symlink(&secret, folder.path().join("1")).expect("a link");
        fs::create_dir(folder.path().join("2")).expect("a folder");
        fs::write(folder.path().join("3"), [&launch(1)[..], &[0xff; 100], &launch(2)[..]].concat())
            .expect("written");
        nix::unistd::mkfifo(&folder.path().join("4"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let mut files = files(folder.path());
        assert_eq!(collected(&mut files), [(3, launch(1))]);
        assert_eq!(collected(&mut files), []);
    }
}
