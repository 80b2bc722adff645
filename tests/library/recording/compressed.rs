//! Records compressed with zstd: one stream through many records, cut anywhere.

use eprof_testbed::recording_builder::{Event, File};
use perf_data::attr::{EventAttr, flag};
use perf_data::format::{feature, misc, record_type, sample_type};
use perf_data::record::Record;
use perf_data::{ByteOrder, PerfData, RawRecord, ReadError};
use zstd::stream::raw::{Encoder, InBuffer, Operation, OutBuffer};

fn event() -> Event {
    let attr = EventAttr {
        sample_type: sample_type::IP | sample_type::TIME | sample_type::CALLCHAIN,
        flags: flag::SAMPLE_ID_ALL,
        ..EventAttr::default()
    };
    Event { attr, ids: vec![], name: "cycles" }
}

fn sample(file: &File, number: u64) -> Vec<u8> {
    let depth = number % 7;
    let chain: Vec<u64> = (0..depth).map(|level| 0x1000 * level + number).collect();
    let body = file.bytes().u64s(&[number, 1_000 + number, depth]).u64s(&chain).bytes;
    file.record_bytes(record_type::SAMPLE, misc::USER, &body)
}

/// Compresses pieces as perf does: one stream, flushed after each piece.
pub struct Compressor {
    stream: Encoder<'static>,
}

impl Compressor {
    pub fn new() -> Self {
        Self { stream: Encoder::new(1).expect("a compressor") }
    }

    pub fn piece(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut compressed = Vec::with_capacity(bytes.len() + 4096);
        let mut input = InBuffer::around(bytes);
        let mut output = OutBuffer::around(&mut compressed);
        self.stream.run(&mut input, &mut output).expect("room enough");
        assert_eq!(input.pos(), bytes.len());
        assert_eq!(self.stream.flush(&mut output).expect("room enough"), 0);
        compressed
    }
}

pub fn add_compressed(file: &mut File, kind: u32, compressed: &[u8]) {
    let body = match kind {
        record_type::COMPRESSED2 => {
            let mut body = file.bytes().u64(compressed.len() as u64).raw(compressed).bytes;
            body.resize(body.len().next_multiple_of(8), 0xaa);
            body
        }
        _ => compressed.to_vec(),
    };
    file.record(kind, 0, &body);
}

/// What the records of a recording say, and the error at the end.
fn contents(recording: &PerfData) -> (Vec<String>, Option<ReadError>) {
    let mut records = recording.records();
    let mut found = Vec::new();
    loop {
        match records.next() {
            Ok(Some((_, context, record))) => found.push(format!("{context:?} {record:?}")),
            Ok(None) => return (found, None),
            Err(error) => return (found, Some(error)),
        }
    }
}

fn addresses(recording: &PerfData) -> Vec<u64> {
    let mut records = recording.records();
    let mut found = Vec::new();
    while let Some((_, _, record)) = records.next().expect("sound records") {
        if let Record::Sample(sample) = record {
            found.extend(sample.ip);
        }
    }
    found
}

/// The same samples plain, and compressed in pieces of `piece` bytes with a round mark behind each.
fn plain_and_compressed(order: ByteOrder, kind: u32, samples: u64, piece: usize) -> (File, File) {
    let mut plain = File::new(vec![event()]).of_order(order);
    let mut packed = plain.clone();
    plain.data = (0..samples).flat_map(|number| sample(&plain, number)).collect();
    let mut compressor = Compressor::new();
    for piece in plain.data.chunks(piece) {
        let compressed = compressor.piece(piece);
        add_compressed(&mut packed, kind, &compressed);
        packed.record(record_type::FINISHED_ROUND, 0, b"");
    }
    (plain, packed)
}

#[test]
fn compressed_records_are_those_that_were_compressed() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for kind in [record_type::COMPRESSED, record_type::COMPRESSED2] {
            // Pieces that end within headers, within records, and that hold many records.
            for piece in [5, 41, 1000, 40_000] {
                let (plain, packed) = plain_and_compressed(order, kind, 300, piece);
                let expected = addresses(&PerfData::from_bytes(plain.build()).expect("sound"));
                for bytes in [packed.build(), packed.build_pipe()] {
                    let found = addresses(&PerfData::from_bytes(bytes).expect("sound"));
                    assert_eq!(found, expected, "{order:?}, type {kind}, pieces of {piece}");
                }
            }
        }
    }
}

