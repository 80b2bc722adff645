//! `eprof fleet`: asks the tables that `eprof export --format parquet` wrote, of many machines, by SQL.
//!
//! The engine is DataFusion, embedded. It is several times larger than eprof, so that it is a program of its own, which
//! `eprof fleet` finds and runs.
//!
//! No answer is taken on trust: [`store`] holds each recording's samples against its balance before anything is asked, and
//! [`ask`] the sum of an answer's rows against the samples that it was made of. What does not add up is an error.

use std::process::ExitCode;

use clap::Parser;
use eprof::label::visible_lines;

mod answer;
mod args;
mod ask;
mod balance;
mod dimension;
mod filter;
mod flamegraph;
mod output;
mod rows;
mod run;
mod store;
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
