//! What kind of sensor wrote this trace? Refresh period, kind, time constant or window, and active idle
//! from the trace of a load that is switched on or off; refused where the trace does not tell.

mod exponential;
mod levels;
mod reference;
mod seen;
mod step;
mod sums;
mod verdict;

pub use exponential::Exponential;
pub use levels::KnownLevels;
pub use reference::{
    Alignment, ReferenceError, ReferenceFit, aligned, fit_to_reference, known_load_curve, load_curve,
};
pub use step::Shape;
pub use verdict::{Calibration, Refusal, ShapeFit, Shapes, calibrate};
