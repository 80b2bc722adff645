//! That two programs were given the same work: each one's output is read, and must say the same of the samples.
//!
//! What neither program has a name for is called by each in its own way. It may differ, is counted, and must be little.

use std::collections::BTreeMap;
use std::io::Read;

use anyhow::{Context, ensure};
use serde_json::Value;

/// Samples, by what they are told of.
pub type Counts = BTreeMap<String, u64>;

/// The largest part of all samples that may be told of otherwise, all of them without a name: addresses outside of
/// symbols, stacks that pass through such.
const NAMELESS: f64 = 0.005;
/// Half of the last digit of perf's percentages, and what rounding twice adds.
const PERF_DIGITS: f64 = 0.0051;
/// The part of all samples that may be told of otherwise although they have names: perf looks callers up by the address behind
/// the call, which is another function's where a call is a function's last instruction.
const LAST_CALLS: f64 = 0.0005;

/// Own samples by function (module and name), or totals.
pub fn functions(ours: &str, theirs: &str, event: &str, is_total: bool) -> anyhow::Result<String> {
    let ours: Value = serde_json::from_str(ours)?;
    let rows = ours["rows"].as_array().context("rows")?;
    let all = ours["samples"].as_u64().context("samples")?;
    let (mut own, mut totals) = (Counts::new(), BTreeMap::<String, f64>::new());
    for row in rows {
        let name = row["name"].as_str().context("a name")?;
        let module = row["module"].as_str().unwrap_or_default();
        let key = format!("{} {name}", file_name(module));
        *own.entry(key.clone()).or_default() += row["self_samples"].as_u64().context("samples")?;
        *totals.entry(key).or_default() += row["total_samples"].as_u64().context("samples")? as f64;
    }
    own.retain(|_, samples| *samples > 0);
    let (mut their_own, mut their_totals) = (Counts::new(), BTreeMap::<String, Vec<f64>>::new());
    for cells in table(theirs, event) {
        let [total, .., samples, module, name] = cells.as_slice() else { continue };
        // Behind whether it is of the kernel: `[k] `.
        let key = format!("{module} {}", name.get(4..).unwrap_or(name));
        *their_own.entry(key.clone()).or_default() += samples.parse::<u64>()?;
        their_totals.entry(key).or_default().push(total.trim_end_matches('%').parse()?);
    }
    their_own.retain(|_, samples| *samples > 0);
    let said = counts(&own, &their_own, is_nameless_function)?;
    if !is_total {
        return Ok(said);
    }
    let [mut compared, mut otherwise] = [0, 0];
    for (name, percents) in &their_totals {
        // Of several functions of one name perf has rows of their own, whose totals cannot be added up.
        let ([theirs], false) = (percents.as_slice(), is_nameless_function(name)) else { continue };
        let Some(ours) = totals.get(name) else { continue };
        let percent = ours / all as f64 * 100.0;
        let difference = (percent - theirs).abs();
        ensure!(difference < LAST_CALLS * 100.0, "{name}: {percent} % in total by eprof, {theirs} by perf");
        *if difference < PERF_DIGITS { &mut compared } else { &mut otherwise } += 1;
    }
    ensure!(otherwise * 20 < compared, "{otherwise} functions have other totals, {compared} the same");
    Ok(format!("{said}; {compared} totals, {otherwise} within {} %", LAST_CALLS * 100.0))
}

/// Own samples by line of the source.
pub fn lines(ours: &str, theirs: &str, event: &str) -> anyhow::Result<String> {
    let ours: Value = serde_json::from_str(ours)?;
    let mut own = Counts::new();
    for row in ours["rows"].as_array().context("rows")? {
        let name = file_name(row["name"].as_str().context("a name")?);
        *own.entry(name.to_owned()).or_default() += row["self_samples"].as_u64().context("samples")?;
    }
    let mut their_own = Counts::new();
    for cells in table(theirs, event) {
        let [_, samples, line] = cells.as_slice() else { continue };
        *their_own.entry(file_name(line).to_owned()).or_default() += samples.parse::<u64>()?;
    }
    let is_line = |name: &str| {
        name.rsplit_once(':').is_some_and(|(_, line)| line.parse::<u32>().is_ok_and(|line| line > 0))
    };
    own.retain(|name, _| is_line(name));
    their_own.retain(|name, _| is_line(name));
    counts(&own, &their_own, |_| false)
}

/// Samples by call path, outermost first, behind the command: `a;b;c 12`.
pub fn stacks(ours: &str, theirs: &str) -> anyhow::Result<String> {
    counts(&folded(ours), &folded(theirs), is_nameless_stack)
}

/// The same where the other one is perf, which writes the number first and leaves the command to its table.
pub fn perf_stacks(ours: &str, theirs: &str, event: &str) -> anyhow::Result<String> {
    let mut theirs_by_stack = Counts::new();
    let mut command = "";
    for line in section(theirs, event) {
        match line.trim().split_once(' ') {
            Some((count, stack)) if count.parse::<u64>().is_ok() => {
                *theirs_by_stack.entry(format!("{command};{stack}")).or_default() += count.parse::<u64>()?;
            }
            Some((percent, name)) if percent.ends_with('%') => command = name.trim(),
            _ => {}
        }
    }
    counts(&folded(ours), &theirs_by_stack, is_nameless_stack)
}

