//! Why a module could not be symbolized, or not fully.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// What kept the symbols of a module from being used. None of these stops a report: the code concerned
/// keeps module and offset as its name.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SymbolizeError {
    /// The file of a module cannot be opened.
    #[error("no symbols of {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file of a module is no ELF file, or a damaged one.
    #[error("no symbols of {}: not a readable ELF file ({source})", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The parser's reason.
        source: object::Error,
    },
    /// There is no code that can be read.
    #[error("no machine code of {}: {why}", path.display())]
    NoCode {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The file has another build-id than the one that was recorded.
    #[error(
        "no symbols of {}: it changed since the recording (build-id {found}, recorded {recorded}); record again, \
         or put the old file or its debug file where its build-id is searched",
        path.display()
    )]
    BuildIdDiffers {
        /// The file.
        path: PathBuf,
        /// Its build-id now.
        found: String,
        /// The recorded one.
        recorded: String,
    },
    /// The file has no build-id and is younger than the recording.
    #[error("no symbols of {}: the file was replaced or written after the recording; record again", path.display())]
    Younger {
        /// The file.
        path: PathBuf,
    },
    /// The file has no build-id and is another one than was recorded.
    #[error("no symbols of {}: another file than the recorded one has this path now; record again", path.display())]
    InodeDiffers {
        /// The file.
        path: PathBuf,
    },
    /// Files of a folder that the user named stand for recorded ones that had no build-id.
    #[error(
        "{files} taken from {}, unchecked: the recording has no build-id to compare with",
        folder.display()
    )]
    TakenAsNamed {
        /// Their paths in the recording.
        files: String,
        /// The folder.
        folder: PathBuf,
    },
    /// Code was sampled where a file that the user named has none.
    #[error(
        "{} is not the recorded file: {outside} of {sampled} sampled addresses lie outside of its code, and the names \
         of the others may be wrong",
        path.display()
    )]
    OtherCode {
        /// The file.
        path: PathBuf,
        /// Different addresses outside of its code.
        outside: usize,
        /// Different addresses that were sampled.
        sampled: usize,
    },
    /// The debug information of a module is damaged, or would unfold to a multiple of its size.
    #[error("no lines and inlined functions of {}: its debug information is damaged", path.display())]
    DebugInfo {
        /// The file with the debug information.
        path: PathBuf,
    },
    /// A file was asked for by build-id and did not come.
    #[error("no debug file of {} was fetched (build-id {build_id}): {why}", path.display())]
    NotFetched {
        /// The module.
        path: PathBuf,
        /// Its build-id.
        build_id: String,
        /// What the program that was to fetch it says.
        why: String,
    },
    /// No file can be fetched, whatever it is.
    #[error("--debuginfod fetches nothing: {why}")]
    NothingFetched {
        /// What is missing.
        why: String,
    },
    /// The symbols of a stripped module are there, but packed.
    #[error(
        "few symbols of {}: the others are packed in its section .gnu_debugdata (xz), which eprof cannot unpack; \
         install its debug package",
        path.display()
    )]
    PackedSymbols {
        /// The file.
        path: PathBuf,
    },
    /// The running kernel is not the recorded one, and no image of that is at hand.
    #[error(
        "no kernel symbols: the recording was made on another kernel ({recorded}) than the running one ({running}); \
         report on the machine and kernel that recorded, or install that kernel's debug package"
    )]
    KernelDiffers {
        /// Build-id or release of the running kernel.
        running: String,
        /// Build-id or release of the recorded one.
        recorded: String,
    },
    /// The recording does not tell its kernel.
    #[error("no kernel symbols: the recording does not tell the build-id or release of its kernel")]
    KernelUnknown,
    /// An image of the recorded kernel is at hand, but not where it was loaded.
    #[error("no kernel symbols: the recording does not tell where its kernel lay in memory")]
    KernelMoved,
    /// All addresses in kallsyms are zero. The recording has addresses all the same, whoever made it.
    #[error(
        "no kernel symbols: the kernel hides its addresses from {} (kptr_restrict is {}, perf_event_paranoid {}); the recording \
         is as it should be, and has names when it is reported {}",
        hidden_from(*.kptr_restrict), level(*.kptr_restrict), level(*.paranoid), how_to_see(*.kptr_restrict)
    )]
    KernelHidden {
        /// `kernel.kptr_restrict`
        kptr_restrict: Option<i32>,
        /// `kernel.perf_event_paranoid`
        paranoid: Option<i32>,
    },
    /// The map that a just-in-time compiler wrote belongs to another user, who could have put anything in it.
    #[error(
        "no symbols of {}: it belongs to neither you nor root; if you trust it: sudo chown $USER {}",
        path.display(),
        path.display()
    )]
    PerfMapOwner {
        /// The file.
        path: PathBuf,
    },
    /// The map that a just-in-time compiler wrote is too large to be read.
    #[error("no symbols of {}: larger than {limit} bytes", path.display())]
    PerfMapSize {
        /// The file.
        path: PathBuf,
        /// The most that is read.
        limit: u64,
    },
    /// The recorded vdso is not this kernel's.
    #[error("no symbols of the vdso: the recording was made with another kernel than the running one")]
    VdsoDiffers,
}

fn level(level: Option<i32>) -> String {
    level.map_or_else(|| "unknown".to_owned(), |level| level.to_string())
}

fn hidden_from(kptr_restrict: Option<i32>) -> &'static str {
    if kptr_restrict == Some(2) { "everybody" } else { "this user" }
}

/// Levels of 2 hide addresses from root as well; at 1 it sees them, and at 0 so do all who may profile the kernel.
fn how_to_see(kptr_restrict: Option<i32>) -> &'static str {
    match kptr_restrict {
        Some(0) => "by root, or after: sudo sysctl kernel.perf_event_paranoid=1",
        Some(2) => "after: sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1",
        _ => "by root, or after: sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1",
    }
}

impl SymbolizeError {
    /// What gives code of a program or library its names, where its file was not used for this reason; `None` where
    /// the file's debug package does, or nothing is missing but what it has.
    pub fn repair_of_names(&self) -> Option<String> {
        let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        match self {
            Self::BuildIdDiffers { path, .. } | Self::Younger { path } | Self::InodeDiffers { path } => {
                Some(format!("record again, {} is not what was recorded", name(path)))
            }
            Self::Open { path, source } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some(format!("report as a user who may read {}", path.display()))
            }
            Self::Open { path, .. } | Self::Format { path, .. } => Some(format!(
                "report where {} is as it was recorded, or name its folder by --symfs",
                name(path)
            )),
            _ => None,
        }
    }
}
