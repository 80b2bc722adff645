//! Folders and files of other users: whose they are is said, and the command that goes well.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use eprof_testbed::{eprof, skip_quietly};

/// A user that is not root, and owns nothing here.
const NOBODY: u32 = 65_534;

/// What eprof says to that user; nothing where the program cannot be run by others.
fn said_to_nobody(arguments: &[&str], folder: &Path) -> Option<String> {
    let mut command = eprof();
    command.args(arguments).current_dir(folder).env("HOME", folder).uid(NOBODY).gid(NOBODY);
    let output = command.output().ok()?;
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    Some(String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn whose_a_folder_is_is_said_with_the_command_as_them() {
    if !nix::unistd::geteuid().is_root() {
        skip_quietly("only root can become another user");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let set = |name: &str, mode| {
        fs::set_permissions(folder.path().join(name), Permissions::from_mode(mode)).expect("mode");
    };
    set("", 0o755);
    for made in ["closed/inner", "tables/balance", "open/balance"] {
        fs::create_dir_all(folder.path().join(made)).expect("a folder");
    }
    fs::write(folder.path().join("mine.data"), "PERFILE2").expect("written");
    set("closed", 0o700);
    set("tables", 0o700);
    set("mine.data", 0o600);
    let nowhere = "clickhouse://127.0.0.1:9/energy";
    for (arguments, denies) in [
        (&["report", "closed"][..], "closed"),
        (&["report", "closed/inner"], "closed"),
        (&["report", "mine.data"], "mine.data"),
        (&["push", "tables", nowhere], "tables"),
    ] {
        let Some(said) = said_to_nobody(arguments, folder.path()) else {
            skip_quietly("the program lies where others may not run it");
            return;
        };
        let whose = format!("{denies} belongs to root (mode 0");
        assert!(said.contains(&whose) && said.contains("; as root it goes well: sudo "), "{said}");
        assert!(said.trim_end().ends_with(&arguments.join(" ")), "{said}");
    }
}
