//! All that a recording says of where it comes from.

use serde::{Deserialize, Serialize};

use super::container::{Container, Pod};
use super::job::Job;
use super::labels::Labels;
use super::machine_id::MachineId;
use super::wall_clock::WallClock;

/// Where a recording comes from, as far as that could be told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The machine, told apart from others and not to be found by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineId>,
    /// The boot: clocks and meters of recordings of one boot are the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// The recorder's PID namespace, by its inode: process ids of different ones say nothing of each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_namespace: Option<u64>,
    /// When the recording started, on the wall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<WallClock>,
    /// The job of a batch system or of an MPI launcher.
    #[serde(default, skip_serializing_if = "Job::is_empty")]
    pub job: Job,
    /// The recorded processes' control group, as the kernel tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// The container that they are in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// The pod that they are in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Pod>,
    /// What the user called the recording by.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}
