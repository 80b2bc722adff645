//! Steps 2 to 6 in one: a recording becomes a [`Profile`](crate::profile::Profile).
//!
//! Two passes over the file. The *survey* sees which events and meters there are, how much they
//! counted and over which time; the *replay* puts all records in time order, follows tasks and
//! mappings, gathers samples into cells and hands quanta and readings to the [`crate::attribute`]
//! step. Memory holds one round of the recording and the distinct stacks, not the samples.
//!
//! Where there are two CPUs, one thread replays and gathers while another surveys and then finds cells and
//! attributes; the result is the same.
//!
//! No sample loses its callers, however many stacks there are. If they take more memory than they may
//! ([`MemoryLimit`]), the replay goes on without them, and the profile comes in parts: [`Analysis`] replays the
//! recording again for whoever adds them up ([`ProfileParts`](crate::profile::ProfileParts)).

mod aggregate;
mod build_ids;
#[cfg(test)]
mod damage;
mod earlier;
mod events;
#[cfg(test)]
pub(crate) mod fixture;
mod gpu;
mod group_reads;
mod intervals;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod lent_readings;
mod memory;
mod model;
mod options;
#[cfg(test)]
mod owners;
mod passes;
mod run;
mod sample_energies;
mod sample_key;
mod steps;
#[cfg(test)]
mod unseen;

pub use aggregate::frames::{Frame, for_each_frame, frames_of};
pub use aggregate::replay::{Replay, ReplayEnd};
pub use aggregate::unwind::SampleUnwinder;
pub use build_ids::add_build_ids;
pub use earlier::EarlierIntervals;
pub use events::EventRoles;
pub use intervals::survey::{Survey, survey};
pub use memory::{MemoryLimit, TooLittleMemory};

pub use options::{
    CountedTime, Dimensions, FunctionsAlone, FunctionsOfStacks, ModelChoice, Options, StaticEnergy,
    WattsRange,
};
pub use run::{Analysis, analyze, estimate};
pub use sample_energies::SampleEnergies;
