//! Places of a server's connections. Where all are taken, who asks for nothing makes room for the next one, and so does who
//! asked for a page and does not take it.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;

/// A connection that was closed leaves its place at once: its thread reads that it is. It is not waited for longer, nor is a page
/// that is being made.
const TO_LEAVE: Duration = Duration::from_secs(1);
/// For so long nobody else gets the place of a client that is given its page: many times what one takes that reads.
const TO_BE_GIVEN: Duration = Duration::from_millis(250);

/// So many places.
#[derive(Debug, Clone)]
pub struct Places(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    taken: Mutex<Taken>,
    one_left: Condvar,
}

#[derive(Debug, Default)]
struct Taken {
    /// By their numbers, which grow with time.
    places: BTreeMap<u64, Guest>,
    next: u64,
}

/// Who has a place.
#[derive(Debug)]
struct Guest {
    does: Doing,
    /// By which it can be closed for another one; `None` without a descriptor more, and when it was.
    connection: Option<TcpStream>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// Has not asked for anything yet.
    Asking,
    /// What it has asked for is being made.
    Waiting,
    /// Is given its page since then.
    Reading(Instant),
}

impl Taken {
    /// Whose place the next one gets: the oldest that had time to read its page, else the oldest that has not asked.
    fn leaves(&mut self, now: Instant) -> Option<&mut Guest> {
        let can_be_closed = |guest: &Guest| guest.connection.is_some();
        let has_had_its_time =
            |guest: &Guest| matches!(guest.does, Doing::Reading(since) if now >= since + TO_BE_GIVEN);
        let find = |is_it: &dyn Fn(&Guest) -> bool| {
            self.places
                .iter()
                .find(|(_, guest)| can_be_closed(guest) && is_it(guest))
                .map(|(&number, _)| number)
        };
        let number = find(&has_had_its_time).or_else(|| find(&|guest| guest.does == Doing::Asking))?;
        self.places.get_mut(&number)
    }
}

impl Places {
    /// So many.
    pub fn new(most: usize) -> Self {
        let taken = Mutex::new(Taken::default());
        Self(Arc::new(Inner { most, taken, one_left: Condvar::new() }))
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection, if need be that of another one, which is closed; `None` where nobody leaves in time.
    pub fn take(&self, connection: &TcpStream) -> Option<Place> {
        let until = Instant::now() + TO_LEAVE;
        // Without a descriptor more it cannot make room itself.
        let guest = Guest { does: Doing::Asking, connection: connection.try_clone().ok() };
        let mut taken = self.taken();
        let mut is_closed = false;
        while taken.places.len() >= self.0.most {
            let now = Instant::now();
            let left = until.checked_duration_since(now).filter(|left| !left.is_zero())?;
            if !is_closed && let Some(closed) = taken.leaves(now).and_then(|guest| guest.connection.take()) {
                forget_unread(&closed);
                // One that its client has closed meanwhile leaves, too.
                let _ = closed.shutdown(Shutdown::Both);
                is_closed = true;
            }
            // One that is closed leaves by itself; else somebody's time may be over.
            let wait = if is_closed { left } else { left.min(TO_BE_GIVEN / 5) };
            let waited = self.0.one_left.wait_timeout(taken, wait);
            taken = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let number = taken.next;
        taken.next += 1;
        taken.places.insert(number, guest);
        drop(taken);
        Some(Place { places: self.clone(), number })
    }
}

/// What a client does not read would stay in the kernel for minutes after the connection's end: it goes with it.
pub fn forget_unread(connection: &TcpStream) {
    let _ = set_socket_linger(connection, Some(Duration::ZERO));
}

/// A place, which is free again when this is dropped.
#[derive(Debug)]
pub struct Place {
    places: Places,
    number: u64,
}

impl Place {
    /// Its connection has asked for something, and makes no room until that is made.
    pub fn has_asked(&self) {
        self.does(Doing::Waiting);
    }

    /// What was asked for is made: from now on it is up to the client.
    pub fn is_given(&self) {
        self.does(Doing::Reading(Instant::now()));
    }

    fn does(&self, what: Doing) {
        if let Some(guest) = self.places.taken().places.get_mut(&self.number) {
            guest.does = what;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().places.remove(&self.number);
        self.places.0.one_left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(does: Doing) -> Guest {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let connection = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        Guest { does, connection: Some(connection) }
    }

    #[test]
    fn who_had_time_to_read_leaves_first_then_who_has_not_asked_and_nobody_else() {
        let start = Instant::now();
        let later = start + TO_BE_GIVEN;
        let guests =
            [Doing::Waiting, Doing::Asking, Doing::Asking, Doing::Reading(later), Doing::Reading(start)];
        let mut taken = Taken { places: (0..).zip(guests.map(guest)).collect(), next: 5 };
        let mut order = Vec::new();
        while let Some(leaves) = taken.leaves(later) {
            order.push(leaves.does);
            leaves.connection = None;
        }
        assert_eq!(order, [Doing::Reading(start), Doing::Asking, Doing::Asking]);
        assert!(taken.places[&1].connection.is_none() && taken.places[&0].connection.is_some());
    }
}
