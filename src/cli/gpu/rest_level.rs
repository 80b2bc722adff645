//! Which active idle level joules are counted from: that of the sensor's description, or what the log itself rests at.

use eprof::gpu::correct::Corrected;
use eprof::gpu::phases::{self, IdleLevel};
use eprof::units::Watts;

/// Standard errors by which two levels must differ before one of them is said to be another.
const BEYOND: f64 = 3.0;

/// The level to count from, and what is to be said where the log contradicts the description.
///
/// What follows the last load may be a GPU that nobody uses any more, which draws less: only rests between loads are better
/// than what is described.
pub fn chosen(
    described: Option<IdleLevel>,
    shown: Option<IdleLevel>,
    corrected: &Corrected,
) -> (Option<IdleLevel>, Option<String>) {
    let Some(described) = described else { return (shown, None) };
    let text =
        |level: IdleLevel| format!("{:.1} ± {:.1} W", level.power.as_watts(), level.std_error.as_watts());
    let contradicts = |level: &IdleLevel| {
        let error = level.std_error.as_watts().hypot(described.std_error.as_watts());
        (level.power - described.power).as_watts().abs() > BEYOND * error
    };
    if let Some(own) = between_loads(corrected).filter(contradicts) {
        let note = format!(
            "the log rests at {} between loads, and the sensor's description has {}: joules above idle are above what the log \
             rests at. `eprof gpu calibrate` on a log of this card writes a description that fits it",
            text(own),
            text(described)
        );
        return (Some(own), Some(note));
    }
    let note = match shown.filter(contradicts) {
        Some(after) => Some(format!("the log rests at {} after its load", text(after))),
        None if shown.is_none() => never_rests(described, corrected),
        None => None,
    };
    let note = note.map(|what| {
        format!(
            "{what}, and the sensor's description has {}: joules above idle are above the latter. If it is of another card, \
             leave out --sensor or let `eprof gpu calibrate` find this card's",
            text(described)
        )
    });
    (Some(described), note)
}

/// The level of rests that another load follows.
fn between_loads(corrected: &Corrected) -> Option<IdleLevel> {
    let (levels, noise) = (&corrected.levels, corrected.level_noise);
    let middle = phases::middle_level(levels, noise)?;
    let last = levels.iter().rposition(|segment| segment.power > middle)?;
    phases::idle_level(&levels[..=last], noise, corrected.settling())
}

/// All of the log lies above what is taken for work, though it tells no level of its own.
fn never_rests(described: IdleLevel, corrected: &Corrected) -> Option<String> {
    let threshold = phases::work_threshold(&corrected.levels, described.power, corrected.level_noise);
    let lowest = corrected.levels.iter().map(|segment| segment.power.as_watts()).fold(f64::MAX, f64::min);
    (Watts::from_watts(lowest) > threshold).then(|| format!("the log never falls below {lowest:.1} W"))
}
