//! What an event stands for in the power model.

use std::fmt;

/// The part that an event plays in the power model, most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Unhalted cycles.
    Clk,
    /// Instructions retired.
    Inst,
    /// Stalls for want of resources.
    Resource,
    /// Requests to the second-level cache.
    L2,
    /// Misses of the last cache: traffic with memory.
    LlcMiss,
}

impl fmt::Display for Role {
    /// As in a recording's metadata.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Clk => "clk",
            Self::Inst => "inst",
            Self::Resource => "resource",
            Self::L2 => "l2",
            Self::LlcMiss => "llc-miss",
        })
    }
}
