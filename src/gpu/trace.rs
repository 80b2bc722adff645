//! Readings of a power sensor as they were polled: the input of all correction.

use crate::units::{Timestamp, Watts};

/// One poll of a sensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerReading {
    /// When the sensor was asked (the middle of the call, where both ends are known).
    pub time: Timestamp,
    /// What it answered.
    pub power: Watts,
}

/// Polls of one sensor in time order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PowerTrace {
    readings: Vec<PowerReading>,
}

impl PowerTrace {
    /// Takes readings in any order; those that are no number are dropped, and of two readings with
    /// the same time the later one in the input is kept.
    pub fn new(mut readings: Vec<PowerReading>) -> Self {
        readings.retain(|reading| reading.power.as_watts().is_finite());
        readings.sort_by_key(|reading| reading.time);
        let mut kept: Vec<PowerReading> = Vec::with_capacity(readings.len());
        for reading in readings {
            match kept.last_mut() {
                Some(last) if last.time == reading.time => *last = reading,
                _ => kept.push(reading),
            }
        }
        Self { readings: kept }
    }

    /// The readings in time order, no two at one time.
    pub fn readings(&self) -> &[PowerReading] {
        &self.readings
    }

    /// First and last time, if there are readings.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        Some((self.readings.first()?.time, self.readings.last()?.time))
    }

    /// The raw trace as a curve: straight lines from reading to reading, as a plotting tool or a
    /// trapezoid sum sees it.
    pub fn as_polled(&self) -> super::curve::PowerCurve {
        super::curve::PowerCurve::new(
            self.readings.iter().map(|reading| (reading.time, reading.power)).collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(nanos: u64, watts: f64) -> PowerReading {
        PowerReading { time: Timestamp::from_nanos(nanos), power: Watts::from_watts(watts) }
    }

    #[test]
    fn disorder_repeats_and_gaps_in_the_input_are_put_right() {
        let trace = PowerTrace::new(vec![
            reading(30, 3.0),
            reading(10, 1.0),
            reading(20, f64::NAN),
            reading(30, 4.0),
        ]);
        assert_eq!(trace.readings(), [reading(10, 1.0), reading(30, 4.0)]);
    }
}
