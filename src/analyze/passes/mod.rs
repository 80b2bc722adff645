//! The passes over a recording, and the profile that they make together.

pub(crate) mod assemble;
pub(crate) mod attributing;
pub(crate) mod in_parts;
pub(crate) mod parts;
pub(crate) mod span_finder;
pub(crate) mod whole;
