//! How much is kept of a recording that goes on.

/// What is kept from window to window, by number of its pieces. None of them grows with time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Processes that live, as far as anybody told.
    pub processes: usize,
    /// Names of their threads.
    pub names: usize,
    /// Mappings of theirs, and of the kernel's, with functions and control groups.
    pub mappings: usize,
    /// Functions and addresses with names, and the modules that they are of.
    pub symbols: usize,
    /// Bytes of records that are in no window yet.
    pub bytes: usize,
}
