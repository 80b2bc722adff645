//! What to look for and where.

use std::path::PathBuf;
use std::time::SystemTime;

use super::debuginfod::Debuginfod;

/// Where a symbol of the kernel was when the recording was made. perf.data tells it in the name and offset of the
/// kernel's own mapping (`[kernel.kallsyms]_text`): the kernel lies elsewhere after each boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelReference {
    /// Name of the symbol: `_text` or `_stext`.
    pub symbol: String,
    /// Its address.
    pub address: u64,
}

/// How much is wanted, and where files are searched.
#[derive(Debug, Clone)]
pub struct SymbolizeOptions {
    /// Name the functions that the compiler inlined at each address. Without it an address has the one
    /// frame that the symbol table names, as in `perf report`.
    pub inlines: bool,
    /// Find source file and line.
    pub lines: bool,
    /// Turn linker names of C++ and Rust back into what the programmer wrote.
    pub demangle: bool,
    /// Keep the parameter lists and return types of C++ names. perf leaves them out.
    pub cpp_parameters: bool,
    /// Folders for separate debug files: `DIR/.build-id/xx/yyyy.debug` and `DIR/path/of/binary.debug`.
    pub debug_dirs: Vec<PathBuf>,
    /// Folders laid out as perf's cache: `DIR/.build-id/xx/yyyy/elf`.
    pub build_id_caches: Vec<PathBuf>,
    /// Fetch what is nowhere here from the servers of the user's choice.
    pub debuginfod: Option<Debuginfod>,
    /// Prefix for the paths of modules, for recordings of a container or another machine's root.
    pub sysroot: Option<PathBuf>,
    /// Root of procfs: kernel symbols, and this process's own vdso.
    pub procfs: PathBuf,
    /// Root of sysfs: the running kernel's build-id.
    pub sysfs: PathBuf,
    /// Folder of the `perf-PID.map` files that just-in-time compilers write.
    pub perf_map_dir: PathBuf,
    /// Build-id of the recorded kernel. Symbols of the running kernel serve only if it is the same.
    pub kernel_build_id: Option<Vec<u8>>,
    /// Release of the recorded kernel (`uname -r`), asked where there is no build-id.
    pub kernel_release: Option<String>,
    /// Where the kernel lay when it was recorded; without it, it is taken to lie where it lies now.
    pub kernel_reference: Option<KernelReference>,
    /// Folder in which the running kernel's own symbols are kept until the next boot, since listing them takes
    /// the kernel long; none by default.
    pub kernel_cache: Option<PathBuf>,
    /// When the recording ended: a binary without build-id that is younger than this has changed.
    pub recorded_at: Option<SystemTime>,
    /// Threads to use; all available CPUs by default.
    pub threads: Option<usize>,
}

impl Default for SymbolizeOptions {
    fn default() -> Self {
        Self {
            inlines: true,
            lines: true,
            demangle: true,
            cpp_parameters: false,
            debug_dirs: vec![PathBuf::from("/usr/lib/debug")],
            build_id_caches: std::env::home_dir().map(|home| home.join(".debug")).into_iter().collect(),
            debuginfod: None,
            sysroot: None,
            procfs: PathBuf::from("/proc"),
            sysfs: PathBuf::from("/sys"),
            perf_map_dir: PathBuf::from("/tmp"),
            kernel_build_id: None,
            kernel_release: None,
            kernel_reference: None,
            kernel_cache: None,
            recorded_at: None,
            threads: None,
        }
    }
}
