//! How many windows wait for each receiver, counted when somebody asks.
//!
//! What waits lies on disk, and is counted there by whoever asks: the threads that send may be waiting for an answer for minutes.

use std::fmt;
use std::sync::Arc;

use eprof::push::{PushError, Spool, clickhouse};

/// Counts the windows that wait for a receiver now.
pub type Count = Arc<dyn Fn() -> Result<usize, PushError> + Send + Sync>;

/// Counts windows of a folder of tables that a database has not acknowledged.
pub fn in_tables(look: clickhouse::Waiting) -> Count {
    Arc::new(move || Ok(look.windows()?.len()))
}

/// Counts profiles of a spool.
pub fn in_spool(spool: Spool) -> Count {
    Arc::new(move || Ok(spool.waiting()?.len()))
}

/// How to count for each receiver, by its kind.
#[derive(Clone, Default)]
pub struct Counts(Vec<(&'static str, Count)>);

impl Counts {
    /// One more receiver.
    pub fn add(&mut self, kind: &'static str, count: Count) {
        self.0.push((kind, count));
    }

    /// How many wait now for each; nothing of a folder that cannot be read, which the next attempt to send tells.
    pub fn now(&self) -> Vec<(&'static str, Option<u64>)> {
        self.0.iter().map(|(kind, count)| (*kind, count().ok().map(|waiting| waiting as u64))).collect()
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_list().entries(self.0.iter().map(|(kind, _)| kind)).finish()
    }
}
