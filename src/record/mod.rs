//! Step 1: launch or attach to a program, sample it, drain the rings into a recording.

pub mod meter;
