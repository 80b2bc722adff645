//! What is said when a mapped file loses its bytes while it is read.
//!
//! Recordings and programs are read through mappings. When somebody shortens such a file, or its disk fails, the kernel
//! has nothing to show at an address that was promised, and sends SIGBUS. No error can be returned from there; the
//! file can be named, and the process can end as after any other error.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use libc::siginfo_t;

/// `BUS_ADRERR` and `BUS_OBJERR`: beyond the end of the file, or an error of its device.
const OF_FILES: [c_int; 2] = [2, 3];
/// Exit status of errors.
const FAILURE: c_int = 1;

/// A thread has found the file and says so.
static SAID: AtomicBool = AtomicBool::new(false);

/// From now on says which file it was, and ends the process with the exit status of an error.
pub fn explain() {
    // SAFETY: all zero is a valid `sigaction`, with an empty mask. The handler makes system calls only, on memory of
    // its own stack, and does not return where it has found the file.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_bus_error as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
        // On the thread's own stack: those for signals are too small for a path, and it is not the stack that failed.
        action.sa_flags = libc::SA_SIGINFO;
        // Without the handler it is as with any other program.
        libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
    }
}

extern "C" fn on_bus_error(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes a valid siginfo, whose address is set for SIGBUS.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let mut path = Line::default();
    if OF_FILES.contains(&code) && mapped_file(address, &mut path) {
        // Several threads may read the file; the first one ends them all.
        while SAID.swap(true, Ordering::Relaxed) {
            // SAFETY: waits for a signal.
            unsafe { libc::pause() };
        }
        say(b"eprof: error: ");
        say(path.path());
        say(b": was shortened, or its disk failed, while it was read\n");
        // SAFETY: _exit ends the process and runs nothing of it.
        unsafe { libc::_exit(FAILURE) }
    }
    // SAFETY: the default disposition installs no handler; the access is tried again, and ends the process.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// A line of `/proc/self/maps`, as far as there is room.
struct Line {
    bytes: [u8; 4200],
    length: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self { bytes: [0; 4200], length: 0 }
    }
}

impl Line {
    fn push(&mut self, byte: u8) {
        if let Some(free) = self.bytes.get_mut(self.length) {
            // A name must not act on the terminal.
            *free = if byte.is_ascii_control() { b'?' } else { byte };
            self.length += 1;
        }
    }

    fn text(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Whether the mapping holds this address.
    fn holds(&self, address: usize) -> bool {
        let mut numbers = self.text().splitn(3, |&byte| byte == b'-' || byte == b' ').map(hexadecimal);
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(start), Some(end)) => (start..end).contains(&address),
            _ => false,
        }
    }

    /// The path, which begins with the line's first slash; empty if there is none.
    fn path(&self) -> &[u8] {
        let start = self.text().iter().position(|&byte| byte == b'/');
        start.and_then(|start| self.text().get(start..)).unwrap_or_default()
    }
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    let mut number = 0usize;
    for &digit in digits {
        number = number.checked_mul(16)? + (digit as char).to_digit(16)? as usize;
    }
    Some(number)
}

/// Finds the file that is mapped at an address.
fn mapped_file(address: usize, line: &mut Line) -> bool {
    // SAFETY: a path with its zero byte.
    let maps = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    let mut buffer = [0u8; 2048];
    loop {
        // SAFETY: the buffer is as long as is said. A descriptor that could not be opened gives an error.
        let read = unsafe { libc::read(maps, buffer.as_mut_ptr().cast(), buffer.len()) };
        let Some(bytes) = usize::try_from(read).ok().and_then(|read| buffer.get(..read)) else {
            return false;
        };
        if bytes.is_empty() {
            return false;
        }
        for &byte in bytes {
            if byte != b'\n' {
                line.push(byte);
            } else if line.holds(address) {
                return !line.path().is_empty();
            } else {
                line.length = 0;
            }
        }
    }
}

/// Writes to stderr, as far as that goes.
fn say(text: &[u8]) {
    // SAFETY: the bytes are as many as is said.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_addresses_and_path() {
        let mut line = Line::default();
        for byte in b"7f10a000-7f10c000 r--p 00000000 fe:00 1234    /home/a b/x\x1b.data" {
            line.push(*byte);
        }
        assert!(line.holds(0x7f10a000) && line.holds(0x7f10bfff));
        assert!(!line.holds(0x7f10c000) && !line.holds(0));
        assert_eq!(line.path(), b"/home/a b/x?.data");
        (0..5000).for_each(|_| line.push(b'x'));
        assert_eq!(line.text().len(), 4200);
        assert!(!Line::default().holds(0));
    }

    #[test]
    fn code_is_in_a_file_and_the_stack_is_not() {
        let mut line = Line::default();
        assert!(mapped_file(mapped_file as *const () as usize, &mut line));
        assert_eq!(line.path(), std::env::current_exe().expect("a program").as_os_str().as_encoded_bytes());
        let here = 0u8;
        assert!(!mapped_file(&raw const here as usize, &mut Line::default()));
    }
}
