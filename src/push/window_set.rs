//! Windows that a sender knows, for it and for whoever asks how many wait.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::folder::Window;

/// Keys of windows ([`Window::key`]), which clones share.
#[derive(Debug, Clone, Default)]
pub(super) struct WindowSet(Arc<Mutex<HashSet<String>>>);

impl WindowSet {
    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has(&self, window: &Window) -> bool {
        self.has_key(&window.key())
    }

    pub(super) fn has_key(&self, key: &str) -> bool {
        self.lock().contains(key)
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn add(&self, keys: impl IntoIterator<Item = String>) {
        self.lock().extend(keys);
    }

    /// Those that are in it now.
    pub(super) fn keys(&self) -> impl Iterator<Item = String> + use<> {
        self.lock().iter().cloned().collect::<Vec<_>>().into_iter()
    }

    /// These are in it, and no others.
    pub(super) fn set(&self, keys: HashSet<String>) {
        *self.lock() = keys;
    }
}

impl FromIterator<String> for WindowSet {
    fn from_iter<T: IntoIterator<Item = String>>(keys: T) -> Self {
        Self(Arc::new(Mutex::new(keys.into_iter().collect())))
    }
}
