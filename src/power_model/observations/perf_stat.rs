//! Logs of `perf stat`: one row per interval of `-I N -x,`, or one row of a whole run's totals.
//!
//! perf's quirks are undone here. Versions around 4.1 print the unit of RAPL events with a line break
//! inside, so that records fall into two lines. The first interval covers the time since perf opened its
//! counters, which can be several times what its stamp says; how long it was is told by the time the
//! counters ran. Counters in joules are turned into watts, and values of the parts of a machine
//! (`--per-socket`, `--per-core`, `-A`) are added up.

use std::collections::BTreeMap;

use super::ObservationError;
use super::table::Observed;
use crate::numerics::quantiles::median;
use crate::power_model::dataset::{Dataset, Observation};

/// The log of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct PerfStatLog {
    name: String,
    workload: String,
    events: Vec<Event>,
    intervals: Vec<Interval>,
    notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct Event {
    name: String,
    joules: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Interval {
    seconds: f64,
    /// By event; not a number where perf did not count.
    counts: Vec<f64>,
}

/// One record of a log.
#[derive(Debug, Clone, PartialEq)]
struct Entry<'a> {
    /// Seconds since the start; `None` for totals.
    stamp: Option<f64>,
    /// `S0`, `CPU3`: what part of the machine is counted; empty for the whole.
    part: &'a str,
    /// `None` for `<not counted>` and `<not supported>`.
    value: Option<f64>,
    unit: &'a str,
    event: &'a str,
    /// Nanoseconds the event was enabled, summed over its CPUs.
    enabled: Option<f64>,
}

/// An interval whose counters ran this much longer or shorter than its stamps say has a wrong stamp.
const STAMP_TOLERANCE: f64 = 0.1;

/// Whether the text looks like a log of `perf stat` rather than a table.
pub fn looks_like_perf_stat(text: &str) -> bool {
    if text.contains("Performance counter stats for") {
        return true;
    }
    let records = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut seen = 0;
    for line in records.take(20) {
        let fields: Vec<&str> = line.split(',').collect();
        if line.starts_with(',') {
            continue;
        }
        let number = fields.first().is_some_and(|field| field.parse::<f64>().is_ok());
        let named = fields.len() > 2 && fields[1..].iter().any(|field| is_event_name(field));
        let broken = fields.len() == 3 && fields[2] == "Joules";
        if !(number && (named || broken)) {
            return false;
        }
        seen += 1;
    }
    seen > 0
}

fn is_event_name(field: &str) -> bool {
    field.starts_with(|c: char| c.is_ascii_alphabetic()) && field != "Joules" && field != "MiB"
}

impl PerfStatLog {
    /// Reads a log. `name` is for messages; `workload` is what ran.
    ///
    /// # Errors
    /// [`ObservationError::NoRows`] if the text holds no record.
    pub fn parse(name: &str, workload: &str, text: &str) -> Result<Self, ObservationError> {
        let text = rejoin_broken_lines(text);
        let (entries, elapsed) = if text.contains("Performance counter stats for") {
            totals(&text)
        } else {
            (text.lines().filter_map(machine_readable).collect(), None)
        };
        let mut log = Self {
            name: name.to_owned(),
            workload: workload.to_owned(),
            events: Vec::new(),
            intervals: Vec::new(),
            notes: Vec::new(),
        };
        log.take(&entries, elapsed);
        if log.intervals.is_empty() {
            let reason = "it holds no record of `perf stat -x,` or of its totals".to_owned();
            return Err(ObservationError::NoRows { file: name.to_owned(), reason });
        }
        Ok(log)
    }

