//! A balance in JSON.

use serde::Serialize;

use crate::profile::Balance;
use crate::units::Joules;

/// See [`super::json`].
#[derive(Serialize)]
pub(super) struct JsonBalance {
    attributed: Joules,
    #[serde(rename = "static")]
    static_energy: Joules,
    other: Joules,
    lost: Joules,
    recorder: Joules,
    relative_error: f64,
}

impl JsonBalance {
    pub(super) fn new(balance: &Balance) -> Self {
        Self {
            attributed: balance.attributed,
            static_energy: balance.static_energy,
            other: balance.other_processes,
            lost: balance.lost,
            recorder: balance.recorder,
            relative_error: balance.error(),
        }
    }
}
