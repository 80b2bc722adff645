//! Watts as a linear function of event rates: presets, fit, store, and the periods `R = P / C`.
//!
//! The way of the data: text becomes a [`dataset::Dataset`] ([`observations`]); a data set becomes a
//! [`fit::Fit`], whose coefficients make periods, or an [`estimator::Estimator`], which estimates power as
//! well as the data allow; [`validate`] says how wrong either is for what it has not seen, and [`prediction`] how wide
//! an interval around an estimate must be. A [`model::PowerModel`] comes from a fit, from a preset or from a file ([`stored`], [`folder`]).

pub mod folder;
pub mod model;
pub mod paper;
pub mod presets;
pub mod stored;

pub mod dataset;
pub mod observations;

mod by_workload;
mod columns;
mod contradiction;
pub mod drift;
mod edge_noise;
pub mod error;
pub mod estimator;
pub mod event_set;
pub mod fit;
pub mod intervals;
mod posterior;
pub mod prediction;
pub mod prior;
pub mod select;
pub mod self_calibration;
pub mod terms;
pub mod unexplained;
pub mod validate;
