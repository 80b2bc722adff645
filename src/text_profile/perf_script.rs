//! What `perf script` prints, with any of its fields, and what tools print that imitate it (simpleperf's
//! `report_sample.py`, eBPF profilers).
//!
//! ```text
//! V8 WorkerThread 24636/25607 [000] 94564.109216:      10101 cycles:u:
//!     ffffffff8103ce3b native_safe_halt+0xb ([kernel.kallsyms])
//!         7f533952bc77 inner (inlined)
//!         7f533952bc77 outer+0x597 (/usr/lib/libx.so)
//!
//! false 64414 20110.539270:      34467 cycles:u:  ffffffff9aa3c8de [unknown] ([unknown])
//! ```

use std::io::BufRead;

use super::builder::Builder;
use super::error::TextError;
use super::lines::Lines;
use super::names::without_offset;
use super::sample::{Frame, Sample, UNKNOWN};

/// The event of samples that do not tell it.
const NO_EVENT: &str = "samples";

/// Does a text with these first lines look like one?
pub(super) fn begins(first: &str, second: Option<&str>) -> bool {
    let Some(header) = header(first) else { return false };
    header.is_plain() || header.own.is_some() || second.is_some_and(|line| frame(line).is_some())
}

/// Reads all samples.
pub(super) fn read(lines: &mut Lines<impl BufRead>, builder: &mut Builder) -> Result<(), TextError> {
    let (mut is_open, mut skips) = (false, false);
    while let Some(line) = lines.next()? {
        if let Some(comment) = line.strip_prefix('#') {
            builder.take_comment(comment);
            continue;
        }
        if line.trim().is_empty() {
            builder.end_sample();
            (is_open, skips) = (false, false);
            continue;
        }
        let header = header(&line);
        skips &= !header.as_ref().is_some_and(Header::is_plain);
        if skips {
            continue;
        }
        match (is_open, frame(&line)) {
            // A sample may follow without an empty line where none has callers.
            (true, Some(frame)) if !header.as_ref().is_some_and(Header::is_plain) => builder.add_frame(frame),
            (true, None) if !header.as_ref().is_some_and(Header::is_plain) => lines.is_strange(),
            _ => match header {
                // What is not a sample but another record (--show-task-events and its like).
                Some(header) if header.sample.event.starts_with("PERF_RECORD_") => {}
                // What eprof writes beside samples; perf shows its bytes below.
                Some(header) if is_of_eprof(&header.sample.event) => {
                    builder.end_sample();
                    is_open = false;
                    skips = true;
                }
                Some(Header { sample, own, .. }) => {
                    builder.end_sample();
                    builder.begin_sample(sample);
                    is_open = own.is_none();
                    if let Some(own) = own {
                        builder.add_frame(own);
                        builder.end_sample();
                    }
                }
                None => lines.is_strange(),
            },
        }
    }
    builder.end_sample();
    builder.warn(lines.warning());
    Ok(())
}

/// Readings of meters, CPU times and the like in recordings of eprof's own.
fn is_of_eprof(event: &str) -> bool {
    ["eprof/", "energy/"].iter().any(|its| event.starts_with(its)) && event.ends_with('/')
}

/// The first line of a sample.
struct Header<'a> {
    sample: Sample,
    has_event: bool,
    /// The only frame, where it stands in the same line.
    own: Option<Frame<'a>>,
}

impl Header<'_> {
    /// It cannot be a frame.
    fn is_plain(&self) -> bool {
        self.has_event && self.sample.time.is_some()
    }
}

/// The words of a text, each with what stands behind it.
fn words(text: &str) -> impl Iterator<Item = (&str, &str)> + Clone {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.trim_start();
        let end = start.find(char::is_whitespace).unwrap_or(start.len());
        let (word, behind) = start.split_at(end);
        rest = behind;
        (!word.is_empty()).then_some((word, behind))
    })
}

