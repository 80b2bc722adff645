//! How a page gets in front of its reader.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use eprof::label::shell_word;
use nix::unistd::geteuid;

use crate::cli::output::say;

/// A starter that cannot find a browser says so at once; one that becomes the browser does not end.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Where a browser would show a page.
#[derive(Debug, PartialEq, Eq)]
enum Display {
    /// Here.
    Here,
    /// At the other end of ssh.
    OverSsh,
    /// Browsers do not run as root on another user's display.
    OfAnotherUser,
    /// There is none.
    None,
}

impl Display {
    fn find(variable: impl Fn(&str) -> Option<OsString>, is_root: bool) -> Self {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        match () {
            // With X forwarded, too: a browser that is drawn through ssh is no pleasure.
            () if is_set("SSH_CONNECTION") || is_set("SSH_TTY") => Self::OverSsh,
            () if !is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") => Self::None,
            () if is_root && is_set("SUDO_USER") => Self::OfAnotherUser,
            () => Self::Here,
        }
    }
}

/// Opens a page where there is a display, and else says how to get to see it.
pub fn show(page: &Path) {
    let absolute = fs::canonicalize(page).unwrap_or_else(|_| page.to_owned());
    let written = format!("{} is written", page.display());
    match Display::find(|name| std::env::var_os(name), geteuid().is_root()) {
        Display::Here => match open(&absolute) {
            Ok(()) => say(format_args!("{written}, and opened in your browser")),
            Err(why) => {
                say(format_args!("{written}, but no browser could be opened ({why}); open it by hand"))
            }
        },
        Display::OverSsh => say(format_args!("{written}. {}", over_ssh(&absolute, &hostname()))),
        Display::OfAnotherUser => say(format_args!(
            "{written}; open it as yourself: xdg-open {}",
            shell_word(&page.to_string_lossy())
        )),
        Display::None => say(format_args!("{written}; there is no display here: open it in a browser")),
    }
}

/// How to see a page that lies at the far end of ssh.
fn over_ssh(page: &Path, host: &str) -> String {
    let (folder, name) = (page.parent().unwrap_or(Path::new("/")), page.file_name().unwrap_or_default());
    format!(
        "On your own machine, fetch it:\n  scp {host}:{page} .\nor leave it here and look at \
         http://localhost:8000/{name} while this runs:\n  ssh -L 8000:localhost:8000 {host} \
         python3 -m http.server --bind 127.0.0.1 --directory {folder} 8000",
        page = shell_word(&page.to_string_lossy()),
        folder = shell_word(&folder.to_string_lossy()),
        name = name.to_string_lossy(),
    )
}

fn hostname() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "HOST".to_owned() } else { name.to_owned() }
}

fn open(page: &Path) -> io::Result<()> {
    let mut starter = Command::new("xdg-open");
    starter.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The browser may outlive the terminal that eprof ran in.
    let mut started = starter.process_group(0).spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other("xdg-open is not installed"),
        _ => error,
    })?;
    let begin = Instant::now();
    while begin.elapsed() < LONGEST_WAIT {
        match started.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(io::Error::other(format!("xdg-open: {status}"))),
            None => thread::sleep(Duration::from_millis(20)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_opened_where_its_user_sits() {
        let found = |set: &[&str], is_root| {
            Display::find(|name| set.contains(&name).then(|| OsString::from("x")), is_root)
        };
        assert_eq!(found(&["DISPLAY"], false), Display::Here);
        assert_eq!(found(&["WAYLAND_DISPLAY"], true), Display::Here);
        assert_eq!(found(&["DISPLAY", "SUDO_USER"], true), Display::OfAnotherUser);
        assert_eq!(found(&["DISPLAY", "SSH_CONNECTION"], false), Display::OverSsh);
        assert_eq!(found(&[], false), Display::None);
    }

    #[test]
    fn commands_for_the_other_end_can_be_pasted() {
        let text = over_ssh(Path::new("/home/a b/energy.html"), "node7");
        assert!(text.contains("scp node7:'/home/a b/energy.html' ."), "{text}");
        assert!(text.contains("--directory '/home/a b' 8000"), "{text}");
    }
}
