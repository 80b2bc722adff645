//! eprof: where do the joules of a program go?
//!
//! The crate is a pipeline, and its modules are declared in the pipeline's order:
//!
//! ```text
//!   program ──► record ──► recording ──► timeline ──► attribute ──► profile ──► report
//!               samples,   perf.data     one stream   joules to     a plain     table, json,
//!               meters     file          in time      stacks        value       flamegraph
//!                                        order
//!                                                     symbolize ─────────────────┘
//!                                                     address ► function, line
//! ```
//!
//! Dependencies point one way, from the report back to the recording; [`units`] and [`tables`] lie
//! below everything, and nothing depends on [`record`] but [`calibrate`], which drives its meters. The arithmetic of [`timeline`], [`attribute`],
//! [`power_model`], [`gpu`] and [`tune`] uses no file, clock or thread: values in, values out.

mod markup;
pub mod tables;
pub mod units;

pub mod machine;
pub mod power_model;
pub mod simulate;

pub mod record;
pub mod recording;
pub mod timeline;

pub mod attribute;
pub mod symbolize;

pub mod analyze;
pub mod profile;
pub mod report;

pub mod calibrate;
pub mod gpu;
pub mod stat;
pub mod tune;
