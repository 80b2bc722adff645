//! Files cut off or changed anywhere: no panic, no hang, no memory beyond the file's size class, and all
//! that precedes the damage.

use std::panic::catch_unwind;

use eprof_testbed::recording_builder::{Bytes, Event, File};
use perf_data::attr::{EventAttr, flag};
use perf_data::format::{misc, read_format, record_type, sample_type};
use perf_data::{ByteOrder, PerfData, ReadError};
use proptest::prelude::*;

/// A small file with a bit of everything.
fn file(order: ByteOrder) -> File {
    let attr = |fields: u64| EventAttr {
        sample_type: fields
            | sample_type::IDENTIFIER
            | sample_type::IP
            | sample_type::TID
            | sample_type::TIME
            | sample_type::CPU,
        read_format: read_format::GROUP | read_format::ID,
        sample_regs_user: 0b11,
        flags: flag::SAMPLE_ID_ALL,
        ..EventAttr::default()
    };
    let variable = sample_type::READ
        | sample_type::CALLCHAIN
        | sample_type::RAW
        | sample_type::BRANCH_STACK
        | sample_type::REGS_USER
        | sample_type::STACK_USER;
    let mut file = File::new(vec![
        Event { attr: attr(variable), ids: vec![1, 2], name: "cycles" },
        Event { attr: attr(0), ids: vec![3], name: "dummy" },
    ])
    .of_order(order);
    let trailer = |bytes: Bytes| bytes.u32(7).u32(7).u64(900).u32(0).u32(0).u64(3);
    let comm = trailer(file.bytes().u32(7).u32(7).text("app")).bytes;
    file.record(record_type::COMM, misc::COMM_EXEC, &comm);
    let map = file.bytes().u32(7).u32(7).u64s(&[0x1000, 0x1000, 0]);
    let map = trailer(map.u32(8).u32(1).u64s(&[5, 0]).u32(5).u32(2).text("/bin/app")).bytes;
    file.record(record_type::MMAP2, misc::USER, &map);
    for number in 0..3 {
        let fixed = file.bytes().u64s(&[1, 0x1000 + number]).u32(7).u32(7).u64(1_000 + number).u32(0).u32(0);
        let sample = fixed
            .u64s(&[1, 50, 1])
            .u64s(&[2, 0x1000, 0x1010])
            .u32(4)
            .raw(b"rawd")
            .u64s(&[1, 1, 2, 3])
            .u64s(&[2, 10, 11])
            .u64(8)
            .raw(b"12345678")
            .u64(8)
            .bytes;
        file.record(record_type::SAMPLE, misc::USER, &sample);
        let plain = file.bytes().u64s(&[3, 0]).u32(7).u32(7).u64(1_000).u32(0).u32(0).bytes;
        file.record(record_type::SAMPLE, misc::USER, &plain);
        file.record(record_type::FINISHED_ROUND, 0, b"");
    }
    let stream = zstd::bulk::compress(&file.data, 1).expect("a compressor");
    file.record(record_type::COMPRESSED, 0, &stream);
    file
}

/// Reads everything; gives the number of sound records and the fatal error, if any.
fn read(recording: &PerfData) -> (usize, Option<ReadError>) {
    let mut records = recording.records();
    let mut sound = 0;
    loop {
        match records.next() {
            Ok(Some(_)) => sound += 1,
            Ok(None) => return (sound, None),
            Err(error) if error.is_recoverable() => {}
            Err(error) => {
                assert!(records.next().is_ok_and(|after| after.is_none()), "goes on after {error}");
                return (sound, Some(error));
            }
        }
    }
}

#[test]
fn the_sound_file_reads_whole() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let recording = PerfData::from_bytes(file(order).build()).expect("sound");
        let (records, error) = read(&recording);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(records, 22);
    }
}

#[test]
fn a_file_cut_off_anywhere_reads_up_to_there() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let file = file(order);
        let data = file.data_offset()..file.data_offset() + file.data.len();
        let bytes = file.build();
        let mut most = 0;
        for length in 0..bytes.len() {
            let recording = match PerfData::from_bytes(bytes[..length].to_vec()) {
                Ok(recording) => recording,
                Err(error) => {
                    assert!(length < data.start, "at {length}: {error}");
                    continue;
                }
            };
            let (records, error) = read(&recording);
            assert!(records >= most, "at {length}");
            most = records;
            if length < data.end {
                assert!(!recording.is_complete());
                let Some(ReadError::Truncated { offset, needed, present }) = error else {
                    panic!("at {length}: {error:?}");
                };
                assert_eq!(offset + present, length as u64);
                assert!(needed > present);
            } else {
                // All records are there, and what was said behind them is missing.
                assert!(error.is_none() && recording.is_complete(), "at {length}: {error:?}");
                assert!(recording.features_cut_off() > 0, "at {length} of {}", bytes.len());
            }
        }
        assert_eq!(most, 22);
        let whole = PerfData::from_bytes(bytes).expect("sound");
        assert_eq!(whole.features_cut_off(), 0);
    }
}

