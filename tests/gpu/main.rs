//! GPUs: sensors, models and instructions by arithmetic alone, and NVIDIA's libraries by fakes of the testbed that are
//! loaded in their place.

#[macro_use(println, test)]
extern crate eprof_testbed;

mod all_figures;
mod calibrate;
mod cli;
mod cupti;
mod h200_sensor;
mod instructions;
mod k20_sensor;
mod launches;
mod models;
mod nvml;
mod ptx;
mod rc_sensors;
mod real_sensors;
mod rights;
mod switching_times;
mod trace_notes;
mod turns;

eprof_testbed::harness!();
