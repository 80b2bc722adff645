//! What a worker process is to do, and what it has done: as text, since it is another process.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::kernels::{Kernel, WorkingSizes};

/// The work of one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Threads, each on a CPU of its own.
    pub lanes: Vec<Lane>,
    /// How long it works.
    pub seconds: f64,
    /// How long it works before that; its work then does not count.
    pub warm_up_seconds: f64,
    /// What the kernels read.
    pub sizes: WorkingSizes,
    /// File in which each thread names its kernel whenever it takes up another one, and says `default` at its end.
    pub announce: Option<PathBuf>,
    /// Say `ready` on standard output after the warm-up, and begin when a line comes in.
    pub waits: bool,
    /// File for what was done.
    pub result: PathBuf,
}

/// One thread: its kernels take turns until the time is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Its CPU.
    pub cpu: u32,
    /// Kernels in their order.
    pub turns: Vec<Turn>,
}

/// A kernel's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The kernel.
    pub kernel: Kernel,
    /// Units of work of a turn, on average.
    pub units: u64,
}

/// What a worker process did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Its id.
    pub pid: u32,
    /// What each thread did of each kernel.
    pub work: Vec<Amount>,
    /// From the beginning of the first thread's work to the end of the last one's.
    pub seconds: f64,
}

/// How much of a kernel's work was done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Amount {
    /// The kernel.
    pub kernel: Kernel,
    /// Units.
    pub units: u64,
    /// CPU time that the thread took for them, by its own clock.
    pub cpu_seconds: f64,
}

impl Done {
    /// What all threads together did of a kernel.
    pub fn of(&self, kernel: Kernel) -> Amount {
        let of_kernel = self.work.iter().filter(|amount| amount.kernel == kernel);
        of_kernel.fold(Amount { kernel, units: 0, cpu_seconds: 0.0 }, |sum, amount| Amount {
            kernel,
            units: sum.units + amount.units,
            cpu_seconds: sum.cpu_seconds + amount.cpu_seconds,
        })
    }
}

impl Task {
    /// Every kernel that has a turn, each once.
    pub fn kernels(&self) -> Vec<Kernel> {
        let mut kernels: Vec<Kernel> =
            self.lanes.iter().flat_map(|lane| lane.turns.iter().map(|turn| turn.kernel)).collect();
        kernels.sort_unstable();
        kernels.dedup();
        kernels
    }
}
