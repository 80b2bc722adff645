//! A sample as a text tells it.

/// A sample without its frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sample {
    /// Name of the thread.
    pub comm: String,
    pub pid: u32,
    pub tid: u32,
    pub cpu: Option<u32>,
    /// Nanoseconds of whatever clock.
    pub time: Option<u64>,
    pub event: String,
    /// How many samples it stands for.
    pub samples: u64,
    /// Events that it stands for; `None` where the text does not tell.
    pub count: Option<u64>,
}

/// A frame: one function at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    /// Name of the function; `None` where nobody knew it.
    pub symbol: Option<&'a str>,
    /// Where it lies, as perf calls it: a path or a name in brackets.
    pub module: &'a str,
    /// Put by the compiler into the function of the next frame.
    pub inlined: bool,
}

/// What perf calls what it does not know.
pub(super) const UNKNOWN: &str = "[unknown]";
