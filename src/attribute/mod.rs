//! Step 4: joules to buckets, to cores, to samples.
//!
//! A sample of event *e* with period *n* is a **quantum**: it stands for *n* events that happened on
//! its CPU since the event's previous sample there, and so for `C_e · n` model joules spread over that
//! span. The meters' readings are interpolated to curves of cumulative energy. Time is cut into
//! **buckets** of equal measured joules; in each bucket and for each energy domain the measured joules,
//! less what no program causes (static) and what others caused, go to the quanta that overlap the
//! bucket, in proportion to their model joules there.
//!
//! Why not simply "energy between two readings, by time"? Because functions differ in watts, which is
//! the whole point; and why not a model alone? Because its coefficients are never exact. The model only
//! decides the proportions inside a bucket; the sum is always what the meter counted:
//!
//! ```text
//!   measured = attributed + static + other processes + recorder + lost        (per domain)
//! ```
//!
//! Nothing here touches a file, a clock or a thread.

mod attribution;
mod attributor;
mod bucket;
mod busy;
mod cpu_groups;
mod curve;
mod domain;
mod energy_bucket;
#[cfg(test)]
mod laws;
mod quantum;
mod recorder_time;
mod rise;
#[cfg(test)]
mod tree_laws;
mod weights;

pub use attribution::{Attribution, Options, Sharing, TakenCells};
pub use attributor::Attributor;
pub use curve::EnergyCurve;
pub use energy_bucket::Bucket;
pub use quantum::{Charge, Quantum};
pub use rise::Rise;
pub use weights::{EventWeights, coefficient};
