//! Verbs that hands know of other tools, and which of ours do their work.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Verbs of perf and other profilers, and what to say instead.
const OTHERS: [(&str, &str); 9] = [
    ("diff", "eprof flamegraph --diff BEFORE.data AFTER.data"),
    ("compare", "eprof flamegraph --diff BEFORE.data AFTER.data"),
    ("list", "eprof doctor"),
    ("load", "eprof view"),
    ("ui", "eprof view"),
    ("serve", "eprof view"),
    ("convert", "eprof export"),
    ("bench", "eprof stat -r 5 ./app"),
    ("query", "eprof fleet"),
];

/// The error with what does the work of a verb that eprof does not have.
pub fn explained(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(verb)) = error.get(ContextKind::InvalidSubcommand)
        && let Some((_, ours)) = OTHERS.iter().find(|(theirs, _)| theirs == verb)
    {
        let tip = format!("of {verb} this does the work: {ours}");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}
