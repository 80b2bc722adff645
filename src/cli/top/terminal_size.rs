//! The size of one terminal, handed on to another.

use std::os::fd::{AsFd, OwnedFd};

use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};

/// A terminal whose size another is to have.
pub struct TerminalSize {
    of: OwnedFd,
    /// What was handed on.
    last: Option<Winsize>,
}

impl TerminalSize {
    /// The size of a terminal, as it will be over time.
    pub fn of(terminal: OwnedFd) -> Self {
        Self { of: terminal, last: None }
    }

    /// Gives the other terminal the size, should it be another than the last time: `true` if it was. Whoever runs in the
    /// other terminal's session hears of it from the kernel, and nobody else does.
    pub fn hand_on(&mut self, to: impl AsFd) -> bool {
        // A terminal that has gone has no size any more; the last one stays.
        let Ok(size) = tcgetwinsize(&self.of) else { return false };
        if self.last.is_some_and(|last| sides(last) == sides(size)) || tcsetwinsize(to, size).is_err() {
            return false;
        }
        self.last = Some(size);
        true
    }
}

fn sides(size: Winsize) -> [u16; 4] {
    [size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel]
}

#[cfg(test)]
mod tests {
    use nix::pty::openpty;

    use super::*;

    #[test]
    fn each_new_size_is_handed_on_once() {
        let [shown, other] = [(), ()].map(|()| openpty(None, None).expect("a terminal"));
        let resize = |ws_row, ws_col| {
            tcsetwinsize(&shown.master, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 }).expect("set");
        };
        let others = || sides(tcgetwinsize(&other.slave).expect("a size"));
        let mut size = TerminalSize::of(shown.slave.try_clone().expect("a copy"));
        resize(24, 80);
        assert!(size.hand_on(&other.master));
        assert_eq!(others(), [24, 80, 0, 0]);
        assert!(!size.hand_on(&other.master), "nothing new");
        resize(50, 200);
        assert!(size.hand_on(&other.master));
        assert_eq!(others(), [50, 200, 0, 0]);
    }

    #[test]
    fn what_is_no_terminal_has_no_size() {
        let other = openpty(None, None).expect("a terminal");
        let mut size = TerminalSize::of(std::fs::File::open("/dev/null").expect("it is there").into());
        assert!(!size.hand_on(&other.master));
    }
}
