//! What samples are summed by.

use crate::profile::{AddressId, CallersId, ThreadIndex};

/// What of a sample decides its cell, beside its event and its CPU.
#[derive(Debug, Clone, Copy)]
pub struct SampleKey {
    /// All frames but its own address.
    pub callers: CallersId,
    /// Its own address.
    pub own: OwnAddress,
    /// The thread, if threads are told apart.
    pub thread: ThreadIndex,
}

/// An [`AddressId`] or none, in as many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnAddress(u32);

impl From<Option<AddressId>> for OwnAddress {
    fn from(address: Option<AddressId>) -> Self {
        // One more than the number, so that no address is 0.
        Self(address.map_or(0, |address| address.0 + 1))
    }
}

impl OwnAddress {
    /// As a number to hash.
    pub fn number(self) -> u64 {
        u64::from(self.0)
    }

    /// The address, if there is one.
    pub fn get(self) -> Option<AddressId> {
        self.0.checked_sub(1).map(AddressId)
    }
}

/// No CPU, as a number in keys.
pub const NO_CPU: u32 = u32::MAX;

/// CPUs have lower numbers: kernels end at 8192 of them. Damaged files name others.
pub const MOST_CPUS: u32 = 1 << 13;
