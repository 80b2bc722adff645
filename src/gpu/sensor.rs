//! What is known about one GPU's power sensor.

use serde::{Deserialize, Serialize};

use super::phases::IdleLevel;
use crate::units::{Nanoseconds, Watts};

/// How a sensor's answer follows the true power.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SensorKind {
    /// Like a capacitor that charges: `P = s + C ds/dt` (Kepler and Maxwell; Burtscher et al. 2014).
    Rc {
        /// C, the time constant.
        time_constant: Nanoseconds,
    },
    /// The mean over a window that ends at the refresh (Pascal and later). A window shorter than the
    /// refresh period leaves the rest of the time unobserved.
    Boxcar {
        /// Length of the window.
        window: Nanoseconds,
    },
    /// A counter of joules: nothing to correct.
    Counter,
}

/// A sensor and its board.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SensorModel {
    /// How it follows the power.
    pub kind: SensorKind,
    /// Time between refreshes; `None` to infer it from each trace.
    pub refresh: Option<Nanoseconds>,
    /// True power per reported power. Boards differ by up to 11 %; 1 unless measured with a meter.
    pub gain: f64,
    /// Added to the reported power times `gain`.
    pub offset: Watts,
    /// Power that the GPU draws with a context but no kernel; `None` if not known.
    pub active_idle: Option<Watts>,
    /// One standard error of that, as it was when it was found.
    #[serde(default)]
    pub active_idle_error: Watts,
    /// One standard error of the time constant or of the window, as a share of it; 0 where it was given by hand.
    #[serde(default)]
    pub length_error: f64,
    /// One standard error of the gain, as a share of it.
    #[serde(default = "unmeasured_gain")]
    pub gain_error: f64,
    /// One standard error of what the sensor's least power stands for.
    #[serde(default)]
    pub offset_error: Watts,
    /// How long after the end of its window a value was seen, on the clock of the switching times; `None` if not known.
    #[serde(default)]
    pub delay: Option<Delay>,
}

/// What lies between a sensor's window and its answer, the difference of the clocks included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Delay {
    /// Seconds; negative where the sensor's clock is behind.
    pub seconds: f64,
    /// One standard error.
    pub std_error: f64,
}

/// What NVIDIA states for a board: 5 % more or less. Of boards beside a meter most are within that, and some 11 % off (Yang,
/// Adamek and Armour 2024).
pub const UNMEASURED_GAIN: f64 = 0.05;

fn unmeasured_gain() -> f64 {
    UNMEASURED_GAIN
}

impl SensorModel {
    /// A sensor of a kind, with nothing else known.
    pub fn new(kind: SensorKind) -> Self {
        Self {
            kind,
            refresh: None,
            gain: 1.0,
            offset: Watts::ZERO,
            active_idle: None,
            active_idle_error: Watts::ZERO,
            length_error: 0.0,
            gain_error: UNMEASURED_GAIN,
            offset_error: Watts::ZERO,
            delay: None,
        }
    }

    /// The Tesla K20 of Burtscher et al.: C = 0.8333 s (the paper's "833.333 s" is in milliseconds),
    /// a refresh every 15 ms, active idle at 52.5 W.
    pub fn k20() -> Self {
        Self {
            refresh: Some(Nanoseconds::from_millis(15)),
            active_idle: Some(Watts::from_watts(52.5)),
            ..Self::new(SensorKind::Rc { time_constant: Nanoseconds::from_nanos(833_333_333) })
        }
    }

    /// With a level at which the GPU waits, if one was found.
    pub fn with_active_idle(self, level: Option<IdleLevel>) -> Self {
        let active_idle_error = level.map_or(Watts::ZERO, |level| level.std_error);
        Self { active_idle: level.map(|level| level.power), active_idle_error, ..self }
    }

    /// A reported power with this board's gain and offset put right.
    pub fn scaled(&self, reported: Watts) -> Watts {
        reported * self.gain + self.offset
    }
}

/// The steady power that charges a capacitor from what it shows at first to what it shows in the end, when this share of the first
/// is `kept`.
pub(super) fn charging_power(from: Watts, to: Watts, kept: f64) -> Watts {
    (to - from * kept) / (1.0 - kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_sensor_that_tells_no_error_has_that_of_an_unmeasured_board() {
        let model = SensorModel::new(SensorKind::Counter);
        let mut stored = serde_json::to_value(model).expect("JSON");
        let fields = stored.as_object_mut().expect("an object");
        for field in ["gain_error", "length_error", "offset_error"] {
            assert!(fields.remove(field).is_some(), "{field}");
        }
        let read: SensorModel = serde_json::from_value(stored).expect("an older one");
        assert_eq!((read.gain_error, read.length_error), (UNMEASURED_GAIN, 0.0));
        assert_eq!(SensorModel { gain_error: model.gain_error, ..read }, model);
    }
}
