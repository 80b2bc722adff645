//! The agent's counters: what its windows add up to, and the page that tells it.

use std::sync::Arc;

mod page;
mod series;
mod text;
mod totals;

pub use page::{OwnCost, render};
pub use text::Format;
pub use totals::{Bounds, Metrics, WindowJoules};

/// Makes the page of counters in a format; `None` where the agent does not count any more.
pub type MakePage = Arc<dyn Fn(Format) -> Option<String> + Send + Sync>;
