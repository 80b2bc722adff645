//! Whether this is the only agent of a machine.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// The name that one agent of a machine has at a time.
const NAME: &str = "eprof-agent";

/// Says by its being there that an agent runs: a name of a socket in no file system, which users of one machine (of one network
/// namespace) see alike and the kernel frees when its owner ends, however that is. Nothing is said or heard over it.
#[derive(Debug)]
pub struct Alone(#[expect(dead_code, reason = "it is open, and that is all")] UnixListener);

impl Alone {
    /// Takes the name. `None`: another agent has it.
    ///
    /// # Errors
    /// A system that gives no sockets, where nobody knows.
    pub fn take() -> io::Result<Option<Self>> {
        Self::take_as(NAME)
    }

    fn take_as(name: &str) -> io::Result<Option<Self>> {
        match UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?) {
            Ok(socket) => Ok(Some(Self(socket))),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_the_name() {
        let name = format!("eprof-test-{}", std::process::id());
        let first = Alone::take_as(&name).expect("a socket").expect("nobody has it");
        assert!(Alone::take_as(&name).expect("a socket").is_none());
        drop(first);
        assert!(Alone::take_as(&name).expect("a socket").is_some());
    }
}
