//! The library called as a library: values in, values out. What goes in is made up, simulated, compiled here or was
//! recorded by others on other machines; perf, where it is installed, is the judge of what comes out.

#[macro_use(println, test)]
extern crate eprof_testbed;

mod all_figures;
mod error_bars;
mod live_memory;
mod live_windows;
mod perf_counts;
mod power_choice;
mod power_models;
mod published;
mod real_traces;
mod recording;
mod reference;
mod simulated;
mod simulator;
mod symbolize;
mod tables;
mod tune_accuracy;
mod tune_choice;
mod tune_data;

eprof_testbed::harness!();
