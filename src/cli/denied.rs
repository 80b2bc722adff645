//! What helps where the system denies a file or folder: whose it is, and the command that goes well.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use eprof::label::shell_word;
use nix::unistd::{Uid, User};

/// What helps where this was denied: the owner of what denies it, and the command as that user. `None`: it is not there any more.
pub fn repair(path: &Path) -> Option<String> {
    let (denies, metadata) = denying(path)?;
    let command: Vec<String> = std::env::args_os().map(|word| shell_word(&word.to_string_lossy())).collect();
    Some(told(&denies, metadata.uid(), metadata.mode(), Uid::effective(), &command.join(" ")))
}

/// An error with what helps, where it is that the system denies this path.
pub fn or_whose(error: impl Into<anyhow::Error>, kind: io::ErrorKind, path: &Path) -> anyhow::Error {
    let error = error.into();
    let is_denied = kind == io::ErrorKind::PermissionDenied;
    match is_denied.then(|| repair(path)).flatten() {
        Some(repair) => anyhow::anyhow!("{error}; {repair}"),
        None => error,
    }
}

/// The file itself or, where it cannot even be looked at or is to be made, the folder in which that is denied.
fn denying(path: &Path) -> Option<(PathBuf, Metadata)> {
    let path = std::path::absolute(path).ok()?;
    for here in path.ancestors() {
        match fs::metadata(here) {
            Ok(metadata) => return Some((here.to_owned(), metadata)),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound) => {}
            Err(_) => return None,
        }
    }
    None
}

fn told(path: &Path, owner: u32, mode: u32, me: Uid, command: &str) -> String {
    let (place, mode) = (path.display(), mode & 0o7777);
    if owner == me.as_raw() {
        return format!(
            "{place} is your own, of mode {mode:04o}: chmod u+rwX {}",
            shell_word(&path.to_string_lossy())
        );
    }
    let name = |uid: Uid| User::from_uid(uid).ok().flatten().map(|user| user.name);
    let my_name = name(me).unwrap_or_else(|| format!("user {me}"));
    let owner = Uid::from_raw(owner);
    let (whose, by) = match name(owner) {
        _ if owner.is_root() => ("root".to_owned(), "sudo".to_owned()),
        Some(name) => (name.clone(), format!("sudo -u {}", shell_word(&name))),
        None => (format!("user {owner}"), format!("sudo -u '#{owner}'")),
    };
    format!(
        "{place} belongs to {whose} (mode {mode:04o}), and you are {my_name}; as {whose} it goes well: {by} {command}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_is_told_with_the_command_as_them() {
        let path = Path::new("/var/lib/eprof");
        let said = |owner, me| told(path, owner, 0o40_700, Uid::from_raw(me), "eprof report /var/lib/eprof");
        let of_root = said(0, 64_999);
        assert_eq!(
            of_root,
            "/var/lib/eprof belongs to root (mode 0700), and you are user 64999; as root it goes well: sudo eprof report \
             /var/lib/eprof"
        );
        assert!(
            said(64_998, 0).ends_with("sudo -u '#64998' eprof report /var/lib/eprof"),
            "{}",
            said(64_998, 0)
        );
        let own = said(64_998, 64_998);
        assert!(own.ends_with("chmod u+rwX /var/lib/eprof"), "{own}");
    }

    #[test]
    fn the_folder_is_named_in_which_a_file_is_to_be_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let (denies, _) = denying(&folder.path().join("none/at/all")).expect("there");
        assert_eq!(denies, folder.path());
    }
}