/// Samples one by one, as text: every frame of every sample.
pub fn texts(ours: &str, theirs: &str) -> anyhow::Result<String> {
    let count = |text: &str| {
        let mut lines = Counts::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            *lines.entry(line.split_whitespace().collect::<Vec<_>>().join(" ")).or_default() += 1;
        }
        lines
    };
    let (ours, mut theirs) = (count(ours), count(theirs));
    // perf also prints the records that are eprof's readings of meters; they are no samples of the program.
    theirs.retain(|line, _| ours.contains_key(line) || line.contains("[unknown]") || is_frame(line));
    counts(&ours, &theirs, |line| line.contains("[unknown]") || line.contains("fn_"))
}

/// Samples by thread of two profiles for the Firefox Profiler.
pub fn firefox(ours: &[u8], theirs: &[u8]) -> anyhow::Result<String> {
    let threads = |bytes: &[u8]| -> anyhow::Result<Counts> {
        let mut text = String::new();
        match bytes.starts_with(&[0x1f, 0x8b]) {
            true => flate2::read::GzDecoder::new(bytes).read_to_string(&mut text)?,
            false => (&mut &*bytes).read_to_string(&mut text)?,
        };
        let profile: Value = serde_json::from_str(&text)?;
        let mut counts = Counts::new();
        for thread in profile["threads"].as_array().context("threads")? {
            let samples = &thread["samples"];
            let weights =
                samples["weight"].as_array().map(|all| all.iter().filter_map(Value::as_f64).sum::<f64>());
            let samples = match weights {
                Some(weights) => weights.round() as u64,
                None => samples["length"].as_u64().context("samples")?,
            };
            if samples > 0 {
                let tid = thread["tid"].as_str().map_or_else(|| thread["tid"].to_string(), str::to_owned);
                *counts.entry(tid).or_default() += samples;
            }
        }
        Ok(counts)
    };
    counts(&threads(ours)?, &threads(theirs)?, |_| false)
}

/// Compares; `is_nameless` tells what may differ. Says how much is equal.
fn counts(ours: &Counts, theirs: &Counts, is_nameless: impl Fn(&str) -> bool) -> anyhow::Result<String> {
    let sum = |counts: &Counts| counts.values().sum::<u64>();
    let (our_sum, their_sum) = (sum(ours), sum(theirs));
    let (mut equal, mut nameless, mut otherwise) = (0, 0, 0);
    let mut example = String::new();
    for name in ours.keys().chain(theirs.keys().filter(|name| !ours.contains_key(*name))) {
        let of = |counts: &Counts| counts.get(name).copied().unwrap_or(0);
        match (of(ours), of(theirs)) {
            (a, b) if a == b => equal += 1,
            (a, b) if is_nameless(name) => nameless += a.abs_diff(b),
            (a, b) => {
                otherwise += a.abs_diff(b);
                example = format!("{name}: {a} by eprof, {b} by the other");
            }
        }
    }
    let part = |samples: u64| samples as f64 / our_sum.max(1) as f64;
    ensure!(equal > 0 && part(nameless) <= NAMELESS, "{nameless} of {our_sum} have no name, and differ");
    ensure!(part(otherwise) <= LAST_CALLS, "{otherwise} of {our_sum} differ, such as {example}");
    let all = nameless + otherwise;
    ensure!(our_sum.abs_diff(their_sum) <= all, "{our_sum} by eprof, {their_sum} by the other");
    Ok(match all {
        0 => format!("all {equal} rows"),
        _ => format!("{equal} rows, {:.2} % of the samples not", part(all) * 100.0),
    })
}

/// Stacks in folded form, without the marks of the kernel's frames.
fn folded(text: &str) -> Counts {
    let mut counts = Counts::new();
    for (stack, count) in text.lines().filter_map(|line| line.rsplit_once(' ')) {
        *counts.entry(stack.replace("_[k]", "")).or_default() += count.parse::<u64>().unwrap_or(0);
    }
    counts
}

/// The lines of perf's output that are of one event.
fn section<'a>(text: &'a str, event: &str) -> impl Iterator<Item = &'a str> {
    let of_event = format!("of event '{event}'");
    let mut is_wanted = false;
    text.lines().filter(move |line| {
        if line.starts_with("# Samples:") {
            is_wanted = line.contains(&of_event);
        }
        is_wanted && !line.starts_with('#') && !line.trim().is_empty()
    })
}

/// The cells of perf's table of one event, which `|` is between.
fn table<'a>(text: &'a str, event: &str) -> impl Iterator<Item = Vec<&'a str>> {
    section(text, event).map(|line| line.split('|').map(str::trim).collect())
}

fn file_name(path: &str) -> &str {
    // Code that lies in no file has its place's name in brackets.
    if path.starts_with('[') { path } else { path.rsplit('/').next().unwrap_or(path) }
}

fn is_frame(line: &str) -> bool {
    line.split_once(' ').is_some_and(|(address, _)| u64::from_str_radix(address, 16).is_ok())
}

/// `module+0x12`, an address, or a function that is known by its start alone.
fn is_nameless_function(name: &str) -> bool {
    let function = name.split_once(' ').map_or(name, |(_, function)| function);
    name.contains("[unknown]")
        || u64::from_str_radix(function.trim_start_matches("0x"), 16).is_ok()
        || function.contains("+0x")
        || function.contains("+fn_")
}

fn is_nameless_stack(stack: &str) -> bool {
    stack.split(';').any(|frame| {
        let is_address = |frame: &str| u64::from_str_radix(frame.trim_start_matches("0x"), 16).is_ok();
        frame.starts_with('[') || is_address(frame) || frame.contains("+0x") || frame.contains("+fn_")
    })
}
