//! Whose joules a sample's are, in a recording of everything for one program.

use std::io::Cursor;

use perf_data::attr::{EventAttr, flag};
use perf_data::encode::{self, SampleFields, SampleId};
use perf_data::format::{event_type, sample_type};
use perf_data::record::CpuMode;
use perf_data::{EventDesc, Features, PerfDataWriter};

use crate::analyze::fixture::metadata;
use crate::analyze::{self, Options};
use crate::profile::Balance;
use crate::recording::energy::EnergyReading;
use crate::recording::metadata::{Metadata, Target};
use crate::recording::{Recording, own_events};
use crate::units::{Joules, Nanoseconds, Timestamp};

const PROGRAM: u32 = 50;
const CHILD: u32 = 60;
const GRANDCHILD: u32 = 61;
const STRANGER: u32 = 70;
const RECORDER: u32 = 9;
const IDLE: u32 = 0;
const MILLISECOND: u64 = 1_000_000;
const SAMPLE_TYPE: u64 = encode::TRAILER_FIELDS | sample_type::IP | sample_type::PERIOD;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(1_000_000_000 + millis * MILLISECOND)
}

/// 600 ms of 10 W, in which these processes run in turn, a millisecond each.
fn recording(target: Target, pids: &[u32]) -> Recording {
    let mut domains = metadata().domains;
    domains.truncate(1);
    let metadata = Metadata { events: Vec::new(), target, recorder_pid: RECORDER, domains, ..metadata() };
    let attr = EventAttr {
        kind: event_type::SOFTWARE,
        sample_period: MILLISECOND,
        sample_type: SAMPLE_TYPE,
        flags: flag::SAMPLE_ID_ALL | flag::TASK | flag::USE_CLOCKID,
        clockid: 1,
        ..EventAttr::default()
    };
    let mut events = vec![EventDesc { name: "cpu-clock".to_owned(), attr, ids: vec![1] }];
    events.extend(own_events::descriptions(&metadata.domains));
    let mut writer = PerfDataWriter::create(Cursor::new(Vec::new()), events).expect("a vector takes all");
    let mut records = Vec::new();
    own_events::metadata(&metadata, at(0), &mut records).expect("short");
    for (child, parent) in [(CHILD, PROGRAM), (GRANDCHILD, CHILD)] {
        let id = SampleId { pid: child, tid: child, time: at(0), cpu: 0, id: 1 };
        encode::fork((child, child), (parent, parent), &id, &mut records).expect("short");
    }
    for milli in 0..=600 {
        if milli % 10 == 0 {
            let energy = Joules::from_joules(0.01 * milli as f64);
            let reading = EnergyReading { energy, raw: 0, uncertainty: Nanoseconds::ZERO };
            own_events::energy(0, &reading, at(milli), 0, &mut records).expect("short");
        }
        if milli > 0 {
            let pid = pids[milli as usize % pids.len()];
            let fields = SampleFields {
                id: 1,
                ip: 0x1000,
                mode: CpuMode::User,
                pid,
                tid: pid,
                time: at(milli),
                cpu: 0,
                period: MILLISECOND,
                callchain: &[],
                raw: &[],
            };
            encode::sample(SAMPLE_TYPE, &fields, &mut records).expect("short");
        }
    }
    writer.write_raw(&records).expect("a vector takes all");
    let file = writer.finish(&Features::default()).expect("a vector takes all");
    Recording::from_bytes(file.into_inner()).expect("a recording")
}

/// Joules to a tenth: of the program, of others and of the recorder.
fn rows(target: Target, pids: &[u32]) -> [f64; 3] {
    let profile = analyze::analyze(&recording(target, pids), &Options::default());
    let Balance { attributed, other_processes, recorder, .. } = profile.domains[0].balance;
    [attributed, other_processes, recorder].map(|joules| (joules.as_joules() * 10.0).round() / 10.0)
}

fn command() -> Target {
    Target::Command { argv: Vec::new(), pid: PROGRAM }
}

#[test]
fn children_are_the_programs_and_strangers_are_not() {
    let all = [PROGRAM, CHILD, GRANDCHILD, STRANGER, STRANGER, STRANGER];
    assert_eq!(rows(command(), &all), [3.0, 3.0, 0.0]);
    assert_eq!(rows(Target::Processes(vec![CHILD]), &all), [2.0, 4.0, 0.0]);
    assert_eq!(rows(Target::System, &all), [6.0, 0.0, 0.0]);
}

#[test]
fn the_recorder_pays_for_itself_whatever_is_recorded() {
    for target in [command(), Target::Processes(vec![PROGRAM]), Target::System] {
        assert_eq!(rows(target, &[PROGRAM, PROGRAM, RECORDER]), [4.0, 0.0, 2.0]);
    }
}

#[test]
fn nobody_is_charged_for_the_ticks_of_an_idle_cpu() {
    assert_eq!(rows(command(), &[PROGRAM, STRANGER, IDLE, IDLE]), [3.0, 3.0, 0.0]);
    assert_eq!(rows(Target::System, &[PROGRAM, IDLE, IDLE]), [6.0, 0.0, 0.0]);
}

/// The head counts all samples, the rows those of the program: it says how many it has more.
#[test]
fn samples_that_no_row_has_are_counted() {
    let all = [PROGRAM, CHILD, STRANGER, STRANGER, RECORDER, IDLE];
    for (target, of_others) in [(command(), 400), (Target::System, 100)] {
        let profile = analyze::analyze(&recording(target, &all), &Options::default());
        let [event] = &profile.events[..] else { panic!("one event") };
        assert_eq!((event.samples, event.of_others), (600, of_others));
        assert_eq!(profile.cells.iter().map(|cell| cell.samples).sum::<u64>(), 600 - of_others);
    }
}
