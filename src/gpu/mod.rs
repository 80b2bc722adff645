//! GPU sensors corrected, GPU power modelled, GPU instructions measured: arithmetic only.
//!
//! ```text
//!   text ──► trace ──► refresh ──► correct ──► edges ──► phases
//!            polls     values      true power  steps     joules per burst
//! ```

pub mod correct;
pub mod curve;
pub mod edges;
pub mod energy_error;
pub mod explained;
pub mod infer;
pub mod instructions;
mod kernel_watts;
pub mod known_steps;
pub mod launches;
pub mod live;
mod meter_clock;
mod meter_response;
pub mod model;
pub mod named_trace;
mod outside;
mod own_readings;
pub mod phases;
mod queue;
pub mod refresh;
pub mod sensor;
pub mod stretches;
pub mod switch_sense;
pub mod trace;
pub mod trace_csv;
mod trace_order;
mod trace_table;
mod trace_times;
pub mod unseen;
pub mod wrong_readings;