    fn take(&mut self, entries: &[Entry<'_>], elapsed: Option<f64>) {
        // Intervals by their stamp's bits: stamps of one interval are printed alike.
        let mut by_stamp: BTreeMap<u64, Vec<&Entry<'_>>> = BTreeMap::new();
        for entry in entries {
            by_stamp.entry(entry.stamp.unwrap_or(0.0).max(0.0).to_bits()).or_default().push(entry);
            if !self.events.iter().any(|event| event.name == entry.event) {
                self.events.push(Event { name: entry.event.to_owned(), joules: entry.unit == "Joules" });
            }
        }
        let stamps: Vec<f64> = by_stamp.keys().map(|bits| f64::from_bits(*bits)).collect();
        let lengths = match elapsed {
            Some(seconds) => vec![seconds; stamps.len()],
            None => self.interval_lengths(&stamps, by_stamp.values()),
        };
        for (entries, seconds) in by_stamp.values().zip(lengths) {
            let counts = self.events.iter().map(|event| sum_of_parts(entries, &event.name)).collect();
            self.intervals.push(Interval { seconds, counts });
        }
    }

    /// Seconds of each interval: by its stamps, unless the counters ran for another time.
    fn interval_lengths<'a, 'b: 'a>(
        &mut self,
        stamps: &[f64],
        intervals: impl Iterator<Item = &'a Vec<&'b Entry<'b>>>,
    ) -> Vec<f64> {
        let stamped: Vec<f64> = stamps
            .iter()
            .enumerate()
            .map(|(i, stamp)| if i == 0 { *stamp } else { stamp - stamps[i - 1] })
            .collect();
        // How long each event was enabled per second of its usual intervals: the number of its CPUs.
        let enabled: Vec<BTreeMap<&str, f64>> = intervals
            .map(|entries| {
                let times = entries.iter().filter_map(|entry| Some((entry.event, entry.enabled?)));
                let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
                for (event, nanoseconds) in times {
                    *sums.entry(event).or_default() += nanoseconds * 1e-9;
                }
                sums
            })
            .collect();
        let mut usual: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (seconds, events) in stamped.iter().zip(&enabled).skip(1) {
            for (event, enabled) in events {
                usual.entry(event).or_default().push(enabled / seconds);
            }
        }
        let usual: BTreeMap<&str, f64> =
            usual.into_iter().filter_map(|(event, mut ratios)| Some((event, median(&mut ratios)?))).collect();
        let mut lengths = Vec::with_capacity(stamped.len());
        for (index, (seconds, events)) in stamped.iter().zip(&enabled).enumerate() {
            let mut told: Vec<f64> = events
                .iter()
                .filter_map(|(event, enabled)| {
                    Some(enabled / usual.get(event).filter(|ratio| **ratio > 0.0)?)
                })
                .collect();
            let length = match median(&mut told) {
                Some(told) if (told - seconds).abs() > STAMP_TOLERANCE * seconds => {
                    if index == 0 {
                        self.notes.push(format!(
                            "{}: the first interval lasted {told:.3} s, not the {seconds:.3} s of its stamp",
                            self.name
                        ));
                    }
                    told
                }
                _ => *seconds,
            };
            lengths.push(length);
        }
        lengths
    }

    /// The event that stands for the power of a log if none is named: the package's energy, or the first
    /// in joules.
    fn default_power(&self) -> Option<usize> {
        let package = self.events.iter().position(|event| event.joules && event.name.contains("energy-pkg"));
        package.or_else(|| self.events.iter().position(|event| event.joules))
    }
}

/// Joins logs into one data set. `power` and `events` name events; without them, power is the package's
/// energy and every event that is not in joules and that all logs have counts.
///
/// # Errors
/// [`ObservationError::NoPower`], [`ObservationError::NoSuchColumn`] or [`ObservationError::NoRows`].
pub fn observe(
    logs: &[PerfStatLog],
    power: Option<&str>,
    events: Option<&[String]>,
) -> Result<Observed, ObservationError> {
    let find = |log: &PerfStatLog, name: &str| {
        log.events.iter().position(|event| event.name == name).ok_or_else(|| ObservationError::NoSuchColumn {
            file: log.name.clone(),
            column: name.to_owned(),
            have: log.events.iter().map(|event| event.name.clone()).collect(),
        })
    };
    let columns: Vec<String> = match events {
        Some(events) => events.to_vec(),
        None => logs.first().map_or_else(Vec::new, |first| {
            let shared =
                |name: &str| logs.iter().all(|log| log.events.iter().any(|event| event.name == name));
            let counted = first.events.iter().filter(|event| !event.joules && shared(&event.name));
            counted.map(|event| event.name.clone()).collect()
        }),
    };
    let mut data = Dataset::new(columns.clone());
    let mut notes = Vec::new();
    let mut left_out = 0;
    for log in logs {
        let power = match power {
            Some(name) => find(log, name)?,
            None => log.default_power().ok_or_else(|| ObservationError::NoPower {
                file: log.name.clone(),
                have: log.events.iter().map(|event| event.name.clone()).collect(),
            })?,
        };
        let columns: Vec<usize> = columns.iter().map(|name| find(log, name)).collect::<Result<_, _>>()?;
        notes.extend(log.notes.iter().cloned());
        for interval in &log.intervals {
            let rates: Vec<f64> =
                columns.iter().map(|&column| interval.counts[column] / interval.seconds).collect();
            // A counter in watts, as some drivers offer, is a mean already.
            let seconds = if log.events[power].joules { interval.seconds } else { 1.0 };
            let watts = interval.counts[power] / seconds;
            let row = Observation { rates: &rates, watts, workload: &log.workload, frequency: None };
            left_out += usize::from(!data.push(row));
        }
    }
    if data.is_empty() {
        let file = logs.iter().map(|log| log.name.as_str()).collect::<Vec<_>>().join(", ");
        let reason = "every interval lacks a count or has no energy".to_owned();
        return Err(ObservationError::NoRows { file, reason });
    }
    if left_out > 0 {
        notes.push(format!("{left_out} intervals lack a count or have no energy and were left out"));
    }
    Ok(Observed { data, notes })
}

