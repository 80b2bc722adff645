//! Collapsed (folded) stacks: one line for each call path, outermost function first, then a blank and a number.
//!
//! ```text
//! app;main;work;memcpy 1234
//! app;main;write;sys_write_[k] 12
//! ```

use std::io::BufRead;

use super::builder::Builder;
use super::error::TextError;
use super::lines::Lines;
use super::sample::{Frame, Sample, UNKNOWN};
use crate::profile::ProfileMethod;

/// What the endings of frames say of their code.
const MARKS: [(&str, &str); 2] = [("_[k]", "[kernel.kallsyms]"), ("_[j]", JIT)];
const INLINED: &str = "_[i]";
/// Code made at run time, whose process is not known.
const JIT: &str = "//anon";

/// Reads all lines.
pub(super) fn read(lines: &mut Lines<impl BufRead>, builder: &mut Builder) -> Result<(), TextError> {
    let mut is_estimate = false;
    while let Some(line) = lines.next()? {
        if let Some(comment) = line.strip_prefix('#') {
            builder.take_comment(comment);
            continue;
        }
        match parse(&line) {
            Some((stack, weight)) => {
                let is_of_estimate = is_of_estimate(stack);
                is_estimate |= is_of_estimate;
                builder.begin_sample(sample(weight, is_of_estimate));
                stack.rsplit(';').for_each(|name| builder.add_frame(frame(name)));
                builder.end_sample();
            }
            None if line.trim().is_empty() => {}
            None => lines.is_strange(),
        }
    }
    builder.warn(lines.warning());
    builder.warn(is_estimate.then(|| {
        "the numbers are not samples: eprof exported them as microjoules of an estimate, of CPU time and assumed watts"
            .to_owned()
    }));
    Ok(())
}

/// Is this a call path as eprof itself exports those of an estimate? Its numbers are microjoules.
fn is_of_estimate(stack: &str) -> bool {
    let first = stack.split(';').next().and_then(|first| first.strip_prefix('[')?.strip_suffix(']'));
    let marks = [ProfileMethod::Estimated, ProfileMethod::Mixed].map(ProfileMethod::estimate_mark);
    first.is_some() && marks.contains(&first)
}

/// The stack and the number of a line.
pub(super) fn parse(line: &str) -> Option<(&str, u64)> {
    let (stack, number) = line.trim().rsplit_once(char::is_whitespace)?;
    let stack = stack.trim();
    if stack.is_empty() || !number.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let weight = match number.parse::<u64>() {
        Ok(weight) => weight,
        // Some tools write fractions of samples; as inferno does, whole ones are counted.
        Err(_) => number.parse::<f64>().ok().filter(|weight| weight.is_finite())?.round() as u64,
    };
    Some((stack, weight))
}

/// All that a line tells of its samples.
fn sample(weight: u64, is_of_estimate: bool) -> Sample {
    Sample {
        comm: UNKNOWN.to_owned(),
        pid: 0,
        tid: 0,
        cpu: None,
        time: None,
        event: if is_of_estimate { "estimated microjoules" } else { "samples" }.to_owned(),
        samples: weight,
        count: Some(weight),
    }
}

fn frame(name: &str) -> Frame<'_> {
    if let Some(name) = name.strip_suffix(INLINED) {
        return Frame { symbol: Some(name), module: UNKNOWN, inlined: true };
    }
    let marked = MARKS.iter().find_map(|(mark, module)| Some((name.strip_suffix(mark)?, *module)));
    let (name, module) = marked.unwrap_or((name, UNKNOWN));
    Frame { symbol: (name != UNKNOWN && !name.is_empty()).then_some(name), module, inlined: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_the_last_word() {
        assert_eq!(parse("a b;node.js:387 12"), Some(("a b;node.js:387", 12)));
        assert_eq!(parse("a\t3.6"), Some(("a", 4)));
        for line in ["", "12", "a;b", "a -3", "a inf", "a nan", " 3", "a 1e999"] {
            assert_eq!(parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn exports_of_estimates_are_known_by_their_first_frame() {
        for stack in ["[estimated];main", "[partly estimated];app;main", "[estimated]"] {
            assert!(is_of_estimate(stack), "{stack}");
        }
        for stack in ["main;[estimated]", "[unknown];main", "estimated;main", "[];main", ""] {
            assert!(!is_of_estimate(stack), "{stack}");
        }
    }

    #[test]
    fn endings_say_what_code_it_is() {
        let of = |name| (frame(name).symbol, frame(name).module, frame(name).inlined);
        assert_eq!(of("sys_read_[k]"), (Some("sys_read"), "[kernel.kallsyms]", false));
        assert_eq!(of("f_[i]"), (Some("f"), UNKNOWN, true));
        assert_eq!(of("LBusy_[j]"), (Some("LBusy"), JIT, false));
        assert_eq!(of("[unknown]"), (None, UNKNOWN, false));
    }
}
