//! The folder in which the processes of one user on one machine find each other's files.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

/// Others may write.
const OPEN_TO_OTHERS: u32 = 0o022;

/// A folder on this machine that only this user can write: `$XDG_RUNTIME_DIR`, which an environment may bring from another
/// machine, so that it has to be there; `/run/user/UID`; or else `/tmp/eprof-UID`, made if need be.
///
/// # Errors
/// If there is none, since somebody else owns the last of them, or it cannot be made.
pub fn runtime_folder() -> io::Result<PathBuf> {
    let uid = geteuid().as_raw();
    let from_environment = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let usual = [from_environment, Some(format!("/run/user/{uid}").into())];
    let usual = usual.into_iter().flatten().filter(|folder| folder.is_absolute());
    match usual.into_iter().find(|folder| is_safe(folder, uid).is_ok()) {
        Some(folder) => Ok(folder),
        None => own_folder(&PathBuf::from(format!("/tmp/eprof-{uid}")), uid),
    }
}

/// The folder of this name, made if it is not there.
fn own_folder(folder: &Path, uid: u32) -> io::Result<PathBuf> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    is_safe(folder, uid)?;
    Ok(folder.to_owned())
}

/// That nobody else can put anything there; a link may lead anywhere tomorrow.
fn is_safe(folder: &Path, uid: u32) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    let refuse = |why: &str| {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{}: {why}", folder.display())))
    };
    if !found.is_dir() {
        return refuse("it is no folder");
    }
    if found.uid() != uid {
        return refuse("it is another user's");
    }
    if found.mode() & OPEN_TO_OTHERS != 0 {
        return refuse("others may write in it");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_folder_where_others_write_is_not_trusted() {
        let uid = geteuid().as_raw();
        let around = tempfile::tempdir().expect("a folder");
        let made = own_folder(&around.path().join("eprof"), uid).expect("made");
        assert_eq!(fs::metadata(&made).expect("there").mode() & 0o777, 0o700);
        assert_eq!(own_folder(&made, uid).expect("there already"), made);
        assert!(own_folder(&made, uid + 1).is_err(), "another user's");
        let link = around.path().join("link");
        symlink(&made, &link).expect("a link");
        assert!(own_folder(&link, uid).is_err());
        fs::set_permissions(&made, Permissions::from_mode(0o777)).expect("mode");
        let error = own_folder(&made, uid).expect_err("open to all").to_string();
        assert!(error.contains("others may write"), "{error}");
    }
}
