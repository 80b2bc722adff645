//! The `eprof` binary: parse the command line, call the library, print what went wrong once.

use std::process::ExitCode;

mod cli;

fn main() -> ExitCode {
    cli::main()
}
