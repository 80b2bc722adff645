//! Where a recording comes from: machine and boot, job and rank, container and pod, and the user's own labels.
//!
//! Recordings of many machines, ranks or runs can be told apart, and added up, only by what they say of themselves. Here is
//! what they say, and how it is made of what the environment and the kernel's files tell: values in, values out. Who
//! records reads these and writes the [`Identity`] down.

mod cgroup;
mod container;
mod control_groups;
mod dimension;
mod job;
mod labels;
mod machine_id;
mod text;
mod value;
mod wall_clock;

pub use container::{Container, Pod};
pub use control_groups::ControlGroups;
pub use dimension::{Dimension, UnknownDimension};
pub use job::Job;
pub use labels::{LabelError, Labels};
pub use machine_id::MachineId;
pub use value::Identity;
pub use wall_clock::WallClock;
