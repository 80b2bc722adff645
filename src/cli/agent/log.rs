//! What the agent says: a line each on stderr, and no kind of line too often.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::cli::output::say;

/// Lines of one kind are this far apart.
const PAUSE: Duration = Duration::from_secs(60);

/// Says lines.
#[derive(Debug, Default)]
pub struct Log {
    kinds: Mutex<BTreeMap<&'static str, Said>>,
}

#[derive(Debug)]
struct Said {
    last: Instant,
    kept_back: u64,
}

impl Log {
    /// Says a line of a kind, unless one of that kind was said just before.
    pub fn say(&self, kind: &'static str, line: impl Display) {
        if let Some(kept_back) = self.may_say(kind, Instant::now()) {
            let line = line.to_string().replace(['\n', '\r'], " ");
            match kept_back {
                0 => say(line),
                1 => say(format_args!("{line} (and once more meanwhile)")),
                times => say(format_args!("{line} (and {times} times more meanwhile)")),
            }
        }
    }

    /// Says a line to somebody who asked for what it tells, as by a signal: however often that is.
    pub fn answer(&self, line: impl Display) {
        say(line.to_string().replace(['\n', '\r'], " "));
    }

    /// The next line of this kind is said, whenever the last one was.
    pub fn is_over(&self, kind: &'static str) {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).remove(kind);
    }

    /// How many lines of the kind were kept back, if one may be said now.
    fn may_say(&self, kind: &'static str, now: Instant) -> Option<u64> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        match kinds.get_mut(kind) {
            Some(said) if now.duration_since(said.last) < PAUSE => {
                said.kept_back += 1;
                None
            }
            said => {
                let kept_back = said.map_or(0, |said| said.kept_back);
                kinds.insert(kind, Said { last: now, kept_back: 0 });
                Some(kept_back)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_said_once_a_minute_and_the_rest_is_counted() {
        let log = Log::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(log.may_say("disk", at(0)), Some(0));
        assert_eq!((log.may_say("disk", at(1)), log.may_say("disk", at(59))), (None, None));
        assert_eq!(log.may_say("meter", at(2)), Some(0), "another kind");
        assert_eq!(log.may_say("disk", at(60)), Some(2));
        assert_eq!(log.may_say("disk", at(61)), None);
        log.is_over("disk");
        assert_eq!(log.may_say("disk", at(62)), Some(0));
    }
}
