//! What service managers need to run the agent with the least rights.

use clap::ValueEnum;

/// Who runs the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Manager {
    /// A service of systemd.
    Systemd,
    /// A DaemonSet of Kubernetes.
    Kubernetes,
}

impl Manager {
    /// The text that it reads.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Systemd => include_str!("eprof-agent.service"),
            Self::Kubernetes => include_str!("eprof-agent.yaml"),
        }
    }
}
