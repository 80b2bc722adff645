//! Whether the terminal has been closed.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Whether nobody can press a key any more. Who reads keys then finds their end again and again, and does not come back.
pub fn is_closed() -> bool {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return has_hung_up(stdin.as_fd());
    }
    // Keys come from the terminal all the same; one that is closed is nobody's.
    File::open("/dev/tty").map_or(true, |terminal| has_hung_up(terminal.as_fd()))
}

fn has_hung_up(terminal: BorrowedFd<'_>) -> bool {
    let mut descriptors = [PollFd::new(terminal, PollFlags::empty())];
    let found = poll(&mut descriptors, PollTimeout::ZERO);
    let ends = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    found.is_err() || descriptors[0].revents().is_some_and(|events| events.intersects(ends))
}

#[cfg(test)]
mod tests {
    use nix::pty::openpty;

    use super::*;

    #[test]
    fn a_terminal_that_is_closed_is_noticed() {
        let pair = openpty(None, None).expect("a terminal");
        assert!(!has_hung_up(pair.slave.as_fd()));
        drop(pair.master);
        assert!(has_hung_up(pair.slave.as_fd()));
    }
}
