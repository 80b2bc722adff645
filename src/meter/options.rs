//! What the user wishes of the meters.

use std::path::PathBuf;
use std::time::Duration;

use super::assumed_watts::AssumedWatts;
use super::source::Source;

/// What the user wishes of the meters.
#[derive(Debug, Clone)]
pub struct MeterOptions {
    /// The user's figures for an estimate; typical ones if `None`.
    pub watts: Option<AssumedWatts>,
    /// How long counters are watched before they are used.
    pub watch: Duration,
    /// Only these sources, in their usual order; all if `None`.
    pub only: Option<Vec<Source>>,
    /// NVIDIA's management library, if not the driver's own.
    pub nvml_library: Option<PathBuf>,
}

impl Default for MeterOptions {
    /// 25 ms: some 25 moves of a RAPL counter, so that its refresh period is known well enough.
    fn default() -> Self {
        Self { watts: None, watch: Duration::from_millis(25), only: None, nvml_library: None }
    }
}
