//! Logs of `perf stat`: one row per interval of `-I N -x,`, or one row of a whole run's totals. What
//! stands between the fields, and what separates fractions, is found as in any other table.
//!
//! perf's quirks are undone here. Versions around 4.1 print the unit of RAPL events with a line break
//! inside, so that records fall into two lines. The first interval covers the time since perf opened its
//! counters, which can be several times what its stamp says; how long it was is told by the time the
//! counters ran. Counters in joules are turned into watts, and values of the parts of a machine
//! (`--per-socket`, `--per-core`, `-A`) are added up.

mod records;

use std::collections::BTreeMap;

pub use records::looks_like_perf_stat;

use self::records::{Entry, machine_readable, rejoin_broken_lines, totals};
use super::ObservationError;
use super::observed::Observed;
use super::rates::{RateRow, Rates};
use crate::numerics::quantiles::median;
use crate::power_model::dataset::{Dataset, Observation};
use crate::tables::Grid;

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

/// An interval whose counters ran this much longer or shorter than its stamps say has a wrong stamp.
const STAMP_TOLERANCE: f64 = 0.1;

impl PerfStatLog {
    /// Names of the events that were counted.
    pub fn event_names(&self) -> impl Iterator<Item = String> + '_ {
        self.events.iter().map(|event| event.name.clone())
    }

    /// Reads a log. `name` is for messages; `workload` is what ran.
    ///
    /// # Errors
    /// [`ObservationError::NoRows`] if the text holds no record.
    pub fn parse(name: &str, workload: &str, text: &str) -> Result<Self, ObservationError> {
        let text = rejoin_broken_lines(text);
        let grid;
        let (entries, elapsed) = if text.contains("Performance counter stats for") {
            totals(&text)
        } else {
            grid = Grid::read(&text);
            (grid.rows().filter_map(machine_readable).collect(), None)
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
/// energy, and every event is taken that is not in joules, that all logs have, and that `except` does not
/// name. Names may be lists with commas.
///
/// # Errors
/// [`ObservationError::NoPower`], [`ObservationError::NoSuchEvent`] or [`ObservationError::NoRows`].
pub fn observe(
    logs: &[PerfStatLog],
    power: Option<&str>,
    events: Option<&[String]>,
    except: &[String],
) -> Result<Observed, ObservationError> {
    let find = |log: &PerfStatLog, name: &str| {
        log.events.iter().position(|event| event.name == name).ok_or_else(|| ObservationError::NoSuchEvent {
            file: log.name.clone(),
            event: name.to_owned(),
            have: log.events.iter().map(|event| event.name.clone()).collect(),
        })
    };
    let columns: Vec<String> = match events {
        Some(events) => named(logs, events),
        None => logs.first().map_or_else(Vec::new, |first| {
            let shared =
                |name: &str| logs.iter().all(|log| log.events.iter().any(|event| event.name == name));
            let counted = first.events.iter().filter(|event| !event.joules && shared(&event.name));
            counted.map(|event| event.name.clone()).collect()
        }),
    };
    let except = named(logs, except);
    let columns: Vec<String> = columns.into_iter().filter(|name| !except.contains(name)).collect();
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

/// The rates of these events in all intervals, whether energy was counted or not.
///
/// # Errors
/// [`ObservationError::NoSuchEvent`] if one is missing, [`ObservationError::NoRows`] if no interval has all of them.
pub fn rates(logs: &[PerfStatLog], events: &[String]) -> Result<Rates, ObservationError> {
    let mut found = Rates::default();
    let mut left_out = 0;
    for log in logs {
        let place = |name: &String| {
            log.events.iter().position(|event| event.name == *name).ok_or_else(|| {
                ObservationError::NoSuchEvent {
                    file: log.name.clone(),
                    event: name.clone(),
                    have: log.events.iter().map(|event| event.name.clone()).collect(),
                }
            })
        };
        let places: Vec<usize> = events.iter().map(place).collect::<Result<_, _>>()?;
        found.notes.extend(log.notes.iter().cloned());
        for (at, interval) in log.intervals.iter().enumerate() {
            let rates: Vec<f64> =
                places.iter().map(|&place| interval.counts[place] / interval.seconds).collect();
            if rates.iter().all(|rate| rate.is_finite()) {
                let (workload, file) = (log.workload.clone(), log.name.clone());
                found.rows.push(RateRow { rates, workload, file, row: at + 1 });
            } else {
                left_out += 1;
            }
        }
    }
    if found.rows.is_empty() {
        let file = logs.iter().map(|log| log.name.as_str()).collect::<Vec<_>>().join(", ");
        let reason = "every interval lacks a count".to_owned();
        return Err(ObservationError::NoRows { file, reason });
    }
    if left_out > 0 {
        found.notes.push(format!("{left_out} intervals lack a count and were left out"));
    }
    Ok(found)
}

/// Names of events, each by itself. A name that an event has is no list, though it has commas.
fn named(logs: &[PerfStatLog], names: &[String]) -> Vec<String> {
    let is_event = |name: &str| logs.iter().any(|log| log.events.iter().any(|event| event.name == name));
    let each = |name: &String| -> Vec<String> {
        if is_event(name) {
            return vec![name.clone()];
        }
        name.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
    };
    names.iter().flat_map(each).collect()
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
        let observed = observe(&[log], None, None, &[]).expect("rows");
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
        let data = observe(&[log], None, None, &[]).expect("rows").data;
        assert_eq!((data.rates(0), data.watts(0)), (&[30.0][..], 7.0));
        let twice =
            "1.0,10,,cycles,4,100.00\n1.0,11,,cycles,4,100.00\n1.0,7,Joules,power/energy-pkg/,1,100.00\n";
        let log = PerfStatLog::parse("l", "w", twice).expect("records");
        assert_eq!(observe(&[log], None, None, &[]).expect("rows").data.rates(0), [10.0]);
    }

    #[test]
    fn totals_for_people_are_one_row() {
        let text = "noise\n Performance counter stats for 'system wide':\n\n   811,748      cycles   # 1 GHz\n\
                    1047.50 Joules\n power/energy-pkg/    \n\n      9.5 seconds time elapsed\n";
        assert!(looks_like_perf_stat(text));
        let log = PerfStatLog::parse("l", "w", text).expect("records");
        let data = observe(&[log], None, None, &[]).expect("rows").data;
        assert!((data.rates(0)[0] - 811_748.0 / 9.5).abs() < 1e-6);
        assert!((data.watts(0) - 1047.5 / 9.5).abs() < 1e-9);
    }

    #[test]
    fn events_are_named_alone_and_in_lists() {
        let text = "1.0,10,,cpu/event=0x3c,umask=0x0/,4,100.00\n1.0,11,,cycles,4,100.00\n\
                    1.0,12,,misses,4,100.00\n1.0,7,Joules,power/energy-pkg/,1,100.00\n";
        let text = text.replace(',', ";").replace("0x3c;", "0x3c,");
        let log = [PerfStatLog::parse("l", "w", &text).expect("records")];
        let columns = |events: &[&str], except: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            let events = owned(events);
            let events = (!events.is_empty()).then_some(events.as_slice());
            observe(&log, None, events, &owned(except)).map(|observed| observed.data.columns().to_vec())
        };
        assert_eq!(columns(&["cpu/event=0x3c,umask=0x0/"], &[]).expect("one").len(), 1);
        assert_eq!(columns(&["misses, cycles"], &[]).expect("two"), ["misses", "cycles"]);
        assert_eq!(columns(&[], &["cycles,cpu/event=0x3c,umask=0x0/"]).expect("others").len(), 2);
        assert_eq!(columns(&[], &["cycles", "cpu/event=0x3c,umask=0x0/"]).expect("one"), ["misses"]);
        assert!(
            columns(&["volts"], &[]).expect_err("none").to_string().contains("no event `volts`; it has cpu/")
        );
    }

    #[test]
    fn a_log_without_energy_says_what_to_record() {
        let log = PerfStatLog::parse("l", "w", "1.0,10,,cycles,4,100.00\n").expect("records");
        let error = observe(&[log], None, None, &[]).expect_err("no energy");
        assert!(error.to_string().contains("record power/energy-pkg/ too"), "{error}");
    }

    #[test]
    fn other_separators_and_languages() {
        let text = "# started on Mon\n\n1.0;10;;cycles;4000000000;100.00\n1.0;7.5;Joules;power/energy-pkg/;1;100.00\n";
        let german = text.replace('.', ",");
        let tabs = german.replace(';', "\t");
        for text in [text, &german, &tabs] {
            assert!(looks_like_perf_stat(text), "{text}");
            let log = PerfStatLog::parse("l", "w", text).expect("records");
            let data = observe(&[log], None, None, &[]).expect("rows").data;
            assert_eq!((data.rates(0), data.watts(0)), (&[10.0][..], 7.5), "{text}");
        }
        let totals = " Performance counter stats for 'x':\n\n     1.811.748      cycles\n\
                      1.047,50 Joules power/energy-pkg/\n\n      9,500000000 seconds time elapsed\n";
        let log = PerfStatLog::parse("l", "w", totals).expect("totals");
        let data = observe(&[log], None, None, &[]).expect("rows").data;
        assert!((data.rates(0)[0] - 1_811_748.0 / 9.5).abs() < 1e-6);
        assert!((data.watts(0) - 1047.5 / 9.5).abs() < 1e-9);
    }

    #[test]
    fn tables_are_not_taken_for_logs() {
        assert!(!looks_like_perf_stat("timestamp,watts,cycles\n1,2,3\n"));
        assert!(!looks_like_perf_stat(",job,watts\n0,a,10\n1,b,11\n"));
        assert!(!looks_like_perf_stat("1759592247 397277 Package_0\n1759592248 397278 Package_0\n"));
        assert!(!looks_like_perf_stat("1,2,3\n4,5,6\n"));
        assert!(!looks_like_perf_stat(""));
    }

    #[test]
    fn rates_need_no_energy() {
        let text = "1.0,10,,cycles,1000000000,100.00\n1.0,20,,instructions,1000000000,100.00\n\
                    3.0,30,,cycles,2000000000,100.00\n3.0,40,,instructions,2000000000,100.00\n\
                    4.0,<not counted>,,cycles,0,0.00\n4.0,5,,instructions,1000000000,100.00\n";
        let log = || PerfStatLog::parse("l", "w", text).expect("records");
        let found = rates(&[log()], &["instructions".to_owned(), "cycles".to_owned()]).expect("rows");
        let rows: Vec<(&[f64], &str)> =
            found.rows.iter().map(|row| (row.rates.as_slice(), row.workload.as_str())).collect();
        assert_eq!(rows, [(&[20.0, 10.0][..], "w"), (&[20.0, 15.0], "w")]);
        assert_eq!(found.notes, ["1 intervals lack a count and were left out"]);
        let of_instructions = rates(&[log(), log()], &["instructions".to_owned()]).expect("rows");
        assert_eq!((of_instructions.rows.len(), of_instructions.notes.len()), (6, 0));
        let missing =
            rates(&[log()], &["cycles".to_owned(), "misses".to_owned()]).err().map(|error| error.to_string());
        assert!(missing.is_some_and(|text| text.contains("misses") && text.contains("instructions")));
        let nothing = PerfStatLog::parse("l", "w", "1.0,<not counted>,,cycles,0,0.00\n").expect("a record");
        let error = rates(&[nothing], &["cycles".to_owned()]).expect_err("no count").to_string();
        assert!(error.contains("every interval lacks a count"), "{error}");
    }

    /// The first interval was counted for 5 % more than its stamp, as clocks are: it is as long as its stamp says.
    #[test]
    fn a_stamp_is_believed_within_a_tenth() {
        let log = |first: u64| {
            let text = format!(
                "1.0,10,,cycles,{first},100.00\n2.0,10,,cycles,1000000000,100.00\n3.0,10,,cycles,1000000000,100.00\n"
            );
            let log = PerfStatLog::parse("l", "w", &text).expect("records");
            let found = rates(&[log], &["cycles".to_owned()]).expect("rows");
            (found.rows[0].rates[0], found.notes.len())
        };
        assert_eq!((log(1_050_000_000), log(950_000_000)), ((10.0, 0), (10.0, 0)));
        assert_eq!((log(1_250_000_000), log(800_000_000)), ((8.0, 1), (12.5, 1)));
    }
}