#[test]
fn a_pipe_cut_off_anywhere_reads_up_to_there() {
    let bytes = file(ByteOrder::Little).build_pipe();
    let mut most = 0;
    for length in 0..bytes.len() {
        let Ok(recording) = PerfData::from_bytes(bytes[..length].to_vec()) else { continue };
        let (records, error) = read(&recording);
        assert!(records >= most, "at {length}");
        most = records;
        // A pipe does not say how long it is: at the end of a record it may just be over.
        assert!(error.is_none_or(|error| error.is_truncation()), "at {length}");
    }
    assert!(most > 12);
}

#[test]
fn a_record_of_impossible_size_ends_the_reading_there() {
    let mut file = file(ByteOrder::Little);
    let at = file.data.len();
    file.data.extend(file.bytes().u32(record_type::SAMPLE).u16(0).u16(7).bytes);
    file.record(record_type::FINISHED_ROUND, 0, b"");
    let (records, error) = read(&PerfData::from_bytes(file.build()).expect("sound"));
    assert_eq!(records, 22);
    let Some(ReadError::RecordSize { offset, size: 7 }) = error else { panic!("{error:?}") };
    assert_eq!(offset, (file.data_offset() + at) as u64);
}

#[test]
fn a_sample_too_short_for_its_fields_is_told_and_passed_over() {
    let mut file = file(ByteOrder::Little);
    let at = file.data.len();
    // A callchain of 2^61 entries, whose length in bytes wraps to 0.
    let fixed = file.bytes().u64s(&[1, 0x1000]).u32(7).u32(7).u64(1_000).u32(0).u32(0);
    let body = fixed.u64s(&[0, 1 << 61]).bytes;
    file.record(record_type::SAMPLE, 0, &body);
    file.record(record_type::FINISHED_ROUND, 0, b"");
    let recording = PerfData::from_bytes(file.build()).expect("sound");
    let mut records = recording.records();
    (0..22).for_each(|_| assert!(records.next().is_ok_and(|record| record.is_some())));
    let error = records.next().expect_err("damaged");
    let ReadError::Malformed { offset, kind, field } = error else { panic!("{error}") };
    assert_eq!(offset, (file.data_offset() + at) as u64);
    assert_eq!((kind, field), (record_type::SAMPLE, "callchain"));
    assert!(records.next().is_ok_and(|record| record.is_some()), "the next record is sound");
    assert!(records.next().is_ok_and(|record| record.is_none()));
}

#[test]
fn ids_that_overlap_cannot_multiply_memory() {
    // A thousand attributes, each claiming the whole file as its ids.
    let attr = EventAttr { sample_type: sample_type::IP, ..EventAttr::default() };
    let events = (0..1000).map(|_| Event { attr, ids: vec![], name: "" }).collect();
    let mut bytes = File::new(events).build();
    let length = bytes.len() as u64 / 8 * 8;
    for entry in bytes[104..].chunks_exact_mut(128) {
        entry[120..128].copy_from_slice(&length.to_le_bytes());
    }
    let refused = PerfData::from_bytes(bytes);
    assert!(matches!(refused, Err(ReadError::Header { .. })), "{refused:?}");
}

proptest! {
    /// Whatever is changed in a file, reading it ends, with records or an error.
    #[test]
    fn a_damaged_file_is_no_more_than_an_error(
        big_endian: bool,
        pipe: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        words in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 0..2),
        cut in any::<prop::sample::Index>(),
    ) {
        let file = file(if big_endian { ByteOrder::Big } else { ByteOrder::Little });
        let mut bytes = if pipe { file.build_pipe() } else { file.build() };
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        for (place, value) in words {
            let place = place.index(bytes.len() / 8) * 8;
            bytes[place..place + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes.truncate(bytes.len() / 2 + cut.index(bytes.len() / 2 + 1));
        let length = bytes.len();
        let outcome = catch_unwind(|| {
            let Ok(recording) = PerfData::from_bytes(bytes) else { return 0 };
            read(&recording).0
        });
        // Compressed bytes expand, but not without limit.
        prop_assert!(outcome.is_ok_and(|records| records < 4096 * length));
    }
}
