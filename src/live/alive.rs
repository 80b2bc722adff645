//! Whether a process is there.

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

/// Whether a process of this machine is there, by its number; that of idle CPUs always is. A signal that is none asks for it, and a process of which this one may
/// not ask is there.
pub fn is_alive(pid: u32) -> bool {
    i32::try_from(pid).is_ok_and(|pid| pid == 0 || kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_there_until_it_was_waited_for() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("it runs");
        assert!(is_alive(child.id()));
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
        assert!(!is_alive(child.id()));
        assert!(is_alive(1), "another user's, or the first of a container");
        assert!(is_alive(0) && !is_alive(u32::MAX));
    }
}
