//! What launchers tell by environment variables.

/// The value of an environment variable.
pub(in crate::cli) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
