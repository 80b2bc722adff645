//! Symbolizing programs that are compiled here, in the forms in which programs come.

mod declarations;
mod functions;
mod hidden_callers;
mod hostile;
mod jit;
mod kernel;
mod leaf_on_arm;
mod like_perf;
mod live;
mod programs;
mod return_address;
mod support;
mod unwinding;
