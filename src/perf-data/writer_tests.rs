use std::io::Cursor;

use proptest::prelude::*;

use super::*;
use crate::attr::{EventAttr, flag};
use crate::format::{event_type, sample_type};
use crate::record::Record;
use crate::time::Timestamp;
use crate::{EventDesc, PerfData};

const FULL: u64 = encode::WRITABLE_FIELDS;

fn event(name: &str, id: u64, sample_type: u64) -> EventDesc {
    let attr = EventAttr {
        kind: event_type::SOFTWARE,
        config: event_type::SOFTWARE_BPF_OUTPUT,
        sample_period: 7,
        sample_type,
        flags: flag::SAMPLE_ID_ALL,
        ..EventAttr::default()
    };
    EventDesc { name: name.to_owned(), attr, ids: vec![id] }
}

fn write(
    events: Vec<EventDesc>,
    samples: &[(usize, SampleFields<'_>)],
    features: Option<&Features>,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = PerfDataWriter::create(Cursor::new(&mut bytes), events).expect("memory");
    for (event, fields) in samples {
        writer.write_sample(*event, fields).expect("memory");
    }
    match features {
        Some(features) => drop(writer.finish(features).expect("memory")),
        None => writer.commit().expect("memory"),
    }
    bytes
}

/// Event, time and callchain of each sample.
fn samples_of(bytes: Vec<u8>) -> Vec<(String, u64, Vec<u64>)> {
    let recording = PerfData::from_bytes(bytes).expect("a recording");
    let mut records = recording.records();
    let mut samples = Vec::new();
    while let Some((_, context, record)) = records.next().expect("undamaged") {
        if let Record::Sample(sample) = record {
            let name = recording.events()[context.event.expect("known").0 as usize].name.clone();
            let time = context.time.expect("written").as_nanos();
            samples.push((name, time, sample.callchain.entries().collect()));
        }
    }
    samples
}

#[test]
fn names_are_read_with_and_without_the_features() {
    let events = || vec![event("tool/readings/", 1 << 62, FULL), event("cycles:u", 5, FULL)];
    for features in [None, Some(&Features::default())] {
        let recording = PerfData::from_bytes(write(events(), &[], features)).expect("a recording");
        let names: Vec<&str> = recording.events().iter().map(|event| event.name.as_str()).collect();
        assert_eq!(names, ["tool/readings/", "cycles:u"]);
        assert_eq!(recording.events()[1].attr.sample_period, 7);
        assert_eq!(recording.events()[1].ids, [5]);
        assert_eq!(recording.is_complete(), features.is_some());
    }
}

#[test]
fn the_features_are_read_as_they_were_written() {
    let written = Features {
        hostname: Some("host".into()),
        arch: Some("x86_64".into()),
        command_line: vec!["perf".into(), "record".into(), "a b".into()],
        ..Features::default()
    };
    let recording =
        PerfData::from_bytes(write(vec![event("x", 1, FULL)], &[], Some(&written))).expect("a recording");
    let features = recording.features();
    assert_eq!(features.hostname.as_deref(), Some("host"));
    assert_eq!(features.arch.as_deref(), Some("x86_64"));
    assert_eq!(features.command_line, written.command_line);
}

#[test]
fn records_after_the_last_commit_are_no_part_of_what_was_promised() {
    let mut bytes = Vec::new();
    let mut writer =
        PerfDataWriter::create(Cursor::new(&mut bytes), vec![event("x", 1, FULL)]).expect("memory");
    writer.write_sample(0, &SampleFields { id: 1, ..SampleFields::default() }).expect("memory");
    writer.commit().expect("memory");
    let committed = writer.data_end() as usize;
    writer.write_sample(0, &SampleFields { id: 1, ..SampleFields::default() }).expect("memory");
    drop(writer);
    bytes.truncate(committed);
    assert_eq!(samples_of(bytes).len(), 1);
}

#[test]
fn attributes_are_no_longer_than_they_must_be() {
    let mut long = event("x", 1, FULL);
    assert_eq!(encoded_attrs(&[long.clone()])[0].len(), 112);
    long.attr.config3 = 1;
    let attrs = encoded_attrs(&[event("y", 2, FULL), long]);
    assert!(attrs.iter().all(|attr| attr.len() == 136 && attr[4..8] == 136u32.to_le_bytes()));
}

#[test]
fn what_cannot_be_written_is_refused() {
    let mut writer =
        PerfDataWriter::create(Cursor::new(Vec::new()), vec![event("x", 1, FULL | sample_type::WEIGHT)])
            .expect("memory");
    let refused = |result: io::Result<()>| result.expect_err("refused").kind() == io::ErrorKind::InvalidInput;
    assert!(refused(writer.write_sample(0, &SampleFields::default())));
    assert!(refused(writer.write_sample(1, &SampleFields::default())));
}

/// Takes a few bytes at a time and, from some byte on, nothing more.
struct Disk {
    file: Cursor<Vec<u8>>,
    room: u64,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.room.saturating_sub(self.file.position()).min(bytes.len() as u64).min(7) as usize;
        if room == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.write(&bytes[..room])
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[test]
fn a_full_disk_leaves_all_that_was_written_before() {
    for room in (400..1200).step_by(13) {
        let disk = Disk { file: Cursor::new(Vec::new()), room };
        let Ok(mut writer) = PerfDataWriter::create(disk, vec![event("x", 1, FULL)]) else { continue };
        let mut written = 0;
        let error = loop {
            match writer.write_sample(0, &SampleFields { id: 1, ..SampleFields::default() }) {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        writer.commit().expect("the header has its place already");
        let end = writer.data_end() as usize;
        assert_eq!(samples_of(writer.get_ref().file.get_ref()[..end].to_vec()).len(), written);
    }
}

proptest! {
    #[test]
    fn samples_are_read_as_they_were_written(
        samples in prop::collection::vec((0usize..2, any::<u32>(), prop::collection::vec(any::<u64>(), 0..40)), 0..30),
        finished: bool,
    ) {
        let events = vec![event("a", 10, FULL), event("b", 20, FULL & !sample_type::PERIOD)];
        let fields: Vec<(usize, SampleFields<'_>)> = samples
            .iter()
            .map(|(event, time, chain)| {
                let time = Timestamp::from_nanos(u64::from(*time));
                let id = [10, 20][*event];
                (*event, SampleFields { id, time, callchain: chain, raw: &[1, 2, 3, 4], ..SampleFields::default() })
            })
            .collect();
        let bytes = write(events, &fields, finished.then_some(&Features::default()));
        let expected: Vec<_> = samples
            .iter()
            .map(|(event, time, chain)| (["a", "b"][*event].to_owned(), u64::from(*time), chain.clone()))
            .collect();
        prop_assert_eq!(samples_of(bytes), expected);
    }
}
