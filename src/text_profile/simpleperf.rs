//! What Android's `simpleperf report-sample --show-callchain` prints.
//!
//! ```text
//! sample:
//!   event_type: cpu-cycles
//!   time: 19107193452000
//!   event_count: 25000
//!   thread_id: 2543
//!   thread_name: ndroid.settings
//!   vaddr_in_file: 5ea4
//!   file: /system/lib64/libc.so
//!   symbol: __epoll_pwait
//!   callchain:
//!     vaddr_in_file: 18da0
//!     file: /system/lib64/libc.so
//!     symbol: epoll_wait
//! ```

use std::io::BufRead;

use super::builder::Builder;
use super::error::TextError;
use super::lines::Lines;
use super::names::without_offset;
use super::sample::{Frame, Sample, UNKNOWN};

/// Does a text with this first line look like one?
pub(super) fn begins(first: &str) -> bool {
    first.trim_end() == "sample:"
}

/// A sample as far as its lines have come.
#[derive(Default)]
struct Pending {
    event: String,
    time: Option<u64>,
    count: Option<u64>,
    pid: Option<u32>,
    tid: u32,
    comm: String,
    frames: Vec<(String, Option<String>)>,
}

/// Reads all samples.
pub(super) fn read(lines: &mut Lines<impl BufRead>, builder: &mut Builder) -> Result<(), TextError> {
    let mut pending: Option<Pending> = None;
    while let Some(line) = lines.next()? {
        if line.trim().is_empty() {
            continue;
        }
        // What begins a line begins something: a sample, or what else the recorder has to say.
        if !line.starts_with(char::is_whitespace) {
            pending.take().into_iter().for_each(|sample| sample.hand_on(builder));
            pending = begins(&line).then(Pending::default);
            continue;
        }
        let Some(sample) = &mut pending else { continue };
        match line.trim().split_once(':') {
            Some((key, value)) => sample.take(key, value.trim()),
            None => lines.is_strange(),
        }
    }
    pending.into_iter().for_each(|sample| sample.hand_on(builder));
    builder.warn(lines.warning());
    Ok(())
}

impl Pending {
    fn take(&mut self, key: &str, value: &str) {
        match key {
            "event_type" => self.event = value.to_owned(),
            "time" => self.time = value.parse().ok(),
            "event_count" => self.count = value.parse().ok(),
            "process_id" => self.pid = value.parse().ok(),
            "thread_id" => self.tid = value.parse().unwrap_or(0),
            "thread_name" => self.comm = value.to_owned(),
            // It comes first of a frame.
            "vaddr_in_file" => self.frames.push((UNKNOWN.to_owned(), None)),
            "file" => {
                if let Some((module, _)) = self.frames.last_mut() {
                    *module = value.to_owned();
                }
            }
            "symbol" => {
                if let Some((_, symbol)) = self.frames.last_mut() {
                    *symbol = Some(value.to_owned());
                }
            }
            // What later versions tell besides.
            _ => {}
        }
    }

    fn hand_on(self, builder: &mut Builder) {
        let Self { event, time, count, pid, tid, comm, frames } = self;
        let pid = pid.unwrap_or(tid);
        builder.begin_sample(Sample { comm, pid, tid, cpu: None, time, event, samples: 1, count });
        for (module, symbol) in &frames {
            builder.add_frame(frame(module, symbol.as_deref().unwrap_or_default()));
        }
        builder.end_sample();
    }
}

fn frame<'a>(module: &'a str, symbol: &'a str) -> Frame<'a> {
    let symbol = without_offset(symbol);
    // simpleperf calls code without symbol by its module: `libxul.so[+745758]`.
    let is_place = symbol.rsplit_once("[+").is_some_and(|(name, _)| module.ends_with(name));
    let is_known = !symbol.is_empty() && symbol != "unknown" && symbol != UNKNOWN && !is_place;
    let module = if module == "unknown" { UNKNOWN } else { module };
    Frame { symbol: is_known.then_some(symbol), module, inlined: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_without_symbol_is_called_by_its_module() {
        assert_eq!(frame("/system/lib/libxul.so", "libxul.so[+745758]").symbol, None);
        assert_eq!(frame("/system/lib/libxul.so", "f[+1]").symbol, Some("f[+1]"));
        assert_eq!(frame("unknown", "unknown"), Frame { symbol: None, module: UNKNOWN, inlined: false });
    }
}
