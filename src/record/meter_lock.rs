//! Of the recorders of one machine, one reads the meters closely: the one that holds a lock.
//!
//! The lock is the kernel's, on an open file (`flock`), so that it is free when its holder has ended, however that was; no process
//! id that could be another's tomorrow is written anywhere. A holder that ends well removes the file, and whoever then locks
//! what it had open sees that it is no longer the file of that name, and opens it anew.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::identity::Job;
use crate::process::runtime_folder;

/// A file whose lock one process of a machine has at a time.
#[derive(Debug)]
pub struct MeterLock {
    path: PathBuf,
    file: File,
    is_held: bool,
}

/// The file of a name may change so often while it is opened: only as holders end.
const MOST_ATTEMPTS: u32 = 16;

impl MeterLock {
    /// Opens the file of this path, which nobody need have.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        let file = open(&path)?;
        Ok(Self { path, file, is_held: false })
    }

    /// Whether this process has the lock, now that it has tried.
    pub fn try_take(&mut self) -> io::Result<bool> {
        for _ in 0..MOST_ATTEMPTS {
            if self.is_held {
                return Ok(true);
            }
            match self.file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(false),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            self.is_held = is_named(&self.file, &self.path);
            if !self.is_held {
                self.file = open(&self.path)?;
            }
        }
        Ok(self.is_held)
    }

    /// Whether somebody has the lock of this file. It is shared for the moment of looking, and nobody else's look is in its way.
    pub fn is_taken(path: &Path) -> bool {
        let Ok(file) = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path) else {
            return false;
        };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

impl Drop for MeterLock {
    fn drop(&mut self) {
        if self.is_held {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options.open(path)
}

fn is_named(file: &File, path: &Path) -> bool {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(named)) => identity(open) == identity(named),
        _ => false,
    }
}

/// The locks of one job step, or of one user where there is no job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockNames {
    /// Of the ranks of a step.
    pub ranks: PathBuf,
    /// Of a recorder of the whole machine, for all steps of the job.
    pub node: PathBuf,
}

impl LockNames {
    /// Where recorders of this user find them.
    ///
    /// # Errors
    /// If there is no folder that is only this user's.
    pub fn of(job: &Job) -> io::Result<Self> {
        Ok(Self::within(&runtime_folder()?, job))
    }

    fn within(folder: &Path, job: &Job) -> Self {
        let word = |text: &str| -> String {
            text.chars()
                .map(|char| if char.is_ascii_alphanumeric() || "._-".contains(char) { char } else { '_' })
                .collect()
        };
        let (job_name, step) = match &job.id {
            Some(id) => (format!("job-{}", word(id)), job.step.as_deref().map(word)),
            None => ("user".to_owned(), None),
        };
        let step = step.map(|step| format!(".{step}")).unwrap_or_default();
        Self {
            ranks: folder.join(format!("eprof-{job_name}{step}.ranks.lock")),
            node: folder.join(format!("eprof-{job_name}.node.lock")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(folder: &Path) -> MeterLock {
        MeterLock::open(folder.join("lock")).expect("writable")
    }

    #[test]
    fn one_holds_and_the_next_takes_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut locks: Vec<MeterLock> = (0..4).map(|_| lock(folder.path())).collect();
        let holders = |locks: &mut Vec<MeterLock>| -> Vec<bool> {
            locks.iter_mut().map(|lock| lock.try_take().expect("a lock")).collect()
        };
        assert!(!MeterLock::is_taken(&folder.path().join("lock")));
        assert_eq!(holders(&mut locks), [true, false, false, false]);
        assert_eq!(holders(&mut locks), [true, false, false, false], "whoever asks again");
        assert!(MeterLock::is_taken(&folder.path().join("lock")));
        // The file goes with its holder, and a newcomer makes another one than those that wait have open.
        drop(locks.remove(0));
        assert!(!folder.path().join("lock").exists());
        locks.push(lock(folder.path()));
        locks.reverse();
        assert_eq!(holders(&mut locks), [true, false, false, false]);
        // One that is killed removes nothing.
        std::mem::take(&mut locks[0].is_held);
        drop(locks.remove(0));
        assert_eq!(holders(&mut locks), [true, false, false]);
        drop(locks);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is left");
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink("/nonexistent", folder.path().join("lock")).expect("a link");
        assert!(MeterLock::open(folder.path().join("lock")).is_err());
        assert!(!MeterLock::is_taken(&folder.path().join("lock")));
    }

    #[test]
    fn jobs_and_steps_have_locks_of_their_own() {
        let some = |text: &str| Some(text.to_owned());
        let names = |id, step| LockNames::within(Path::new("/r"), &Job { id, step, ..Job::default() });
        let first = names(some("7"), some("0"));
        assert_eq!(first.ranks, Path::new("/r/eprof-job-7.0.ranks.lock"));
        assert_eq!(first.node, names(some("7"), some("1")).node, "one companion for all steps");
        assert_ne!(first.ranks, names(some("7"), some("1")).ranks);
        assert_eq!(names(some("../x y"), None).ranks, Path::new("/r/eprof-job-.._x_y.ranks.lock"));
        assert_eq!(names(None, None).ranks, Path::new("/r/eprof-user.ranks.lock"));
    }
}
