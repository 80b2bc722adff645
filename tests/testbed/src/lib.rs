//! What eprof's tests and benches share: machines, GPUs and recordings of which everything is known.
//!
//! ```text
//!   simulate            a machine that does not exist, recorded as a real one would be, and the truth beside it
//!   recording_builder   perf.data byte by byte, sound or not, in either byte order
//!   repeat              a long recording out of a short one
//!   gpu                 power sensors and their recordings; a program that launches kernels
//!   fakes               libraries in the place of NVIDIA's and of the C library's clocks
//!   programs            sources of programs to record, and copies that can be started at once
//!   table_styles        one table in all the styles that programs write tables in
//!   started             programs that end with the test that started them
//!   receiver            a server of HTTP that answers as a test wants, also by TLS
//!   clickhouse          servers of ClickHouse
//!   figures             all numbers of a result, to be kept beside a test
//!   published           measurements and recordings of others
//!   harness             runs tests, and says of those that cannot run here that they were ignored
//!   environment         the eprof to run, and what else this machine has
//! ```
//!
//! It is a crate of its own so that the library ships none of it, and so that it is compiled once and not into each
//! test program. It uses the library as everybody does, by what is public. Tests inside the library cannot use it:
//! there eprof is compiled a second time, and its types are others than those that are named here.
//!
//! All of it is for tests: what goes wrong panics, with a message that says what was expected, unless a caller could
//! do something about it.

pub mod clickhouse;
pub mod environment;
pub mod fakes;
pub mod figures;
pub mod gpu;
pub mod harness;
pub mod outputs;
pub mod programs;
mod published;
pub mod receiver;
pub mod recording_builder;
pub mod repeat;
pub mod simulate;
mod started;
pub mod table_styles;

pub use eprof_testbed_macros::test;
// What `#[test]` and its harness are written by.
#[doc(hidden)]
pub use inventory;

pub use environment::{eprof, has_program, run_or_skip, skip, skip_quietly};
pub use published::{files_below, published, published_data};
pub use started::Started;
