//! Rights that eprof has and its user has not: of a file with capabilities (`setcap`), of a program with the
//! set-user-ID bit, of ambient capabilities.
//!
//! They are there to open counters and meters. What is open can be read without them, so the recorder gives them up
//! before the program starts, and code that the user names is not loaded while they last.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::thread;

use nix::unistd::Uid;

/// `_LINUX_CAPABILITY_VERSION_3`: two words of each set.
const VERSION_3: u32 = 0x2008_0522;

/// `struct __user_cap_header_struct`.
#[repr(C)]
struct Header {
    version: u32,
    /// 0 is the calling thread.
    pid: i32,
}

/// `struct __user_cap_data_struct`: 32 capabilities of each set.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// The capability to read where the kernel's functions are (`CAP_SYSLOG`), as a set.
pub const SYSLOG: u64 = 1 << 34;

/// The capability to read what code other users' processes have (`CAP_SYS_PTRACE`), as a set.
pub const PTRACE: u64 = 1 << 19;

/// Whether this process began with rights that the one who called it has not, so that the C library distrusts what it
/// was given.
pub fn is_secure_mode() -> bool {
    // SAFETY: getauxval only reads what the kernel told the process when it started.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Whether this process has rights that the one who called it has not.
pub fn are_raised() -> bool {
    is_secure_mode() && capabilities().is_ok_and(|sets| sets.iter().any(|set| set.permitted != 0))
}

/// Whether this process is another user's by the set-user-ID bit of its file. What eprof writes and starts would be
/// that user's.
pub fn is_set_user_id() -> bool {
    Uid::current() != Uid::effective()
}

/// A file whose code is to be loaded into this process, if that is right: under raised rights a user could
/// have any code run with them.
///
/// # Errors
/// `PermissionDenied`, with the reason.
pub fn check_named_library(path: &Path) -> io::Result<()> {
    if !are_raised() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "{} is not loaded: eprof has capabilities that its user has not, and would lend them to this library",
            path.display()
        ),
    ))
}

/// Gives up all capabilities of this thread, for good, unless it is root's.
///
/// # Errors
/// What the kernel says; it never refuses to take less.
pub fn drop_unless_root() -> io::Result<()> {
    keep_unless_root(0)
}

/// Gives up the capabilities of this thread that are not in a set, for good, unless it is root's.
///
/// # Errors
/// What the kernel says; it never refuses to take less.
pub fn keep_unless_root(kept: u64) -> io::Result<()> {
    if Uid::effective().is_root() { Ok(()) } else { keep_capabilities(kept) }
}

/// Gives up the capabilities of this thread that are not in a set, and all inheritable and ambient ones. Makes system
/// calls only, so that a child may do so between `fork` and `exec`.
///
/// # Errors
/// What the kernel says; it never refuses to take less.
pub fn keep_capabilities(kept: u64) -> io::Result<()> {
    let mut sets = capabilities()?;
    for (set, kept) in sets.iter_mut().zip([kept as u32, (kept >> 32) as u32]) {
        // What is not inheritable cannot be ambient either.
        *set = Sets { effective: set.effective & kept, permitted: set.permitted & kept, inheritable: 0 };
    }
    set_capabilities(&sets)
}

/// Reads a file that a user names, by that user's own rights: by a thread that has given up all capabilities. An eprof that
/// has more of them than its user would else tell this one what others keep to themselves.
///
/// # Errors
/// What the system says; `FileTooLarge` if there is more than `most` bytes.
pub fn read_unaided(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let path = path.to_owned();
    let read = move || -> io::Result<Vec<u8>> {
        keep_capabilities(0)?;
        let mut bytes = Vec::new();
        File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
    };
    let thread = thread::Builder::new().name("eprof-read".into()).spawn(read)?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that read it broke off")))
}

/// Reads a text that a user names as this user could: [`read_unaided`] where eprof has more rights than its user.
///
/// # Errors
/// What the system says; `InvalidData` if it is no UTF-8.
pub fn read_text_of_user(path: &Path) -> io::Result<String> {
    /// More is no file that somebody would write by hand.
    const MOST_BYTES: u64 = 64 << 20;
    if !are_raised() {
        return std::fs::read_to_string(path);
    }
    String::from_utf8(read_unaided(path, MOST_BYTES)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn set_capabilities(sets: &[Sets; 2]) -> io::Result<()> {
    let mut header = Header { version: VERSION_3, pid: 0 };
    // SAFETY: both pointers are to live values in the kernel's layout; of this version it reads two elements of
    // `sets`, and it writes nothing but a header's unknown version.
    checked(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) })
}

/// The next change of this thread's user leaves its capabilities permitted, as it does not by itself.
///
/// # Errors
/// If the kernel was told to refuse that (securebits).
pub fn keep_when_user_changes() -> io::Result<()> {
    // SAFETY: this option takes a number and changes a flag of the thread alone.
    checked(unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0) }.into())
}

/// Takes those capabilities of a set into use that are permitted to this thread, and gives up all others.
///
/// # Errors
/// What the kernel says.
pub fn use_capabilities(wanted: u64) -> io::Result<()> {
    let mut sets = capabilities()?;
    for (set, wanted) in sets.iter_mut().zip([wanted as u32, (wanted >> 32) as u32]) {
        let permitted = set.permitted & wanted;
        *set = Sets { effective: permitted, permitted, inheritable: 0 };
    }
    set_capabilities(&sets)
}

/// The capabilities of this thread.
fn capabilities() -> io::Result<[Sets; 2]> {
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: both pointers are to live values in the kernel's layout, and it fills two elements of this version.
    checked(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) })?;
    Ok(sets)
}

fn checked(status: libc::c_long) -> io::Result<()> {
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gives_up_what_it_has() {
        let of_thread = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").expect("readable");
            let sets = status.lines().filter(|line| line.starts_with("Cap") && !line.starts_with("CapBnd"));
            sets.map(|line| line.split_whitespace().nth(1).expect("a set").to_owned()).collect::<Vec<_>>()
        };
        let left = std::thread::spawn(move || {
            keep_capabilities(0).expect("less is always allowed");
            of_thread()
        });
        let left = left.join().expect("a thread");
        assert_eq!(left.len(), 4);
        assert!(left.iter().all(|set| set == "0000000000000000"), "{left:?}");
    }
}
