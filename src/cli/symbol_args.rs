//! Options of verbs that name code.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Args;
use eprof::recording::Recording;
use eprof::symbolize::{Debuginfod, SymbolizeOptions};

use super::input::cache_folder;
use super::recorded_kernel;

/// How addresses get names.
#[derive(Args)]
pub struct SymbolArgs {
    /// Do not print inlined functions.
    #[arg(long)]
    no_inline: bool,

    /// Show C++ and Rust names as the linker knows them.
    #[arg(long)]
    no_demangle: bool,

    /// Folder in which the recorded machine's files are found by their paths.
    #[arg(long, value_name = "FOLDER")]
    symfs: Option<PathBuf>,

    /// Another folder of separate debug files, beside /usr/lib/debug.
    #[arg(long, value_name = "FOLDER")]
    debug_dir: Vec<PathBuf>,

    /// Fetch debug files that are not here from the servers in DEBUGINFOD_URLS, by elfutils' debuginfod-find and into
    /// its cache.
    #[arg(long)]
    debuginfod: bool,
}

impl SymbolArgs {
    /// What to look for in the files of a recording.
    pub fn options(&self, recording: &Recording, path: &Path) -> SymbolizeOptions {
        let defaults = SymbolizeOptions::default();
        let metadata = recording.metadata();
        // The file was closed when the recording ended.
        let written = || path.metadata().ok()?.modified().ok();
        let started = metadata.map(|metadata| Duration::from_nanos(metadata.started_unix_ns));
        let started = started.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
        SymbolizeOptions {
            inlines: !self.no_inline,
            lines: false,
            demangle: !self.no_demangle,
            debug_dirs: defaults.debug_dirs.iter().chain(&self.debug_dir).cloned().collect(),
            debuginfod: self.debuginfod.then(Debuginfod::default),
            sysroot: self.symfs.clone(),
            kernel_cache: cache_folder(),
            recorded_at: written().or(started),
            ..recorded_kernel::options(recording)
        }
    }
}
