//! `eprof fleet`: asks the tables that `eprof export --format parquet` and `eprof agent` wrote, of many machines, by SQL.
//!
//! ```text
//!   args ──► place ──► sources ──► ask ──► answer ──► output, flamegraph
//!              │      dialect       │
//!              └────► engine ───────┘   DataFusion, ClickHouse, Sail
//! ```
//!
//! A folder is asked by DataFusion, embedded. It is several times larger than eprof, so that this is a program of its own, which
//! `eprof fleet` finds and runs. Where one machine is not enough, ClickHouse or Sail are asked the same: the SQL is one text but
//! for what [`dialect`] tells.
//!
//! No answer is taken on trust: [`store`] holds each recording's samples against its balance before anything is asked, and
//! [`ask`] the sum of an answer's rows against the samples that it was made of. What does not add up is an error.

use std::process::ExitCode;

use clap::Parser;
use eprof::label::visible_lines;

mod again;
mod answer;
mod args;
mod ask;
mod balance;
#[path = "../cli/denied.rs"]
mod denied;
mod dialect;
mod dimension;
mod does_not_add_up;
mod doubt;
mod engine;
mod filter;
mod flamegraph;
#[path = "../cli/memory.rs"]
mod memory;
mod method;
mod output;
mod place;
mod rows;
mod run;
mod sources;
mod store;
mod waiting;
mod when;

fn main() -> ExitCode {
    let args = args::Args::parse();
    match run::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that went away (`eprof fleet report | head`) is no error of ours.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("eprof fleet: error: {}", visible_lines(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}