/// Undoes the line break inside a unit: the rest of such a record starts with its separator.
fn rejoin_broken_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.lines() {
        let continues = line.starts_with(',') || (line.starts_with(" power/") && joined.ends_with("Joules"));
        if !continues && !joined.is_empty() {
            joined.push('\n');
        }
        joined.push_str(line.trim_end_matches('\r'));
    }
    joined
}

/// A record of `perf stat -x,`, with or without a stamp, whole or by parts of the machine.
fn machine_readable(line: &str) -> Option<Entry<'_>> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    // The value is the first field that is a number or says why there is none, and has an event's name
    // two fields on; what lies before it is the stamp, the part of the machine and its number of CPUs.
    let value = (0..fields.len().saturating_sub(2).min(4)).find(|&i| {
        let counted = fields[i].parse::<f64>().is_ok() || fields[i].starts_with("<not");
        counted && is_unit(fields[i + 1]) && is_event_name(fields[i + 2])
    })?;
    let stamp = (value > 0).then(|| fields[0].parse().ok()).flatten();
    let running: Option<f64> = fields.get(value + 3).and_then(|field| field.parse().ok());
    let percent: Option<f64> = fields.get(value + 4).and_then(|field| field.parse().ok());
    let enabled = match (running, percent) {
        (Some(running), Some(percent)) if percent > 0.0 => Some(running * 100.0 / percent),
        _ => None,
    };
    let part = fields[..value].iter().find(|field| is_event_name(field)).copied().unwrap_or("");
    let (unit, event) = (fields[value + 1], fields[value + 2]);
    Some(Entry { stamp, part, value: fields[value].parse().ok(), unit, event, enabled })
}

fn is_unit(field: &str) -> bool {
    field.parse::<f64>().is_err() && !field.contains('/') && field.len() < 16
}

/// The totals that `perf stat` prints for people, and the seconds they cover.
fn totals(text: &str) -> (Vec<Entry<'_>>, Option<f64>) {
    let mut entries = Vec::new();
    let mut elapsed = None;
    let body = text.split("Performance counter stats for").nth(1).unwrap_or("");
    for line in body.lines().skip(1) {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        let Ok(value) = first.replace([',', '\''], "").parse::<f64>() else { continue };
        let Some(second) = words.next() else { continue };
        if second == "seconds" && line.contains("time elapsed") {
            elapsed = Some(value);
            continue;
        }
        let (unit, event) = match second {
            "Joules" | "MiB" | "Watts" | "msec" => (second, words.next()),
            event => ("", Some(event)),
        };
        if let Some(event) = event.filter(|event| is_event_name(event)) {
            entries.push(Entry { stamp: None, part: "", value: Some(value), unit, event, enabled: None });
        }
    }
    (entries, elapsed)
}

