//! Who may read folders of tables: they tell command lines, paths and names, as recordings do.
//!
//! The owner alone, whatever the user's mask, unless a group was let in on purpose: a folder that its group may read and nobody
//! else, as by `chmod 750`, lets its group read what eprof makes in it. A folder that is there keeps its mode.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use super::new_file::{self, Readers};

/// Held by the agent whose folder it is.
pub const AGENTS_LOCK: &str = ".eprof-agent.lock";

/// All bits of who may do what, of the group and of others.
const GROUP: u32 = 0o070;
const OTHERS: u32 = 0o007;
/// To read a folder, and to reach what is in it.
const GROUP_READS: u32 = 0o050;

/// Makes a folder and those that it lies in, where they are missing.
///
/// # Errors
/// A file where a folder should be, a link that somebody else may have made, or what the system says.
pub fn make(folder: &Path) -> io::Result<()> {
    // Tables have a folder each in the one that was named.
    for place in [Some(folder), folder.parent()].into_iter().flatten() {
        if let Some(why) = new_file::link_of_others(place)? {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
    }
    if folder.exists() && !folder.is_dir() {
        let why = format!("{} is a file; name a folder, or move the file away", folder.display());
        return Err(io::Error::new(io::ErrorKind::NotADirectory, why));
    }
    let Some(parent) = folder.parent().filter(|_| !folder.exists()) else { return Ok(()) };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    make(parent)?;
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if readers(parent)? == Readers::Group {
        let mode = fs::metadata(folder)?.permissions().mode();
        fs::set_permissions(folder, Permissions::from_mode(mode & 0o7700 | GROUP_READS))?;
    }
    Ok(())
}

/// Who may read a file that is made in a folder.
///
/// # Errors
/// A folder that is not there.
pub fn readers(folder: &Path) -> io::Result<Readers> {
    let mode = fs::metadata(folder)?.permissions().mode();
    let is_for_group = mode & OTHERS == 0 && mode & GROUP & GROUP_READS == GROUP_READS;
    Ok(if is_for_group { Readers::Group } else { Readers::Owner })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    #[test]
    fn folders_are_their_owners_but_where_a_group_was_let_in() {
        for (given, made, expected) in
            [(0o755, 0o700, Readers::Owner), (0o700, 0o700, Readers::Owner), (0o750, 0o750, Readers::Group)]
        {
            let folder = tempfile::tempdir().expect("a folder");
            fs::set_permissions(folder.path(), Permissions::from_mode(given)).expect("set");
            let inner = folder.path().join("tables/samples");
            make(&inner).expect("made");
            make(&inner).expect("there");
            let modes = [mode(folder.path()), mode(&folder.path().join("tables")), mode(&inner)];
            assert_eq!(modes, [given, made, made]);
            assert_eq!(readers(&inner).expect("there") == Readers::Group, expected == Readers::Group);
        }
    }

    #[test]
    fn a_link_that_anybody_may_have_made_is_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let [target, everybodys, own] = ["target", "everybodys", "own"].map(|name| folder.path().join(name));
        for path in [&target, &everybodys, &own] {
            fs::create_dir(path).expect("made");
        }
        fs::create_dir(target.join("samples")).expect("made");
        fs::set_permissions(&everybodys, Permissions::from_mode(0o1777)).expect("set");
        let [planted, ours] = [everybodys.join("energy"), own.join("energy")];
        for link in [&planted, &ours] {
            std::os::unix::fs::symlink(&target, link).expect("made");
        }
        for name in ["", "samples", "balance"] {
            let refused = make(&planted.join(name)).expect_err("refused").to_string();
            assert!(refused.contains("symbolic link") && refused.contains("name the folder"), "{refused}");
        }
        make(&ours.join("balance")).expect("made");
        assert!(target.join("balance").is_dir());
    }

    #[test]
    fn a_file_is_no_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        for path in [file.clone(), file.join("samples")] {
            let refused = make(&path).expect_err("refused").to_string();
            assert!(refused.contains("is a file; name a folder"), "{refused}");
        }
    }
}
