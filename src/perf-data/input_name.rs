//! What recordings are called that may come from standard input.

use std::borrow::Cow;
use std::path::Path;

/// The path that stands for standard input.
pub(crate) const STANDARD_INPUT: &str = "-";

/// What people call what a path leads to: a file by its path, and `-` standard input.
pub fn input_name(path: &Path) -> Cow<'_, str> {
    if path == Path::new(STANDARD_INPUT) { "standard input".into() } else { path.to_string_lossy() }
}
