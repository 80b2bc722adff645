//! A profile for the Firefox Profiler (<https://profiler.firefox.com>), in the format that it calls processed:
//! <https://github.com/firefox-devtools/profiler/blob/main/src/types/profile.ts>. What is written is version 55 of it;
//! newer Firefox Profilers bring it up to date.
//!
//! Samples weigh their microjoules, though the Firefox Profiler says "samples": it has no unit of energy for call
//! trees. It has one for tracks: counters of the category `power`, one for each domain. All names are looked up here,
//! and nothing is left for it to ask a symbol server.
//!
//! The crate `fxprof-processed-profile` is not used: a frame that has its name already has no library, file and line
//! there, and weights are whole numbers of 32 bits.

mod code;
mod markers;
mod nodes;
mod own_times;
mod power;
mod processes;
mod samples;
mod stack_tree;
mod tables;
mod thread;
mod thread_samples;
mod timeline;

use std::cmp::Reverse;
use std::io::{self, Write};
use std::time::SystemTime;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::error::ReportError;
use super::exporter::{Exported, Exporter};
use super::nothing_selected;
use super::repeated::said_once;
use super::select::Weight;
use crate::label::Label;
use crate::profile::{Profile, ProfileMethod};
use code::{CATEGORIES, Category, Code, Lib};
use markers::{Markers, SCHEMA, Schema};
use power::{Counter, Place, counters};
use processes::Processes;
use samples::{Samples, units_per_number};
use thread::Thread;
use thread_samples::ThreadSamples;
use timeline::{Timeline, millis};

/// The version of the format.
const VERSION: u32 = 55;
/// Threads that are shown from the beginning at most; the others are in a menu.
const MOST_VISIBLE: usize = 20;
/// The smallest share of the joules that shows a thread from the beginning.
const VISIBLE_SHARE: f64 = 0.005;

#[derive(Serialize)]
struct File<'a> {
    meta: Meta,
    libs: &'a [Lib],
    counters: Vec<Counter>,
    threads: Vec<Thread>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    interval: f64,
    /// Milliseconds since 1970; all other times count from there.
    start_time: f64,
    profiling_start_time: f64,
    profiling_end_time: f64,
    process_type: u8,
    categories: [Category; CATEGORIES.len()],
    product: String,
    imported_from: String,
    stackwalk: u8,
    debug: bool,
    version: u32,
    preprocessed_profile_version: u32,
    symbolicated: bool,
    uses_only_one_stack_type: bool,
    source_code_is_not_on_searchfox: bool,
    marker_schema: [Schema; 1],
    sample_units: SampleUnits,
    extra: Vec<Section>,
    initial_visible_threads: Vec<usize>,
    initial_selected_threads: Vec<usize>,
    keep_profile_thread_order: bool,
}

/// Units of the columns of samples.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SampleUnits {
    time: &'static str,
    event_delay: &'static str,
    #[serde(rename = "threadCPUDelta")]
    cpu_time: &'static str,
}

/// What the profile's own page says.
#[derive(Serialize)]
struct Section {
    label: &'static str,
    entries: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    label: String,
    format: &'static str,
    value: String,
}

impl Entry {
    fn new(label: &str, value: impl ToString) -> Self {
        Self { label: label.to_owned(), format: "string", value: value.to_string() }
    }
}

/// The Firefox Profiler's format, as an export.
pub struct Firefox;

impl Exporter for Firefox {
    fn name(&self) -> &'static str {
        "firefox"
    }

    fn about(&self) -> &'static str {
        "JSON for profiler.firefox.com, by gzip where the name is not .json: microjoules of threads over time, watts of domains"
    }

    fn needs_lines(&self) -> bool {
        true
    }

    fn needs_slices(&self) -> bool {
        true
    }

    fn may_be_packed(&self) -> bool {
        true
    }

    fn write(&self, exported: &Exported<'_>, out: &mut dyn Write) -> Result<(), ReportError> {
        write(exported, out)
    }
}

