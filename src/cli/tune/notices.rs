//! Sentences that the user of `eprof tune` should know, on stderr.

use super::super::output::say;

/// Something to know.
pub fn note(text: &str) {
    say(format_args!("note: {text}"));
}

/// Something to do something about.
pub fn warn(text: &str) {
    say(format_args!("warning: {text}"));
}
