//! What every kernel does.

/// Work that goes on for as long as it is asked to.
pub trait Work {
    /// A piece of the work, well below a millisecond on any machine.
    fn go_on(&mut self);
}
