//! Indices of a profile's tables. Docs name the table: [`Profile`](super::Profile).

/// Index of a module in [`Profile::modules`](super::Profile::modules).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

/// Index of a code address in [`Profile::addresses`](super::Profile::addresses).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AddressId(pub u32);

/// Index of a thread in [`Profile::threads`](super::Profile::threads).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadIndex(pub u32);

/// Index of a recording in [`Profile::recordings`](super::Profile::recordings).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordingId(pub u32);