#[test]
fn one_compressed_record_may_hold_many_chunks_of_records() {
    let (plain, packed) = plain_and_compressed(ByteOrder::Little, record_type::COMPRESSED, 20_000, 300_000);
    assert!(plain.data.len() > 900_000 && packed.data.len() < plain.data.len() / 3);
    let expected = addresses(&PerfData::from_bytes(plain.build()).expect("sound"));
    assert_eq!(addresses(&PerfData::from_bytes(packed.build()).expect("sound")), expected);
}

#[test]
fn every_piece_may_be_a_frame_of_its_own() {
    let mut file = File::new(vec![event()]);
    for number in 0..10 {
        let frame = Compressor::new().piece(&sample(&file, number));
        add_compressed(&mut file, record_type::COMPRESSED2, &frame);
    }
    // A new frame begins where the last one did not end: that is damage.
    let recording = PerfData::from_bytes(file.build()).expect("sound");
    let (found, error) = contents(&recording);
    assert_eq!(found.len(), 1);
    assert!(matches!(error, Some(ReadError::Compressed { .. })), "{error:?}");

    let mut file = File::new(vec![event()]);
    for number in 0..10 {
        let frame = zstd::bulk::compress(&sample(&file, number), 1).expect("a compressor");
        add_compressed(&mut file, record_type::COMPRESSED2, &frame);
    }
    let recording = PerfData::from_bytes(file.build()).expect("sound");
    assert_eq!(addresses(&recording), (0..10).collect::<Vec<u64>>());
}

#[test]
fn positions_of_expanded_records_hold_until_released() {
    let (_, packed) = plain_and_compressed(ByteOrder::Little, record_type::COMPRESSED, 300, 1000);
    let recording = PerfData::from_bytes(packed.build()).expect("sound");
    let mut records = recording.records();
    let mut positions = Vec::new();
    while let Some(raw) = records.next_raw().expect("sound") {
        if raw.kind == record_type::SAMPLE {
            positions.push(raw.position);
        }
    }
    assert!(positions.is_sorted());
    let decoder = recording.decoder();
    let ip = |raw: RawRecord<'_>| match decoder.decode(&raw, &decoder.context(&raw)) {
        Ok(Record::Sample(sample)) => sample.ip,
        other => panic!("no sample: {other:?}"),
    };
    for (number, &position) in positions.iter().enumerate() {
        assert_eq!(records.get(position).map(ip), Some(Some(number as u64)));
    }
    records.release_before(positions[200]);
    assert!(records.get(positions[0]).is_none());
    assert_eq!(records.get(positions[200]).map(ip), Some(Some(200)));
    assert_eq!(records.get(positions[299]).map(ip), Some(Some(299)));
}

#[test]
fn positions_hold_around_compressed_records_that_give_nothing() {
    let mut file = File::new(vec![event()]);
    let frame = zstd::bulk::compress(b"", 1).expect("a compressor");
    for number in 0..3 {
        let record = sample(&file, number);
        file.data.extend(record);
        let useless = [&b""[..], &frame, b"no frame"][number as usize];
        add_compressed(&mut file, record_type::COMPRESSED2, useless);
        let miscounted = file.bytes().u64(1 << 40).bytes;
        file.record(record_type::COMPRESSED2, 0, &miscounted);
        let mark = file.record_bytes(record_type::FINISHED_INIT, 0, b"");
        file.data.extend(mark);
    }
    let recording = PerfData::from_bytes(file.build()).expect("sound");
    let mut records = recording.records();
    let mut found = Vec::new();
    loop {
        match records.next_raw() {
            Ok(Some(raw)) => found.push((raw.position, raw.offset, raw.kind, raw.body.to_vec())),
            Ok(None) => break,
            Err(error) => assert!(error.is_recoverable(), "{error}"),
        }
    }
    assert_eq!(found.len(), 6);
    for (position, offset, kind, body) in &found {
        let raw = records.get(*position).expect("nothing was released");
        assert_eq!((raw.offset, raw.kind, raw.body), (*offset, *kind, &body[..]));
    }
}

