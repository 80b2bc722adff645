//! Numbers of tracepoints, from tracefs.

use std::io;
use std::path::{Path, PathBuf};

use super::event_spec::{EventError, nearest};
use super::roots::{Roots, read_number, sorted_names};

/// The number of tracepoint `system:name`, as `attr.config` takes it.
///
/// # Errors
/// If tracefs is not mounted or closed to this user, or has no such tracepoint; the message says
/// which, and what helps.
pub fn id(roots: &Roots, system: &str, name: &str) -> Result<u64, EventError> {
    let event = format!("{system}:{name}");
    if [system, name].iter().any(|part| part.contains(['*', '?', '['])) {
        return Err(EventError::Malformed { event, why: "patterns are not supported; name one tracepoint" });
    }
    let is_name = |part: &str| part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if !is_name(system) || !is_name(name) {
        return Err(EventError::Malformed {
            event,
            why: "a tracepoint's name has letters, digits and '_' only",
        });
    }
    let (tracefs, events) = match events_folder(roots) {
        Ok(found) => found,
        Err(Missing::NotMounted(at)) => return Err(EventError::NoTracefs { event, at }),
        Err(Missing::Closed(tracefs, source)) => {
            return Err(EventError::TracefsClosed { event, path: tracefs.clone(), tracefs, source });
        }
    };
    let path = events.join(system).join(name).join("id");
    match read_number(&path) {
        Ok(id) => Ok(id),
        Err(source) if source.kind() == io::ErrorKind::PermissionDenied => {
            Err(EventError::TracefsClosed { event, path, tracefs, source })
        }
        Err(_) => {
            let candidates = candidates(&events, system);
            Err(EventError::UnknownEvent { nearest: nearest(&event, candidates), event })
        }
    }
}

enum Missing {
    NotMounted(PathBuf),
    Closed(PathBuf, io::Error),
}

/// tracefs and its folder of events: at its own place, or within debugfs as before Linux 4.1.
fn events_folder(roots: &Roots) -> Result<(PathBuf, PathBuf), Missing> {
    let places = ["kernel/tracing", "kernel/debug/tracing"].map(|place| roots.sysfs.join(place));
    let mut closed = None;
    for place in &places {
        let events = place.join("events");
        match events.metadata() {
            Ok(_) => return Ok((place.clone(), events)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                closed.get_or_insert((place.clone(), error));
            }
            Err(_) => {}
        }
    }
    let [own_place, _] = places;
    match closed {
        Some((place, error)) => Err(Missing::Closed(place, error)),
        None => Err(Missing::NotMounted(own_place)),
    }
}

/// Tracepoints of the same system, or of all if there is no such system.
fn candidates(events: &Path, system: &str) -> Vec<String> {
    let of = |system: &str| {
        let names = sorted_names(&events.join(system));
        names.into_iter().map(move |name| format!("{system}:{name}")).collect::<Vec<_>>()
    };
    let same = of(system);
    if !same.is_empty() {
        return same;
    }
    sorted_names(events).iter().flat_map(|system| of(system)).collect()
}
