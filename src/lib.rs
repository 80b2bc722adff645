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
//!   eprof-cupti-injection   ->
//!   recording               -> units
//!   machine                 -> recording
//!   power_model *           -> units recording
//!   simulate *              -> units recording power_model
//!   profile *               -> units recording
//!   timeline *              -> units recording profile
//!   attribute *             -> units recording
//!   symbolize               -> units profile
//!   gpu *                   -> units markup power_model
//!   analyze                 -> units eprof-cupti-injection recording power_model profile timeline attribute
//!                              symbolize gpu
//!   report                  -> units markup recording profile symbolize
//!   tune *                  -> units markup
//!   stat *                  -> units recording report tune
//!   record                  -> units eprof-cupti-injection recording machine power_model gpu tune stat
//!   calibrate               -> units recording machine power_model record
//!   cli                     -> units recording machine power_model profile timeline symbolize gpu analyze
//!                              report tune stat record calibrate
//!   main                    -> cli
//! ```

mod markup;
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
