//! Places of a server's connections: whoever has asked for nothing makes room.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A connection that was closed leaves its place at once: its thread reads that it is. It is not waited for longer.
const TO_LEAVE: Duration = Duration::from_secs(1);

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
    /// By their numbers, which grow with time: the connection if it may be closed for another one.
    places: BTreeMap<u64, Option<TcpStream>>,
    next: u64,
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

    /// A place for a connection. Where all are taken, the oldest connection that has asked for nothing is closed; `None` where
    /// there is none.
    pub fn take(&self, connection: &TcpStream) -> Option<Place> {
        // Without a descriptor more it cannot make room itself.
        let idle = connection.try_clone().ok();
        let mut taken = self.taken();
        if taken.places.len() >= self.0.most {
            let oldest = taken.places.values_mut().find_map(Option::take)?;
            // One that its client has closed meanwhile leaves, too.
            let _ = oldest.shutdown(Shutdown::Both);
            let is_full = |taken: &mut Taken| taken.places.len() >= self.0.most;
            let waited = self.0.one_left.wait_timeout_while(taken, TO_LEAVE, is_full);
            taken = waited.unwrap_or_else(PoisonError::into_inner).0;
            if taken.places.len() >= self.0.most {
                return None;
            }
        }
        let number = taken.next;
        taken.next += 1;
        taken.places.insert(number, idle);
        drop(taken);
        Some(Place { places: self.clone(), number })
    }
}

/// A place, which is free again when this is dropped.
#[derive(Debug)]
pub struct Place {
    places: Places,
    number: u64,
}

impl Place {
    /// Its connection has asked for something, and makes no room any more.
    pub fn is_asked(&self) {
        if let Some(idle) = self.places.taken().places.get_mut(&self.number) {
            *idle = None;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().places.remove(&self.number);
        self.places.0.one_left.notify_all();
    }
}