/// Writes a profile for the Firefox Profiler.
///
/// # Errors
/// If the selection names something that the profile does not have, or writing fails.
fn write(exported: &Exported<'_>, mut out: impl Write) -> Result<(), ReportError> {
    let Exported { profile: parts, symbols, options, .. } = exported;
    let profile = parts.profile();
    let timeline = Timeline::new(profile);
    let code = Code::new(profile, symbols, !options.no_inline);
    let samples = Samples::new(*parts, symbols, &options.selection, &code, &timeline)?;
    for warning in warnings(&samples, &timeline) {
        (exported.warn)(&warning);
    }
    if samples.threads.is_empty() {
        // Without any, what the meters counted over time is something to look at; of what somebody selected it is not.
        let why = nothing_selected::why(&options.selection, profile, symbols);
        if options.selection.is_of_a_part() || profile.domains.is_empty() {
            return Err(ReportError::NothingSelected(why));
        }
        (exported.warn)(&format!("power tracks alone are written: {why}"));
    }
    let weight = samples.weight;
    let interval = interval(&samples, &timeline);
    let processes = Processes::of(profile, &options.dimensions);
    let mut threads = threads(profile, &processes, samples, timeline.duration().as_nanos());
    let units = units_per_number(weight);
    threads.iter_mut().for_each(|thread| thread.units = units);
    // The heaviest, which is looked at first.
    let heaviest = heaviest(&threads, |_| true);
    let mut power = Vec::new();
    if let Some(heaviest) = heaviest {
        let thread = &mut threads[heaviest];
        thread.markers = Markers::new(profile, &timeline, &mut thread.spent.tables);
        power = counters(profile, &timeline, |machine| {
            let of_machine = self::heaviest(&threads, |thread| thread.machine == machine);
            let pid = threads[of_machine.unwrap_or(heaviest)].pid.clone();
            let first = threads.iter().position(|thread| thread.pid == pid).unwrap_or(heaviest);
            Place { pid, thread: first }
        });
    }
    let meta = meta(exported, &timeline, &threads, heaviest, weight, interval);
    let file = File { meta, libs: &code.libs, counters: power, threads };
    serde_json::to_writer(&mut out, &file).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// What the reader must know of the samples.
fn warnings(samples: &Samples, timeline: &Timeline) -> Vec<String> {
    let mut warnings = Vec::new();
    if samples.without_time > 0.0 {
        let what = match samples.weight {
            Weight::Joules => crate::units::Joules::from_joules(samples.without_time).to_string(),
            Weight::Samples => format!("{} samples", samples.without_time),
            Weight::Count => format!("{} events", samples.without_time),
        };
        let why =
            if timeline.stretches().is_empty() { "nothing tells" } else { "only their sum is known, not" };
        warnings.push(format!("{why} when {what} were spent: they are spread over the whole recording"));
    }
    if samples.cut_paths > 0 {
        let cut = samples.cut_paths;
        warnings.push(format!(
            "{cut} call paths are cut at one of their callers: --memory would make room for them"
        ));
    }
    warnings
}

/// The heaviest of some threads.
fn heaviest(threads: &[Thread], is_one: impl Fn(&Thread) -> bool) -> Option<usize> {
    let heavier =
        |&a: &usize, &b: &usize| threads[a].spent.weight.total_cmp(&threads[b].spent.weight).then(b.cmp(&a));
    (0..threads.len()).filter(|&index| is_one(&threads[index])).max_by(heavier)
}

/// The threads: those of a process side by side and its main thread first, the heaviest process first.
fn threads(profile: &Profile, processes: &Processes, samples: Samples, end: u64) -> Vec<Thread> {
    let mut of_process: FxHashMap<usize, f64> = FxHashMap::default();
    let thread = |index: u32| &profile.threads[index as usize];
    for (&index, spent) in &samples.threads {
        *of_process.entry(processes.number(index)).or_default() += spent.weight;
    }
    let mut sorted: Vec<_> = samples.threads.into_iter().collect();
    sorted.sort_by(|(a_index, a), (b_index, b)| {
        let [of_a, of_b] = [*a_index, *b_index].map(thread);
        let [in_a, in_b] = [*a_index, *b_index].map(|index| processes.number(index));
        of_process[&in_b]
            .total_cmp(&of_process[&in_a])
            .then(of_a.pid.cmp(&of_b.pid))
            .then(in_a.cmp(&in_b))
            .then((of_a.tid != of_a.pid).cmp(&(of_b.tid != of_b.pid)))
            .then(b.weight.total_cmp(&a.weight))
    });
    if sorted.is_empty() {
        return vec![nobody(end)];
    }
    let mut seen: FxHashMap<u32, u32> = FxHashMap::default();
    let mut last = None;
    sorted
        .into_iter()
        .map(|(index, spent)| {
            let of = thread(index);
            let times = seen.entry(of.tid).or_insert(0);
            *times += 1;
            // A thread that changed its name is several, and so is a number that was given out again.
            let number = of.ids().map_or_else(|| of.name.clone(), |(_, tid)| tid.to_string());
            let tid = if *times == 1 { number } else { format!("{number}.{times}") };
            let process = processes.of_thread(index);
            let is_main = last.replace(&process.pid) != Some(&process.pid);
            let name = Label::new(&of.name).as_str().to_owned();
            Thread {
                name,
                process: Label::new(&format!("{}{}", of.process_name, process.place)).as_str().to_owned(),
                pid: process.pid.clone(),
                machine: process.machine,
                tid,
                is_main,
                spent,
                units: 1,
                markers: Markers::none(),
                end,
            }
        })
        .collect()
}

/// Stands for threads where none was sampled: power tracks stand below one.
fn nobody(end: u64) -> Thread {
    Thread {
        name: "[no samples]".to_owned(),
        process: "[no samples]".to_owned(),
        pid: "0".to_owned(),
        machine: 0,
        tid: "0".to_owned(),
        is_main: true,
        spent: ThreadSamples::default(),
        units: 1,
        markers: Markers::none(),
        end,
    }
}

fn meta(
    exported: &Exported<'_>,
    timeline: &Timeline,
    threads: &[Thread],
    heaviest: Option<usize>,
    weight: Weight,
    interval: f64,
) -> Meta {
    let profile = exported.profile.profile();
    let duration = timeline.duration().as_nanos();
    let unit = match weight {
        Weight::Joules => "microjoules",
        Weight::Samples => "samples",
        Weight::Count => "events",
    };
    let mark = profile.method().estimate_mark().filter(|_| weight == Weight::Joules);
    let mark = mark.map(|mark| format!(", {mark}")).unwrap_or_default();
    let subject = exported.options.subject.as_deref().map(Label::new);
    let subject = subject.as_ref().map_or("eprof", Label::as_str);
    let since_1970 = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
    let started = exported.started.and_then(since_1970);
    Meta {
        interval,
        start_time: started.map_or(0.0, |since| since.as_nanos() as f64 / 1e6),
        profiling_start_time: 0.0,
        // The profiler leaves out what lies at the end of its time, as the last piece of each meter's energy would.
        profiling_end_time: millis(duration + 1),
        process_type: 0,
        categories: CATEGORIES,
        product: format!("{subject} ({unit}{mark})"),
        imported_from: format!("eprof {}", env!("CARGO_PKG_VERSION")),
        stackwalk: 1,
        debug: false,
        // Of the format before it was processed; nobody looks at it.
        version: 24,
        preprocessed_profile_version: VERSION,
        symbolicated: true,
        uses_only_one_stack_type: true,
        source_code_is_not_on_searchfox: true,
        marker_schema: [SCHEMA],
        sample_units: SampleUnits { time: "ms", event_delay: "ms", cpu_time: "ns" },
        extra: sections(profile, unit),
        initial_visible_threads: visible(threads),
        initial_selected_threads: heaviest.into_iter().collect(),
        keep_profile_thread_order: true,
    }
}

/// Milliseconds from sample to sample: as samples of one thread are apart while it runs, or as long as stretches of time.
fn interval(samples: &Samples, timeline: &Timeline) -> f64 {
    let stretches = timeline.stretches().len().max(1) as u64;
    let nanos = samples.usual_length().unwrap_or(timeline.duration().as_nanos() / stretches);
    millis(nanos).max(1e-3)
}

/// The threads that are shown from the beginning, in their order.
fn visible(threads: &[Thread]) -> Vec<usize> {
    let total: f64 = threads.iter().map(|thread| thread.spent.weight).sum();
    let mut heavy: Vec<usize> =
        (0..threads.len()).filter(|&index| threads[index].spent.weight >= VISIBLE_SHARE * total).collect();
    heavy.sort_by_key(|&index| Reverse((threads[index].spent.weight * 1e9) as u64));
    heavy.truncate(MOST_VISIBLE);
    heavy.sort_unstable();
    heavy
}

/// What the samples weigh, where the joules went, and what the reader must know.
fn sections(profile: &Profile, unit: &str) -> Vec<Section> {
    let mut energy = vec![Entry::new("Samples weigh their", unit)];
    if let ProfileMethod::Estimated | ProfileMethod::Mixed = profile.method() {
        energy.push(Entry::new("Joules are", profile.method().estimate_mark().unwrap_or_default()));
    }
    for domain in &profile.domains {
        let name = Label::new(&domain.info.name);
        let balance = &domain.balance;
        energy.push(Entry::new(&format!("{name}, all"), balance.measured));
        energy.push(Entry::new(&format!("{name}, in samples"), balance.attributed));
    }
    let warnings = said_once(&profile.warnings);
    let notes: Vec<Entry> =
        warnings.iter().map(|warning| Entry::new("Warning", Label::new(warning).as_str())).collect();
    let mut sections = vec![Section { label: "Energy", entries: energy }];
    if !notes.is_empty() {
        sections.push(Section { label: "What to know", entries: notes });
    }
    sections
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::profile::ProfileParts;
    use crate::report::fixture::{Divided, sample_profile};
    use crate::report::tree::TreeOptions;
    use crate::symbolize::Symbols;

    /// The weights of each thread, by its name.
    fn weights(profile: &dyn ProfileParts, symbols: &Symbols) -> (BTreeMap<String, u64>, Vec<String>) {
        let options = TreeOptions::default();
        let warnings = std::cell::RefCell::new(Vec::new());
        let warn = |warning: &str| warnings.borrow_mut().push(warning.to_owned());
        let exported = Exported { profile, symbols, options: &options, started: None, warn: &warn };
        let mut out = Vec::new();
        write(&exported, &mut out).expect("a vector takes all");
        let file: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        let threads = file["threads"].as_array().expect("threads").iter().map(|thread| {
            let weights = thread["samples"]["weight"].as_array().expect("weights");
            let sum = weights.iter().filter_map(serde_json::Value::as_f64).sum::<f64>().round() as u64;
            (thread["name"].as_str().expect("a name").to_owned(), sum)
        });
        (threads.collect(), warnings.into_inner())
    }

    #[test]
    fn a_profile_in_parts_has_all_joules_even_where_there_is_no_memory_for_its_call_paths() {
        let (profile, symbols) = sample_profile();
        let (whole, _) = weights(&profile, &symbols);
        assert_eq!(whole, BTreeMap::from([("app".to_owned(), 4_000_000), ("worker".to_owned(), 14_000_000)]));
        for (spare_bytes, is_cut) in [(usize::MAX, false), (0, true)] {
            let divided = Divided::new(&profile, 2, |cell| cell % 2).within(spare_bytes);
            let (of_parts, warnings) = weights(&divided, &symbols);
            assert_eq!(of_parts, whole, "{spare_bytes} bytes");
            assert_eq!(warnings.iter().any(|warning| warning.contains("are cut")), is_cut, "{warnings:?}");
        }
    }
}