fn header(line: &str) -> Option<Header<'_>> {
    // A name may hold blanks and numbers; the thread's number is what stands before a CPU or a time, or the first.
    let all = || words(line).zip(words(line).skip(1).map(|(next, _)| Some(next)).chain([None])).skip(1);
    let is_id = |((word, _), next): &((&str, &str), Option<&str>)| {
        ids(word).is_some() && next.is_some_and(|next| cpu(next).is_some() || time(next).is_some())
    };
    let found = all().find(is_id).or_else(|| all().find(|((word, _), _)| ids(word).is_some()));
    let ((id, behind), _) = found?;
    let (pid, tid) = ids(id)?;
    let comm = line[..line.len() - behind.len() - id.len()].trim().to_owned();
    let mut sample = Sample {
        comm,
        pid: pid.unwrap_or(tid),
        tid,
        cpu: None,
        time: None,
        event: NO_EVENT.to_owned(),
        samples: 1,
        count: None,
    };
    let mut fields = words(behind);
    let mut at = fields.next();
    if let Some(found) = at.and_then(|(word, _)| cpu(word)) {
        sample.cpu = u32::try_from(found).ok();
        at = fields.next();
    }
    // Between them may stand what the kernel was doing (`d..1.`).
    let mut ahead = fields.clone();
    if let (Some((word, _)), Some(next)) = (at, ahead.next())
        && time(word).is_none()
        && time(next.0).is_some()
    {
        (at, fields) = (Some(next), ahead);
    }
    if let Some(found) = at.and_then(|(word, _)| time(word)) {
        sample.time = Some(found);
        at = fields.next();
    }
    if let Some(count) = at.and_then(|(word, _)| word.parse().ok()) {
        sample.count = Some(count);
        at = fields.next();
    }
    let event = at.and_then(|(word, behind)| Some((word.strip_suffix(':')?, behind)));
    let event = event.filter(|(name, _)| !name.is_empty());
    if let Some((name, _)) = event {
        sample.event = name.to_owned();
    } else if let Some((word, _)) = at.filter(|(word, _)| word.starts_with("PERF_RECORD_")) {
        sample.event = word.to_owned();
    }
    let own =
        event.and_then(|(_, behind)| frame(behind)).filter(|own| own.module != UNKNOWN || ends_unknown(line));
    Some(Header { sample, has_event: event.is_some(), own })
}

/// A frame's module is said to be unknown, and not merely left out: else any text behind a tracepoint could be a frame.
fn ends_unknown(line: &str) -> bool {
    line.trim_end().ends_with("([unknown])")
}

/// `TID` or `PID/TID`. The kernel's own threads of other systems have negative numbers.
fn ids(word: &str) -> Option<(Option<u32>, u32)> {
    match word.split_once('/') {
        Some((pid, tid)) => Some((Some(number(pid)?), number(tid)?)),
        None => Some((None, number(word)?)),
    }
}