/// The sum over the parts of the machine; not a number if one of them, or all, are missing. An event that
/// was asked for twice is in the log twice and counts once.
fn sum_of_parts(entries: &[&Entry<'_>], event: &str) -> f64 {
    let mut parts: BTreeMap<&str, f64> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.event == event) {
        parts.entry(entry.part).or_insert(entry.value.unwrap_or(f64::NAN));
    }
    if parts.is_empty() { f64::NAN } else { parts.values().sum() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_PACKAGES: &str = "\
     0.100571655,400000,,cycles,1475463521,100.00
     0.100571655,0.9,Joules
,power/energy-pkg/,737565793,100.00
     0.201436150,100000,,cycles,403634382,100.00
     0.201436150,0.25,Joules
,power/energy-pkg/,201887450,100.00
     0.302080716,<not counted>,,cycles,0,100.00
     0.302080716,0.25,Joules
,power/energy-pkg/,201668021,100.00
     0.402699148,100000,,cycles,402566458,100.00
     0.402699148,0.25,Joules
,power/energy-pkg/,201283229,100.00
";

    #[test]
    fn broken_lines_long_first_intervals_and_missing_counts() {
        assert!(looks_like_perf_stat(TWO_PACKAGES));
        let log = PerfStatLog::parse("hpl.perf", "hpl", TWO_PACKAGES).expect("records");
        let observed = observe(&[log], None, None).expect("rows");
        assert_eq!(observed.data.columns(), ["cycles"]);
        assert_eq!(observed.data.len(), 3);
        // 1.4755 s on 4 CPUs: the first interval lasted 0.369 s, so 2.4 W and not 9 W.
        assert!((observed.data.watts(0) - 2.44).abs() < 0.02, "{}", observed.data.watts(0));
        assert!((observed.data.rates(0)[0] - 1.084e6).abs() < 1e4);
        assert!((observed.data.watts(1) - 2.478).abs() < 0.01);
        assert_eq!(
            observed.notes,
            [
                "hpl.perf: the first interval lasted 0.369 s, not the 0.101 s of its stamp",
                "1 intervals lack a count or have no energy and were left out"
            ]
        );
    }

    #[test]
    fn parts_are_added_and_repeated_events_are_not() {
        let text = "1.0,S0,4,10,,cycles,4000000000,100.00\n1.0,S1,4,20,,cycles,4000000000,100.00\n\
                    1.0,S0,1,3.0,Joules,power/energy-pkg/,1000000000,100.00\n\
                    1.0,S1,1,4.0,Joules,power/energy-pkg/,1000000000,100.00\n";
        let log = PerfStatLog::parse("l", "w", text).expect("records");
        let data = observe(&[log], None, None).expect("rows").data;
        assert_eq!((data.rates(0), data.watts(0)), (&[30.0][..], 7.0));
        let twice =
            "1.0,10,,cycles,4,100.00\n1.0,11,,cycles,4,100.00\n1.0,7,Joules,power/energy-pkg/,1,100.00\n";
        let log = PerfStatLog::parse("l", "w", twice).expect("records");
        assert_eq!(observe(&[log], None, None).expect("rows").data.rates(0), [10.0]);
    }

    #[test]
    fn totals_for_people_are_one_row() {
        let text = "noise\n Performance counter stats for 'system wide':\n\n   811,748      cycles   # 1 GHz\n\
                    1047.50 Joules\n power/energy-pkg/    \n\n      9.5 seconds time elapsed\n";
        assert!(looks_like_perf_stat(text));
        let log = PerfStatLog::parse("l", "w", text).expect("records");
        let data = observe(&[log], None, None).expect("rows").data;
        assert!((data.rates(0)[0] - 811_748.0 / 9.5).abs() < 1e-6);
        assert!((data.watts(0) - 1047.5 / 9.5).abs() < 1e-9);
    }

    #[test]
    fn a_log_without_energy_says_what_to_record() {
        let log = PerfStatLog::parse("l", "w", "1.0,10,,cycles,4,100.00\n").expect("records");
        let error = observe(&[log], None, None).expect_err("no energy");
        assert!(error.to_string().contains("record power/energy-pkg/ too"), "{error}");
    }

    #[test]
    fn tables_are_not_taken_for_logs() {
        assert!(!looks_like_perf_stat("timestamp,watts,cycles\n1,2,3\n"));
        assert!(!looks_like_perf_stat("1,2,3\n4,5,6\n"));
        assert!(!looks_like_perf_stat(""));
    }
}
