//! Energy of single GPU instructions (Arafa et al. 2020): a loop with copies of the instruction, the
//! same loop without them, and the difference of their energy per copy.

pub mod catalogue;
pub mod energy;
pub mod ptx;
