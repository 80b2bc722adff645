//! Windows that a sender knows, for it and for whoever asks how many wait.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::folder::Window;

/// Keys of windows ([`Window::key`]), which clones share.
#[derive(Debug, Clone, Default)]
pub(super) struct WindowSet(Arc<Mutex<HashSet<String>>>);

impl WindowSet {
    fn keys(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has(&self, window: &Window) -> bool {
        self.has_key(&window.key())
    }

    pub(super) fn has_key(&self, key: &str) -> bool {
        self.keys().contains(key)
    }

    pub(super) fn len(&self) -> usize {
        self.keys().len()
    }

    pub(super) fn add(&self, keys: impl IntoIterator<Item = String>) {
        self.keys().extend(keys);
    }

    /// These are in it, and no others.
    pub(super) fn set(&self, keys: HashSet<String>) {
        *self.keys() = keys;
    }
}

impl FromIterator<String> for WindowSet {
    fn from_iter<T: IntoIterator<Item = String>>(keys: T) -> Self {
        Self(Arc::new(Mutex::new(keys.into_iter().collect())))
    }
}
