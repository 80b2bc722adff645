//! GPU power as a function of counters: `P = c0 + sum c_i p_i` (Nagasaka et al. 2009) and what is
//! needed around it: counters per unit of time, standardised; the kind of fit chosen by validation
//! inside the training rows only; leave-one-out; leverage and outliers.
//!
//! ```text
//!   table ──► form ──► fit ──► choose ──► blend ──► validate ──► diagnostics, figure
//!   rows      columns  model   best of    average   left-out     what to distrust
//! ```

pub mod blend;
pub mod candidates;
pub mod choose;
mod clock_steps;
mod columns;
pub mod diagnostics;
pub mod figure;
pub mod fit;
pub mod form;
mod gpmtool;
pub mod table;
pub mod unmeasured;
pub mod validate;
