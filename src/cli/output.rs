//! Where verbs write to: a file or standard output, with color or not.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;
use eprof::report::text::{Label, visible_lines};
use nix::unistd::geteuid;

/// When to use color.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    Always,
    Never,
}

impl Color {
    /// Whether standard output gets color.
    pub fn on_stdout(self) -> bool {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => io::stdout().is_terminal() && !unwanted,
        }
    }
}

/// Columns of the terminal that standard output is, if it is one.
pub fn terminal_width() -> Option<usize> {
    let (terminal_size::Width(width), _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width))
}

/// Says a line on stderr, in which nothing but text reaches the terminal. That stderr is closed is no reason to
/// fail: the program's exit status matters more, and there is nowhere left to say so.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stderr(), "eprof: {}", visible_lines(&line.to_string()));
}

/// Who may read what is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Whoever the user's mask lets.
    ByMask,
    /// The user alone: a recording tells addresses and command lines.
    Owner,
}

/// Makes or empties a file to write to.
///
/// In a folder where others may write, whoever gets there first decides what a name leads to: there a symbolic link
/// is not followed, and a file of somebody else is left alone.
pub fn create(path: &Path, readers: Readers) -> io::Result<File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let others = fs::metadata(folder)?;
    let is_shared = others.mode() & libc::S_IWOTH != 0;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(!is_shared);
    if is_shared {
        options.custom_flags(libc::O_NOFOLLOW);
    }
    if readers == Readers::Owner {
        options.mode(0o600);
    }
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) if is_shared => io::Error::new(
            error.kind(),
            "a symbolic link in a folder where everybody may write is not followed",
        ),
        _ => error,
    })?;
    let metadata = file.metadata()?;
    if is_shared {
        let own = geteuid().as_raw();
        if metadata.uid() != own && metadata.uid() != others.uid() {
            let why = "the file belongs to another user, in a folder where everybody may write";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        if metadata.is_file() {
            file.set_len(0)?;
        }
    }
    if readers == Readers::Owner && metadata.is_file() {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Writes a whole file.
pub fn write_file(path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let written = create(path, Readers::ByMask).and_then(|mut file| file.write_all(content.as_ref()));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Writes to a file, or to standard output if there is no path or it is `-`.
pub fn write_to<E>(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> anyhow::Result<()>
where
    E: std::error::Error + Send + Sync + 'static,
{
    match path.filter(|path| *path != Path::new("-")) {
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            write(&mut out)?;
            out.flush()?;
        }
        Some(path) => {
            let cannot = || format!("cannot write {}", path.display());
            let mut out = BufWriter::new(create(path, Readers::ByMask).with_context(cannot)?);
            write(&mut out).with_context(cannot)?;
            out.flush().with_context(cannot)?;
        }
    }
    Ok(())
}

/// Says on stderr what the reader of a picture or export must know; such a file has no place for it.
pub fn warn(warnings: impl IntoIterator<Item = impl AsRef<str>>) {
    for warning in warnings {
        say(format_args!("warning: {}", Label::new(warning.as_ref())));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn in_a_shared_folder_links_and_files_of_others_are_left_alone() {
        let folder = tempfile::tempdir().expect("folder");
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "kept").expect("written");
        symlink(&target, &link).expect("a link");
        let shared =
            |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).expect("mode");
        shared(0o1777);
        let refused = create(&link, Readers::ByMask).expect_err("refused").to_string();
        assert!(refused.contains("symbolic link"), "{refused}");
        assert_eq!(fs::read(&target).expect("there"), b"kept");
        shared(0o755);
        write_file(&link, "new").expect("one's own folder, one's own link");
        assert_eq!(fs::read(&target).expect("there"), b"new");
        shared(0o1777);
        write_file(&target, "newer").expect("one's own file");
        if std::os::unix::fs::chown(&target, Some(65534), None).is_ok()
            && std::os::unix::fs::chown(folder.path(), Some(1), None).is_ok()
        {
            assert!(create(&target, Readers::ByMask).is_err(), "another user's");
            assert_eq!(fs::read(&target).expect("there"), b"newer");
        }
    }

    #[test]
    fn recordings_are_private_even_where_a_file_was() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("energy.data");
        fs::write(&path, "a longer text than the new one").expect("written");
        create(&path, Readers::Owner).expect("writable").write_all(b"new").expect("written");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        assert_eq!(fs::read(&path).expect("there"), b"new");
    }
}
