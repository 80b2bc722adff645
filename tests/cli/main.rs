//! The binary as a person runs it, on files that are given to it: what it prints, writes and refuses.

#[macro_use(println, test)]
extern crate eprof_testbed;

mod agent;
mod denied;
mod doctor;
mod doubtful_tables;
mod energy_weighted_perf_data;
mod files_of_perf;
mod inputs_are_kept;
mod manual;
mod push;
mod reflexes;
mod report;
mod script_like_perf;
mod stacks_like_perf;
mod symfs;
mod table_verbs;
mod text_profiles;
mod tune_table;
mod verify;

eprof_testbed::harness!();
