//! Files with unwind tables that stay open from one recording to the next.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::error::SymbolizeError;
use super::options::SymbolizeOptions;
use super::unwind_file::UnwindFile;
use crate::profile::Module;

/// A file that so many recordings in a row had no use for is closed: what was deleted meanwhile gives its room back.
const MOST_IDLE: u64 = 10;

/// Unwind tables that were opened: opening one reads all of its index, which takes longer than a second's samples do. Copies
/// share them. All are of one set of options.
#[derive(Debug, Clone, Default)]
pub struct UnwindFiles(Arc<Mutex<Files>>);

#[derive(Debug, Default)]
struct Files {
    open: FxHashMap<Module, Open>,
    /// Recordings so far.
    recordings: u64,
    /// What was read of them is not kept in memory.
    is_frugal: bool,
}

#[derive(Debug)]
struct Open {
    file: Arc<UnwindFile>,
    /// The last recording that had use for it.
    used: u64,
}

impl UnwindFiles {
    /// Files of which little stays in memory, for whoever runs beside others all day. Reading them takes a little longer.
    pub fn frugal() -> Self {
        Self(Arc::new(Mutex::new(Files { is_frugal: true, ..Files::default() })))
    }

    /// Another recording begins: what the ones before had no use for is closed.
    pub fn next_recording(&self) {
        let mut files = self.files();
        files.recordings += 1;
        let oldest = files.recordings.saturating_sub(MOST_IDLE);
        files.open.retain(|_, open| open.used >= oldest);
    }

    /// The tables of a file or the vdso: as they were read, if the file is as it was then.
    pub(crate) fn open(
        &self,
        options: &SymbolizeOptions,
        module: &Module,
    ) -> Result<Arc<UnwindFile>, SymbolizeError> {
        let mut files = self.files();
        let recordings = files.recordings;
        if let Some(open) = files.open.get_mut(module)
            && open.file.is_as_it_was()
        {
            open.used = recordings;
            return Ok(open.file.clone());
        }
        let file = UnwindFile::open(options, module)?;
        let file = Arc::new(if files.is_frugal { file.frugal() } else { file });
        files.open.insert(module.clone(), Open { file: file.clone(), used: recordings });
        Ok(file)
    }

    fn files(&self) -> std::sync::MutexGuard<'_, Files> {
        // A panic elsewhere leaves a map that is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::profile::ModuleKind;

    #[test]
    fn a_file_is_opened_once_until_it_changes_or_nobody_asks() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("program");
        fs::copy(std::env::current_exe().expect("a path"), &path).expect("a copy");
        let module = Module {
            kind: ModuleKind::File,
            path: path.display().to_string(),
            build_id: None,
            inode: None,
            pid: None,
        };
        let (files, options) = (UnwindFiles::default(), SymbolizeOptions::default());
        let open = || files.open(&options, &module).expect("an ELF file");
        let first = open();
        files.next_recording();
        assert!(Arc::ptr_eq(&first, &open()), "as it was");
        let (read, longer) = (fs::File::open(&path).expect("a file"), first.clone());
        drop(read);
        fs::copy(&path, folder.path().join("new")).expect("a copy");
        fs::rename(folder.path().join("new"), &path).expect("replaced");
        let second = open();
        assert!(!Arc::ptr_eq(&longer, &second), "another file is at its path");
        for _ in 0..=MOST_IDLE {
            files.next_recording();
        }
        assert_eq!(files.files().open.len(), 0, "nobody asked for it");
    }
}
