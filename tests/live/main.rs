//! The binary on programs that run here, on this kernel. What the machine lacks, or this user may not do, is skipped
//! and said; with `EPROF_REQUIRE_LIVE=1` it is a failure.

#[macro_use(println, test)]
extern crate eprof_testbed;

mod agent;
mod broken_paths;
mod real_programs;
mod record;
mod stat;
mod top;
mod top_counts;
mod tune_program;

fn main() -> std::process::ExitCode {
    // A program to record, instead of the tests.
    if record::workload::run_turns() {
        return std::process::ExitCode::SUCCESS;
    }
    eprof_testbed::harness::main()
}
