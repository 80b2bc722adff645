//! A perf.data file written as the input says, finished or not, compressed or not, must be read back as it was written.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use perf_data::attr::{EventAttr, flag};
use perf_data::compress::RecordCompressor;
use perf_data::encode::{self, SampleFields, TRAILER_FIELDS, WRITABLE_FIELDS};
use perf_data::format::sample_type;
use perf_data::payload::PayloadEvent;
use perf_data::record::{EventIndex, Record};
use perf_data::{EventDesc, Features, PerfData, PerfDataWriter, Timestamp};

const PAYLOADS: PayloadEvent = PayloadEvent::new(0);
const VALUE: PayloadEvent = PayloadEvent::new(1);
/// Longer raw data and callchains are cut.
const LONGEST: usize = 4000;

/// A sample as it is to be read: its event, time, callchain and raw data.
type Written = (u32, u64, Vec<u64>, Vec<u8>);

fuzz_target!(|input: &[u8]| {
    let Some((&[how, fields], input)) = input.split_first_chunk() else { return };
    let (is_finished, is_compressed) = (how & 1 != 0, how & 2 != 0);
    // Each bit chooses a field that may be left out.
    let optional = [sample_type::IP, sample_type::CALLCHAIN, sample_type::PERIOD, sample_type::RAW];
    let chosen = optional.iter().enumerate().filter(|(bit, _)| fields >> bit & 1 != 0);
    let kind = chosen.fold(TRAILER_FIELDS, |kind, (_, field)| kind | field);
    assert_eq!(kind & !WRITABLE_FIELDS, 0);

    let attr = EventAttr { sample_type: kind, flags: flag::SAMPLE_ID_ALL, ..EventAttr::default() };
    let sampled = EventDesc { name: "sampled".to_owned(), attr, ids: vec![1, 2] };
    let events = vec![PAYLOADS.describe("payloads"), VALUE.describe("value"), sampled];
    let mut writer = PerfDataWriter::create(Cursor::new(Vec::new()), events).expect("memory");

    let mut records = Vec::new();
    VALUE.write_in_parts(Timestamp::from_nanos(1), 0, input, &mut records).expect("parts fit");
    let written = write(input, kind, &mut records);
    if is_compressed {
        let mut compressor = RecordCompressor::new(1).expect("zstd");
        let mut compressed = Vec::new();
        compressor.compress([&records[..]], &mut compressed).expect("zstd");
        records = compressed;
    }
    writer.write_raw(&records).expect("memory");
    let bytes = if is_finished {
        writer.finish(&Features::default()).expect("memory").into_inner()
    } else {
        writer.commit().expect("memory");
        writer.get_ref().get_ref().clone()
    };

    let file = PerfData::from_bytes(bytes).expect("a file");
    assert_eq!(file.is_complete(), is_finished);
    let value = file.joined_parts(EventIndex(1), input.len()).expect("all parts");
    assert_eq!(value.bytes, input);
    assert_eq!(read(&file), written);
});

/// Writes samples, each as its first bytes say.
fn write(mut input: &[u8], kind: u64, out: &mut Vec<u8>) -> Vec<Written> {
    let mut written = Vec::new();
    while let Some((&[which, time, length], rest)) = input.split_first_chunk() {
        let end = rest.len().min(usize::from(length) * 16).min(LONGEST);
        let (data, rest) = rest.split_at(end);
        input = rest;
        let stamp = Timestamp::from_nanos(u64::from(time));
        let has = |field: u64| kind & field != 0;
        if which % 2 == 0 {
            PAYLOADS.write(stamp, 0, data, out).expect("short");
            written.push((0, stamp.as_nanos(), Vec::new(), padded(data)));
        } else {
            let callchain: Vec<u64> =
                data.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
            let id = 1 + u64::from(which >> 1 & 1);
            let sample =
                SampleFields { id, time: stamp, callchain: &callchain, raw: data, ..SampleFields::default() };
            encode::sample(kind, &sample, out).expect("short");
            let raw = if has(sample_type::RAW) { padded(data) } else { Vec::new() };
            let callchain = if has(sample_type::CALLCHAIN) { callchain } else { Vec::new() };
            written.push((2, stamp.as_nanos(), callchain, raw));
        }
    }
    written
}

/// Raw data as they are written.
fn padded(data: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    data.resize((data.len() + 4).next_multiple_of(8) - 4, 0);
    data
}

/// All samples but those of the value.
fn read(file: &PerfData) -> Vec<Written> {
    let mut found = Vec::new();
    let mut records = file.records();
    while let Some((_, context, record)) = records.next().expect("sound") {
        let (Record::Sample(sample), Some(event)) = (record, context.event) else { continue };
        if event != EventIndex(1) {
            let time = context.time.expect("written").as_nanos();
            found.push((event.0, time, sample.callchain.entries().collect(), sample.raw.to_vec()));
        }
    }
    found
}
