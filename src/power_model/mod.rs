//! Watts as a linear function of event rates: presets, fit, store, and the periods `R = P / C`.

pub mod dataset;
pub mod error;
pub mod estimator;
pub mod fit;
pub mod least_squares;
pub mod observations;
pub mod terms;
pub mod validate;
