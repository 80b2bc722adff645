//! Readings that no card gives: why a trace tells no sensor.

use eprof::gpu::trace::PowerTrace;

/// How many times as high as all others.
const FAR: f64 = 3.0;
/// One of so many readings may be out of line, and no more than so many.
const ONE_OF: usize = 200;
const MOST: usize = 8;

/// Which readings are far above all others, if they are few.
fn far_above(trace: &PowerTrace) -> Option<String> {
    let mut readings = trace.readings().to_vec();
    let first = readings.first()?.time;
    readings.sort_by(|a, b| b.power.as_watts().total_cmp(&a.power.as_watts()));
    let most = MOST.min(readings.len() / ONE_OF);
    let watts = |at: usize| readings[at].power.as_watts();
    let count = (1..=most).find(|count| watts(*count) > 0.0 && watts(count - 1) > FAR * watts(*count))?;
    let at = readings[0].time.since(first).as_secs_f64();
    let (what, which) = match count {
        1 => ("one reading is".to_owned(), ""),
        _ => (format!("{count} readings are"), "the highest "),
    };
    Some(format!(
        "{what} more than three times as high as all others ({which}{:.1} W, {at:.3} s after the first; others are up to \
         {:.1} W): take out rows that are errors of the sensor or of the log",
        watts(0),
        watts(count)
    ))
}

/// An error of a trace, with the readings that are out of line before it.
pub fn with_far_above(error: anyhow::Error, trace: &PowerTrace) -> anyhow::Error {
    match far_above(trace) {
        Some(readings) => error.context(readings),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use eprof::gpu::trace::PowerReading;
    use eprof::units::{Timestamp, Watts};

    use super::*;

    fn with(spikes: usize, watts: f64) -> Option<String> {
        let reading = |n: usize| PowerReading {
            time: Timestamp::from_nanos(n as u64 * 10_000_000),
            power: Watts::from_watts(if (500..500 + spikes).contains(&n) { watts } else { 300.0 }),
        };
        far_above(&PowerTrace::new((0..1000).map(reading).collect()))
    }

    #[test]
    fn few_readings_that_are_far_above_all_others_are_named() {
        let text = with(1, 2000.0).expect("one");
        assert!(text.starts_with("one reading is") && text.contains("(2000.0 W, 5.000 s after"), "{text}");
        assert!(text.contains("up to 300.0 W"), "{text}");
        assert!(with(2, 2000.0).expect("two").starts_with("2 readings are"));
        assert_eq!((with(1, 890.0), with(100, 2000.0), with(0, 0.0)), (None, None, None));
    }
}
