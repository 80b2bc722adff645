//! What is exported together: its id, and its window of time.

use std::time::{SystemTime, UNIX_EPOCH};

use super::content_id::ContentId;
use crate::profile::Profile;
use crate::report::exporter::Exported;
use crate::units::Nanoseconds;

/// The id of what is exported together: of one recording, or of several of one boot that ran at the same time. The same
/// recordings have the same id whenever and wherever they are exported.
pub fn recording_id(profile: &Profile) -> i64 {
    let mut id = ContentId::new("recording");
    for origin in &profile.recordings {
        let identity = origin.identity.as_ref();
        id.text(&origin.hostname)
            .text(identity.and_then(|identity| identity.boot.as_deref()).unwrap_or_default())
            .number(origin.started_unix_ns.unwrap_or(0))
            .number(u64::from(origin.recorder_pid.unwrap_or(0)));
    }
    id.number(profile.start.as_nanos()).number(profile.duration.as_nanos());
    for event in &profile.events {
        id.text(&event.name).number(event.samples).number(event.count);
    }
    for domain in &profile.domains {
        id.text(&domain.info.name).number(domain.balance.measured.as_joules().to_bits());
    }
    id.finish()
}

/// When a recording began and ended, in microseconds since 1970-01-01 UTC.
pub(super) fn window(exported: &Exported<'_>) -> (i64, i64) {
    let since_1970 = |started: SystemTime| started.duration_since(UNIX_EPOCH).ok();
    let start = exported.started.and_then(since_1970).unwrap_or_default();
    let duration = exported.profile.profile().duration;
    let end = Nanoseconds::from_nanos((start.as_nanos() as u64).saturating_add(duration.as_nanos()));
    ((start.as_nanos() / 1000) as i64, (end.as_nanos() / 1000) as i64)
}