fn number(text: &str) -> Option<u32> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// `[003]`; negative where perf did not know it.
fn cpu(word: &str) -> Option<i64> {
    word.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// `94564.109216:` in nanoseconds.
fn time(word: &str) -> Option<u64> {
    const DIGITS: usize = 9;
    let (seconds, fraction) = word.strip_suffix(':')?.split_once('.')?;
    if fraction.len() > DIGITS || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanoseconds: u64 = format!("{fraction:0<DIGITS$}").parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// `address symbol (module)`, with or without the last.
fn frame(line: &str) -> Option<Frame<'_>> {
    let (address, rest) = words(line).next()?;
    let address = address.strip_prefix("0x").unwrap_or(address);
    if address.len() > 16 || !address.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let is_indented = line.starts_with(char::is_whitespace);
    let (symbol, module) = match module_at_end(rest) {
        Some(found) => found,
        None if is_indented && !rest.trim().is_empty() => (rest, UNKNOWN),
        None => return None,
    };
    let symbol = without_offset(symbol.trim());
    let inlined = module == "inlined";
    let module = if inlined { UNKNOWN } else { without_offset(module) };
    Some(Frame { symbol: (!symbol.is_empty() && symbol != UNKNOWN).then_some(symbol), module, inlined })
}

/// What stands in the last parentheses of a line, and what stands before. Paths may hold blanks and parentheses.
fn module_at_end(text: &str) -> Option<(&str, &str)> {
    let inside = text.trim_end().strip_suffix(')')?;
    let mut depth = 1;
    for (at, character) in inside.char_indices().rev() {
        match character {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let before = &inside[..at];
            let begins = before.is_empty() || before.ends_with(char::is_whitespace);
            return begins.then(|| (before, &inside[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(line: &str) -> (String, u32, u32, Option<u32>, Option<u64>, Option<u64>, String) {
        let Sample { comm, pid, tid, cpu, time, event, count, .. } = header(line).expect(line).sample;
        (comm, pid, tid, cpu, time, count, event)
    }

    #[test]
    fn first_lines_of_samples_have_what_fields_were_asked_for() {
        let name = |text: &str| text.to_owned();
        assert_eq!(
            parsed("java 25607 4794564.109216: cycles:"),
            (name("java"), 25607, 25607, None, Some(4_794_564_109_216_000), None, name("cycles"))
        );
        assert_eq!(
            parsed("V8 WorkerThread 24636/25607 [010] 94564.109216789:   10101010 cycles:u:"),
            (
                name("V8 WorkerThread"),
                24636,
                25607,
                Some(10),
                Some(94_564_109_216_789),
                Some(10_101_010),
                name("cycles:u")
            )
        );
        assert_eq!(
            parsed("Gecko\t25122 [007] 115539.936601:\t\t1000000 task-clock:u:"),
            (
                name("Gecko"),
                25122,
                25122,
                Some(7),
                Some(115_539_936_601_000),
                Some(1_000_000),
                name("task-clock:u")
            )
        );
        assert_eq!(
            parsed("java 19983 cycles:"),
            (name("java"), 19983, 19983, None, None, None, name("cycles"))
        );
        // A number in a name, and what the kernel was doing.
        assert_eq!(
            parsed(" worker 7 of 9 1234/1235 [-01] d..1. 3.5: sched:sched_switch: prev_comm=a 12"),
            (name("worker 7 of 9"), 1234, 1235, None, Some(3_500_000_000), None, name("sched:sched_switch"))
        );
        assert!(header("no number").is_none() && header("").is_none() && header("12").is_none());
    }

    #[test]
    fn the_only_frame_may_stand_in_the_first_line() {
        let of = |line| header(line).and_then(|header| header.own).map(|own| (own.symbol, own.module));
        let flat = "false 64414 20110.539270:  34467 cycles:u:  ffffffff9aa3c8de [unknown] ([unknown])";
        assert_eq!(of(flat), Some((None, "[unknown]")));
        assert_eq!(of("a 1 2.5: 3 cycles: 12 f+0x1 (/x y)"), Some((Some("f"), "/x y")));
        assert_eq!(of("a 1 2.5: 3 sched:x: add 12"), None);
    }

    #[test]
    fn frames_have_names_with_anything_in_them() {
        let of = |line| frame(line).map(|frame| (frame.symbol, frame.module, frame.inlined));
        assert_eq!(
            of("\t 7f53 f(int, (x))+0x59 (/a (deleted))"),
            Some((Some("f(int, (x))"), "/a (deleted)", false))
        );
        assert_eq!(
            of("ffffffff8103d0ca native ([kernel.kallsyms])"),
            Some((Some("native"), "[kernel.kallsyms]", false))
        );
        assert_eq!(of("  12 [unknown] (/lib/libc.so)"), Some((None, "/lib/libc.so", false)));
        assert_eq!(of("  12  (/lib/libc.so)"), Some((None, "/lib/libc.so", false)));
        assert_eq!(of("  12 g (inlined)"), Some((Some("g"), "[unknown]", true)));
        assert_eq!(of("\t414b3b fsnotify"), Some((Some("fsnotify"), "[unknown]", false)));
        assert_eq!(of("dd 12 3.5: cycles:"), None);
        assert_eq!(of("\tfile.c:12"), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "\\PC{0,80}") {
            header(&line);
            frame(&line);
        }

        #[test]
        fn any_words_are_read(line in "([a-z(\\[/+0-9):.] ?){0,30}") {
            header(&line);
            frame(&line);
        }
    }
}
