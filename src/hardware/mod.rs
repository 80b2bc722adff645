//! What machines are made of, as far as energy goes: CPUs and kinds of core, energy domains, and the roles that events
//! have in a power model. Types only: [`crate::machine`] finds out what is there, [`crate::recording`] writes it down.

mod cpu;
mod domain;
mod named_values;
mod role;

pub use cpu::{CoreKind, CpuInfo, MachineInfo};
pub use domain::{BUSY_WATTS_OF_SERVERS, DomainInfo, DomainKind, Method, RestPower, TYPICAL_WATTS_ERROR};
pub use role::Role;
