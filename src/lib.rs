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
//! Dependencies point one way. A module may use those in its row, and all of these stand above it; `cli` and `main`
//! are the binary's, and `eprof-cupti-injection` is the crate that CUDA loads into programs. A star marks arithmetic:
//! values in, values out, without a file, clock, thread or process. A test parses the code and holds this table,
//! and that the files of no folder need each other round about.
//!
//! ```text
//!   units *                 ->
//!   markup *                ->
//!   hardware *              -> units
//!   eprof-cupti-injection   ->
//!   recording               -> units hardware
//!   machine                 -> hardware
//!   process                 -> units hardware
//!   power_model *           -> units hardware
//!   simulate *              -> units hardware recording power_model
//!   profile *               -> units hardware
//!   timeline *              -> units recording profile
//!   attribute *             -> units hardware recording profile
//!   symbolize               -> units profile
//!   gpu *                   -> units markup power_model
//!   meter                   -> units hardware machine process gpu
//!   analyze                 -> units hardware eprof-cupti-injection recording power_model profile timeline
//!                              attribute symbolize gpu
//!   report                  -> units markup hardware recording profile symbolize
//!   tune *                  -> units markup
//!   stat *                  -> units hardware report tune
//!   record                  -> units hardware eprof-cupti-injection recording machine process power_model
//!                              meter
//!   measure                 -> units hardware machine process gpu meter tune stat
//!   calibrate               -> units hardware machine process power_model meter measure
//!   cli                     -> units hardware recording machine process power_model profile timeline
//!                              symbolize gpu meter analyze report tune stat record measure calibrate
//!   main                    -> cli
//! ```

pub mod hardware;
mod markup;
pub mod units;

pub mod machine;
pub mod power_model;
pub mod simulate;

pub mod meter;
pub mod process;

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
pub mod measure;
pub mod stat;
pub mod tune;
