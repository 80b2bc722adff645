//! What repeated runs of a program say: means with intervals, and the ratio of two programs.
//!
//! The runs themselves are made by [`crate::measure::runs`]; here are values only.

mod csv;
mod interval;
mod json;
mod measurements;
mod ratio;
mod slice;
mod text;

pub use csv::csv;
pub use interval::Estimate;
pub use json::json;
pub use measurements::{EnergyOf, MeasuredDomain, Measurements, Part, Quantity, Run, Series};
pub use ratio::{Ratio, ratio};
pub use slice::Slice;
pub use text::text;