#[test]
fn what_was_expanded_before_damage_is_given_out() {
    let (_, mut packed) = plain_and_compressed(ByteOrder::Little, record_type::COMPRESSED, 300, 1000);
    let whole = PerfData::from_bytes(packed.build()).expect("sound");
    let expected = contents(&whole).0;
    let offset = packed.data_offset() as u64;
    let end = packed.data.len();
    add_compressed(&mut packed, record_type::COMPRESSED, b"this is no continuation of any stream");
    let (found, error) = contents(&PerfData::from_bytes(packed.build()).expect("sound"));
    assert_eq!(found, expected);
    let Some(ReadError::Compressed { offset: at, .. }) = error else { panic!("no error: {error:?}") };
    assert_eq!(at, offset + end as u64);
}

/// Reads on behind everything that can be read behind; gives the addresses and the offsets of errors.
fn read_on(recording: &PerfData) -> (Vec<u64>, Vec<u64>) {
    let (mut found, mut offsets) = (Vec::new(), Vec::new());
    let mut records = recording.records();
    loop {
        match records.next() {
            Ok(Some((_, _, Record::Sample(sample)))) => found.extend(sample.ip),
            Ok(Some(_)) => {}
            Ok(None) => return (found, offsets),
            Err(ReadError::Compressed { offset, .. }) => offsets.push(offset),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn damage_costs_the_rest_of_its_stream_and_no_more() {
    // Records of one frame each, then a stream of three records.
    let mut file = File::new(vec![event()]);
    let mut places = Vec::new();
    for number in 0..6 {
        places.push(file.data.len());
        let frame = zstd::bulk::compress(&sample(&file, number), 1).expect("a compressor");
        add_compressed(&mut file, record_type::COMPRESSED, &frame);
        file.record(record_type::FINISHED_ROUND, 0, b"");
    }
    let mut compressor = Compressor::new();
    for number in 6..9 {
        places.push(file.data.len());
        let compressed = compressor.piece(&sample(&file, number));
        add_compressed(&mut file, record_type::COMPRESSED, &compressed);
    }
    let first = file.data_offset();
    let read_damaged = |number: usize| {
        let mut bytes = file.build();
        // The frame's header, behind its magic number.
        bytes[first + places[number] + 12..][..4].fill(0xff);
        read_on(&PerfData::from_bytes(bytes).expect("sound"))
    };
    let offset = |number: usize| (first + places[number]) as u64;
    assert_eq!(read_damaged(2), (vec![0, 1, 3, 4, 5, 6, 7, 8], vec![offset(2)]));
    assert_eq!(read_damaged(6), ((0..6).collect(), vec![offset(6), offset(7), offset(8)]));
}

#[test]
fn an_incomplete_record_at_the_end_of_the_stream_is_a_truncation() {
    let mut file = File::new(vec![event()]);
    let record = sample(&file, 6);
    let compressed = Compressor::new().piece(&record[..record.len() - 4]);
    add_compressed(&mut file, record_type::COMPRESSED, &compressed);
    let (found, error) = contents(&PerfData::from_bytes(file.build()).expect("sound"));
    assert!(found.is_empty());
    let Some(ReadError::Truncated { needed, present, .. }) = error else { panic!("{error:?}") };
    assert_eq!((needed, present), (record.len() as u64, record.len() as u64 - 4));

    // Where the file is cut off besides, that is said once.
    let mut bytes = file.build();
    bytes.truncate(file.data_offset() + file.data.len());
    let promised = file.data.len() as u64 + 1_000_000;
    bytes[48..56].copy_from_slice(&promised.to_le_bytes());
    let recording = PerfData::from_bytes(bytes).expect("sound");
    let mut records = recording.records();
    assert!(records.next().is_err_and(|error| error.is_truncation()));
    assert!(records.next().is_ok_and(|record| record.is_none()));
}

#[test]
fn a_length_beyond_the_record_is_damage() {
    for length in [17, 1 << 40, u64::MAX - 17, u64::MAX] {
        let mut file = File::new(vec![event()]);
        let body = file.bytes().u64(length).u64(0).bytes;
        file.record(record_type::COMPRESSED2, 0, &body);
        let (_, error) = contents(&PerfData::from_bytes(file.build()).expect("sound"));
        assert!(matches!(error, Some(ReadError::Compressed { .. })), "{length}: {error:?}");
    }
}

#[test]
fn an_expansion_beyond_the_recorders_rings_is_refused() {
    // 4 MiB of small records shrink to a few hundred bytes.
    let mut file = File::new(vec![event()]);
    let record = file.record_bytes(record_type::FINISHED_INIT, 0, b"");
    let records = record.repeat(4 << 17);
    let compressed = zstd::bulk::compress(&records, 19).expect("a compressor");
    assert!(compressed.len() < 4096);
    add_compressed(&mut file, record_type::COMPRESSED, &compressed);
    let all = contents(&PerfData::from_bytes(file.build()).expect("sound"));
    assert_eq!((all.0.len(), all.1.is_none()), (4 << 17, true));

    let ring_size = 1 << 20;
    file.features =
        vec![(feature::COMPRESSED, file.bytes().u32(1).u32(1).u32(1).u32(9).u32(ring_size).bytes)];
    let (found, error) = contents(&PerfData::from_bytes(file.build()).expect("sound"));
    let Some(ReadError::Expansion { limit, .. }) = error else { panic!("no error: {error:?}") };
    assert_eq!(limit, u64::from(ring_size));
    assert!(found.len() * 8 <= 2 * ring_size as usize);
}

/// Most compressed bytes that perf puts into one record.
const LONGEST_PAYLOAD: usize = 65_519;

/// Appends compressed bytes as perf 6.16 writes them when they are too many for the record's 16-bit size.
fn add_overflowing(file: &mut File, compressed: &[u8]) {
    let mut pieces = compressed.chunks(LONGEST_PAYLOAD);
    let first = pieces.next().expect("more than nothing");
    let rest: Vec<_> = pieces.collect();
    let written = 16 * (1 + rest.len()) + compressed.len();
    assert!(written.next_multiple_of(8) > usize::from(u16::MAX), "that would fit");
    let size = written.next_multiple_of(8) as u16;
    let head = file.bytes().u32(record_type::COMPRESSED2).u16(0).u16(size).u64(written as u64 - 16);
    file.data.extend(head.raw(first).bytes);
    for piece in rest {
        let size = 16 + piece.len() as u16;
        let head = file.bytes().u32(record_type::COMPRESSED2).u16(0).u16(size).u64(0xdead_beef);
        file.data.extend(head.raw(piece).bytes);
    }
}

/// Samples that hardly shrink.
fn noise(file: &File, samples: u64) -> Vec<u8> {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 33
    };
    let sample = |number| {
        let chain: Vec<u64> = (0..40).map(|_| random()).collect();
        let body = file.bytes().u64s(&[number, number, 40]).u64s(&chain).bytes;
        file.record_bytes(record_type::SAMPLE, misc::USER, &body)
    };
    (0..samples).flat_map(sample).collect()
}

#[test]
fn records_whose_length_overflowed_are_read_where_perf_gives_up() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let mut file = File::new(vec![event()]).of_order(order);
        let mut compressor = Compressor::new();
        let stream: Vec<u8> =
            noise(&file, 1200).chunks(50_000).flat_map(|piece| compressor.piece(piece)).collect();
        // One record just too long when padded, two records, four, and a short one.
        let (one, rest) = stream.split_at(65_515);
        let (two, rest) = rest.split_at(80_001);
        let (four, rest) = rest.split_at(200_003);
        let (short, rest) = rest.split_at(4_000);
        add_overflowing(&mut file, one);
        file.record(record_type::FINISHED_ROUND, 0, b"");
        add_overflowing(&mut file, two);
        add_overflowing(&mut file, four);
        add_compressed(&mut file, record_type::COMPRESSED2, short);
        file.record(record_type::FINISHED_ROUND, 0, b"");
        rest.chunks(60_000).for_each(|piece| add_compressed(&mut file, record_type::COMPRESSED2, piece));
        for bytes in [file.build(), file.build_pipe()] {
            let found = addresses(&PerfData::from_bytes(bytes).expect("sound"));
            assert_eq!(found, (0..1200).collect::<Vec<u64>>());
        }
    }
}
