//! What is this machine? Topology, PMUs and event encodings, energy domains, permissions.

pub mod cpu_list;
pub mod cpuinfo;
pub mod microarchitecture;
pub mod roots;
pub mod topology;

pub use roots::Roots;
